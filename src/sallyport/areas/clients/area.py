"""The entrance of RADIUS clients."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from sallyport.areas.clients import operations as api
from sallyport.areas.clients.activity import Heard
from sallyport.areas.clients.configured import ClientKind
from sallyport.areas.clients.issued import IssuedCertificates
from sallyport.areas.clients.service import Clients
from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Parts
from sallyport.shell.command import Command, Tenants
from sallyport.store.erasure import Rows
from sallyport.store.sealed import Sealed
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class ClientsArea(Area):
    """RADIUS clients. heard: returns when the addresses of a tenant were heard."""

    erased_rows = (Rows("radius_client_domains", "lists of RADIUS clients", "client_id, position", has_index=False),)
    sealed = (
        Sealed("radius_clients", "secret", ("id",), "radius_clients/{}/secret", is_vital=True),
        Sealed("radius_clients", "mac_password", ("id",), "radius_clients/{}/mac_password", is_vital=True),
    )

    def __init__(
        self,
        parts: Parts,
        tenants: Tenants,
        domains: Domains,
        *,
        heard: Callable[[int], Awaitable[Sequence[Heard]]],
    ) -> None:
        self._tenants, self._domains, self._heard = tenants, domains, heard
        self.service = Clients(parts.configuration, parts.vault, domains.tenant_of, parts.clock)
        self.issued = IssuedCertificates(parts.configuration, lambda: self.service.table.issued)
        self.node_tasks = (self.service.latches.run,)
        self.configured = (ClientKind(self.service),)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of RADIUS clients."""
        return [api.operations(self.service, gate, self._heard)]

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of RADIUS clients."""
        return api.local_operations(self.service, self._tenants, self._find_domain, self.managed)

    def _find_domain(self, tenant_id: int, name: str) -> int:
        return self._domains.named(tenant_id, name).id
