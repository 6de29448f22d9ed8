"""The open presentation requests, which other operations may close, and the requests that logins send
(`mfa/wallet.py`)."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

from sallyport.base.clock import Clock, now_us
from sallyport.did.credentials import repo as credentials
from sallyport.did.credentials.repo import holder_of_user
from sallyport.did.presentations import repo
from sallyport.did.presentations.request import Status
from sallyport.did.presentations.verifier import new_request
from sallyport.nodes.notices import Notices
from sallyport.store.model import Store, Tx

_NOTICE: Final = "closed_requests"


class OpenRequests:
    """The open requests that logins wait for. A login is woken when its request is answered, so that it does not poll
    the store. notices: the notices between the nodes, by which a request that is closed at one node wakes the login
    that waits at another."""

    def __init__(self, clock: Clock, notices: Notices) -> None:
        self._clock = clock
        self._waiting: dict[int, set[trio.Event]] = {}
        self._notices = notices
        notices.receive(_NOTICE, lambda values, _age_us: self._wake(int(str(each)) for each in values))

    @contextmanager
    def waiting(self, request_id: int) -> Iterator[trio.Event]:
        """Yield an event that is set when the request is closed. Enter the block before the request is read, so that no
        answer is missed."""
        event = trio.Event()
        self._waiting.setdefault(request_id, set()).add(event)
        try:
            yield event
        finally:
            left = self._waiting[request_id]
            left.discard(event)
            if not left:
                del self._waiting[request_id]

    def wake(self, request_ids: Iterable[int]) -> None:
        """Wake the logins that wait for these requests, at any node. Call it after the commit that closes the
        requests."""
        closed = list(request_ids)
        self._wake(closed)
        if closed:
            self._notices.send(_NOTICE, *closed)

    def _wake(self, request_ids: Iterable[int]) -> None:
        for request_id in request_ids:
            for event in self._waiting.get(request_id, ()):
                event.set()

    def withdraw(self, tx: Tx, domain_id: int, *, holder_did: str = "", issuer_did: str = "") -> list[int]:
        """Close up to SLICE open requests for a holder's credentials of an issuer. Return their ids, for `wake` after
        the commit. An empty DID matches any holder or issuer."""
        return repo.close_all(tx, domain_id, holder_did, issuer_did, self._clock())

    def void(self, tx: Tx) -> None:
        """Close all requests of a restored store. After the backup, wallets may have answered these requests in the
        original store, and a request must not be answered twice."""
        repo.void(tx, self._clock())


class LoginPrompts:
    """The requests that logins send to the wallets of users (a `mfa.host.WalletPrompts`)."""

    def __init__(self, store: Store, requests: OpenRequests, clock: Clock = now_us) -> None:
        self._store = store
        self._requests = requests
        self._clock = clock

    async def enrolled(self, domain_id: int, user: str, issuer_did: str, schema_id: int) -> bool:
        """Return whether a user of the domain holds a valid credential of that issuer. schema_id: the id of the schema;
        0 for any schema."""
        at = self._clock()
        holder = await self._store.read(lambda tx: holder_of_user(tx, domain_id, user, issuer_did, schema_id, at))
        return holder is not None

    async def open(
        self,
        domain_id: int,
        user: str,
        issuer_did: str,
        schema_id: int,
        *,
        challenge_id: str,
        purpose: str,
        expires_at: int,
    ) -> int | None:
        """Ask the user's wallet for that credential. Return the id of the request, which is the same for the same
        challenge_id. Return None if the user holds no such credential."""
        at = self._clock()

        def work(tx: Tx) -> int | None:
            holder = holder_of_user(tx, domain_id, user, issuer_did, schema_id, at)
            if holder is None:
                return None
            new = new_request(
                domain_id,
                issuer_did,
                schema_id,
                holder,
                purpose=purpose,
                expires_at=expires_at,
                challenge_id=challenge_id,
                schema_url=_schema_url(tx, domain_id, holder.credential) if schema_id else "",
            )
            return repo.add(tx, new, at)

        return await self._store.write(work)

    async def answer(self, request_id: int, *, within_s: float) -> bool | None:
        """Wait for the answer to a request. Return True if it was accepted; False if it was declined, withdrawn or
        expired; None if it is still open after `within_s`."""
        with self._requests.waiting(request_id) as answered:
            standing = await self._standing(request_id)
            if standing is None:
                with trio.move_on_after(within_s):
                    await answered.wait()
                standing = await self._standing(request_id)
        return standing

    async def _standing(self, request_id: int) -> bool | None:
        request = await self._store.read(lambda tx: repo.get(tx, request_id))
        if request is not None and request.is_open(self._clock()):
            return None
        return request is not None and request.status == Status.ACCEPTED

    async def withdraw(self, request_id: int) -> None:
        """Close a request whose login no longer waits."""
        at = self._clock()
        await self._store.write(lambda tx: repo.close(tx, request_id, Status.WITHDRAWN, at))


def _schema_url(tx: Tx, domain_id: int, uuid: str) -> str:
    """Return the URL of a credential's schema. It is the URL that the document of the credential has had since it was
    issued."""
    credential = credentials.by_uuid(tx, domain_id, uuid)
    assert credential is not None  # noqa: S101  it is the same transaction
    schema = credentials.document(tx, credential.id)["credentialSchema"]
    assert isinstance(schema, dict)  # noqa: S101  it was made here
    return str(schema["id"])
