"""The open presentation requests: the logins that wait for their answers, and the changes that close them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import trio

from sallyport.base.clock import Clock
from sallyport.did.presentations import repo
from sallyport.store.model import Tx


class OpenRequests:
    """Wakes a login when its request is answered, so that it does not poll the store."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[int, set[trio.Event]] = {}

    @contextmanager
    def waiting(self, request_id: int) -> Iterator[trio.Event]:
        """Yield the event of a request's answer. Enter before the request is read, so that no answer is missed."""
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
        """Wake the logins that wait for these requests, whose end is committed."""
        for request_id in request_ids:
            for event in self._waiting.get(request_id, ()):
                event.set()

    def withdraw(self, tx: Tx, domain_id: int, *, holder_did: str = "", issuer_did: str = "") -> list[int]:
        """Close up to SLICE open requests for a holder's credentials of an issuer, empty for any; their ids, to `wake`
        once that is committed."""
        return repo.close_all(tx, domain_id, holder_did, issuer_did, self._clock())

    def void(self, tx: Tx) -> None:
        """Close all requests of a restored store: the original may have had answers since, and none is given twice."""
        repo.void(tx, self._clock())
