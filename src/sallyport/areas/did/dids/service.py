"""Create, list, rotate and delete DIDs."""

import secrets
from collections.abc import Callable, Sequence

from sallyport.areas.did.credentials.repo import users_of_holder
from sallyport.areas.did.crypto.documents import MAX_METHODS, jwk_did, key_did, resolve, web_did
from sallyport.areas.did.crypto.encoding import CURVES
from sallyport.areas.did.crypto.keys import PrivateKey, PublicKey, from_jwk
from sallyport.areas.did.dids import repo
from sallyport.areas.did.dids.did import DidKind, NewDid, Record, Search
from sallyport.areas.did.dids.repo import NO_ISSUER
from sallyport.areas.did.peers import Sessions
from sallyport.areas.did.presentations.prompts import OpenRequests
from sallyport.areas.did.wallets import repo as wallets
from sallyport.areas.did.wallets.guard import NO_WALLET
from sallyport.areas.did.wallets.key import seal_to
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict, Invalid, NotFound, in_field
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.model import ListQuery, Store, Tx
from sallyport.store.slices import in_slices
from sallyport.store.vault import Vault

NO_DID = "DID not found"
FOLDER = "did"
"""URL path of the service's own DID documents."""


class Dids:
    """The DIDs of all tenants. base: a function that returns the base URL of the service's did:web documents."""

    def __init__(
        self,
        store: Store,
        vault: Vault,
        sessions: Sessions,
        requests: OpenRequests,
        base: Callable[[], str],
        clock: Clock = now_us,
    ) -> None:
        self._store = store
        self._vault = vault
        self._sessions = sessions
        self._requests = requests
        self._base = base
        self._clock = clock

    async def create_issuer(self, tenant_id: int, new: NewDid) -> Record:
        """Create an issuer with a new key. The service stores the key."""
        key = PrivateKey.new(CURVES[new.curve])
        did, method_id = self._named(new.method, key.public)

        def transaction(tx: Tx) -> Record:
            at = self._clock()
            did_id = repo.add(tx, tenant_id, new, DidKind.ISSUER, did, at, wallet_id=None, issuer_id=None)
            self._keep(tx, did_id, method_id, key, at)
            return _made(tx, did_id, "did.issuer.create", at)

        return await self._store.write(transaction)

    async def create_holder(self, tenant_id: int, new: NewDid, wallet_id: int, issuer: str, jwk: JSON = None) -> Record:
        """Create a holder's DID for a wallet. issuer: the id or the DID of an issuer; may be empty. jwk: the
        wallet's public key; if None, the service generates a key and encrypts it for the wallet.

        Raises NotFound if the wallet user or the issuer does not exist. Raises Invalid if the JWK is not a public
        key. Raises Conflict if the domain already has the DID.
        """
        private = PrivateKey.new(CURVES[new.curve]) if jwk is None else None
        key = _key(jwk) if private is None else private.public
        if private is not None and not wallet_id:
            raise Invalid.about("walletUserId or publicKeyJwk is needed", "walletUserId")
        did, method_id = self._named(new.method, key)

        def transaction(tx: Tx) -> Record:
            at = self._clock()
            sealing_key = wallets.public_key(tx, new.domain_id, wallet_id) if wallet_id else b""
            if sealing_key is None:
                raise NotFound(NO_WALLET)
            issuer_id = _issuer(tx, new.domain_id, issuer).id if issuer not in {"", "0"} else None
            did_id = repo.add(
                tx, tenant_id, new, DidKind.USER, did, at, wallet_id=wallet_id or None, issuer_id=issuer_id
            )
            key_id = repo.add_key(tx, did_id, method_id, key, at)
            if private is not None:
                row = repo.identity(key_id)
                for_wallet = seal_to(sealing_key, private.octets.reveal(), row)
                repo.keep(tx, key_id, self._vault.seal(for_wallet, row))
            return _made(tx, did_id, "did.holder.create", at)

        return await self._store.write(transaction)

    async def page(self, stretch: ListQuery, *, issuer_id: int = 0, wallet_id: int = 0) -> tuple[list[Record], int]:
        """Return one page of a domain's DIDs, ordered by id, and the number of matches. issuer_id: the issuer of the
        DIDs; 0 for any issuer. wallet_id: the wallet of the DIDs; 0 for any wallet."""
        return await self._store.search(lambda tx: repo.page(tx, stretch, issuer_id=issuer_id, wallet_id=wallet_id))

    async def search(self, asked: Search) -> tuple[list[Record], int]:
        """Return one page of the DIDs that a search finds, ordered by id, and the number of matches."""
        return await self._store.search(lambda tx: repo.search(tx, asked))

    async def delete(self, domain_id: int, wanted: Sequence[tuple[DidKind, str]]) -> int:
        """Delete DIDs from the lists, and return their number. Raises NotFound if one of the DIDs does not exist. In
        this case nothing is changed.

        The open presentation requests of the DIDs are closed. Credentials of a deleted holder can no longer be used for
        logins. If the domain is set to disconnect on revocation, the sessions of the holder's users end.

        If the deletion is interrupted, no DID is deleted, but some of the open requests may already be closed. See
        `in_slices`.
        """
        closed: list[int] = []

        def find(tx: Tx) -> list[Record]:
            found = [repo.get(tx, domain_id, did, kind) for kind, did in dict.fromkeys(wanted)]
            if None in found:
                raise NotFound(NO_DID)
            return [record for record in found if record is not None]

        def withdraw(tx: Tx, records: list[Record]) -> int:
            before = len(closed)
            for record in records:
                if len(closed) == before:
                    owner = {"issuer_did" if record.kind == DidKind.ISSUER else "holder_did": record.did}
                    closed.extend(self._requests.withdraw(tx, domain_id, **owner))
            return len(closed) - before

        def end(tx: Tx, records: list[Record]) -> int:
            for record in records:
                self._delete(tx, record)
            return len(records)

        try:
            return await in_slices(self._store, find, [withdraw], end)
        finally:
            self._requests.wake(closed)

    def _delete(self, tx: Tx, record: Record) -> None:
        at, domain_id = self._clock(), record.domain_id
        _note(tx, "did.delete", record, at)
        if record.kind != DidKind.ISSUER and (names := users_of_holder(tx, domain_id, record.did)):
            self._sessions.revoke(tx, domain_id, names, "a holder's DID was deleted")
        repo.delete(tx, record, at)

    async def rotate(self, domain_id: int, did: str) -> str:
        """Give an issuer's did:web a new key of the same curve. Return the id of the key's verification method. The
        former key is kept in the document, so that its signatures can still be verified.

        Raises NotFound. Raises Invalid if the DID is not a did:web, because every other DID contains its key. Raises
        Conflict if the document has no room for another key.
        """

        def transaction(tx: Tx) -> str:
            record, old = repo.signing_key(tx, repo.get(tx, domain_id, did, DidKind.ISSUER))
            if record.method != "web":
                raise Invalid.about("only a did:web can get another key: every other DID contains its key", "did")
            if repo.count_keys(tx, record.id) >= MAX_METHODS:
                raise Conflict(f"the DID has {MAX_METHODS} keys, which all stay in its document: create another issuer")
            at = self._clock()
            key = PrivateKey.new(repo.signer(self._vault, old).key.curve)
            method_id = f"{did}#{key.public.multikey}"
            self._keep(tx, record.id, method_id, key, at)
            _note(tx, "did.rotate", record, at, {"key": [old.method_id, method_id]})
            return method_id

        return await self._store.write(transaction)

    async def published(self, name: str) -> dict[str, JSON]:
        """Return the document of a did:web of this service. name: the last part of the DID. Raises NotFound."""
        did = web_did(self._base(), FOLDER, name)
        found = await self._store.search(lambda tx: repo.document(tx, did))  # keeps threads free for logins
        if found is None:
            raise NotFound(NO_DID)
        return found.content

    def _keep(self, tx: Tx, did_id: int, method_id: str, key: PrivateKey, at: int) -> None:
        """Store a new key of an issuer, with the private key encrypted."""
        key_id = repo.add_key(tx, did_id, method_id, key.public, at)
        repo.keep(tx, key_id, self._vault.seal(key.octets.reveal(), repo.identity(key_id)))

    def _named(self, method: str, key: PublicKey) -> tuple[str, str]:
        """Return the DID for a new key, and the id of the key's verification method."""
        if method == "web":
            did = web_did(self._base(), FOLDER, secrets.token_hex(8))
            return did, f"{did}#{key.multikey}"
        did = key_did(key) if method == "key" else jwk_did(key)
        return did, resolve(did).methods[0].id


def _made(tx: Tx, did_id: int, action: str, at: int) -> Record:
    record = repo.by_id(tx, did_id)
    assert record is not None  # noqa: S101  it was inserted
    _note(tx, action, record, at, audit.changed({}, {"did": record.did, "name": record.name}))
    return record


def _key(jwk: JSON) -> PublicKey:
    """Return the public key in a JWK. Raises Invalid if the JWK is not a public key of a supported curve."""
    with in_field("publicKeyJwk"):
        return from_jwk(jwk)


def _issuer(tx: Tx, domain_id: int, issuer: str) -> Record:
    """Return an issuer of the domain. issuer: its id or DID. Raises NotFound."""
    found = repo.get(tx, domain_id, issuer, DidKind.ISSUER)
    if found is None and issuer.isascii() and issuer.isdecimal() and len(issuer) < 19:
        found = repo.issuer(tx, domain_id, int(issuer))
    if found is None:
        raise NotFound(NO_ISSUER)
    return found


def _note(tx: Tx, action: str, record: Record, at: int, changes: dict[str, JSON] | None = None) -> None:
    target = f"DID {record.id} {record.did}"
    audit.record_in(tx, action, record.domain_id, target, changes, at=at)
