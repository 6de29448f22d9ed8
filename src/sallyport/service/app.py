"""The composition root. It builds the objects of the service from Settings and connects them.

No other module knows how the areas are connected. `logins` connects the parts of the login path.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry

from sallyport import __version__
from sallyport.agent.templates import DirectoryPlace, directory_file, endpoint_file
from sallyport.agentwire.state import Quality, Rules
from sallyport.areas.agents.desired import release_names
from sallyport.areas.agents.reports_repo import forget_machine, forget_users
from sallyport.areas.agents.service import Agents
from sallyport.areas.agents.targets import AccessTargets
from sallyport.areas.audit.service import Audit
from sallyport.areas.audit.service import Retention as AuditRetention
from sallyport.areas.clients.client import Client
from sallyport.areas.clients.issued import IssuedCertificates
from sallyport.areas.clients.service import Clients
from sallyport.areas.devices.service import Devices
from sallyport.areas.devices.sightings import Sightings
from sallyport.areas.did.area import DidArea
from sallyport.areas.directory.area import DirectoryArea
from sallyport.areas.directory.readers import checks, readers
from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.domains.enforcement import Enforcement, Reverts
from sallyport.areas.domains.removal import Removal
from sallyport.areas.domains.service import Domains
from sallyport.areas.dynamic.revocations import Revocations
from sallyport.areas.dynamic.sender import Sender
from sallyport.areas.dynamic.service import DynamicAuthorization
from sallyport.areas.events.outlets.log import LoginLog
from sallyport.areas.events.outlets.service import Outlets
from sallyport.areas.events.outlets.transport import targets_of
from sallyport.areas.events.retention import Retention
from sallyport.areas.events.service import Events
from sallyport.areas.login.first.fields import Fields as FirstFactorFields
from sallyport.areas.login.first.winbind.helpers import Helpers
from sallyport.areas.login.journal import Journal
from sallyport.areas.login.listen.senders import Senders
from sallyport.areas.login.listen.siblings import Siblings
from sallyport.areas.login.login import Login
from sallyport.areas.login.second import session as sessions
from sallyport.areas.login.second.service import device_patience
from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.mfa.host import ConfiguredProvider
from sallyport.areas.passwords.engine import failures as password_failures
from sallyport.areas.passwords.repo import forget_instance
from sallyport.areas.passwords.service import PasswordPolicies
from sallyport.areas.policy.rules.service import LoginRules
from sallyport.areas.preview.service import Preview
from sallyport.areas.preview.traffic import TrafficReader
from sallyport.areas.sessions.service import Sessions
from sallyport.areas.signin import repo as sign_in_repo
from sallyport.areas.signin.administrators import Administrators
from sallyport.areas.signin.identities import Identities
from sallyport.areas.signin.openid import OpenId
from sallyport.areas.signin.sessions import Sessions as ConsoleSessions
from sallyport.areas.tenancy import repo as tokens_repo
from sallyport.areas.tenancy.authentication import BURST, Authentication
from sallyport.areas.tenancy.keys import repo as keys_repo
from sallyport.areas.tenancy.keys.key import Agent, KeyRecord
from sallyport.areas.tenancy.keys.service import Keys
from sallyport.areas.tenancy.service import Tenancy
from sallyport.areas.users import repo as endpoints_repo
from sallyport.areas.users.accounts.service import Users
from sallyport.areas.users.groups.repo import forget_policies
from sallyport.areas.users.groups.service import Groups
from sallyport.areas.users.instances.service import Instances
from sallyport.areas.users.page import PATH as ENROLMENT_PATH
from sallyport.areas.users.service import EndpointUsers
from sallyport.areas.users.totp import STEP_S, OneTimeSeeds, matching_step, otpauth
from sallyport.base import log as logs
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import ConfigError, SecretError
from sallyport.base.wire import JSON
from sallyport.certs.credentials import Certificates, Credentials
from sallyport.certs.directory import Directory
from sallyport.certs.expiry import FileExpiries
from sallyport.metrics import (
    AgentMetrics,
    CertificateMetrics,
    CredentialMetrics,
    DirectoryMetrics,
    DomainMetrics,
    DynamicMetrics,
    HttpMetrics,
    InventoryMetrics,
    LoginMetrics,
    NodeMetrics,
    OutletMetrics,
    PresentationMetrics,
    ProcessMetrics,
    RadiusMetrics,
    SessionMetrics,
)
from sallyport.nodes.certificates import CertificateFiles, OwnFiles, SharedFiles
from sallyport.nodes.periodic import store_of_leader
from sallyport.nodes.service import Cluster
from sallyport.nodes.watch import Watch
from sallyport.outgoing.http import HttpFactory
from sallyport.radius.dictionary import Dictionary
from sallyport.radius.retransmission import RFC_5080, Timers
from sallyport.service import nodes as node_parts
from sallyport.service.certificates import CertificateWatch
from sallyport.service.logins import Logins
from sallyport.settings.settings import Settings
from sallyport.settings.values import Address
from sallyport.store.audit import INSTALLATION, record
from sallyport.store.copies import Copies
from sallyport.store.foreign import CLOCKS_US
from sallyport.store.model import Engine, Tx
from sallyport.store.rotation import Rotation
from sallyport.store.sealed import check_keys
from sallyport.store.snapshot import Configuration
from sallyport.store.vault import Vault
from sallyport.web.server import Tls

WRONG_WALLET_KEYS = 10  # limit of the wrong keys, and of the wrong presentations, of one token in a short time

FAILED_SIGN_INS = 10  # limit of the failed sign-ins of one address or administrator in a short time
ADMINISTRATORS_PASSWORD = Rules(quality=Quality(minlen=12, minclass=2, maxsequence=4, usercheck=True))


@dataclass(frozen=True, slots=True)
class Overrides:
    """Parts of the service that a test replaces. None means the part that the settings select.

    patience: the time that a login may wait for the second factor; see `SecondFactor`. ntlm_auth: a function that
    returns the winbind helpers of a domain. credentials: a function that returns the files of the server's certificate.
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
        self._overrides = overrides
        self.clock = clock = overrides.clock
        self.settings = settings
        self.vault = vault
        self.http_address: Address | None = None  # the address of the HTTP listener, when it is bound
        self.siblings = Siblings({})
        self.tls: Tls | None = None
        if settings.tls_certificate and settings.tls_key:
            self.tls = Tls(settings.tls_certificate, settings.tls_key)
        self.store = store
        self.registry = registry
        self.dictionary = dictionary
        self.version = __version__
        self.process_metrics = ProcessMetrics(registry, self.version)
        self.http_metrics = HttpMetrics(registry)
        self.radius_metrics = RadiusMetrics(registry)
        self.login_metrics = LoginMetrics(registry)

        self.cluster = overrides.cluster or node_parts.cluster_of(self)
        self.nodes = Watch(self.cluster, store, NodeMetrics(registry))
        self.notices = node_parts.notices_of(self)
        self.configuration = Configuration(store)
        self.tenancy = Tenancy(store, clock)
        self.http = overrides.http or HttpFactory(egress=settings.egress)
        self._wire_sign_in()
        self.domains = Domains(
            self.configuration,
            DomainMetrics(registry),
            clock,
            has_provider=self._has_provider,
        )
        self.clients = Clients(self.configuration, vault, self.domains.tenant_of, clock)
        self.issued = IssuedCertificates(self.configuration, lambda: self.clients.table.issued)
        self.radius_metrics.watch_clients(lambda: [each.name for each in tuple(self.clients.table.by_id.values())])
        inventory_metrics, directory_metrics = InventoryMetrics(registry), DirectoryMetrics(registry)
        for metrics in (self.login_metrics, inventory_metrics, directory_metrics):
            metrics.watch_domains(self.domains.shown)
        self.devices = Devices(store, Sightings(), inventory_metrics, clock)
        self.sessions = Sessions(store, SessionMetrics(registry), clock)
        self.rules = LoginRules(self.configuration, dictionary, clock)
        self.dynamic, self.revocations = self._dynamic_authorization()
        self._wire_endpoints(vault)
        self.directory = DirectoryArea(
            store,
            vault,
            settings.data_dir,
            self.cluster,
            self.revocations,
            readers(self._http_of, clock),
            checks(self._http_of, clock),
            clock,
            directory_metrics,
            lambda domain_id: self._http_of(domain_id).egress.advice(),
        )
        self.events = Events(store, self.cluster, clock)
        leader_store = store_of_leader(store, self.cluster)
        self.retention = Retention(
            leader_store,
            self.login_metrics,
            days=settings.event_days,
            limit=settings.event_limit_mib << 20,
            clock=self.cluster.earlier_now,
        )
        self.login_log = LoginLog(store, self._domain_name, lambda: self.cluster.id)
        self.outlets = Outlets(
            leader_store,
            targets_of(settings),
            self.http.egress,
            OutletMetrics(registry),
            changes=settings.audit_outlets,
            has_gaps=store.is_shared,
            domain=self._domain_name,
            pseudonyms=logs.pseudonyms,
        )
        self.audit = Audit(store)
        self.audit_retention = AuditRetention(leader_store, days=settings.audit_days, clock=self.cluster.earlier_now)
        self.senders = Senders()
        self.node_senders = node_parts.senders_of(self)
        self._wire_certificates()
        self._wire_logins()
        self._wire_store()

    def _wire_certificates(self) -> None:
        """Connect the certificate files, and the metrics of their expiry."""
        settings = self.settings
        certificates_of_settings = partial(
            Certificates,
            settings.data_dir,
            certificate=settings.eap_certificate,
            key=settings.eap_key,
            ca=settings.eap_ca,
        )
        self.certificates = certificates_of_settings()
        kept = SharedFiles if self.store.is_shared else OwnFiles
        self.certificate_files: CertificateFiles = kept(self.store, self.vault, Directory(settings.data_dir.absolute()))
        files = FileExpiries(settings.tls_certificate, certificates_of_settings().server)  # read by another thread
        self.certificate_metrics = CertificateMetrics(self.registry, files.read)

    def _wire_store(self) -> None:
        """Connect the parts that work on the whole store: backup, restore, key rotation, and changes by other nodes."""
        store, vault, clock, settings = self.store, self.vault, self.clock, self.settings
        self.rotation = Rotation(store, vault, clock, without=partial(node_parts.nodes_without_key, self))
        self.copies = Copies(
            store,
            settings.database_path,
            check=self._check_key,
            void=self._void,
            replaced=self.restored,
            backed_up=lambda at: self.process_metrics.backed_up.set(at / SECOND),
            clock=clock,
            worker=settings.worker,
        )
        self.follower = node_parts.follower_of(self)
        self.configuration.on_foreign_change(self._forget)
        for forget in (self.devices.sightings.forget_all, self.logins.second.forget, self.revocations.forget):
            self.configuration.on_replaced(forget)

    def _wire_sign_in(self) -> None:
        """Connect the local administrators and the sessions of the console."""
        settings, minute = self.settings, 60 * SECOND
        self.administrators = Administrators(
            self.store,
            self.vault,
            lambda password, name: [
                each.message for each in password_failures(ADMINISTRATORS_PASSWORD, password, name)
            ],
            self.clock,
        )
        self.open_id = OpenId(
            settings.identity_providers, self.http, lambda: self.settings.link_base(self.http_address), self.clock
        )
        self.identities = Identities(self.store, self.clock)
        self.console_sessions = ConsoleSessions(
            self.store,
            self.vault,
            self.tenancy,
            node_parts.guesses_of(self, "sign_in", burst=FAILED_SIGN_INS),
            node_parts.guesses_of(self, "sign_in_name", burst=FAILED_SIGN_INS),
            matching_step,
            self.open_id,
            self.clock,
            idle_us=settings.console_idle_minutes * minute,
            longest_us=settings.console_hours * 60 * minute,
        )

    def _wire_endpoints(self, vault: Vault) -> None:
        self.did = DidArea(
            self.store,
            vault,
            self.revocations,
            self.tenancy,
            AccessTargets(),
            node_parts.guesses_of(self, "wallet", burst=WRONG_WALLET_KEYS),
            CredentialMetrics(self.registry),
            PresentationMetrics(self.registry),
            lambda: self.settings.did_base(self.http_address),
            self.notices,
            self.clock,
            http=self.http,
            hosts=self.settings.did_web_hosts,
        )
        self.users = EndpointUsers(
            self.store,
            vault,
            self.clock,
            changed=self._user_changed,
            deleted=lambda tx, ids: self.did.users.unlink(tx, ids) or forget_users(tx, ids),
            renamed=release_names,
            revocations=self.revocations,
        )
        forget = (keys_repo.forget_instance, forget_machine, self._forget_found, forget_instance)
        self.instances = Instances(self.store, self.clock, deleted=forget)
        self.keys = Keys(
            self.store,
            node_parts.guesses_of(self, "key", burst=BURST),
            self.clock,
            has_instance=self.instances.in_domain,
        )
        self.policies = PasswordPolicies(self.store, self.instances, self.clock, deleted=forget_policies)
        self.groups = Groups(self.store, self.users, self.policies, self.clock)
        self.accounts = Users(self.store, vault, self.users, self.policies, self.did.users, self.clock)
        self.agents = Agents(
            self.store,
            vault,
            self.users,
            self.instances,
            self.policies,
            self.keys,
            AgentMetrics(self.registry),
            self.cluster,
            self.clock,
        )
        self.seeds = OneTimeSeeds(
            self.store,
            vault,
            self.users,
            lambda domain_id: self.domains.table.present(domain_id).issuer,
            self.clock,
            find_person=lambda domain_id, name: self.logins.people.find(domain_id, name),  # noqa: PLW0108  made later
            life_s=self.settings.enrolment_link_hours * 3600,
        )

    def _wire_logins(self) -> None:
        store, settings = self.store, self.settings
        self.reverts = Reverts(self.domains, self.cluster, self.clock)
        self.removal = Removal(self.configuration, self.cluster, self.clock, forget=self._forget)
        self.logins = Logins(self, self._overrides)
        traffic = TrafficReader(store, self._find_client)
        self.certificate_watch = CertificateWatch(store, self.logins.first_settings, self.certificate_metrics)
        self.preview = Preview(traffic, self.configuration, self.domains, self.rules, self.logins.enrolled, self.clock)
        self.enforcement = Enforcement(self.domains, self.preview, self.logins.providers)
        self.spool = node_parts.spool_of(self)
        self.journal = Journal(
            store,
            self.devices.count_written,
            self.sessions.count_records,
            keep_answers_s=2.0 * settings.duplicate_window_s,
            clock=self.clock,
            cluster=self.cluster,
            spool=self.spool,
            as_text=self.rules.translation.shown,
        )

    async def note(self, action: str, target: str, changes: Mapping[str, JSON]) -> None:
        """Write an entry of the audit trail about a change that is not in the store, such as a new certificate file.
        The entry belongs to no tenant, but to the whole installation."""
        await self.store.write(
            lambda tx: record(tx, action, at=self.clock(), tenant_id=INSTALLATION, target=target, changes=changes)
        )

    def _dynamic_authorization(self) -> tuple[DynamicAuthorization, Revocations]:
        dynamic = DynamicAuthorization(
            self.store,
            Sender(self.http.egress, timers=self._overrides.timers, clock=self.clock),
            self.rules.translation,
            DynamicMetrics(self.registry),
            self.clock,
            domains=lambda: self.domains.table,
            find_client=self._find_client,
            error_name=lambda cause: self.value_name("Error-Cause", cause),
        )
        return dynamic, Revocations(self.store, self.cluster, dynamic, self.domains, self.rules, self.clock)

    def _forget(self) -> None:
        """Empty the caches that are filled on use."""
        for cached in (self.tenancy, self.keys, self.users, self.directory.principals):
            cached.forget()

    def _forget_found(self, tx: Tx, instance_id: int) -> int:
        return self.agents.reports.forget(tx, instance_id)

    def _user_changed(self, domain_id: int, name: str | None) -> None:
        self.logins.second.enrolments.forget(domain_id, name)

    def _find_client(self, host: str) -> Client | None:
        return self.clients.table.find(host)

    def _has_provider(self, domain_id: int) -> bool:
        return self.logins.providers.has(domain_id)

    def _domain_name(self, domain_id: int) -> str:
        domain = self.domains.table.by_id.get(domain_id)
        return "" if domain is None else domain.name

    def value_name(self, attribute: str, number: int) -> str | None:
        """Return the dictionary's name for a value of an attribute, or None."""
        return self.dictionary.attribute(attribute).value_name(number)

    def _void(self, tx: Tx, revoke_tokens: bool) -> None:
        """Invalidate the prompts and codes in a restored backup. If `revoke_tokens` is true, also revoke the tokens.

        Otherwise, codes and prompts that were used after the backup would be valid again. The clock of another node may
        be ahead, so codes that only that node accepts now are invalidated too.
        """
        now = self.clock()
        latest = now + (CLOCKS_US if self.store.is_shared else 0)
        step = latest // (STEP_S * SECOND) + 1  # a code of the next time step is accepted too
        sessions.void(tx)
        sign_in_repo.void(tx)
        sign_in_repo.void_codes(tx, step)
        self.did.requests.void(tx)
        endpoints_repo.void_codes(tx, step)
        if revoke_tokens:
            tokens_repo.revoke_all(tx, at=now)
            keys_repo.revoke_enrolments(tx, now)

    async def restored(self) -> None:
        """Reload all data in memory after the store was replaced. Raises StoreError, SecretError."""
        await self.configuration.restored()
        await self.agents.prepare()
        await self.logins.lockouts.load()
        await self.directory.restored()
        await self.certificate_files.load()

    def domain_ids(self, tenant_id: int) -> set[int]:
        """Return the ids of a tenant's domains."""
        return {domain.id for domain in self.domains.of_tenant(tenant_id)}

    def _http_of(self, domain_id: int) -> HttpFactory:
        return self.http.of(self.domains.tenant_of(domain_id) or 0)

    def agent_file(self, key: KeyRecord, secret: str, wished: Mapping[str, object]) -> str:
        """Return the text of an agent's configuration file. wished: the fields of the request that override the
        defaults."""
        service = str(wished.get("service") or self.settings.link_base(self.http_address))
        if key.agent == Agent.ENDPOINT:
            return endpoint_file(service, secret)
        ldap = self.logins.first_settings.shown(key.domain_id).get(FirstFactor.LDAP, {})
        place = DirectoryPlace.of(ldap, wished, self.domains.table.present(key.domain_id).name)
        return directory_file(service, secret, key.domain_id, place)

    @property
    def authentication(self) -> Authentication:
        """The authentication of access tokens and API keys."""
        return Authentication(self.tenancy, self.keys)

    def administrator_uri(self, seed: str, name: str) -> str:
        """Return the URI of an administrator's seed for authenticator apps."""
        return otpauth(seed, issuer="Sallyport", account=name)

    def enrolment_link(self, secret: str) -> str:
        """Return the complete URL of an enrolment link."""
        return self.settings.link_base(self.http_address) + ENROLMENT_PATH + secret

    def _check_key(self, tx: Tx) -> None:
        """Check that the master keys can decrypt the secrets in a store: the keys of the next start, and those of this
        process, which may be others after a rotation. Raises SecretError, ConfigError.

        In a restore, the check runs on the rows of the backup, before the backup replaces the store.
        """
        check_keys(tx, self.vault.at_next_start(), self.vault)

    def apply(self, settings: Settings) -> None:
        """Apply the settings that may change while the service runs.

        These are the log level, whether the log contains the names of people, and the identity providers.
        """
        self.open_id.use(settings.identity_providers)
        logs.set_level(settings.log_level)
        logs.hide_identities(self.vault.pseudonyms if settings.log_identities == "hashed" else None)

    def reloaded(self) -> None:
        """Set the time of the last reload in the metrics."""
        self.process_metrics.reloaded.set(time.time())

    async def prepare(self) -> None:
        """Load the data that the service holds in memory from the store. Raises ConfigError, StoreError."""
        try:
            await self.configuration.reload()
        except SecretError as error:
            raise ConfigError(str(error)) from error
        self.reloaded()
        self.copies.clear()
        await self.copies.remember()
        await self.reverts.revert_due()
        await self.directory.principals.load()
        await self.logins.lockouts.load()
        await self.agents.prepare()
        await self.certificate_files.load()
