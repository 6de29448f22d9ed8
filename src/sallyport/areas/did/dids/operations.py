"""The HTTP operations of DIDs: /api/v1/did/*."""

from sallyport.areas.did.dids.bodies import (
    CreateHolderDid,
    CreateIssuerDid,
    DeleteDids,
    DidCreated,
    DidEntry,
    DidsFound,
    IssuerCreated,
    KeyRotated,
    ListDids,
    RotateKey,
    SearchDids,
)
from sallyport.areas.did.dids.did import NewDid, Search
from sallyport.areas.did.dids.service import Dids
from sallyport.base.answer import answer
from sallyport.base.clock import from_us
from sallyport.base.model import Done
from sallyport.base.text import counted
from sallyport.base.wire import Minimum
from sallyport.store.model import ListQuery
from sallyport.web.bodies import Counted, Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


def operations(service: Dids, gate: Gate) -> Operations:
    """Declare the operations of DIDs."""
    dids = Operations("DIDs", gate)
    _declare_changing(dids, service)
    _declare_reading(dids, service)
    return dids


def _declare_changing(dids: Operations, service: Dids) -> None:
    @dids.post("/api/v1/did/createIssuerDid", roles=OPERATORS)
    async def create_issuer(body: CreateIssuerDid, caller: Caller) -> IssuerCreated:
        """Create an issuer with a DID of the method `key`, `jwk` or `web`. The service generates the key of the DID.
        The private key never leaves the service."""
        made = await service.create_issuer(caller.tenant_id, _new(body))
        return IssuerCreated(id=made.did, message="issuer DID created", didId=made.id, issuerId=made.id)

    @dids.post("/api/v1/did/createHolderDid", roles=OPERATORS)
    async def create_holder(body: CreateHolderDid, caller: Caller) -> DidCreated:
        """Create a holder. With publicKeyJwk, the wallet keeps the private key. Without publicKeyJwk, the service
        generates the key, and uses it only together with the walletKey."""
        made = await service.create_holder(
            caller.tenant_id, _new(body), body.walletUserId, body.issuer, body.publicKeyJwk
        )
        return DidCreated(id=made.did, message="holder DID created", didId=made.id)

    @dids.delete("/api/v1/did/deleteDid", roles=OPERATORS)
    async def delete(body: DeleteDids, caller: Caller) -> Done:
        """Delete DIDs from the lists, and close the open presentation requests of these DIDs. Credentials that a
        deleted issuer has signed can still be verified and revoked. Credentials of a deleted holder can no longer be
        used for logins. If the domain is set to disconnect on revocation, the sessions of the holder's users end."""
        deleted = await service.delete(body.domainId, [(each.type, each.did) for each in body.dids])
        return Done(message=f"{counted(deleted, 'DID')} deleted")

    @dids.post("/api/v1/did/rotateKey", roles=OPERATORS)
    async def rotate(body: RotateKey, caller: Caller) -> KeyRotated:
        """Give an issuer's did:web a new key. Signatures with the former key can still be verified."""
        method_id = await service.rotate(body.domainId, body.did)
        return KeyRotated(message="key rotated", verificationMethod=method_id)


def _declare_reading(dids: Operations, service: Dids) -> None:
    @dids.post("/api/v1/did/DIDList", roles=READERS)
    async def list_dids(body: ListDids, caller: Caller) -> Plain[Counted[DidEntry]]:
        """List the DIDs of a domain, ordered by id. The list contains all DIDs, or only an issuer and its holders, or
        only the DIDs of one wallet user.

        The header `X-Total-Count` contains the number of matching DIDs.
        """
        page = body.page()
        stretch = ListQuery(body.domainId, page.offset, page.size)
        found, total = await service.page(stretch, issuer_id=body.issuerId, wallet_id=body.userId)
        return Plain(Counted([{**answer(each), "lastYpdatedAt": day_first(each.updated_at)} for each in found], total))

    @dids.post("/api/v1/did/SearchDID", roles=READERS)
    async def search(body: SearchDids, caller: Caller) -> Plain[DidsFound]:
        """List the tenant's DIDs that match a text, ordered by id. The text is a part of a name, or a whole DID. The
        list contains the DIDs of all domains of the tenant, or only those of one domain."""
        page, text, domain_id = body.page(), body.name.strip(), body.domainId or 0
        asked = Search(caller.tenant_id, text, body.didType, domain_id, body.didId, page.offset, page.size)
        found, count = await service.search(asked)
        listed = [{**answer(each), "lastUpdatedAt": day_first(each.updated_at)} for each in found]
        is_minimum = {"totalIsMinimum": True} if isinstance(count, Minimum) else {}
        return Plain({"count": count, "didList": listed, **is_minimum})


def _new(body: CreateIssuerDid) -> NewDid:
    return NewDid(body.domainId, body.method, body.name, body.description, body.keyType)


def day_first(at: int) -> str:
    """Return a time in microseconds as DD-MM-YYYY HH:MM:SS in UTC."""
    return from_us(at).strftime("%d-%m-%Y %H:%M:%S")
