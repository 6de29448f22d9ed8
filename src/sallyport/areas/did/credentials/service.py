"""The rules of credentials: issue, list, show and revoke them."""

import json
from uuid import uuid4

import trio

from sallyport.areas.did.credentials import repo
from sallyport.areas.did.credentials.credential import Credential, NewCredential, Schema, Status
from sallyport.areas.did.credentials.repo import users_of
from sallyport.areas.did.credentials.schemas import KIND as SCHEMA_KIND
from sallyport.areas.did.credentials.schemas import Schemas
from sallyport.areas.did.credentials.status import CONTEXT as STATUS_CONTEXT
from sallyport.areas.did.credentials.status import Place, StatusLists
from sallyport.areas.did.crypto import proofs, vc
from sallyport.areas.did.dids import repo as dids
from sallyport.areas.did.dids.did import DidKind
from sallyport.areas.did.peers import Sessions
from sallyport.areas.did.presentations.prompts import OpenRequests
from sallyport.areas.did.wallets import guard
from sallyport.base.clock import Clock, iso_seconds, now_us
from sallyport.base.errors import FieldError, Forbidden, Invalid, NotFound, invalid_field
from sallyport.base.wire import JSON, LATEST
from sallyport.metrics import CredentialMetrics
from sallyport.store import audit
from sallyport.store.model import ListQuery, Store, Tx
from sallyport.store.slices import in_slices
from sallyport.store.vault import Vault
from sallyport.web.scope import Caller, Role

NO_CREDENTIAL = "credential not found"
NO_HOLDER = "holder not found"
NO_SCHEMA = "schema not found"
DATA_INTEGRITY = "https://w3id.org/security/data-integrity/v2"
MAX_USERNAME = 255
USERNAME, PASSWORD, HOLDER = "epmUsername", "epmPassword", "holderDID"


