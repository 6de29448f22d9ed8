"""The rules of presentation requests: issued for an endpoint, polled by a wallet, met or declined once."""

import secrets
from collections.abc import Sequence
from typing import Final
from uuid import uuid4

from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict, CredentialError, Forbidden, NotFound
from sallyport.base.wire import JSON
from sallyport.did.crypto import jws, vc
from sallyport.did.dids import repo as dids
from sallyport.did.held import repo as held
from sallyport.did.held.model import HeldCredential
from sallyport.did.presentations import definition, evidence, exchange, repo, signing
from sallyport.did.presentations.evidence import Asked, Shown
from sallyport.did.presentations.model import Request, Standing, Status
from sallyport.did.presentations.peers import Meter
from sallyport.did.presentations.waker import Waker
from sallyport.did.wallets import guard
from sallyport.did.wallets.guard import Tries
from sallyport.did.wallets.model import Wallet
from sallyport.did.wallets.service import found
from sallyport.store import audit
from sallyport.store.model import Store, Tx
from sallyport.store.vault import Vault
from sallyport.web.scope import Caller, Role

MOST_TRIED: Final = 1000
"""Credentials that createPresentation compares with a request."""
OVER: Final = "the presentation request is over"
NO_REQUEST: Final = "presentation request not found"


class Presentations:
    """The presentation requests of all tenants."""

    def __init__(
        self,
        store: Store,
        vault: Vault,
        waker: Waker,
        tries: Tries,
        meter: Meter,
        clock: Clock = now_us,
    ) -> None:
        self._store = store
        self._vault = vault
        self._waker = waker
        self._tries = tries
        self._meter = meter
        self._clock = clock

    async def poll(
        self, caller: Caller, wallet_id: int, wallet_key: str, holder_did: str, request_id: int = 0
    ) -> tuple[Request, int]:
        """A holder's oldest open request, or that one, and how many its wallet has. NotFound: none is open.
        Unauthenticated, Forbidden, TooMany."""
        wallet = await self._keyed(caller, wallet_id, wallet_key)
        at = self._clock()

        def work(tx: Tx) -> tuple[Request, int]:
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

        return await self._store.read(work)

    async def create(self, caller: Caller, wallet_id: int, wallet_key: str, holder_did: str, request_id: int) -> str:
        """The presentation of a holder whose key is kept here, as a token. NotFound: no such request or key, or no
        credential that is asked for. Conflict: it is over. Unauthenticated, Forbidden, TooMany."""
        wallet = await self._keyed(caller, wallet_id, wallet_key)
        at = self._clock()

        def work(tx: Tx) -> str:
            request = _request(tx, wallet, holder_did, request_id)
            signer = signing.holders_signer(tx, self._vault, wallet.domain_id, holder_did, wallet_key)
            if not request.is_open(at):
                raise Conflict(OVER)
            asked = definition.read(request.definition)
            for each in held.of_wallet(tx, wallet.id, at)[:MOST_TRIED]:
                credential = held.get(tx, wallet.domain_id, each)
                if credential is None or credential.holder_did != holder_did:
                    continue
                if exchange.is_met_by(asked, jws.parse(credential.jwt)):
                    return vc.present(
                        [credential.jwt],
                        signer,
                        audience=request.issuer_did,
                        nonce=request.nonce,
                        id=uuid4().urn,
                        now=at,
                    )
            raise NotFound("the wallet has no credential that is asked for")

        return await self._store.search(work)

    async def decline(
        self, caller: Caller, wallet_id: int, holder_did: str, request_id: int, wallet_key: str | None
    ) -> None:
        """Say no for the holder: by the wallet's own token, or with the walletKey. NotFound. Conflict: it is over.
        Unauthenticated, Forbidden, TooMany."""
        if wallet_key is not None:
            wallet = await self._keyed(caller, wallet_id, wallet_key)
        elif caller.role is Role.WALLET:
            wallet = await self._wallet(caller, wallet_id)
        else:
            raise Forbidden("to decline takes the walletKey, or the wallet's own token")
        at = self._clock()

        def work(tx: Tx) -> None:
            request = _request(tx, wallet, holder_did, request_id)
            if not repo.close(tx, request.id, Status.DECLINED, at):
                raise Conflict(OVER)
            _note(tx, "presentation.decline", caller.tenant_id, request.domain_id, f"request {request.id}", {}, at)

        await self._store.write(work)
        self._meter.presented("declined")
        self._waker.wake([request_id])

    async def submit(
        self,
        caller: Caller,
        wallet_id: int,
        holder_did: str,
        request_id: int,
        presentation: str | dict[str, JSON],
    ) -> None:
        """Meet a request, once. NotFound. Conflict: it is over. CredentialError: the presentation does not hold, or is
        of another credential; the request stays open. Forbidden, TooMany."""
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
            self._meter.presented("over")
            raise
        except CredentialError as error:
            self._tries.failed(caller, wallet.id)
            self._meter.presented(error.reason)
            raise
        self._meter.presented("accepted")
        self._waker.wake([request.id])

    def _accept(self, tx: Tx, caller: Caller, request: Request, credential: HeldCredential) -> None:
        at = self._clock()
        current = held.get(tx, request.domain_id, credential.id)
        if current is None or current.is_revoked:
            raise CredentialError("the credential is revoked", "revoked")
        if current.is_ignored:
            raise CredentialError("the credential is ignored by its holder", "status")
        if not repo.close(tx, request.id, Status.ACCEPTED, at, credential_id=credential.id):
            raise Conflict(OVER)
        told: dict[str, JSON] = {"credential": credential.id, "holder": request.holder_did}
        _note(tx, "presentation.accept", caller.tenant_id, request.domain_id, f"request {request.id}", told, at)

    async def _wallet(self, caller: Caller, wallet_id: int) -> Wallet:
        wallet = await self._store.read(lambda tx: found(tx, caller.tenant_id, wallet_id))
        guard.own(caller, wallet)
        return wallet

    async def _keyed(self, caller: Caller, wallet_id: int, wallet_key: str) -> Wallet:
        wallet = await self._wallet(caller, wallet_id)
        return guard.check_key(self._tries, caller, [wallet], wallet_key)

    async def status(self, tenant_id: int, request_id: int) -> Standing:
        """Return how a request of the tenant stands. NotFound."""
        request = await self._store.read(lambda tx: repo.of_tenant(tx, tenant_id, request_id))
        if request is None:
            raise NotFound(NO_REQUEST)
        return request.standing(self._clock())

    def withdraw(self, tx: Tx, domain_id: int, *, holder_did: str = "", issuer_did: str = "") -> list[int]:
        """Close up to SLICE open requests for a holder's credentials of an issuer, empty for any; which those were:
        `wake` them once that is on disk."""
        return repo.close_all(tx, domain_id, holder_did, issuer_did, self._clock())

    def void(self, tx: Tx) -> None:
        """In a store that takes the place of this one: requests that were open when it was copied may have been
        answered since, and are not answered twice."""
        repo.void(tx, self._clock())

    def wake(self, request_ids: Sequence[int]) -> None:
        """These requests are over."""
        self._waker.wake(request_ids)


