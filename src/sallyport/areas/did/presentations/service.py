"""The holder's side of presentation requests: a wallet polls the requests, and answers each of them once."""

import secrets
from typing import Final
from uuid import uuid4

from sallyport.areas.did.credentials import repo as credentials
from sallyport.areas.did.credentials.credential import Credential
from sallyport.areas.did.credentials.credential import Status as CredentialStatus
from sallyport.areas.did.crypto import jws, vc
from sallyport.areas.did.crypto.jws import Signer
from sallyport.areas.did.crypto.keys import PrivateKey, from_multikey
from sallyport.areas.did.dids import repo as dids
from sallyport.areas.did.dids.did import DidKind
from sallyport.areas.did.presentations import definition, evidence, repo
from sallyport.areas.did.presentations.evidence import Binding
from sallyport.areas.did.presentations.prompts import OpenRequests
from sallyport.areas.did.presentations.request import Listed, Request, Standing, State, Status
from sallyport.areas.did.wallets import guard
from sallyport.areas.did.wallets.guard import Tries
from sallyport.areas.did.wallets.key import open_with
from sallyport.areas.did.wallets.wallet import Wallet
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict, CredentialError, Forbidden, NotFound, SecretError
from sallyport.base.secret import Secret
from sallyport.base.wire import JSON
from sallyport.metrics import PresentationMetrics
from sallyport.store import audit
from sallyport.store.model import Store, Tx
from sallyport.store.vault import Vault
from sallyport.web.scope import Caller, Role

MAX_TRIED: Final = 1000
"""Maximum number of credentials that createPresentation compares with a request."""
OVER: Final = "the presentation request has ended"
NO_REQUEST: Final = "presentation request not found"