class Credentials:
    """The credentials of all tenants."""

    def __init__(
        self,
        store: Store,
        vault: Vault,
        schemas: Schemas,
        lists: StatusLists,
        sessions: Sessions,
        requests: OpenRequests,
        metrics: CredentialMetrics,
        clock: Clock = now_us,
    ) -> None:
        self._store = store
        self._vault = vault
        self._schemas = schemas
        self._lists = lists
        self._sessions = sessions
        self._requests = requests
        self._metrics = metrics
        self._clock = clock
        self._checking = trio.CapacityLimiter(1)  # one thread: Python code in many threads slows the event loop down

    async def issue(self, tenant_id: int, new: NewCredential) -> Credential:
        """Issue a credential to a holder. Raises NotFound if the issuer, the holder or the schema is not in the
        domain. Raises Invalid if the schema does not allow the claims, or if the time of expiry is in the past."""
        if new.expires_at is not None and not self._clock() < new.expires_at <= LATEST:
            raise invalid_field("expiry", "must be a time in the future")
        schema = await self._store.read(lambda tx: repo.schema(tx, new.domain_id, new.schema_id))
        if schema is None:
            raise NotFound(NO_SCHEMA)
        await trio.to_thread.run_sync(_check, schema, new, limiter=self._checking)
        issued = await self._store.write(lambda tx: self._issue(tx, tenant_id, new, schema))
        self._metrics.issued()
        return issued

    def _issue(self, tx: Tx, tenant_id: int, new: NewCredential, schema: Schema) -> Credential:
        issuer, key = dids.signing_key(tx, dids.get(tx, new.domain_id, new.issuer_did, DidKind.ISSUER))
        if dids.get(tx, new.domain_id, new.holder_did, DidKind.USER) is None:
            raise NotFound(NO_HOLDER)
        at = self._clock()
        place = self._lists.place(tx, issuer.id)
        credential = Credential(
            id=0,
            tenant_id=tenant_id,
            domain_id=new.domain_id,
            issuer_id=issuer.id,
            issuer_did=issuer.did,
            issuer_name=issuer.name,
            schema_id=schema.id,
            schema_name=schema.name,
            uuid=uuid4().urn,
            name=new.name,
            status=Status.ACTIVE,
            wallet_id=None,
            holder_did=new.holder_did,
            epm_username=str(new.claims.get(USERNAME, "")),
            list_id=place.list_id,
            list_index=place.index,
            issued_at=at,
            expires_at=new.expires_at,
        )
        document = _document(credential, new.claims, self._schemas.address(schema.uuid), place)
        signer = dids.signer(self._vault, key)
        token = vc.sign(document, signer)
        proof = proofs.secure(document, signer, at, token)["proof"]
        credential = credential._replace(id=repo.add(tx, credential, token, proof))
        if new.password:
            repo.keep_password(tx, self._vault, credential.id, new.password)
        dids.count_issued(tx, issuer.id, at)
        values: dict[str, JSON] = {"issuer": issuer.did, "holder": new.holder_did, "schema": schema.id}
        _note(tx, "credential.issue", credential, at, audit.changed({}, values))
        return credential

    async def page(self, stretch: ListQuery) -> tuple[list[Credential], int]:
        """Return one page of a domain's credentials, ordered by id, and the total number of credentials."""
        return await self._store.search(lambda tx: repo.page(tx, stretch))

    async def of_wallet(
        self, caller: Caller, wallet_id: int, status: Status, offset: int, limit: int, search: str = ""
    ) -> tuple[list[Credential], int]:
        """Return one page of a wallet's credentials with this status, ordered by id, and the number of all matching
        credentials. search: a part of the credential's name. Raises NotFound if the wallet does not exist. Raises
        Forbidden if the caller is another wallet."""

        def query(tx: Tx) -> tuple[list[Credential], int]:
            guard.own_wallet(tx, caller, wallet_id)
            return repo.of_wallet(tx, wallet_id, status, ListQuery(0, offset, limit), search)

        return await self._store.search(query)

    async def document(self, caller: Caller, name: str, domain_id: int | None = None) -> tuple[int, dict[str, JSON]]:
        """Return the number and the document of a credential. name: the `urn:uuid:` or the number of the credential.
        domain_id: the domain of the credential; None for any domain.

        Raises NotFound if the credential does not exist, or if the caller is a wallet without this credential.
        """

        def query(tx: Tx) -> tuple[int, dict[str, JSON]]:
            found = repo.of_tenant(tx, caller.tenant_id, name)
            if found is None or domain_id not in {None, found.domain_id}:
                raise NotFound(NO_CREDENTIAL)
            if caller.role is Role.WALLET and not _has(tx, caller, found):
                raise NotFound(NO_CREDENTIAL)
            return found.id, repo.document(tx, found.id)

        return await self._store.read(query)

    async def revoke(self, domain_id: int, credential_id: int, issuer_did: str = "", holder_did: str = "") -> None:
        """Revoke a credential permanently. A second revocation is not an error. issuer_did, holder_did: the DIDs of the
        issuer and the holder that the credential must have; an empty DID is not checked. Raises NotFound.

        If the revocation is interrupted, the credential stays valid, but some open presentation requests may already be
        closed. See `in_slices`.
        """
        closed: list[int] = []

        def find(tx: Tx) -> Credential:
            found = repo.get(tx, domain_id, credential_id)
            if found is None or issuer_did not in {"", found.issuer_did} or holder_did not in {"", found.holder_did}:
                raise NotFound(NO_CREDENTIAL)
            return found

        def withdraw(tx: Tx, found: Credential) -> int:
            if found.status == Status.REVOKED:
                return 0
            did, issuer = found.holder_did, found.issuer_did
            requests = self._requests.withdraw(tx, domain_id, holder_did=did, issuer_did=issuer)
            closed.extend(requests)
            return len(requests)

        def end(tx: Tx, found: Credential) -> bool:
            if found.status == Status.REVOKED:
                return False
            at = self._clock()
            repo.revoke(tx, found, at)
            self._lists.revoke(tx, found)
            if names := users_of(tx, found):
                self._sessions.revoke(tx, domain_id, names, "a credential was revoked")
            _note(tx, "credential.revoke", found, at, {"status": [found.status, Status.REVOKED.value]})
            return True

        try:
            if await in_slices(self._store, find, [withdraw], end):
                self._metrics.revoked()
        finally:
            self._requests.wake(closed)


