"""Operations of RADIUS clients: /network_device/...Client(s); local: client.import, client.unlatch,
client.weaknesses."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import trio
from pydantic import Field, SecretBytes

from sallyport.areas.clients import weakness
from sallyport.areas.clients.activity import Heard, Times
from sallyport.areas.clients.bodies import (
    AddClient,
    AnySignatures,
    ClientActivity,
    ClientAdded,
    ClientList,
    ClientsActivity,
    ClientUpdated,
    DeleteClient,
    ListClients,
    NetworkText,
    Product,
    UpdateClient,
)
from sallyport.areas.clients.client import Client, joined_forms
from sallyport.areas.clients.plan import Action, Step, Wanted
from sallyport.areas.clients.repo import API_NAMES
from sallyport.areas.clients.service import Clients, NewClient
from sallyport.base.answer import answers
from sallyport.base.clock import iso
from sallyport.base.model import Done
from sallyport.base.tags import canonical_tags
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import Arguments, LocalOperations, Tenants
from sallyport.store.model import Value
from sallyport.web.bodies import Octets, Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, OPERATORS, READERS, Caller, Gate, ManagedCheck, acting_on, not_allowed
from sallyport.web.tags import NewTags

UPDATE: Final = "/network_device/UpdateClient"


def operations(service: Clients, gate: Gate, heard: Callable[[int], Awaitable[Sequence[Heard]]]) -> Operations:
    """Return the operations of RADIUS clients. heard: a function that returns when each source address of a tenant has
    sent requests."""
    clients = Operations("RADIUS clients", gate)

    @clients.post("/network_device/AddClient", roles=ADMINS)
    async def add_client(body: AddClient, caller: Caller) -> ClientAdded:
        """Allow an address or a network to send requests to the RADIUS listeners. Only this answer contains the secret.

        409: the address is in use.

        403: the installation has several tenants, and the client needs the installation's administrator. This applies
        to a network wider than /24 (IPv6: /64). It also applies to a tlsName or tlsFingerprint of a certificate that
        the installation has not issued for this tenant. The administrator can add such clients on the command line.
        """
        client_id, secret = await service.add(
            caller.tenant_id,
            new_client(body),
            by=None if caller.is_installation else caller.role,
        )
        return ClientAdded(
            message="client added",
            clientId=client_id,
            secret=secret.decode(errors="replace"),
            warnings=(await service.changed(client_id)).warnings,
        )

    @clients.post("/network_device/ListClients", roles=READERS)
    async def list_clients(body: ListClients, caller: Caller) -> Plain[ClientList]:
        """List the RADIUS clients of the tenant, ordered by id, without their secrets."""
        found, page = await service.search(caller.tenant_id, body.search, body.tag), body.page()
        if body.clientId:
            found = [client for client in found if client.id == body.clientId]
        entries = answers(found[page.offset : page.offset + page.size])
        return Plain({"clients": entries, "totalCount": len(found)})

    @clients.post("/network_device/ClientActivity", roles=READERS)
    async def client_activity(body: ClientActivity, caller: Caller) -> Plain[ClientsActivity]:
        """Show when each RADIUS client of the tenant has sent its last request, and its last request without
        Message-Authenticator. A client that was heard before and is silent now may have lost its connection.

        The times come from the inventory of devices, and lag by up to a minute. A RadSec client is found by the address
        of its connection only if it was registered with this address.
        """
        times, page = await heard(caller.tenant_id), body.page()
        found = await service.activity(caller.tenant_id, times, body.state, body.clientIds or ())
        shown = [_active(*each) for each in found[page.offset : page.offset + page.size]]
        return Plain({"clients": shown, "totalCount": len(found)})

    @clients.post(UPDATE, roles=OPERATORS)
    async def update_client(body: UpdateClient, caller: Caller) -> ClientUpdated:
        """Change a RADIUS client. The change applies to the next request.

        A change of the address keeps the settings that the service has learned (`auto`). If one of these settings gets
        a new value, the learned value is reset. `unlatch` resets all of them.

        A change of secret, domainIds, tlsName, tlsFingerprint, passwordVerified, macForms, macPassword, tags,
        requireMessageAuthenticator or limitProxyState, and `unlatch`, require the role admin. The rules of AddClient
        for addresses and certificates apply.
        """
        if body.unlatch and caller.role not in ADMINS:
            raise not_allowed(caller.role, ADMINS)
        client = await service.update(
            caller.tenant_id,
            body.clientId,
            _changes(body),
            secret=_octets(body.secret),
            domain_ids=body.domainIds,
            mac_password=_octets(body.macPassword),
            tags=body.tags,
            by=None if caller.is_installation else caller.role,
        )
        if body.unlatch:
            await service.latches.unlatch(client)
            client = await service.changed(client.id)
        return ClientUpdated(
            message="client updated",
            warnings=client.warnings,
            signatureRequired=client.signature_required,
            proxyStateLimited=client.proxy_state_limited,
        )

    @clients.post("/network_device/DeleteClient", roles=OPERATORS)
    async def delete_client(body: DeleteClient, caller: Caller) -> Done:
        """Remove a RADIUS client. The next request of the client is dropped. The client's devices stay in the
        inventory."""
        await service.delete(caller.tenant_id, body.clientId)
        return Done(message="client deleted")

    return clients


def new_client(body: AddClient) -> NewClient:
    """Return the client that a body describes."""
    return NewClient(
        name=body.name,
        network=body.address,
        secret=_octets(body.secret),
        domain_ids=tuple(body.domainIds or ()),
        product=body.product,
        require_message_authenticator=body.requireMessageAuthenticator,
        limit_proxy_state=body.limitProxyState,
        password_verified=body.passwordVerified,
        coa_port=body.coaPort,
        tls_name=body.tlsName,
        tls_fingerprint=body.tlsFingerprint,
        mac_forms=joined_forms(body.macForms),
        mac_password=_octets(body.macPassword) or b"",
        tags=canonical_tags(body.tags),
        note=body.note,
        shadow=body.shadow,
    )


def _active(client: Client, times: Times) -> Row:
    return {
        "clientId": client.id,
        "name": client.name,
        "address": client.address,
        "lastSeen": iso(times.seen) if times.seen else "",
        "lastUnsigned": iso(times.unsigned) if times.unsigned else "",
    }


def _octets(secret: SecretBytes | None) -> bytes | None:
    return secret.get_secret_value() if secret else None


def _changes(body: UpdateClient) -> dict[str, Value]:
    """Return the values of the fields that the request contains. The keys are the columns of the store."""
    given = {column: getattr(body, name) for column, name in API_NAMES.items()}
    del given["tags"]  # `Clients.update` applies it to the present tags
    given["mac_forms"] = None if body.macForms is None else joined_forms(body.macForms)
    given["password_verified"] = None if body.passwordVerified is None else int(body.passwordVerified)
    given["shadow"] = None if body.shadow is None else int(body.shadow)
    return {column: value for column, value in given.items() if value is not None}


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

    tags: the tags to change of all imported clients; see `changed_tags`.

    domains: the names or ids of the domains for all imported clients. If `domains` is None, an existing client keeps
    its domains, and a new client has all domains of the tenant.

    apply: whether to import the clients, or only to return the plan. If the plan has a client that cannot be imported,
    no client is imported.

    skip_refused: whether to skip the clients that cannot be imported, and to import the others.

    override: whether to change clients that files manage.
    """

    org: int
    tenant: int
    clients: list[ImportedClient]
    domains: list[str] | None = None
    tags: NewTags = Field(default_factory=list)
    apply: bool = False
    skip_refused: bool = False
    override: bool = False


