"""The connections of the login path: its steps, the MFA providers, the first factors, and the tests of login rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sallyport.areas.login.first.checker import Host as FirstHost
from sallyport.areas.login.first.people import People
from sallyport.areas.login.first.settings import KINDS, FirstFactorSettings
from sallyport.areas.login.first.trial import Trials
from sallyport.areas.login.first.winbind.helpers import Helpers
from sallyport.areas.login.pipeline import Pipeline
from sallyport.areas.login.second.calls import Calls
from sallyport.areas.login.second.challenges import Challenges
from sallyport.areas.login.second.repo import Limit
from sallyport.areas.login.second.service import SecondFactor
from sallyport.areas.login.second.shared import SharedCalls, SharedChallenges
from sallyport.areas.mfa.host import Host
from sallyport.areas.mfa.providers import available
from sallyport.areas.mfa.service import Providers
from sallyport.areas.policy.bypass.service import Bypass
from sallyport.areas.policy.lockouts.failures import WINDOW_US
from sallyport.areas.policy.lockouts.service import MINUTE_US, Lockouts
from sallyport.areas.policy.rules.names import Names
from sallyport.areas.preview.enrolled import SecondFactors
from sallyport.areas.preview.rule_test import RuleTest
from sallyport.areas.tenancy import repo as tokens_repo
from sallyport.metrics import LockoutMetrics, MfaMetrics, UpstreamMetrics
from sallyport.radius.salted import hidden_places

if TYPE_CHECKING:
    from sallyport.service.app import App, Overrides


class Logins:
    """The connected parts that decide logins."""

    def __init__(self, app: App, overrides: Overrides) -> None:
        self._app = app
        settings, clock, mfa_metrics = app.settings, app.clock, MfaMetrics(app.registry)
        self._upstream_metrics = UpstreamMetrics(app.registry)
        self._hidden = hidden_places(app.dictionary.attributes.values())
        self._organizations = app.configuration.hold(tokens_repo.organizations, dict[int, int]())
        self.ntlm_auth = Helpers(settings.ntlm_auth)
        self._ntlm_auth_of = overrides.ntlm_auth or self._winbind_of
        providers = available() if overrides.providers is None else overrides.providers
        self.providers = Providers(app.configuration, app.vault, providers, self._provider_host, mfa_metrics, clock)
        challenges, calls = self._calls()
        self.second = SecondFactor(
            challenges,
            calls,
            self.providers,
            mfa_metrics,
            patience=overrides.patience,
            clock=clock,
            hidden=self._hidden,
        )
        kinds = KINDS if overrides.first_factors is None else overrides.first_factors
        self.first_settings = FirstFactorSettings(app.configuration, app.vault, kinds, self._first_host, clock)
        self.first = self.first_settings.factors
        self.people = People(app.store, self.first, lambda domain_id: app.domains.table.present(domain_id))  # noqa: PLW0108
        self.lockouts = Lockouts(
            app.store,
            LockoutMetrics(app.registry),
            app.notices,
            app.vault.derived("guesses"),
            limit=settings.lockout_failures,
            minutes=settings.lockout_minutes,
            clock=clock,
            forget_codes=calls.forget_codes,
        )
        self.trials = Trials(
            app.domains, app.users, self.first, self.second.has_codes, self.lockouts.refuses, app.notices, clock
        )
        self.bypass = Bypass(app.configuration, clock, revocations=app.revocations)
        self.pipeline = Pipeline(
            domains=app.domains.snapshot,
            bypass=self.bypass,
            principals=app.directory.principals,
            lockouts=self.lockouts,
            users=app.users,
            first=self.first,
            sightings=app.devices.sightings,
            rules=app.rules,
            second=self.second,
            credentials=overrides.credentials or app.certificates.server,
            certificate_tenant=app.clients.certificate_tenant,
            node=lambda: app.cluster.id,
            duplicate_window_s=settings.duplicate_window_s,
        )

        self.enrolled = SecondFactors(self.providers, self.second.enrolments)
        self.rule_test = RuleTest(app.store, self.pipeline, self.enrolled, lambda: app.clients.table)
        self.rule_names = Names(
            app.store,
            lambda domain_id: app.domains.table.present(domain_id),  # noqa: PLW0108  the table of that moment
            lambda tenant_id: {each.name_key: each.name for each in app.clients.of_tenant(tenant_id)},
        )

    def _calls(self) -> tuple[Challenges, Calls]:
        """Return two objects: one for challenges, and one for the calls of providers. On a shared database, all nodes
        share the challenges and the calls."""
        app = self._app
        if not app.cluster.is_shared:
            return Challenges(app.store, app.vault, app.clock), Calls()
        settings = app.settings
        codes = Limit(settings.lockout_failures, min(WINDOW_US, settings.lockout_minutes * MINUTE_US))
        shared = SharedCalls(app.store, app.vault, app.cluster.session, codes)
        return SharedChallenges(app.store, app.vault, app.clock), shared

    def _first_host(self, domain_id: int) -> FirstHost:
        """Return the parts of the service that a domain's first factor may use."""
        app = self._app
        domain = app.domains.table.present(domain_id)
        return FirstHost(
            domain_id=domain_id,
            domain=domain.name,
            egress=app.http.of(domain.tenant_id).egress,
            clock=app.clock,
            upstream=self._upstream_metrics,
            hidden=self._hidden,
            ntlm_auth=self._ntlm_auth_of(domain_id),
        )

    def _provider_host(self, domain_id: int) -> Host:
        """Return the parts of the service that a domain's MFA provider may use."""
        app = self._app
        domain = app.domains.table.present(domain_id)
        return Host(
            domain_id=domain_id,
            domain=domain.name,
            http=app.http.of(domain.tenant_id),
            seeds=app.seeds,
            wallets=app.did.prompts,
            clock=app.clock,
        )

    def _winbind_of(self, domain_id: int) -> Helpers | None:
        """Return the helpers for the winbind of this host. Return None if the domain's organization may not use
        winbind.

        This host has joined the Active Directory of one company. Other organizations must not use this Active
        Directory.
        """
        allowed, tenant_id = self._app.settings.winbind_orgs, self._app.domains.tenant_of(domain_id)
        is_allowed = allowed is None or self._organizations.value.get(tenant_id or 0) in allowed
        return self.ntlm_auth if is_allowed else None
