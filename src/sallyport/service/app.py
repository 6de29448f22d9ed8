"""The composition root: it builds the areas of the service in order, and connects them.

`App.areas` is the only list of areas. Operations, commands, pages, periodic tasks and reactions to a restore follow
from what each area declares (`areas.entrance`). What an area needs of another arrives in its constructor. A lambda
refers to an area that is built later.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import CollectorRegistry

from sallyport import __version__
from sallyport.agent.templates import DirectoryPlace, directory_file, endpoint_file
from sallyport.agentwire.state import Quality, Rules
from sallyport.areas.agents.area import AgentsArea
from sallyport.areas.agents.desired import release_names
from sallyport.areas.agents.reports_repo import forget_machine, forget_users
from sallyport.areas.agents.targets import AccessTargets
from sallyport.areas.audit.area import AuditArea
from sallyport.areas.clients.area import ClientsArea
from sallyport.areas.clients.client import Client
from sallyport.areas.devices.area import DevicesArea
from sallyport.areas.did.area import DidArea
from sallyport.areas.directory.area import DirectoryArea
from sallyport.areas.domains.area import DomainsArea
from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.dynamic.area import DynamicArea
from sallyport.areas.entrance import Area, Parts, Task
from sallyport.areas.events.area import EventsArea
from sallyport.areas.login.area import LoginArea
from sallyport.areas.login.first.fields import Fields as FirstFactorFields
from sallyport.areas.login.first.winbind.helpers import Helpers
from sallyport.areas.login.login import Login
from sallyport.areas.login.second.forecast import device_patience
from sallyport.areas.mfa.area import MfaArea
from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.mfa.host import ConfiguredProvider, Host
from sallyport.areas.passwords.area import PasswordsArea
from sallyport.areas.passwords.engine import failures as password_failures
from sallyport.areas.passwords.repo import forget_instance
from sallyport.areas.policy.bypass.area import BypassArea
from sallyport.areas.policy.lockouts.area import LockoutsArea
from sallyport.areas.policy.rules.area import RulesArea
from sallyport.areas.preview.area import PreviewArea
from sallyport.areas.sessions.area import SessionsArea
from sallyport.areas.signin.area import SignInArea
from sallyport.areas.tenancy import repo as tenancy_repo
from sallyport.areas.tenancy.area import TenancyArea
from sallyport.areas.tenancy.authentication import guesses_of_all_nodes
from sallyport.areas.tenancy.keys import repo as keys_repo
from sallyport.areas.tenancy.keys.key import Agent, KeyRecord
from sallyport.areas.users.area import UsersArea
from sallyport.areas.users.groups.repo import forget_policies
from sallyport.areas.users.instances.area import InstancesArea
from sallyport.areas.users.totp import STEP_S, matching_step, otpauth
from sallyport.base import log as logs
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import ConfigError, SecretError
from sallyport.certs.credentials import Credentials
from sallyport.metrics import (
    DirectoryMetrics,
    HttpMetrics,
    InventoryMetrics,
    LoginMetrics,
    MfaMetrics,
    ProcessMetrics,
    RadiusMetrics,
)
from sallyport.nodes.follower import Follower
from sallyport.nodes.notices import NoNotices, SharedNotices
from sallyport.nodes.service import Cluster
from sallyport.outgoing.http import HttpFactory
from sallyport.radius.dictionary import Dictionary
from sallyport.radius.retransmission import RFC_5080, Timers
from sallyport.service.installation import CertificatesArea, InstallationArea, certificates_of
from sallyport.service.nodes import cluster_of
from sallyport.settings.settings import Settings
from sallyport.settings.values import Address
from sallyport.store.copies import Copies
from sallyport.store.foreign import CLOCKS_US, CONFIGURATION
from sallyport.store.model import Engine, Tx
from sallyport.store.sealed import check_keys
from sallyport.store.snapshot import Configuration
from sallyport.store.vault import Vault
from sallyport.web.server import Tls

WRONG_WALLET_KEYS = 10
"""Limit of the wrong keys, and of the wrong presentations, of one token in a short time."""
ADMINISTRATORS_PASSWORD = Rules(quality=Quality(minlen=12, minclass=2, maxsequence=4, usercheck=True))

AreaT = TypeVar("AreaT", bound=Area)


@dataclass(frozen=True, slots=True)
class Overrides:
    """Parts of the service that a test replaces. None means the part that the settings select.

    patience: the time that a login may wait for the second factor; see `SecondFactor`. ntlm_auth: a function that
    returns the winbind helpers of a domain. credentials: a function that returns the files of the server's certificate.
    areas: functions that build further areas, after all others.
    """

    clock: Clock = now_us
    cluster: Cluster | None = None
    http: HttpFactory | None = None
    timers: Timers = RFC_5080
    providers: Mapping[str, type[ConfiguredProvider]] | None = None
    first_factors: Mapping[FirstFactor, type[FirstFactorFields]] | None = None
    patience: Callable[[Login, Attached], float] = device_patience
    ntlm_auth: Callable[[int], Helpers | None] | None = None
    credentials: Callable[[], Credentials | None] | None = None
    areas: Sequence[Callable[[Parts], Area]] = ()


class App:
    """The connected areas of the service, with an open store. Call `prepare` to load the data that the service holds in
    memory."""

    def __init__(
        self,
        settings: Settings,
        store: Engine,
        vault: Vault,
        dictionary: Dictionary,
        registry: CollectorRegistry,
        overrides: Overrides = Overrides(),
    ) -> None:
        clock = overrides.clock
        self.http_address: Address | None = None  # the address of the HTTP listener, when it is bound
        self.version = __version__
        self.tls: Tls | None = None
        if settings.tls_certificate and settings.tls_key:
            self.tls = Tls(settings.tls_certificate, settings.tls_key)
        self.process_metrics = ProcessMetrics(registry, self.version)
        self.http_metrics = HttpMetrics(registry)
        cluster = overrides.cluster or cluster_of(settings, store, vault, self.version, self._link_base, clock)
        self.parts = parts = Parts(
            settings,
            store,
            vault,
            dictionary,
            registry,
            Configuration(store),
            cluster,
            SharedNotices(store, lambda: cluster.id) if store.is_shared else NoNotices(),
            overrides.http or HttpFactory(egress=settings.egress),
            clock,
            self._link_base,
        )
        self._organizations = parts.configuration.hold(tenancy_repo.organizations, dict[int, int]())
        self.areas: list[Area] = []
        self._build(parts, overrides)
        self.areas += [make(parts) for make in overrides.areas]
        self.follower = Follower(store, self._on_foreign_change(), self.restored)
        for area in self.areas:
            parts.configuration.on_foreign_change(area.forget)
            parts.configuration.on_replaced(area.forget_all)

    def _add(self, area: AreaT) -> AreaT:
        self.areas.append(area)
        return area

    def _build(self, parts: Parts, overrides: Overrides) -> None:
        """Build the areas, each after those that it needs."""
        registry = parts.registry
        login_metrics, mfa_metrics = LoginMetrics(registry), MfaMetrics(registry)
        radius_metrics, inventory_metrics = RadiusMetrics(registry), InventoryMetrics(registry)
        directory_metrics = DirectoryMetrics(registry)
        self.tenancy = self._add(
            TenancyArea(
                parts,
                has_instance=lambda tx, domain_id, instance: self.instances.service.in_domain(tx, domain_id, instance),
                agent_file=self._agent_file,
            )
        )
        tenancy, keys = self.tenancy.service, self.tenancy.keys
        self.domains = self._add(
            DomainsArea(parts, has_provider=lambda domain_id: self.mfa.service.has(domain_id), forget=self._forget)
        )
        domains = self.domains.service
        for metrics in (login_metrics, inventory_metrics, directory_metrics):
            metrics.watch_domains(domains.shown)
        self.clients = self._add(
            ClientsArea(
                parts,
                radius_metrics,
                tenancy,
                tenant_of=domains.tenant_of,
                find_domain=lambda tenant_id, name: domains.named(tenant_id, name).id,
                heard=lambda tenant_id: self.devices.service.heard_addresses(tenant_id),
            )
        )
        self.devices = self._add(DevicesArea(parts, inventory_metrics))
        self.sessions = self._add(SessionsArea(parts))
        self.rules = self._add(RulesArea(parts, domains, client_names=self._client_names))
        rules = self.rules.service
        self.dynamic = self._add(
            DynamicArea(parts, domains, rules, find_client=self._find_client, timers=overrides.timers)
        )
        revocations = self.dynamic.revocations
        self.instances = self._add(
            InstancesArea(
                parts,
                deleted=(
                    keys_repo.forget_instance,
                    forget_machine,
                    lambda tx, instance_id: self.agents.service.reports.forget(tx, instance_id),
                    forget_instance,
                ),
            )
        )
        instances = self.instances.service
        self.passwords = self._add(PasswordsArea(parts, instances, deleted=forget_policies))
        policies = self.passwords.service
        guesses = guesses_of_all_nodes(parts.notices, "wallet", parts.clock, burst=WRONG_WALLET_KEYS)
        self.did = self._add(DidArea(parts, revocations, tenancy, AccessTargets(), guesses))
        self.users = self._add(
            UsersArea(
                parts,
                instances,
                policies,
                self.did.users,
                revocations,
                changed=self._users_changed,
                deleted=lambda tx, ids: self.did.users.unlink(tx, ids) or forget_users(tx, ids),
                renamed=release_names,
                issuer=lambda domain_id: domains.table.present(domain_id).issuer,
                find_person=lambda domain_id, name: self.login.people.find(domain_id, name),
                find_domain=self._find_domain,
            )
        )
        users = self.users.service
        self.agents = self._add(AgentsArea(parts, users, instances, policies, keys))
        self.directory = self._add(
            DirectoryArea(
                parts,
                revocations,
                directory_metrics,
                http_of=self._http_of,
                domains_of=lambda tenant_id: {domain.id for domain in domains.of_tenant(tenant_id)},
                find_domain=self._find_domain,
            )
        )
        self.mfa = self._add(MfaArea(parts, mfa_metrics, host=self._provider_host, kinds=overrides.providers))
        providers = self.mfa.service
        self.bypass = self._add(BypassArea(parts, revocations))
        self.lockouts = self._add(
            LockoutsArea(parts, forget_codes=lambda tx, user: self.login.calls.forget_codes(tx, user))
        )
        self.certificates = certificates_of(parts)
        self.login = self._add(
            LoginArea(
                parts,
                domains,
                self.clients,
                self.devices,
                self.sessions.service,
                users,
                self.directory.principals,
                rules,
                self.bypass.service,
                self.lockouts,
                providers,
                login_metrics,
                radius_metrics,
                mfa_metrics,
                http_of=self._http_of,
                organization_of=lambda domain_id: self._organizations.value.get(domains.tenant_of(domain_id) or 0),
                credentials=overrides.credentials or self.certificates.server,
                patience=overrides.patience,
                kinds=overrides.first_factors,
                ntlm_auth=overrides.ntlm_auth,
            )
        )
        self.preview = self._add(
            PreviewArea(parts, domains, self.clients, rules, providers, self.login, find_client=self._find_client)
        )
        self.domains.preview_with(self.preview.service, providers)
        self.events = self._add(EventsArea(parts, domains, login_metrics))
        self.audit = self._add(AuditArea(parts, tenancy, find_domain=self._find_domain))
        self.signin = self._add(
            SignInArea(
                parts,
                tenancy,
                failures=lambda password, name: [
                    each.message for each in password_failures(ADMINISTRATORS_PASSWORD, password, name)
                ],
                matching_step=matching_step,
                step_s=STEP_S,
                uri=lambda seed, name: otpauth(seed, issuer="Sallyport", account=name),
            )
        )
        self.certificate_files = self._add(
            CertificatesArea(parts, self.clients.issued, tenancy, revocations, self.login)
        )
        copies = Copies(
            parts.store,
            parts.settings.database_path,
            check=self._check_keys,
            void=self._void,
            replaced=self.restored,
            backed_up=lambda at: self.process_metrics.backed_up.set(at / SECOND),
            clock=parts.clock,
            worker=parts.settings.worker,
        )
        self.installation = self._add(InstallationArea(parts, tenancy, domains, self.login, copies))

    # --- what the areas need of each other ----------------------------------------------------------------------

    def _link_base(self) -> str:
        return self.parts.settings.link_base(self.http_address)

    def _users_changed(self, domain_id: int, name: str | None) -> None:
        """Forget the enrolments of a user, or of all users if there is no name. domain_id: 0 for all domains."""
        for each in [domain_id] if domain_id else self.domains.service.table.by_id:
            self.login.second.enrolments.forget(each, name)

    def _find_client(self, host: str) -> Client | None:
        return self.clients.service.table.find(host)

    def _client_names(self, tenant_id: int) -> Mapping[str, str]:
        return {each.name_key: each.name for each in self.clients.service.of_tenant(tenant_id)}

    def _find_domain(self, name: str) -> int:
        return self.domains.service.anywhere(name).id

    def _http_of(self, domain_id: int) -> HttpFactory:
        return self.parts.http.of(self.domains.service.tenant_of(domain_id) or 0)

    def _provider_host(self, domain_id: int) -> Host:
        """Return the parts of the service that a domain's MFA provider may use."""
        return Host(
            domain_id=domain_id,
            domain=self.domains.service.table.present(domain_id).name,
            http=self._http_of(domain_id),
            seeds=self.users.seeds,
            wallets=self.did.prompts,
            clock=self.parts.clock,
        )

    def _agent_file(self, key: KeyRecord, secret: str, wished: Mapping[str, object]) -> str:
        """Return the text of an agent's configuration file. wished: the fields of the request that override the
        defaults."""
        service = str(wished.get("service") or self._link_base())
        if key.agent == Agent.ENDPOINT:
            return endpoint_file(service, secret)
        ldap = self.login.first_settings.shown(key.domain_id).get(FirstFactor.LDAP, {})
        place = DirectoryPlace.of(ldap, wished, self.domains.service.table.present(key.domain_id).name)
        return directory_file(service, secret, key.domain_id, place)

    # --- what concerns all areas --------------------------------------------------------------------------------

    @property
    def node_tasks(self) -> list[Task]:
        """The periodic tasks that each node runs, to keep its data in memory up to date."""
        return [self.follower.run, *(task for area in self.areas for task in area.node_tasks)]

    @property
    def leader_tasks(self) -> list[Task]:
        """The periodic tasks that the node with the lease runs for all nodes.

        A node that was paused may believe that it still has the lease. Then such a task runs on two nodes at once. If
        this could do harm, the transactions of the task check the lease (`Parts.leader_store`). Another task changes a
        row only if no other node has changed the row, or changes only rows that are overdue.
        """
        return [task for area in self.areas for task in area.leader_tasks]

    def _on_foreign_change(self) -> dict[str, Callable[[int], None]]:
        """Return what to do after another node has made a change, by the kind of the change."""
        found: dict[str, Callable[[int], None]] = {CONFIGURATION: lambda _id: self.parts.configuration.look()}
        for area in self.areas:
            if twice := found.keys() & area.foreign.keys():
                raise ValueError(f"two areas react to the change {min(twice)}")
            found |= area.foreign
        return found

    def _forget(self) -> None:
        for area in self.areas:
            area.forget()

    def _void(self, tx: Tx, revoke_tokens: bool) -> None:
        """Invalidate the prompts and codes in a restored backup. If `revoke_tokens` is true, also revoke the tokens.

        The clock of another node may be ahead, so codes that only that node accepts now are invalidated too.
        """
        now = self.parts.clock()
        latest = now + (CLOCKS_US if self.parts.store.is_shared else 0)
        for area in self.areas:
            area.void(tx, latest)
            if revoke_tokens:
                area.revoke(tx, now)

    def _check_keys(self, tx: Tx) -> None:
        """Check that the master keys can decrypt the secrets in a store: the keys of the next start, and those of this
        process, which may be others after a rotation. Raises SecretError, ConfigError.

        In a restore, the check runs on the rows of the backup, before the backup replaces the store.
        """
        check_keys(tx, self.parts.vault.at_next_start(), self.parts.vault)

    async def restored(self) -> None:
        """Reload all data in memory after the store was replaced. Raises StoreError, SecretError."""
        await self.parts.configuration.restored()
        for area in self.areas:
            await area.restored()

    def apply(self, settings: Settings) -> None:
        """Apply the settings that may change while the service runs.

        These are the log level, whether the log contains the names of people, and the identity providers.
        """
        self.signin.open_id.use(settings.identity_providers)
        logs.set_level(settings.log_level)
        logs.hide_identities(self.parts.vault.pseudonyms if settings.log_identities == "hashed" else None)

    def reloaded(self) -> None:
        """Set the time of the last reload in the metrics."""
        self.process_metrics.reloaded.set(time.time())

    async def prepare(self) -> None:
        """Load the data that the service holds in memory from the store. Raises ConfigError, StoreError."""
        try:
            await self.parts.configuration.reload()
        except SecretError as error:
            raise ConfigError(str(error)) from error
        self.reloaded()
        for area in self.areas:
            await area.prepare()
