"""The composition root: it builds the areas of the service in order, and connects them.

`App.areas` is the only list of areas. Operations, commands, pages, periodic tasks and reactions to a restore follow
from what each area declares (`areas.entrance`). What an area needs of another arrives in its constructor. An area that
must react to changes in an earlier area registers a function there, such as `Instances.before_deletion`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from sallyport import __version__
from sallyport.agent.templates import DirectoryPlace, directory_file, endpoint_file
from sallyport.areas.agents.area import AgentsArea
from sallyport.areas.agents.targets import AccessTargets
from sallyport.areas.audit.area import AuditArea
from sallyport.areas.authorities.area import AuthoritiesArea
from sallyport.areas.authorities.revocation.certified_repo import forget_users
from sallyport.areas.certificates.area import ServerCertificatesArea
from sallyport.areas.clients.area import ClientsArea
from sallyport.areas.configuration.area import ConfigurationArea
from sallyport.areas.devices.area import DevicesArea
from sallyport.areas.did.area import DidArea
from sallyport.areas.directory.area import DirectoryArea
from sallyport.areas.domains.area import DomainsArea
from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.dynamic.area import DynamicArea
from sallyport.areas.entrance import Area, Areas, Parts
from sallyport.areas.events.area import EventsArea
from sallyport.areas.factors.area import FactorsArea
from sallyport.areas.factors.me.area import MeArea
from sallyport.areas.factors.me.host import Surroundings
from sallyport.areas.factors.openid.service import OfDomains
from sallyport.areas.login.area import LoginArea
from sallyport.areas.login.first.fields import Fields as FirstFactorFields
from sallyport.areas.login.first.page_passwords import PagePasswords
from sallyport.areas.login.first.winbind.helpers import Helpers
from sallyport.areas.login.login import Login
from sallyport.areas.login.second.forecast import device_patience
from sallyport.areas.mfa.area import MfaArea
from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.mfa.fields import OwnFields
from sallyport.areas.mfa.host import ConfiguredProvider
from sallyport.areas.migration.area import MigrationArea
from sallyport.areas.passwords.area import PasswordsArea
from sallyport.areas.policy.bypass.area import BypassArea
from sallyport.areas.policy.lockouts.area import LockoutsArea
from sallyport.areas.policy.roles.area import RolesArea
from sallyport.areas.policy.rules.area import RulesArea
from sallyport.areas.preview.area import PreviewArea
from sallyport.areas.profiles.area import ProfilesArea
from sallyport.areas.reauthorization.area import ReauthorizationArea
from sallyport.areas.sessions.area import SessionsArea
from sallyport.areas.shadow.area import ShadowArea
from sallyport.areas.signin.area import SignInArea
from sallyport.areas.signin.repo import administrator_names
from sallyport.areas.tenancy.area import TenancyArea
from sallyport.areas.tenancy.guesses import guesses_of_all_nodes
from sallyport.areas.tenancy.keys.key import Agent, KeyRecord
from sallyport.areas.users.area import UsersArea
from sallyport.areas.users.instances.area import InstancesArea
from sallyport.base import log as logs
from sallyport.base.clock import Clock, now_us
from sallyport.certs.credentials import Credentials
from sallyport.certs.expiry import certificates_of, files_of
from sallyport.metrics import HttpMetrics, MailMetrics, SpanMetrics
from sallyport.nodes.follower import Follower
from sallyport.nodes.notices import NoNotices, SharedNotices
from sallyport.nodes.periodic import store_of_leader
from sallyport.nodes.service import Cluster, Nodes, SingleNode
from sallyport.nodes.settled import SettledClock
from sallyport.outgoing.http import HttpFactory
from sallyport.outgoing.mail import Mail
from sallyport.outgoing.spans import SpanExporter
from sallyport.radius.dictionary import Dictionary
from sallyport.radius.retransmission import RFC_5080, Timers
from sallyport.service.installation import CertificatesArea, InstallationArea
from sallyport.settings.settings import Settings
from sallyport.settings.values import Address
from sallyport.store.data_folder import installation_id
from sallyport.store.model import Engine
from sallyport.store.snapshot import Configuration
from sallyport.store.vault import Vault
from sallyport.web.server import Tls

WRONG_WALLET_KEYS = 10
"""Limit of the wrong keys, and of the wrong presentations, of one token in a short time."""


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
    """The connected areas of the service, with an open store. Call `areas.prepare` to load the data that the service
    holds in memory. http_address: the address of the HTTP listener, when it is bound. proxies: the
    trusted proxies, which a reload changes in place."""

    def __init__(
        self,
        settings: Settings,
        store: Engine,
        vault: Vault,
        dictionary: Dictionary,
        registry: CollectorRegistry,
        overrides: Overrides = Overrides(),
    ) -> None:
        self.version = __version__
        self.http_address: Address | None = None
        self.tls: Tls | None = None
        self.proxies = list(settings.trusted_proxies)
        if settings.tls_certificate and settings.tls_key:
            self.tls = Tls(settings.tls_certificate, settings.tls_key)
        self.http_metrics = HttpMetrics(registry)
        cluster = overrides.cluster or _cluster_of(
            settings, store, vault, self.version, self._link_base, overrides.clock
        )
        http = overrides.http or HttpFactory(egress=settings.egress)
        self.parts = parts = Parts(
            settings,
            store,
            vault,
            dictionary,
            registry,
            Configuration(store),
            cluster,
            SharedNotices(store, lambda: cluster.id) if store.is_shared else NoNotices(),
            http,
            Mail(settings.mail_server, http.egress, MailMetrics(registry), overrides.clock),
            certificates_of(settings),
            overrides.clock,
            SettledClock(store_of_leader(store, cluster), cluster.earlier_now),
            self._link_base,
        )
        self.areas = Areas(parts)
        self._build(parts, overrides)
        for make in overrides.areas:
            self.areas.add(make(parts))
        self.follower = Follower(store, self.areas.foreign, self.areas.restored, self.areas.completed)

    def _build(self, parts: Parts, overrides: Overrides) -> None:
        """Build the areas, each after those that it needs."""
        add = self.areas.add
        self.instances = add(InstancesArea(parts))
        instances = self.instances.service
        self.tenancy = add(TenancyArea(parts, instances, self._agent_file))
        tenancy = self.tenancy.service
        self.domains = add(DomainsArea(parts, self.areas))
        domains = self.domains.service
        self.devices = add(DevicesArea(parts, domains, lambda: self.clients.service))
        self.clients = add(ClientsArea(parts, tenancy, domains, heard=self.devices.service.heard_addresses))
        clients = self.clients.service
        self.sessions = add(SessionsArea(parts))
        self.roles = add(RolesArea(parts))
        self.rules = add(RulesArea(parts, domains, clients, self.roles.service))
        rules = self.rules.service
        self.dynamic = add(DynamicArea(parts, domains, clients, rules, timers=overrides.timers))
        revocations = self.dynamic.revocations
        self.passwords = add(PasswordsArea(parts, instances))
        policies = self.passwords.service
        guesses = guesses_of_all_nodes(parts.notices, "wallet", parts.clock, burst=WRONG_WALLET_KEYS)
        self.did = add(DidArea(parts, revocations, tenancy, AccessTargets(), guesses))
        self.users = add(
            UsersArea(parts, domains, instances, policies, self.did.users, revocations, administrator_names)
        )
        of_domains = OfDomains(self._own_fields, self.domains.http_of, self._names_of_account)
        self.factors = add(FactorsArea(parts, self.users, of_domains))
        revocations.on_revoke(self.factors.remembered.forget)
        revocations.on_release(self.factors.release)
        self.agents = add(AgentsArea(parts, self.users.service, instances, policies, self.tenancy.keys))
        self.directory = add(DirectoryArea(parts, self.domains, revocations))
        self.authorities = add(AuthoritiesArea(parts, domains, revocations.revoke))
        self.users.service.before_deletion(forget_users)
        self.mfa = add(
            MfaArea(
                parts,
                self.domains,
                self.users.seeds,
                self.did.prompts,
                self.factors.stepups,
                self.factors.challenge_links,
                self.devices.service.products,
                kinds=overrides.providers,
            )
        )
        self.rules.find_providers_with(self.mfa.service)
        self.bypass = add(BypassArea(parts, revocations, self.roles.service))
        self.lockouts = add(LockoutsArea(parts))
        self.server_certificates = add(ServerCertificatesArea(parts, domains))
        self.login = add(
            LoginArea(
                parts,
                self.tenancy,
                self.domains,
                self.clients,
                self.devices,
                self.sessions.service,
                self.users,
                self.factors,
                self.directory.principals,
                rules,
                self.roles.service,
                self.bypass.service,
                self.lockouts.service,
                self.mfa,
                self.authorities.service,
                self.authorities.revocation,
                revocations,
                credentials=overrides.credentials or parts.certificates.server,
                certificates=self.server_certificates.service.usable,
                patience=overrides.patience,
                kinds=overrides.first_factors,
                ntlm_auth=overrides.ntlm_auth,
                spans=_span_exporter(parts),
            )
        )
        self.server_certificates.service.on_replaced(self.login.eap.forget_certificates)
        self.preview = add(
            PreviewArea(
                parts,
                self.domains,
                clients,
                self.devices.service,
                rules,
                self.roles.service,
                self.mfa.service,
                self.login,
            )
        )
        self.shadow = add(
            ShadowArea(parts, domains, lambda: clients.table, self.mfa.service, self.login),
        )
        self.reauthorization = add(
            ReauthorizationArea(parts, domains, clients, rules, self.dynamic.service, self.login.pipeline)
        )
        self.profiles = add(ProfilesArea(parts, domains, self.server_certificates.service.usable))
        self.events = add(EventsArea(parts, domains, self.login.metrics))
        self.me = add(
            MeArea(
                parts,
                domains,
                self.factors,
                self.users,
                Surroundings(
                    lambda: domains.table,
                    PagePasswords(self.login.pipeline, parts.store, parts.clock),
                    self.events.service.of_user,
                    self.dynamic.service.sessions_of_user,
                    self.dynamic.service.end_session,
                    self._own_fields,
                ),
            )
        )
        revocations.on_revoke(self.me.forget_users)
        self.audit = add(AuditArea(parts, tenancy, domains))
        self.signin = add(SignInArea(parts, tenancy))
        self.certificate_files = add(
            CertificatesArea(
                parts, self.clients.issued, tenancy, revocations, self.login, self.server_certificates.service
            )
        )
        self.configured = add(ConfigurationArea(parts, self.areas, tenancy, domains))
        self.migration = add(
            MigrationArea(
                parts,
                self.configured.engine,
                domains,
                self.directory.directories.groups_by_sid,
                self.users.accounts,
            )
        )
        self.installation = add(InstallationArea(parts, self.areas, tenancy, domains, self.login, self.version))

    def _own_fields(self, domain_id: int) -> OwnFields | None:
        """Return the configuration of the factors that the service checks itself, if a domain uses them."""
        fields = self.mfa.service.fields_of(domain_id, "own")
        return fields if isinstance(fields, OwnFields) else None

    async def _names_of_account(self, domain_id: int, object_id: str) -> frozenset[str]:
        realms = self.domains.service.table.present(domain_id).realm_keys
        return await self.directory.principals.names_of(domain_id, object_id, realms)

    def _link_base(self) -> str:
        return self.parts.settings.link_base(self.http_address)

    def _agent_file(self, key: KeyRecord, secret: str, wished: Mapping[str, object]) -> str:
        """Return the text of an agent's configuration file. wished: the fields of the request that override the
        defaults."""
        service = str(wished.get("service") or self._link_base())
        if key.agent == Agent.ENDPOINT:
            return endpoint_file(service, secret)
        ldap = self.login.first_settings.shown(key.domain_id).get(FirstFactor.LDAP, {})
        place = DirectoryPlace.of(ldap, wished, self.domains.service.table.present(key.domain_id).name)
        return directory_file(service, secret, key.domain_id, place)

    def apply(self, settings: Settings) -> None:
        """Apply the settings of the type `Live`. In the other settings, `settings` has the values of the start.

        Raises ConfigError if an outlet is malformed.
        """
        if settings.log_format != self.parts.settings.log_format:
            logs.set_format(settings.log_format)
        self.parts.settings = settings
        for area in self.areas:
            area.apply(settings)
        self.parts.certificates.use(*files_of(settings))
        self.parts.mail.use(settings.mail_server)
        self.parts.http.egress.use(settings.egress)
        self.proxies[:] = settings.trusted_proxies
        logs.set_level(settings.log_level, settings.log_levels)
        logs.hide_identities(self.parts.vault.pseudonyms if settings.log_identities == "hashed" else None)


def _span_exporter(parts: Parts) -> SpanExporter | None:
    """Return the exporter of spans, or None if the setting `otlp_url` is empty."""
    settings, metrics = parts.settings, SpanMetrics(parts.registry)
    return SpanExporter(settings.otlp_url, settings.node, metrics) if settings.otlp_url else None


def _cluster_of(
    settings: Settings, store: Engine, vault: Vault, version: str, link_base: Callable[[], str], clock: Clock
) -> Cluster:
    """Return this node as a member of the cluster. With the embedded database, there are no other nodes."""
    if not store.is_shared:
        return SingleNode(settings.node, version, link_base, clock)
    return Nodes(
        store,
        settings.node,
        installation_id(settings.data_dir),
        version,
        lambda: vault.keys,
        link_base,
        names=settings.nodes,
        clock=clock,
    )
