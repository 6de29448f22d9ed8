"""The entrance of previews: how enforce mode, or a login rule, would decide logins."""

from collections.abc import Sequence

from sallyport.areas.clients.service import Clients
from sallyport.areas.devices.service import Devices
from sallyport.areas.domains.area import DomainsArea
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.login.area import LoginArea
from sallyport.areas.mfa.service import Providers
from sallyport.areas.policy.roles.service import Roles
from sallyport.areas.policy.rules.service import LoginRules
from sallyport.areas.preview import operations as api
from sallyport.areas.preview.enrolled import SecondFactors
from sallyport.areas.preview.rule_test import RuleTest
from sallyport.areas.preview.service import Preview
from sallyport.areas.preview.traffic import TrafficReader
from sallyport.base.clock import now_us
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class PreviewArea(Area):
    """Previews of enforcement and tests of login rules."""

    def __init__(
        self,
        parts: Parts,
        domains: DomainsArea,
        clients: Clients,
        devices: Devices,
        rules: LoginRules,
        roles: Roles,
        providers: Providers,
        login: LoginArea,
    ) -> None:
        self._translation = rules.translation
        enrolled = SecondFactors(providers, login.second.enrolments)
        traffic = TrafficReader(parts.store, roles, lambda host: clients.find((host, 0)), devices.tags)
        self.service = Preview(traffic, parts.configuration, domains.service, rules, enrolled, parts.clock)
        self.rule_test = RuleTest(parts.store, login.pipeline, enrolled, lambda: clients.table)
        domains.preview_with(self.service, providers)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of previews."""
        return api.operations(self.service, self.rule_test, self._translation, gate, now_us)