def _has(tx: Tx, caller: Caller, credential: Credential) -> bool:
    """Return whether the credential is in the wallet of the caller."""
    if credential.wallet_id is None:
        return False
    try:
        guard.own_wallet(tx, caller, credential.wallet_id)
    except Forbidden:
        return False
    return True


def _check(schema: Schema, new: NewCredential) -> None:
    """Raise Invalid if the schema does not allow the metadata of a request. If the schema has a property `id`, the
    holder's DID is added to the metadata for this check."""
    from sallyport.areas.did.credentials.check import check_subject  # slow import: in a worker thread

    content = json.loads(schema.content)["Schema"]
    properties = content.get("properties")
    subject = dict(new.claims)
    if new.password:
        subject[PASSWORD] = new.password
    if isinstance(properties, dict) and "id" in properties:
        subject["id"] = new.holder_did
    check_subject(content, subject)
    if _names_password(new.claims):
        raise Invalid(
            "invalid metadata",
            (FieldError("metadata", f"must have the password only in {PASSWORD}, at the top level"),),
        )


def _names_password(value: JSON) -> bool:
    """Return whether a claim, at any depth, has the name of the password. Such a claim is refused, because every reader
    of the credential could see the password in it."""
    if isinstance(value, dict):
        return any(name.casefold() == PASSWORD.casefold() or _names_password(each) for name, each in value.items())
    return isinstance(value, list) and any(map(_names_password, value))


def _document(credential: Credential, claims: dict[str, JSON], schema_url: str, place: Place) -> dict[str, JSON]:
    document: dict[str, JSON] = {
        "@context": [vc.CONTEXT, STATUS_CONTEXT, DATA_INTEGRITY],
        "id": credential.uuid,
        "type": [vc.CREDENTIAL],
        "issuer": credential.issuer_did,
        "issuanceDate": iso_seconds(credential.issued_at),
    }
    if credential.expires_at is not None:
        document["expirationDate"] = iso_seconds(credential.expires_at)
    return {
        **document,
        "credentialSubject": {"id": credential.holder_did, **claims},
        "credentialSchema": {"id": schema_url, "type": SCHEMA_KIND},
        "credentialStatus": place.entry(),
    }


def _note(tx: Tx, action: str, credential: Credential, at: int, changes: dict[str, JSON]) -> None:
    target = f"credential {credential.id} {credential.name}"
    audit.record_in(tx, action, credential.domain_id, target, changes, at=at)


def claims_of(metadata: dict[str, JSON], holder_did: str) -> tuple[dict[str, JSON], str]:
    """Split the metadata into the claims of a credential, and the password that only the holder gets. Raises Invalid
    if a reserved name has a wrong value."""
    claims = dict(metadata)
    password = claims.pop(PASSWORD, "")
    if not isinstance(password, str):
        raise Invalid("invalid metadata", (FieldError(f"metadata.{PASSWORD}", "must be text"),))
    username = claims.get(USERNAME, "")
    if not isinstance(username, str) or not username.isprintable() or len(username) > MAX_USERNAME:
        raise Invalid(
            "invalid metadata",
            (FieldError(f"metadata.{USERNAME}", "must be printable text of at most 255 characters"),),
        )
    if "id" in claims or claims.get(HOLDER, "") not in (holder_did, ""):
        raise Invalid("invalid metadata", (FieldError(f"metadata.{HOLDER}", "must be the holderDid of the request"),))
    return claims, password
