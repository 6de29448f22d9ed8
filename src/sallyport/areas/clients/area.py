"""The entrance of RADIUS clients."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from sallyport.areas.clients import operations as api
from sallyport.areas.clients.issued import IssuedCertificates
from sallyport.areas.clients.service import Clients, Heard
from sallyport.areas.entrance import Area, Parts
from sallyport.metrics import RadiusMetrics
from sallyport.shell.command import Command, Tenants
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class ClientsArea(Area):
    """RADIUS clients.

    tenant_of: returns the tenant of a domain. find_domain: returns the domain of a tenant with a name or id. heard:
    returns when the addresses of a tenant were heard.
    """

    def __init__(
        self,
        parts: Parts,
        metrics: RadiusMetrics,
        tenants: Tenants,
        *,
        tenant_of: Callable[[int], int | None],
        find_domain: Callable[[int, str], int],
        heard: Callable[[int], Awaitable[Sequence[Heard]]],
    ) -> None:
        self._tenants, self._find_domain, self._heard = tenants, find_domain, heard
        self.service = Clients(parts.configuration, parts.vault, tenant_of, parts.clock)
        self.issued = IssuedCertificates(parts.configuration, lambda: self.service.table.issued)
        metrics.watch_clients(lambda: [each.name for each in tuple(self.service.table.by_id.values())])
        self.node_tasks = (self.service.run,)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of RADIUS clients."""
        return [api.operations(self.service, gate, self._heard)]

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of RADIUS clients."""
        return api.local_operations(self.service, self._tenants, self._find_domain)
