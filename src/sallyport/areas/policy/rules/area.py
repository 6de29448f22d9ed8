"""The entrance of login rules."""

from collections.abc import Mapping, Sequence

from sallyport.areas.clients.service import Clients
from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.mfa.service import Providers
from sallyport.areas.policy.roles.service import Roles
from sallyport.areas.policy.rules import operations as api
from sallyport.areas.policy.rules import repo
from sallyport.areas.policy.rules.configured import RuleKind
from sallyport.areas.policy.rules.names import Names
from sallyport.areas.policy.rules.service import LoginRules
from sallyport.store.erasure import Rows
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class RulesArea(Area):
    """Login rules."""

    erased_rows = (Rows("login_rules", "login rules"),)

    def __init__(self, parts: Parts, domains: Domains, clients: Clients, roles: Roles) -> None:
        def client_names(tenant_id: int) -> Mapping[str, str]:
            return {each.name_key: each.name for each in clients.of_tenant(tenant_id)}

        self.service = LoginRules(parts.configuration, parts.dictionary, parts.clock, roles.check)
        roles.used_by.append(repo.roles_in_use)
        self.configured = (RuleKind(self.service),)
        self.names = Names(parts.store, lambda domain_id: domains.table.present(domain_id), client_names)  # noqa: PLW0108

    def find_providers_with(self, providers: Providers) -> None:
        """Set the MFA providers that rules name. A provider that a rule names is not removed."""
        self.service.providers = providers
        providers.used_by.append(repo.providers_in_use)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of login rules."""
        return [api.operations(self.service, self.names, gate)]
