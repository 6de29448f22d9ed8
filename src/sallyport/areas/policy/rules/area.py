"""The entrance of login rules."""

from collections.abc import Callable, Mapping, Sequence

from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.policy.rules import operations as api
from sallyport.areas.policy.rules.names import Names
from sallyport.areas.policy.rules.service import LoginRules
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class RulesArea(Area):
    """Login rules. client_names: returns the names of a tenant's RADIUS clients by folded name, in any thread."""

    def __init__(self, parts: Parts, domains: Domains, *, client_names: Callable[[int], Mapping[str, str]]) -> None:
        self.service = LoginRules(parts.configuration, parts.dictionary, parts.clock)
        self.names = Names(parts.store, lambda domain_id: domains.table.present(domain_id), client_names)  # noqa: PLW0108

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of login rules."""
        return [api.operations(self.service, self.names, gate)]
