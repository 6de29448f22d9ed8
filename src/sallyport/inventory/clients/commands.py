"""What the command line asks: client.add, client.list, client.remove, client.unlatch."""

from collections.abc import Callable

from pydantic import Field

from sallyport.base.command import JSON, Arguments, Command, OfTenant, Tenants, command
from sallyport.inventory.clients.model import AnySignatures, Client, NetworkText, Signatures
from sallyport.inventory.clients.service import Clients, NewClient
from sallyport.web.scope import Name, Text

FindDomain = Callable[[int, str], int]
"""(tenant id, name or id) to a domain's id. NotFound."""


class ClientFields(Arguments):
    """A RADIUS client. secret: hex octets, since a file may hold any."""

    name: Name
    address: NetworkText
    secret: str | None = None
    product: Text = ""
    require_message_authenticator: AnySignatures = Signatures.AUTO
    limit_proxy_state: AnySignatures = Signatures.AUTO
    password_verified: bool = False


class AddClients(OfTenant):
    """Clients to add, all or none. domains: names or ids, the first being the default."""

    clients: list[ClientFields] = Field(min_length=1)
    domains: list[str] = Field(default_factory=list)


class ListClients(Arguments):
    """Of the installation."""


class NamedClient(OfTenant):
    """One client of a tenant."""

    name: str


def commands(service: Clients, tenants: Tenants, find_domain: FindDomain) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def add(wanted: AddClients) -> JSON:
        tenant_id = await tenants.ensure_tenant(wanted.org, wanted.tenant)
        domain_ids = tuple(find_domain(tenant_id, name) for name in wanted.domains)
        added = await service.add_all(tenant_id, [_new(each, domain_ids) for each in wanted.clients])
        return [
            {"id": client_id, "name": each.name, "secret": None if each.secret else secret.decode()}
            for each, (client_id, secret) in zip(wanted.clients, added, strict=True)
        ]

    async def listing(_: ListClients) -> JSON:
        return [_row(client) for client in service.table.by_id.values()]

    async def remove(wanted: NamedClient) -> JSON:
        tenant_id = await tenants.ensure_tenant(wanted.org, wanted.tenant)
        await service.delete(tenant_id, service.named(tenant_id, wanted.name).id)
        return None

    async def unlatch(wanted: NamedClient) -> JSON:
        tenant_id = await tenants.ensure_tenant(wanted.org, wanted.tenant)
        await service.unlatch(tenant_id, wanted.name)
        return None

    return {
        "client.add": command(AddClients, add),
        "client.list": command(ListClients, listing),
        "client.remove": command(NamedClient, remove),
        "client.unlatch": command(NamedClient, unlatch),
    }


def _new(wanted: ClientFields, domain_ids: tuple[int, ...]) -> NewClient:
    return NewClient(
        name=wanted.name,
        network=wanted.address,
        secret=None if wanted.secret is None else bytes.fromhex(wanted.secret),
        domain_ids=domain_ids,
        product=wanted.product,
        require_message_authenticator=wanted.require_message_authenticator,
        limit_proxy_state=wanted.limit_proxy_state,
        password_verified=wanted.password_verified,
    )


def _row(client: Client) -> dict[str, JSON]:
    return {
        "id": client.id,
        "name": client.name,
        "address": client.address,
        "domains": list(client.domain_ids),
        "product": client.product,
        "require_message_authenticator": client.require_message_authenticator.value,
        "limit_proxy_state": client.limit_proxy_state.value,
        "signature_required": client.signature_required,
        "proxy_state_limited": client.proxy_state_limited,
        "password_verified": client.password_verified,
    }
