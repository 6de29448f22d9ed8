"""What the command line asks: client.add, client.list, client.remove, client.unlatch, client.import,
client.weaknesses. Secrets come in as hex octets, since they may be in any encoding; one goes out only where it was
made here."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import trio
from pydantic import Field, model_validator

from sallyport.base.command import Arguments, Command, HexOctets, OfTenant, Tenants, command
from sallyport.base.validation import unfit
from sallyport.base.wire import JSON, Row
from sallyport.inventory.clients import weakness
from sallyport.inventory.clients.bodies import AnySignatures, CoaPort, Fingerprint, NetworkText, Product, TlsName
from sallyport.inventory.clients.client import MAX_SECRET, Client, Signatures
from sallyport.inventory.clients.plan import Action, Step, Wanted
from sallyport.inventory.clients.service import Clients, NewClient
from sallyport.radius.dynamic import PORT
from sallyport.web.scope import Name

FindDomain = Callable[[int, str], int]
"""(tenant id, name or id) to a domain's id. NotFound."""

SecretOctets = Annotated[HexOctets, Field(min_length=2, max_length=2 * MAX_SECRET)]


class ClientFields(Arguments):
    """A RADIUS client."""

    name: Name
    address: NetworkText
    secret: SecretOctets | None = None
    product: Product = ""
    require_message_authenticator: AnySignatures = Signatures.AUTO
    limit_proxy_state: AnySignatures = Signatures.AUTO
    password_verified: bool = False
    coa_port: CoaPort = PORT
    tls_name: TlsName = ""
    tls_fingerprint: Fingerprint = ""


class AddClients(OfTenant):
    """Clients to add, all or none. domains: names or ids, the first being the default."""

    clients: list[ClientFields] = Field(min_length=1)
    domains: list[str] = Field(default_factory=list)


class ListClients(Arguments):
    """Of the installation."""


class NamedClient(Arguments):
    """One client: of a tenant, or of the installation where only one has that name."""

    name: str
    org: int | None = Field(default=None, ge=1)
    tenant: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _whole(self) -> "NamedClient":
        if (self.org is None) != (self.tenant is None):
            raise unfit("org and tenant go together")
        return self


class ImportedClient(Arguments):
    """A client of a file. Its name and the length of its secret are judged in the plan."""

    name: str
    address: NetworkText
    secret: HexOctets
    product: Product | None = None
    require_message_authenticator: AnySignatures
    limit_proxy_state: AnySignatures


class ImportClients(OfTenant):
    """domains: None keeps what is there, and gives new clients all of the tenant's.

    apply: carry the plan out, all or none of it. skip_refused: leave out what cannot be done, and do the rest.
    """

    clients: list[ImportedClient]
    domains: list[str] | None = None
    apply: bool = False
    skip_refused: bool = False


def commands(service: Clients, tenants: Tenants, find_domain: FindDomain) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def add(wanted: AddClients) -> JSON:
        tenant_id = await tenants.tenant_id(wanted.org, wanted.tenant)
        domain_ids = tuple(find_domain(tenant_id, name) for name in wanted.domains)
        added = await service.add_all(tenant_id, [_new(each, domain_ids) for each in wanted.clients])
        return [
            {
                "id": client_id,
                "name": each.name,
                "secret": None if each.secret else secret.decode(),
                "warnings": list[JSON](weakness.of_client(service.table.by_id[client_id])),
            }
            for each, (client_id, secret) in zip(wanted.clients, added, strict=True)
        ]

    async def listing(_: ListClients) -> JSON:
        numbers = await tenants.numbers()
        return [_row(client, *numbers[client.tenant_id]) for client in service.table.by_id.values()]

    async def find(wanted: NamedClient) -> Client:
        if wanted.org is None or wanted.tenant is None:
            return service.anywhere(wanted.name)
        return service.named(await tenants.tenant_id(wanted.org, wanted.tenant), wanted.name)

    async def remove(wanted: NamedClient) -> JSON:
        client = await find(wanted)
        await service.delete(client.tenant_id, client.id)
        return None

    async def unlatch(wanted: NamedClient) -> JSON:
        await service.unlatch(await find(wanted))
        return None

    async def importing(wanted: ImportClients) -> JSON:
        tenant_id = await tenants.tenant_id(wanted.org, wanted.tenant)
        domain_ids = None
        if wanted.domains is not None:
            domain_ids = tuple(find_domain(tenant_id, name) for name in wanted.domains)

        def plan() -> tuple[Sequence[Step], list[JSON], bool]:
            steps = service.plan(tenant_id, [_wanted(each, domain_ids) for each in wanted.clients])
            whole = wanted.skip_refused or all(step.action is not Action.REFUSED for step in steps)
            return steps, [_step(step) for step in steps], whole

        # In a thread: thousands of clients take half a second, in which logins go on.
        steps, told, whole = await trio.to_thread.run_sync(plan)
        if wanted.apply and whole:
            await service.carry_out(tenant_id, steps)
        return {"applied": wanted.apply and whole, "clients": told}

    async def weaknesses(_: ListClients) -> JSON:
        found = _weaknesses(service.table.by_id)
        if len(await tenants.numbers()) > 1:
            found += [
                _weakness(client, text)
                for client in service.table.by_id.values()
                for text in weakness.of_certificate(client, service.table.issued)
            ]
        return found

    return {
        "client.add": command(AddClients, add),
        "client.import": command(ImportClients, importing),
        "client.list": command(ListClients, listing),
        "client.remove": command(NamedClient, remove),
        "client.unlatch": command(NamedClient, unlatch),
        "client.weaknesses": command(ListClients, weaknesses),
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
        tls_name=wanted.tls_name,
        tls_fingerprint=wanted.tls_fingerprint,
        coa_port=wanted.coa_port,
    )


def _wanted(each: ImportedClient, domain_ids: tuple[int, ...] | None) -> Wanted:
    return Wanted(
        name=each.name,
        network=each.address,
        secret=bytes.fromhex(each.secret),
        product=each.product,
        require_message_authenticator=each.require_message_authenticator.value,
        limit_proxy_state=each.limit_proxy_state.value,
        domain_ids=domain_ids,
    )


def _step(step: Step) -> Row:
    return {
        "action": step.action.value,
        "name": step.wanted.name,
        "address": step.wanted.network,
        "changes": list[JSON](step.changes()),
        "reason": step.reason,
    }


def _row(client: Client, organization: int, tenant: int) -> Row:
    return {
        "id": client.id,
        "name": client.name,
        "org": organization,
        "tenant": tenant,
        "address": client.address,
        "domains": list(client.domain_ids),
        "product": client.product,
        "require_message_authenticator": client.require_message_authenticator.value,
        "limit_proxy_state": client.limit_proxy_state.value,
        "signature_required": client.signature_required,
        "proxy_state_limited": client.proxy_state_limited,
        "password_verified": client.password_verified,
        "tls_name": client.tls_name,
        "tls_fingerprint": client.tls_fingerprint,
        "coa_port": client.coa_port,
    }


def _weaknesses(clients: Mapping[int, Client]) -> list[JSON]:
    """A line for each thing that is weak, by client; then the ranges that contain others."""
    found = [_weakness(client, text) for client in clients.values() for text in weakness.of_client(client)]
    by_network = {client.network: client for client in clients.values()}
    for network, inner in weakness.enclosing(by_network).items():
        names = _few([by_network[each].name for each in inner])
        found.append(_weakness(by_network[network], f"contains {names}: the longest prefix wins"))
    return found


def _weakness(client: Client, text: str) -> JSON:
    return {"client": client.name, "address": client.address, "weakness": text}


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
