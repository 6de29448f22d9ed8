"""Wakes who waits for the answer to a request: in memory, so that nobody polls the store."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import trio


class Waker:
    """Events by request; there is one only while somebody waits."""

    def __init__(self) -> None:
        self._waiting: dict[int, set[trio.Event]] = {}

    @contextmanager
    def waiting(self, request_id: int) -> Iterator[trio.Event]:
        """The event of a request's answer. Enter before the request is read, so that no answer falls in between."""
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
        """These requests were answered, or are over; that is on disk."""
        for request_id in request_ids:
            for event in self._waiting.get(request_id, ()):
                event.set()
