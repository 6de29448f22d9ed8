"""The entrances of what belongs to the whole installation: its certificates, nodes, workers, settings, and the copies
and keys of its store."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import trio

from sallyport.areas.certificates.service import ServerCertificates
from sallyport.areas.clients.issued import IssuedCertificates
from sallyport.areas.domains.bodies import AddDomain
from sallyport.areas.domains.operations import added
from sallyport.areas.domains.service import Domains
from sallyport.areas.dynamic.revocations import Revocations
from sallyport.areas.entrance import Area, Areas, Parts
from sallyport.areas.events.exemplars import Exemplars
from sallyport.areas.login.area import LoginArea
from sallyport.areas.login.listen import senders
from sallyport.areas.login.listen.siblings import Siblings
from sallyport.areas.tenancy.operations import new
from sallyport.areas.tenancy.service import Tenancy
from sallyport.base import log
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, in_field
from sallyport.base.wire import JSON, Row
from sallyport.certs import operations as certificate_operations
from sallyport.certs.expiry import FileExpiries, certificates_of, files_of
from sallyport.certs.folder import CertificateFolder
from sallyport.deploy import operations as setting_operations
from sallyport.metrics import OPENMETRICS, TEXT, CertificateMetrics, NodeMetrics, ProcessMetrics, render
from sallyport.metrics.workers import merged
from sallyport.nodes import operations as node_operations
from sallyport.nodes.certificates import CertificateFiles, OwnFiles, SharedFiles
from sallyport.nodes.service import NodeMetricsTask
from sallyport.outgoing.errors import ProviderError
from sallyport.service.certificates import CertificateWatch
from sallyport.settings.settings import Settings
from sallyport.shell.command import Arguments, Command, LocalOperations
from sallyport.store import operations as store_operations
from sallyport.store.audit import INSTALLATION, record
from sallyport.store.copies import Copies
from sallyport.store.foreign import CERTIFICATES
from sallyport.store.model import Tx
from sallyport.store.rotation import Rotation
from sallyport.store.sealed import Sealed, check_keys


class CertificatesArea(Area):
    """The certificates of the installation, for EAP and RadSec, and when certificates expire."""

    sealed = (Sealed("certificate_files", "content", ("name",), "certificate_files/{}", is_vital=True),)

    def __init__(
        self,
        parts: Parts,
        issued: IssuedCertificates,
        tenancy: Tenancy,
        revocations: Revocations,
        login: LoginArea,
        of_domains: ServerCertificates,
    ) -> None:
        settings = parts.settings
        self._parts, self._issued, self._tenancy, self._revocations = parts, issued, tenancy, revocations
        kept = SharedFiles if parts.store.is_shared else OwnFiles
        self.files: CertificateFiles = kept(parts.store, parts.vault, CertificateFolder(settings.data_dir.absolute()))
        self._certificates = certificates_of(settings)  # an own object, because another thread reads it
        self._expiries = FileExpiries(settings.tls_certificate, self._certificates.server)
        metrics = CertificateMetrics(parts.registry, self._expiries.read)
        domains = login.pipeline.domains
        self.watch = CertificateWatch(parts.store, login.first_settings, of_domains, lambda: domains.value, metrics)
        self.node_tasks = (self.files.run, self.watch.run)
        self.foreign = {CERTIFICATES: lambda _domain_id: self.files.changed()}

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of certificates."""
        return certificate_operations.local_operations(
            self.files,
            self._issued,
            self._tenancy,
            self._note,
            self._revocations.revoke_certified,
            self._parts.clock,
            self._named_files,
        )

    def apply(self, settings: Settings) -> None:
        """Watch the expiry of the certificates that the settings name."""
        self._expiries.api = settings.tls_certificate
        self._certificates.use(*files_of(settings))

    async def prepare(self) -> None:
        """Load the files that all nodes share."""
        await self.files.load()

    async def completed(self) -> None:
        """Load the files of the restored store. The files of this machine are stored if it has none."""
        await self.files.load()

    def _named_files(self) -> Mapping[str, Path]:
        """Return the certificate files that the settings name, by the name of the setting."""
        settings = self._parts.settings
        named = {"tls_certificate": settings.tls_certificate, "eap_certificate": settings.eap_certificate}
        return {name: path for name, path in {**named, "eap_ca": settings.eap_ca}.items() if path is not None}

    async def _note(self, action: str, target: str, changes: Mapping[str, JSON]) -> None:
        """Write an entry of the audit trail about a change that is not in the store, such as a new certificate file.
        The entry belongs to no tenant, but to the whole installation."""
        clock = self._parts.clock
        await self._parts.store.write(
            lambda tx: record(tx, action, at=clock(), tenant_id=INSTALLATION, target=target, changes=changes)
        )


class Level(Arguments):
    """Arguments of log.level. level: the lowest level to log. If None, the command only returns the current level."""

    level: Literal["debug", "info", "warning", "error"] | None = None


class Unanswered(Arguments):
    """Arguments of listen.senders. own: whether to leave out the senders of other machines."""

    own: bool = False


class MetricsFormat(Arguments):
    """Arguments of worker.metrics. kind: OPENMETRICS or TEXT."""

    kind: str = TEXT


class TestMail(Arguments):
    """Arguments of mail.test. to: the mail address."""

    to: str


