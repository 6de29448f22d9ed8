"""All that decides logins, wired: what the composition root, and the tests, hold of this area."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from sallyport.base.clock import Clock
from sallyport.certs.credentials import Credentials
from sallyport.directory.principals import Principals
from sallyport.domains.domain import FirstFactor
from sallyport.domains.service import Domains
from sallyport.endpoints.service import EndpointUsers, Revocations
from sallyport.inventory.devices.sightings import Sightings
from sallyport.login.first.model import Checker
from sallyport.login.first.model import Host as FirstHost
from sallyport.login.first.service import KINDS, FirstFactors
from sallyport.login.first.trial import Trials
from sallyport.login.first.winbind.helpers import Helpers
from sallyport.login.login import Login
from sallyport.login.pipeline import Pipeline
from sallyport.login.second.service import SecondFactor, device_patience
from sallyport.metrics import LockoutMetrics, MfaMetrics, UpstreamMetrics
from sallyport.mfa.circuit import Attached
from sallyport.mfa.host import ConfiguredProvider, Host, Seeds, WalletPrompts
from sallyport.mfa.providers import available
from sallyport.mfa.service import Providers
from sallyport.outgoing.http import HttpFactory
from sallyport.policy.bypass.service import Bypass
from sallyport.policy.lockouts.service import Lockouts
from sallyport.policy.rules.service import LoginRules
from sallyport.radius.dictionary import Dictionary
from sallyport.radius.salted import hidden_places
from sallyport.store.model import Store
from sallyport.store.snapshot import Configuration
from sallyport.store.vault import Vault


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The parts of the service that logins need. credentials: the current
    server certificate. certificate_tenant: the tenant that a client certificate was issued for, by its SHA-256 in hex.
    ntlm_auth: the helpers that ask winbind for a domain, or None if its organization may not."""

    store: Store
    vault: Vault
    configuration: Configuration
    registry: CollectorRegistry
    dictionary: Dictionary
    http: HttpFactory
    clock: Clock
    domains: Domains
    users: EndpointUsers
    seeds: Seeds
    wallets: WalletPrompts
    principals: Principals
    sightings: Sightings
    rules: LoginRules
    revocations: Revocations
    credentials: Callable[[], Credentials | None]
    certificate_tenant: Callable[[str], int | None]
    ntlm_auth: Callable[[int], Helpers | None]


class LoginArea:
    """The services of logins. kinds: the MFA providers by name, first_kinds: the first factors that ask somebody else.
    patience: see `SecondFactor`."""

    def __init__(
        self,
        parts: Dependencies,
        *,
        lockout_failures: int,
        lockout_minutes: int,
        kinds: Mapping[str, type[ConfiguredProvider]] | None = None,
        first_kinds: Mapping[FirstFactor, type[Checker]] = KINDS,
        patience: Callable[[Login, Attached], float] = device_patience,
    ) -> None:
        self._parts = parts
        store, vault, configuration, clock = (
            parts.store,
            parts.vault,
            parts.configuration,
            parts.clock,
        )
        mfa_metrics = MfaMetrics(parts.registry)
        self._upstream_metrics = UpstreamMetrics(parts.registry)
        self._hidden = hidden_places(parts.dictionary.attributes.values())
        kinds = available() if kinds is None else kinds
        self.providers = Providers(configuration, vault, kinds, self._host, mfa_metrics, clock)
        self.second = SecondFactor(
            store, vault, self.providers, mfa_metrics, patience=patience, clock=clock, hidden=self._hidden
        )
        self.first = FirstFactors(configuration, vault, first_kinds, self._first_host, clock)
        metrics = LockoutMetrics(parts.registry)
        self.lockouts = Lockouts(store, metrics, limit=lockout_failures, minutes=lockout_minutes, clock=clock)
        self.trials = Trials(
            parts.domains, parts.users, self.first, self.second.has_codes, self.lockouts.refuses, clock
        )
        self.bypass = Bypass(configuration, clock, revocations=parts.revocations)
        self.pipeline = Pipeline(
            domains=parts.domains,
            bypass=self.bypass,
            principals=parts.principals,
            lockouts=self.lockouts,
            users=parts.users,
            first=self.first,
            sightings=parts.sightings,
            rules=parts.rules,
            second=self.second,
            credentials=parts.credentials,
            certificate_tenant=parts.certificate_tenant,
        )

    def _first_host(self, domain_id: int) -> FirstHost:
        """What a domain's first factor may use of the service."""
        domain = self._parts.domains.table.by_id[domain_id]
        return FirstHost(
            domain_id=domain_id,
            domain=domain.name,
            egress=self._parts.http.of(domain.tenant_id).egress,
            clock=self._parts.clock,
            upstream=self._upstream_metrics,
            hidden=self._hidden,
            ntlm_auth=self._parts.ntlm_auth(domain_id),
        )

    def _host(self, domain_id: int) -> Host:
        """What a domain's MFA provider may use of the service."""
        domain = self._parts.domains.table.by_id[domain_id]
        return Host(
            domain_id=domain_id,
            domain=domain.name,
            http=self._parts.http.of(domain.tenant_id),
            seeds=self._parts.seeds,
            wallets=self._parts.wallets,
            clock=self._parts.clock,
        )
