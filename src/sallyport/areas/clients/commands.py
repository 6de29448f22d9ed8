"""Commands of the control socket for RADIUS clients: client.import, client.unlatch, client.weaknesses."""

from collections.abc import Callable, Mapping, Sequence

import trio

from sallyport.areas.clients import weakness
from sallyport.areas.clients.bodies import AnySignatures, NetworkText, Product
from sallyport.areas.clients.client import Client
from sallyport.areas.clients.plan import Action, Step, Wanted
from sallyport.areas.clients.service import Clients
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import Arguments, Command, Tenants, command
from sallyport.web.scope import Octets

FindDomain = Callable[[int, str], int]
"""A function that returns the id of a domain. Its arguments are the tenant's id, and the name or the id of the domain.
The function raises NotFound if the domain does not exist."""


class UnlatchClient(Arguments):
    """Arguments of client.unlatch. client: the id of a RADIUS client."""

    client: int


class ImportedClient(Arguments):
    """A client in an imported file. The plan validates its name and the length of its secret."""

    name: str
    address: NetworkText
    secret: Octets
    product: Product | None = None
    require_message_authenticator: AnySignatures
    limit_proxy_state: AnySignatures


class ImportClients(Arguments):
    """Arguments of client.import.

    domains: the names or ids of the domains for all imported clients. If `domains` is None, an existing client keeps
    its domains, and a new client has all domains of the tenant.

    apply: whether to import the clients, or only to return the plan. If the plan has a client that cannot be imported,
    no client is imported.

    skip_refused: whether to skip the clients that cannot be imported, and to import the others.
    """

    org: int
    tenant: int
    clients: list[ImportedClient]
    domains: list[str] | None = None
    apply: bool = False
    skip_refused: bool = False


def commands(service: Clients, tenants: Tenants, find_domain: FindDomain) -> dict[str, Command]:
    """Return the commands of RADIUS clients by name."""

    async def unlatch(wanted: UnlatchClient) -> JSON:
        await service.unlatch(service.table.present(wanted.client))
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

        # In a thread, so that logins are not delayed: thousands of clients take half a second.
        steps, shown, whole = await trio.to_thread.run_sync(plan)
        if wanted.apply and whole:
            await service.carry_out(tenant_id, steps)
        return {"applied": wanted.apply and whole, "clients": shown}

    async def weaknesses(_: Arguments) -> JSON:
        found = _weaknesses(service.table.by_id)
        if len(await tenants.numbers()) > 1:
            found += [
                _weakness(client, text)
                for client in service.table.by_id.values()
                for text in weakness.of_certificate(client, service.table.issued)
            ]
        return found

    return {
        "client.import": command(ImportClients, importing),
        "client.unlatch": command(UnlatchClient, unlatch),
        "client.weaknesses": command(Arguments, weaknesses),
    }


def _wanted(each: ImportedClient, domain_ids: tuple[int, ...] | None) -> Wanted:
    return Wanted(
        name=each.name,
        network=each.address,
        secret=each.secret.get_secret_value(),
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


def _weaknesses(clients: Mapping[int, Client]) -> list[JSON]:
    """Return the lines about weaknesses. First comes a line for each weakness of each client. Then comes a line for
    each client whose network contains the networks of other clients."""
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
