"""HTTP operations of RADIUS clients: /network_device/...Client(s)."""

from collections.abc import Awaitable, Callable, Sequence

from pydantic import SecretBytes

from sallyport.areas.clients.bodies import (
    AddClient,
    ClientActivity,
    ClientAdded,
    ClientList,
    ClientsActivity,
    ClientUpdated,
    DeleteClient,
    ListClients,
    UpdateClient,
)
from sallyport.areas.clients.client import Client, joined_forms
from sallyport.areas.clients.repo import API_NAMES
from sallyport.areas.clients.service import Clients, Heard, NewClient, Times
from sallyport.base.answer import answers
from sallyport.base.clock import iso
from sallyport.base.wire import Row
from sallyport.store.model import Value
from sallyport.web.operation import Done, Operations, Plain
from sallyport.web.scope import ADMINS, OPERATORS, READERS, Caller, Gate, not_allowed


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
            NewClient(
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
            ),
            by=None if caller.is_installation else caller.role,
        )
        return ClientAdded(
            message="client added",
            clientId=client_id,
            secret=secret.decode(errors="replace"),
            warnings=service.table.present(client_id).warnings,
        )

    @clients.post("/network_device/ListClients", roles=READERS)
    async def list_clients(body: ListClients, caller: Caller) -> Plain[ClientList]:
        """List the RADIUS clients of the tenant, ordered by id, without their secrets."""
        found, page = await service.search(caller.tenant_id, body.search), body.page()
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

    @clients.post("/network_device/UpdateClient", roles=OPERATORS)
    async def update_client(body: UpdateClient, caller: Caller) -> ClientUpdated:
        """Change a RADIUS client. The change applies to the next request.

        A change of the address keeps the settings that the service has learned (`auto`). If one of these settings gets
        a new value, the learned value is reset. `unlatch` resets all of them.

        A change of secret, domainIds, tlsName, tlsFingerprint, passwordVerified, macForms, macPassword,
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
            by=None if caller.is_installation else caller.role,
        )
        if body.unlatch:
            await service.unlatch(client)
            client = service.table.present(client.id)
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
    given["mac_forms"] = None if body.macForms is None else joined_forms(body.macForms)
    given["password_verified"] = None if body.passwordVerified is None else int(body.passwordVerified)
    return {column: value for column, value in given.items() if value is not None}
