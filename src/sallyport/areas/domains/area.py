"""The entrance of domains: their modes and realms, the switch to enforce, and their removal."""

from collections.abc import Mapping, Sequence

from sallyport.areas.domains import operations as api
from sallyport.areas.domains.configured import DomainKind
from sallyport.areas.domains.enforcement import Enforcement, ImpactPreview, ProviderChecks, Reverts
from sallyport.areas.domains.removal import Removal
from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Areas, Parts
from sallyport.metrics import DomainMetrics
from sallyport.outgoing.http import HttpFactory
from sallyport.shell.command import Command
from sallyport.store.erasure import Rows
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class DomainsArea(Area):
    """Domains."""

    erased_rows = (
        Rows("counters", key="domain_id, name"),
        Rows("domain_realms", key="domain_id, realm"),
    )

    def __init__(self, parts: Parts, areas: Areas) -> None:
        clock = parts.clock
        self._parts = parts
        self.service = Domains(parts.configuration, DomainMetrics(parts.registry), clock)
        self.reverts = Reverts(self.service, parts.cluster, clock)
        self.removal = Removal(parts.configuration, parts.cluster, lambda: areas.erased_rows, clock)
        self.enforcement: Enforcement
        # Each node knows the deadlines of the modes, but only the node with the lease reverts a mode.
        self.node_tasks = (self.reverts.run,)
        self.leader_tasks = (self.removal.run,)
        self.configured = (DomainKind(self.service, self.removal),)

    def preview_with(self, preview: ImpactPreview, providers: ProviderChecks) -> None:
        """Set what the switch to enforce uses. It needs the domains itself, so it is made later."""
        self.enforcement = Enforcement(self.service, preview, providers)

    def http_of(self, domain_id: int) -> HttpFactory:
        """Return the HTTP client and the permitted addresses of a domain's tenant."""
        return self._parts.http.of(self.service.tenant_of(domain_id) or 0)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of domains."""
        return [api.operations(self.service, self.enforcement, self.removal, gate)]

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of domains: break-glass and removal."""
        return api.local_operations(self.service, self.removal)

    async def prepare(self) -> None:
        """Revert the modes whose time is over."""
        await self.reverts.revert_due()