class Presentations:
    """The presentation requests of all tenants."""

    def __init__(
        self,
        store: Store,
        vault: Vault,
        requests: OpenRequests,
        tries: Tries,
        metrics: PresentationMetrics,
        clock: Clock = now_us,
    ) -> None:
        self._store = store
        self._vault = vault
        self._requests = requests
        self._tries = tries
        self._metrics = metrics
        self._clock = clock

    async def poll(
        self, caller: Caller, wallet_id: int, wallet_key: str, holder_did: str, request_id: int = 0
    ) -> tuple[Request, int]:
        """Return a request of the holder, and the number of the wallet's open requests. The request_id 0 means the
        oldest open request.

        Raises NotFound if the request does not exist. Raises Conflict if the request has ended. Raises
        Unauthenticated, Forbidden, TooMany.
        """
        wallet = await self._keyed(caller, wallet_id, wallet_key)
        at = self._clock()

        def query(tx: Tx) -> tuple[Request, int]:
            if request_id:
                request = _request(tx, wallet, holder_did, request_id)
                if not request.is_open(at):
                    raise Conflict(OVER)
            else:
                oldest = repo.first_open(tx, wallet.id, holder_did, at)
                if oldest is None:
                    raise NotFound("no presentation request is open")
                request = oldest
            return request, repo.count_open(tx, wallet.id, at)

        return await self._store.read(query)

    async def create(self, caller: Caller, wallet_id: int, wallet_key: str, holder_did: str, request_id: int) -> str:
        """Sign the presentation of a holder whose key the service keeps. Return the presentation.

        Raises NotFound if the request or the key does not exist, or if no credential in the wallet meets the
        request. Raises Conflict if the request has ended. Raises Unauthenticated, Forbidden, TooMany.
        """
        wallet = await self._keyed(caller, wallet_id, wallet_key)
        at = self._clock()

        def query(tx: Tx) -> str:
            request = _request(tx, wallet, holder_did, request_id)
            signer = holders_signer(tx, self._vault, wallet.domain_id, holder_did, wallet_key)
            if not request.is_open(at):
                raise Conflict(OVER)
            jwt = _matching_token(tx, wallet, request, at)
            return vc.present([jwt], signer, audience=request.issuer_did, nonce=request.nonce, id=uuid4().urn, now=at)

        return await self._store.search(query)

    async def decline(
        self, caller: Caller, wallet_id: int, holder_did: str, request_id: int, wallet_key: str | None
    ) -> None:
        """Decline a request for the holder. The caller must have the wallet's own token or the walletKey. Raises
        NotFound. Raises Conflict if the request has ended. Raises Unauthenticated, Forbidden, TooMany."""
        if wallet_key is not None:
            wallet = await self._keyed(caller, wallet_id, wallet_key)
        elif caller.role is Role.WALLET:
            wallet = await self._wallet(caller, wallet_id)
        else:
            raise Forbidden("to decline, the wallet must send its walletKey or its token")
        at = self._clock()

        def transaction(tx: Tx) -> None:
            request = _request(tx, wallet, holder_did, request_id)
            if not repo.close(tx, request.id, Status.DECLINED, at):
                raise Conflict(OVER)
            audit.record_in(tx, "presentation.decline", request.domain_id, f"request {request.id}", at=at)

        await self._store.write(transaction)
        self._metrics.presented("declined")
        self._requests.wake([request_id])

    async def submit(
        self,
        caller: Caller,
        wallet_id: int,
        holder_did: str,
        request_id: int,
        presentation: str | dict[str, JSON],
    ) -> None:
        """Answer a request with a presentation. A request can be answered only once. Raises NotFound, Forbidden,
        TooMany.

        Raises Conflict if the request has ended. Raises CredentialError if the presentation is not valid, or
        contains another credential. In this case the request stays open.
        """
        wallet = await self._wallet(caller, wallet_id)
        self._tries.check(caller, wallet.id)
        request = await self._store.read(lambda tx: _request(tx, wallet, holder_did, request_id))
        try:
            if not request.is_open(self._clock()):
                raise Conflict(OVER)
            at = self._clock()
            credential = await self._store.read(lambda tx: _verified(tx, request, presentation, at))
            await self._store.write(lambda tx: self._accept(tx, caller, request, credential))
        except Conflict:
            self._metrics.presented("over")
            raise
        except CredentialError as error:
            self._tries.failed(caller, wallet.id)
            self._metrics.presented(error.reason)
            raise
        self._metrics.presented("accepted")
        self._requests.wake([request.id])

    def _accept(self, tx: Tx, caller: Caller, request: Request, credential: Credential) -> None:
        at = self._clock()
        current = credentials.get(tx, request.domain_id, credential.id)
        if current is None or current.status == CredentialStatus.REVOKED:
            raise CredentialError("the credential is revoked", "revoked")
        if current.status == CredentialStatus.IGNORED:
            raise CredentialError("the credential is ignored by its holder", "status")
        if not repo.close(tx, request.id, Status.ACCEPTED, at, credential_id=credential.id):
            raise Conflict(OVER)
        changes: dict[str, JSON] = {"credential": credential.id, "holder": request.holder_did}
        target = f"request {request.id}"
        audit.record_in(tx, "presentation.accept", request.domain_id, target, changes, at=at)

    async def _wallet(self, caller: Caller, wallet_id: int) -> Wallet:
        return await self._store.read(lambda tx: guard.own_wallet(tx, caller, wallet_id))

    async def _keyed(self, caller: Caller, wallet_id: int, wallet_key: str) -> Wallet:
        wallet = await self._wallet(caller, wallet_id)
        return guard.check_key(self._tries, caller, [wallet], wallet_key)

    async def status(self, tenant_id: int, request_id: int) -> Standing:
        """Return the state of a request of the tenant. Raises NotFound."""
        request = await self._store.read(lambda tx: repo.of_tenant(tx, tenant_id, request_id))
        if request is None:
            raise NotFound(NO_REQUEST)
        return request.standing(self._clock())

    async def listed(self, domain_id: int, before: int, limit: int) -> list[tuple[Listed, State, int]]:
        """Return requests of a domain, the newest first. Each comes with its state, and the time at which the state
        began. before: the id before which the list begins; 0 for the newest."""
        found, now = await self._store.read(lambda tx: repo.listed(tx, domain_id, before, limit)), self._clock()
        return [(each, *each.state(now)) for each in found]