def _request(tx: Tx, wallet: Wallet, holder_did: str, request_id: int) -> Request:
    """A request to this wallet and holder. NotFound."""
    request = repo.get(tx, request_id)
    if request is None or (request.wallet_id, request.holder_did) != (wallet.id, holder_did):
        raise NotFound(NO_REQUEST)
    return request


def _verified(tx: Tx, request: Request, presentation: str | dict[str, JSON], at: int) -> HeldCredential:
    """The credential that is shown: it was issued here, it holds now, and it is what is asked for. Whether it still
    stands is for the transaction that answers the request. Runs in a worker thread, as what is sent may be large.
    CredentialError."""
    holder, issuer = dids.document_of(tx, request.holder_did), dids.document_of(tx, request.issuer_did)
    shown = evidence.read(presentation, Asked(holder, request.issuer_did, request.nonce), at)
    if shown.document is None:
        vc.verify(jws.parse(shown.token), issuer, at)
    record = held.by_name(tx, request.domain_id, shown.credential_id)
    if record is None:
        raise CredentialError("the credential was not issued here", "issuer")
    token = jws.parse(record.jwt)
    if not _is(shown, record, token):
        raise CredentialError("the credential is not as it was issued", "claims")
    if vc.verify(token, issuer, at).subject != request.holder_did:
        raise CredentialError("the credential is another holder's", "holder")
    asked = definition.read(request.definition)
    of_schema = request.schema_id in {0, record.schema_id}
    if not of_schema or not exchange.is_met_by(asked, token):
        raise CredentialError("the credential is not the one that is asked for", "definition")
    return record


def _is(shown: Shown, record: HeldCredential, token: jws.Token) -> bool:
    """Whether the credential that is shown is the one that was issued, to the octet, or claim by claim."""
    if shown.document is None:
        return secrets.compare_digest(shown.token.encode(), record.jwt.encode())
    return shown.document == token.payload.get("vc")


def _note(tx: Tx, action: str, tenant_id: int, domain_id: int, target: str, changes: dict[str, JSON], at: int) -> None:
    audit.record(tx, action, at=at, tenant_id=tenant_id, domain_id=domain_id, target=target, changes=changes)
