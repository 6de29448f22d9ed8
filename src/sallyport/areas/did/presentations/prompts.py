"""Functions for open presentation requests: send requests for logins (`mfa/wallet.py`), wait for the answers, and
withdraw requests."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, TypeAlias

import trio

from sallyport.areas.did.credentials import repo as credentials
from sallyport.areas.did.credentials.repo import holder_of_user
from sallyport.areas.did.presentations import repo
from sallyport.areas.did.presentations.request import Status
from sallyport.areas.did.presentations.verifier import new_request
from sallyport.base.clock import Clock, now_us
from sallyport.nodes.notices import Notices
from sallyport.store.model import Store, Tx

_NOTICE: Final = "closed_requests"

Answered: TypeAlias = Literal["accepted", "declined", "withdrawn", "expired"]
_ANSWERS: Final[dict[str, Answered]] = {
    Status.ACCEPTED: "accepted",
    Status.DECLINED: "declined",
    Status.WITHDRAWN: "withdrawn",
}


class OpenRequests:
    """The open requests that logins wait for. When a request is answered, its login is woken. So the login does not
    need to poll the store. notices: the notices between the nodes. A request may be closed at one node while its login
    waits at another node. A notice then wakes the login."""

    def __init__(self, clock: Clock, notices: Notices) -> None:
        self._clock = clock
        self._waiting: dict[int, set[trio.Event]] = {}
        self._notices = notices
        notices.receive(_NOTICE, lambda values, _age_us: self._wake(int(str(each)) for each in values))

    @contextmanager
    def waiting(self, request_id: int) -> Iterator[trio.Event]:
        """Yield an event that is set when the request is closed. Enter the context before you read the request from the
        store. Otherwise you may miss an answer."""
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
        """Wake the logins that wait for these requests, on this node and on all other nodes. Call this function after
        the commit that closes the requests."""
        closed = list(request_ids)
        self._wake(closed)
        if closed:
            self._notices.send(_NOTICE, *closed)

    def _wake(self, request_ids: Iterable[int]) -> None:
        for request_id in request_ids:
            for event in self._waiting.get(request_id, ()):
                event.set()

    def withdraw(self, tx: Tx, domain_id: int, *, holder_did: str = "", issuer_did: str = "") -> list[int]:
        """Withdraw at most SLICE open requests. Only requests that ask this holder for a credential of this issuer are
        withdrawn. An empty DID means any holder or any issuer. Return the ids of the withdrawn requests. After the
        commit, pass these ids to `wake`."""
        return repo.close_all(tx, domain_id, holder_did, issuer_did, self._clock())

    def void(self, tx: Tx) -> None:
        """Withdraw all open requests of a restored store. Wallets may have answered these requests after the backup
        was made, and a request must not be answered twice."""
        repo.void(tx, self._clock())


class LoginPrompts:
    """Sends presentation requests to the wallets of users who log in (implements `mfa.host.WalletPrompts`)."""

    def __init__(self, store: Store, requests: OpenRequests, clock: Clock = now_us) -> None:
        self._store = store
        self._requests = requests
        self._clock = clock

    async def enrolled(self, domain_id: int, user: str, issuer_did: str, schema_id: int) -> bool:
        """Return whether a user of the domain has a valid credential of an issuer. schema_id: the id of the schema;
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
        """Ask the user's wallet for a credential of an issuer. Return the id of the request. Return None if the user
        has no such credential. If a request for this challenge_id already exists, return the id of that request."""
        at = self._clock()

        def transaction(tx: Tx) -> int | None:
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

        return await self._store.write(transaction)

    async def answer(self, request_id: int, *, within_s: float) -> Answered | None:
        """Wait for the answer to a request, at most `within_s` seconds. Return None if the request is still open."""
        with self._requests.waiting(request_id) as answered:
            standing = await self._standing(request_id)
            if standing is None:
                with trio.move_on_after(within_s):
                    await answered.wait()
                standing = await self._standing(request_id)
        return standing

    async def _standing(self, request_id: int) -> Answered | None:
        request = await self._store.read(lambda tx: repo.get(tx, request_id))
        if request is None:
            return "withdrawn"
        return None if request.is_open(self._clock()) else _ANSWERS.get(request.status, "expired")

    async def withdraw(self, request_id: int) -> None:
        """Withdraw the request of a login that no longer waits."""
        at = self._clock()
        await self._store.write(lambda tx: repo.close(tx, request_id, Status.WITHDRAWN, at))


def _schema_url(tx: Tx, domain_id: int, uuid: str) -> str:
    """Return the URL of a credential's schema, from the document of the credential."""
    credential = credentials.by_uuid(tx, domain_id, uuid)
    assert credential is not None  # noqa: S101  it is the same transaction
    schema = credentials.document(tx, credential.id)["credentialSchema"]
    assert isinstance(schema, dict)  # noqa: S101  it was made here
    return str(schema["id"])