def local_operations(
    service: Clients, tenants: Tenants, find_domain: FindDomain, managed: ManagedCheck
) -> LocalOperations:
    """Return the local operations of RADIUS clients by name."""
    local = LocalOperations()

    @local("client.unlatch")
    async def unlatch(wanted: UnlatchClient) -> JSON:
        await service.latches.unlatch(service.table.present(wanted.client))
        return None

    @local("client.import")
    async def importing(wanted: ImportClients) -> JSON:
        tenant_id = await tenants.tenant_id(wanted.org, wanted.tenant)
        domain_ids = None
        if wanted.domains is not None:
            domain_ids = tuple(find_domain(tenant_id, name) for name in wanted.domains)

        def plan() -> tuple[Sequence[Step], list[JSON], bool]:
            steps = service.plan(tenant_id, [_wanted(each, domain_ids, wanted.tags) for each in wanted.clients])
            whole = wanted.skip_refused or all(step.action is not Action.REFUSED for step in steps)
            return steps, [_step(step) for step in steps], whole

        # In a thread, so that logins are not delayed: thousands of clients take half a second.
        steps, shown, whole = await trio.to_thread.run_sync(plan)
        if wanted.apply and whole:
            changed = [{"clientId": step.client_id} for step in steps if step.action is Action.CHANGED]
            async with acting_on(managed, tenant_id, UPDATE, changed, override=wanted.override):
                await service.carry_out(tenant_id, steps)
        return {"applied": wanted.apply and whole, "clients": shown}

    @local("client.weaknesses")
    async def weaknesses() -> JSON:
        found = _weaknesses(service.table.by_id)
        if len(await tenants.numbers()) > 1:
            found += [
                _weakness(client, text)
                for client in service.table.by_id.values()
                for text in weakness.of_certificate(client, service.table.issued)
            ]
        return found

    return local


def _wanted(each: ImportedClient, domain_ids: tuple[int, ...] | None, tags: Sequence[str]) -> Wanted:
    return Wanted(
        name=each.name,
        network=each.address,
        secret=each.secret.get_secret_value(),
        product=each.product,
        require_message_authenticator=each.require_message_authenticator.value,
        limit_proxy_state=each.limit_proxy_state.value,
        domain_ids=domain_ids,
        tags=tuple(tags),
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
