"""The entrance of logins: the steps of a decision, the record of it, and the senders without an answer."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sallyport.areas.authorities.service import Authorities
from sallyport.areas.clients.area import ClientsArea
from sallyport.areas.devices.area import DevicesArea
from sallyport.areas.directory.principals import Principals
from sallyport.areas.domains.area import DomainsArea
from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.factors.area import FactorsArea
from sallyport.areas.factors.denials import Denial
from sallyport.areas.login.eap.revocation import ChecksRevocation
from sallyport.areas.login.eap.rounds import EapRounds
from sallyport.areas.login.eap.service import EapServer
from sallyport.areas.login.eap.tls_servers import CertificatesOfDomain
from sallyport.areas.login.first import operations as first_factors_api
from sallyport.areas.login.first.checker import Host
from sallyport.areas.login.first.configured import FirstFactorKind
from sallyport.areas.login.first.fields import Fields
from sallyport.areas.login.first.people import People
from sallyport.areas.login.first.settings import KINDS, FirstFactorSettings
from sallyport.areas.login.first.trial import Trials
from sallyport.areas.login.first.winbind.helpers import Helpers
from sallyport.areas.login.journal import PURGE_S, Journal
from sallyport.areas.login.limit import EndsSessions, SessionLimits
from sallyport.areas.login.listen import senders
from sallyport.areas.login.listen.pending import PendingSlots
from sallyport.areas.login.listen.senders import Senders
from sallyport.areas.login.login import Login
from sallyport.areas.login.pipeline import Pipeline
from sallyport.areas.login.remembered import Remembering
from sallyport.areas.login.rows import void_answers
from sallyport.areas.login.second import session
from sallyport.areas.login.second.calls import Calls
from sallyport.areas.login.second.challenges import Challenges
from sallyport.areas.login.second.repo import Limit
from sallyport.areas.login.second.service import SecondFactor
from sallyport.areas.login.second.shared import SharedCalls, SharedChallenges
from sallyport.areas.login.second.web_limits import WebLimits
from sallyport.areas.login.spans import exports_to
from sallyport.areas.login.spool import Spool, paths_of
from sallyport.areas.login.stations import Stations
from sallyport.areas.mfa.area import MfaArea
from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.policy.bypass.service import Bypass
from sallyport.areas.policy.lockouts.failures import WINDOW_US
from sallyport.areas.policy.lockouts.service import MINUTE_US, Lockouts
from sallyport.areas.policy.roles.service import Roles
from sallyport.areas.policy.rules.service import LoginRules
from sallyport.areas.sessions.service import Sessions
from sallyport.areas.tenancy.area import TenancyArea
from sallyport.areas.users.area import UsersArea
from sallyport.base.wire import Row
from sallyport.certs.credentials import Credentials
from sallyport.metrics import LoginMetrics, RadiusMetrics, SpoolMetrics, UpstreamMetrics
from sallyport.nodes.periodic import every
from sallyport.nodes.senders import NodeSenders, NoOtherNodes, SharedSenders
from sallyport.outgoing.spans import SpanExporter
from sallyport.radius.salted import hidden_places
from sallyport.settings.settings import Settings
from sallyport.store.erasure import Rows
from sallyport.store.model import Tx
from sallyport.store.sealed import Sealed
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class LoginArea(Area):
    """The path of a login, and its record.

    credentials: returns the files of the server's certificate for EAP. certificates: returns the server certificates of
    a domain. patience: returns the time that a login may wait for the second factor. spans: the exporter of spans, or
    None. kinds: the classes of first factors. ntlm_auth: returns the winbind helpers of a domain; the default is the
    winbind of this host.
    """

    erased_rows = (
        Rows("first_factors", "first-factor settings", "domain_id, kind"),
        Rows("events", "logins in the log"),
        Rows("accounting_records", "accounting records"),
        Rows("challenges", has_index=False),
    )
    sealed = (Sealed("first_factors", "fields", ("domain_id", "kind"), "first_factors/{}/{}", is_vital=True),)

    def __init__(
        self,
        parts: Parts,
        tenancy: TenancyArea,
        domains_area: DomainsArea,
        clients: ClientsArea,
        devices: DevicesArea,
        sessions: Sessions,
        users_area: UsersArea,
        factors: FactorsArea,
        principals: Principals,
        rules: LoginRules,
        roles: Roles,
        bypass: Bypass,
        lockouts: Lockouts,
        mfa: MfaArea,
        authorities: Authorities,
        revocation: ChecksRevocation,
        ending: EndsSessions,
        *,
        credentials: Callable[[], Credentials | None],
        certificates: CertificatesOfDomain,
        patience: Callable[[Login, Attached], float],
        kinds: Mapping[FirstFactor, type[Fields]] | None,
        ntlm_auth: Callable[[int], Helpers | None] | None,
        spans: SpanExporter | None,
    ) -> None:
        settings, store, clock = parts.settings, parts.store, parts.clock
        domains, users, providers = domains_area.service, users_area.service, mfa.service
        self._parts, self._tenancy, self._domains, self._clients = parts, tenancy, domains, clients
        self._pauses = factors.pauses
        self._http_of = domains_area.http_of
        self.metrics, self.radius_metrics = (
            LoginMetrics(parts.registry, settings.metrics_tag),
            RadiusMetrics(parts.registry),
        )
        self.durations = self.radius_metrics.seconds, mfa.metrics.seconds
        self.metrics.watch_domains(domains.shown)
        self.radius_metrics.watch_clients(lambda: [each.name for each in tuple(clients.service.table.by_id.values())])
        self._upstream_metrics = UpstreamMetrics(parts.registry)
        self._hidden = hidden_places(parts.dictionary.attributes.values())
        self._winbind = Helpers(settings.ntlm_auth)
        self.slots = PendingSlots(settings.max_waiting_requests)
        self._ntlm_auth_of = ntlm_auth or self._winbind_of
        self.challenges, self.calls = self._shared()
        self.second = SecondFactor(
            providers,
            self.challenges,
            self.calls,
            mfa.metrics,
            factors.pauses,
            factors.denials,
            WebLimits(parts.notices, clock),
            patience=patience,
            clock=clock,
            hidden=self._hidden,
        )
        kinds = KINDS if kinds is None else kinds
        self.first_settings = FirstFactorSettings(
            parts.configuration, parts.vault, kinds, self._first_host, clock, rules.web_problem
        )
        self.first = self.first_settings.factors
        self.configured = (FirstFactorKind(self.first_settings),)
        self.people = People(store, self.first, lambda domain_id: domains.table.present(domain_id))  # noqa: PLW0108
        users_area.seeds.find_people_with(self.people.find)
        users.on_change(self._forget_enrolments)
        lockouts.on_unlock(self.calls.forget_codes)
        lockouts.on_unlock(factors.pauses.forget)
        self._lockouts = lockouts
        factors.denials.on_denial(self._lock, self._hold)
        self.limits = SessionLimits(store, domains.snapshot, ending, clock)
        self.pipeline = Pipeline(
            domains=domains.snapshot,
            bypass=bypass,
            stations=Stations(bypass, roles),
            principals=principals,
            lockouts=lockouts,
            users=users,
            first=self.first,
            sightings=devices.service.sightings,
            rules=rules,
            roles=roles,
            providers=providers,
            second=self.second,
            limits=self.limits,
            remembered=Remembering(factors.remembered),
        )
        self.eap = EapRounds(
            self.pipeline,
            EapServer(
                credentials=credentials,
                certificate_tenant=clients.service.certificate_tenant,
                node=lambda: parts.cluster.id,
                duplicate_window_s=settings.duplicate_window_s,
                authorities=authorities.of_domain,
                revocation=revocation,
                certificates=certificates,
            ),
        )
        self.trials = Trials(self.pipeline, parts.notices, clock)
        self.spool = self._own_spool(devices, sessions)
        self.journal = Journal(
            store,
            devices.service.count_written,
            sessions.count_records,
            keep_answers_s=2.0 * settings.duplicate_window_s,
            clock=clock,
            cluster=parts.cluster,
            spool=self.spool,
            as_text=rules.translation.shown,
            on_answered=exports_to(spans.offer) if spans else None,
        )
        self.senders = Senders()
        self.node_senders = self._senders_of_nodes()
        self.node_tasks = (self.node_senders.run, self._winbind.run, *([spans.run] if spans else []))
        self.leader_tasks = (
            partial(every, PURGE_S, self.journal.purge, failure="answer_purge_failed"),
            self.limits.purge,
        )

    def apply(self, settings: Settings) -> None:
        """Use the limits, the program of winbind and the tag of the metrics that the settings have."""
        if isinstance(self.calls, SharedCalls):
            self.calls.codes = _limit_of_codes(settings)
        self.slots.resize(settings.max_waiting_requests)
        if self.spool is not None:
            self.spool.limit = settings.accounting_spool_mib << 20
        self._winbind.program = settings.ntlm_auth
        self.metrics.use_tag(settings.metrics_tag)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of first factors."""
        return [first_factors_api.operations(self.first_settings, self.trials, self._domains, gate)]

    def forget_all(self) -> None:
        """Drop the prompts and enrolments in memory."""
        self.second.forget()
        self.journal.forget()

    def void(self, tx: Tx, at: int) -> None:
        """Delete the pending challenges and the stored answers."""
        session.void(tx)
        void_answers(tx)

    def own_senders(self, most: int = senders.MAX_SENDERS) -> list[Row]:
        """Return the senders without an answer of this process, the latest first. most: the maximum number."""
        return senders.listed(self.senders, self._clients.service.table.find, self._parts.cluster.name, most)

    async def senders_elsewhere(self) -> list[Row]:
        """Return the senders without an answer of the other nodes."""
        return senders.still_unknown(await self.node_senders.elsewhere(), self._clients.service.table.find)

    def _shared(self) -> tuple[Challenges, Calls]:
        """Return two objects: one for challenges, and one for the calls of providers. On a shared database, all nodes
        share the challenges and the calls."""
        parts, settings = self._parts, self._parts.settings
        if not parts.cluster.is_shared:
            return Challenges(parts.store, parts.vault, parts.clock), Calls(self._pauses)
        calls = SharedCalls(parts.store, parts.vault, parts.cluster.session, self._pauses, _limit_of_codes(settings))
        return SharedChallenges(parts.store, parts.vault, parts.clock), calls

    def _own_spool(self, devices: DevicesArea, sessions: Sessions) -> Spool | None:
        """Return the spool of accounting records, or None with the embedded database. A spool next to the embedded
        database would be useless, because it would be on the same disk."""
        parts, settings = self._parts, self._parts.settings
        if not parts.store.is_shared:
            return None
        own, left = paths_of(settings.data_dir, settings.worker, settings.workers)
        return Spool(
            parts.store,
            own,
            settings.accounting_spool_mib << 20,
            SpoolMetrics(parts.registry),
            devices.service.count_written,
            sessions.count_records,
            left,
        )

    def _senders_of_nodes(self) -> NodeSenders:
        """Return the object that exchanges senders without an answer with other nodes."""
        parts = self._parts
        if not parts.store.is_shared:
            return NoOtherNodes()
        return SharedSenders(
            parts.store, parts.cluster, parts.settings.nodes, lambda: self.senders.changes, self.own_senders
        )

    def _first_host(self, domain_id: int, tenant_id: int | None = None) -> Host:
        """Return the parts of the service that a domain's first factor may use. tenant_id: the tenant of a domain that
        is being added, whose id is 0."""
        domain = self._domains.table.by_id.get(domain_id)
        return Host(
            domain_id=domain_id,
            domain=domain.name if domain else "",
            egress=self._http_of(domain_id).egress,
            clock=self._parts.clock,
            upstream=self._upstream_metrics,
            hidden=self._hidden,
            ntlm_auth=self._ntlm_auth_of(domain_id) if domain else self._winbind_in(tenant_id),
        )

    def _winbind_of(self, domain_id: int) -> Helpers | None:
        return self._winbind_in(self._domains.tenant_of(domain_id))

    def _winbind_in(self, tenant_id: int | None) -> Helpers | None:
        """Return the helpers for the winbind of this host. Return None if the tenant's organization may not use
        winbind.

        This host has joined the Active Directory of one company. Other organizations must not use this Active
        Directory.
        """
        allowed = self._parts.settings.winbind_orgs
        organization = self._tenancy.organization_of(tenant_id)
        return self._winbind if allowed is None or organization in allowed else None

    def _lock(self, tx: Tx, denial: Denial) -> None:
        """Lock the user of a denied login, if the domain has this setting."""
        domain = self._domains.table.by_id.get(denial.domain_id)
        if domain is not None and domain.lock_on_not_me:
            self._lockouts.write_held(tx, domain, denial.user)

    def _hold(self, denial: Denial) -> None:
        """Apply this lock at this node."""
        domain = self._domains.table.by_id.get(denial.domain_id)
        if domain is not None and domain.lock_on_not_me:
            self._lockouts.hold(domain, denial.user)

    def _forget_enrolments(self, domain_id: int, name: str | None) -> None:
        """Forget the enrolments of a user, or of all users if there is no name. domain_id: 0 for all domains."""
        for each in [domain_id] if domain_id else self._domains.table.by_id:
            self.second.enrolments.forget(each, name)


def _limit_of_codes(settings: Settings) -> Limit:
    """Return the limit of wrong codes of a user over all nodes."""
    return Limit(settings.lockout_failures, min(WINDOW_US, settings.lockout_minutes * MINUTE_US))