def _request(tx: Tx, wallet: Wallet, holder_did: str, request_id: int) -> Request:
    """Return a request to this wallet and holder. Raises NotFound."""
    request = repo.get(tx, request_id)
    if request is None or (request.wallet_id, request.holder_did) != (wallet.id, holder_did):
        raise NotFound(NO_REQUEST)
    return request


def holders_signer(tx: Tx, vault: Vault, domain_id: int, did: str, wallet_key: str) -> Signer:
    """Return a signer that uses a holder's key. The service keeps the key. The key was encrypted for the walletKey
    first, and then with the master key.

    Raises NotFound if the domain has no such holder, or if the wallet keeps the key. Raises Conflict if the key was
    encrypted for another walletKey. Raises SecretError if the key was encrypted with another master key.
    """
    record = dids.get(tx, domain_id, did, DidKind.USER)
    row = None if record is None else dids.active_key(tx, record.id)
    if row is None or row.sealed is None:
        raise NotFound("the service does not keep the key of this holder")
    identity = dids.identity(row.id)
    sealed = vault.open(row.sealed, identity)
    try:
        clear = open_with(wallet_key, sealed, identity)
    except SecretError:
        raise Conflict("the holder's key was encrypted for another walletKey: create a new holder DID") from None
    return Signer(row.method_id, PrivateKey(from_multikey(row.multikey).curve, Secret(clear)))


def _matching_token(tx: Tx, wallet: Wallet, request: Request, at: int) -> str:
    """Return the token of the holder's first credential that meets the request. Raises NotFound."""
    from sallyport.areas.did.presentations.exchange import satisfies  # slow import: in a worker thread

    asked = definition.read(request.definition)
    for each in credentials.valid_of_wallet(tx, wallet.id, at)[:MAX_TRIED]:
        credential = credentials.get(tx, wallet.domain_id, each)
        if credential is None or credential.holder_did != request.holder_did:
            continue
        jwt = credentials.token(tx, each)
        token = jws.parse(jwt)
        if satisfies(asked, token.payload, token.algorithm):
            return jwt
    raise NotFound("the wallet has no credential that meets the request")


def _verified(tx: Tx, request: Request, presentation: str | dict[str, JSON], at: int) -> Credential:
    """Return the stored credential that a presentation contains. Raises CredentialError if the credential was not
    issued by this service, is not valid now, or does not meet the request.

    The caller checks the credential's status later, in the transaction that answers the request. Call this function in
    a worker thread, because a presentation may be large.
    """
    from sallyport.areas.did.presentations.exchange import satisfies

    holder, issuer = dids.document_of(tx, request.holder_did), dids.document_of(tx, request.issuer_did)
    shown = evidence.read(presentation, Binding(holder, request.issuer_did, request.nonce), at)
    if shown.document is None:
        vc.verify(jws.parse(shown.token), issuer, at)
    record = credentials.by_uuid(tx, request.domain_id, shown.credential_id)
    if record is None:
        raise CredentialError("the credential was not issued by this service", "issuer")
    jwt = credentials.token(tx, record.id)
    token = jws.parse(jwt)
    if not (secrets.compare_digest(shown.token.encode(), jwt.encode()) or shown.document == token.payload.get("vc")):
        raise CredentialError("the credential differs from the issued credential", "claims")
    if vc.verify(token, issuer, at).subject != request.holder_did:
        raise CredentialError("the credential belongs to another holder", "holder")
    asked = definition.read(request.definition)
    of_schema = request.schema_id in {0, record.schema_id}
    if not of_schema or not satisfies(asked, token.payload, token.algorithm):
        raise CredentialError("the credential does not meet the request", "definition")
    return record