class InstallationArea(Area):
    """The nodes, workers, settings and log of the service, and the copies and keys of its store. siblings: the other
    workers of this node. reload: reloads the settings of this process. Both are known when the service starts."""

    def __init__(
        self, parts: Parts, areas: Areas, tenancy: Tenancy, domains: Domains, login: LoginArea, version: str
    ) -> None:
        self._parts, self._tenancy, self._domains, self._login = parts, tenancy, domains, login
        self._areas = areas
        self._version = version
        self.metrics = ProcessMetrics(parts.registry, version)
        self._exemplars = Exemplars(parts.store, login.durations)
        self.siblings = Siblings({})
        self.reload: Callable[[], Awaitable[list[Row]]] | None = None
        self.copies = Copies(
            parts.store,
            parts.settings.database_path,
            check=self._check_keys,
            void=areas.void,
            replaced=areas.restored,
            completed=areas.completed,
            backed_up=lambda at: self.metrics.backed_up.set(at / SECOND),
            clock=parts.clock,
            worker=parts.settings.worker,
        )
        self.rotation = Rotation(
            parts.store, parts.vault, lambda: areas.sealed, parts.clock, without=partial(nodes_without_key, parts)
        )
        self.node_metrics = NodeMetricsTask(parts.cluster, parts.store, NodeMetrics(parts.registry))
        self.node_tasks = (parts.cluster.run, self.node_metrics.run, parts.configuration.watch, parts.mail.run)

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of nodes, workers, settings and the store."""
        local = LocalOperations(
            {
                **node_operations.local_operations(self._parts.cluster),
                **setting_operations.local_operations(lambda: self._parts.settings),
                **store_operations.local_operations(self.copies, self.rotation),
            }
        )
        local("domain.add")(self._add_domain)
        local("listen.senders")(self._senders)
        local("log.level")(self._set_level)
        local("mail.test")(self._send_test)
        local("settings.reload")(self._reload)
        local("worker.level")(self._set_own_level)
        local("worker.metrics")(self._own_metrics)
        local("worker.reload")(self._reload_own)
        local("worker.senders")(self._own_senders)
        return local

    async def prepare(self) -> None:
        """Delete unfinished copies, and read the time of the last backup."""
        self.metrics.loaded()
        self.copies.clear()
        await self.copies.remember()

    def _check_keys(self, tx: Tx) -> None:
        """Check that the master keys can decrypt the secrets in a store: the keys of the next start, and those of this
        process, which may be others after a rotation. Raises SecretError, ConfigError.

        In a restore, the check runs on the rows of the backup, before the backup replaces the store.
        """
        check_keys(tx, self._areas.sealed, self._parts.vault.at_next_start(), self._parts.vault)

    async def _add_domain(self, wanted: AddDomain) -> JSON:
        """Add a domain in one transaction. If its tenant does not exist yet, add the tenant too."""
        before = await self._tenancy.numbers()
        made = await added(self._domains, self._tenancy.tenant_maker(wanted.orgId, wanted.tenantId), wanted)
        return {**made.model_dump(), "new": new(before, wanted.orgId, wanted.tenantId)}

    async def _send_test(self, wanted: TestMail) -> JSON:
        name = self._parts.settings.node
        text = f"This is a test mail. The node {name} of Sallyport {self._version} has sent it."
        with in_field("to"):
            try:
                await self._parts.mail.deliver(INSTALLATION, wanted.to, "Test mail of Sallyport", text)
            except ProviderError as error:
                raise Conflict(f"the SMTP server has not accepted the mail: {error}") from None
        return {"to": wanted.to}

    async def _own_senders(self) -> JSON:
        return list[JSON](self._login.own_senders())

    async def _senders(self, wanted: Unanswered) -> JSON:
        elsewhere = [] if wanted.own else await self._login.senders_elsewhere()
        of_workers = (await self.siblings.ask("worker.senders")).values()
        lists = [self._login.own_senders(), *of_workers, elsewhere]
        return list[JSON](
            senders.merged([row for each in lists if isinstance(each, list) for row in each if isinstance(row, dict)])
        )

    async def _set_own_level(self, wanted: Level) -> JSON:
        if wanted.level is not None:
            log.set_level(wanted.level)
        return log.level()

    async def _set_level(self, wanted: Level) -> JSON:
        await self.siblings.ask("worker.level", level=wanted.level)
        return await self._set_own_level(wanted)

    async def _reload_own(self) -> JSON:
        if self.reload is None:
            raise Conflict("only a running service can reload its settings")
        return list[JSON](await self.reload())

    async def _reload(self) -> JSON:
        """Reload the settings of all workers. Return the changed settings: whether each was applied, or needs a
        restart."""
        own = await self._reload_own()
        if silent := self.siblings.numbers - (await self.siblings.ask("worker.reload")).keys():
            numbers = ", ".join(map(str, sorted(silent)))
            raise Conflict(f"these workers have not reloaded the settings: {numbers}; their log has the reason")
        return own

    async def _own_metrics(self, wanted: MetricsFormat) -> JSON:
        return await self._render(wanted.kind)

    async def _render(self, kind: str) -> str:
        """Return the metrics of this worker. kind: OPENMETRICS or TEXT."""
        if kind == OPENMETRICS:
            await self._exemplars.renew()
        return (await trio.to_thread.run_sync(render, self._parts.registry, kind)).decode()

    async def exposition(self, kind: str) -> bytes:
        """Return the metrics of all workers. kind: OPENMETRICS or TEXT."""
        own = await self._render(kind)
        if self.siblings:
            texts = {self.siblings.own: own}
            for number, text in (await self.siblings.ask("worker.metrics", kind=kind)).items():
                texts[number] = str(text)
            own = await trio.to_thread.run_sync(merged, texts)
        return own.encode()


async def nodes_without_key(parts: Parts, version: int) -> list[str]:
    """Return the names of the other live nodes whose master key is older than this version. Raises StoreError."""
    return [
        each.name
        for each in await parts.cluster.everyone()
        if each.is_alive and each.id != parts.cluster.id and each.key_version < version
    ]
