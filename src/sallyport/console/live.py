"""Events that the server sends to an open page: new logins, within a second.

All open pages share one look-up of new events, so more open pages do not cause more look-ups. Pages of one tenant with
the same filters also share the rendered rows. A page gets only events of its own tenant's domains. The session is
checked again every few seconds. When the session has ended, the stream ends. The number of streams is limited for each
person and in total, and the tenants share the streams as they share the slots for logins (`Room`). A waiting stream
does not count for the limit of connections. The service keeps nothing for a page that does not read: such a page gets
the newest events when it reads again, or loses its connection.
"""

import math
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, NamedTuple

import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sallyport.areas.events.event import DomainEvent
from sallyport.areas.events.service import Events
from sallyport.base.errors import StoreError, TooMany
from sallyport.base.fair import Room
from sallyport.console.guard import HEADERS
from sallyport.web import problem
from sallyport.web.connections import parked

EVERY_S: Final = 0.5
"""Pause between two look-ups of new events."""
KEPT: Final = 1000
"""Number of events in memory. If more arrive between two look-ups, the oldest are not sent."""
RECHECK_S: Final = 5.0
"""Time after which a stream checks its session again."""
BEAT_S: Final = 15.0
"""Time after which an empty message is sent, so that proxies do not close the connection."""
MAX_STREAMS: Final = 200
MAX_OF_PERSON: Final = 10

IsValid = Callable[[], Awaitable[bool]]
Rows = Callable[[Sequence[DomainEvent]], Awaitable[bytes]]
"""A function that returns the rows of a page for new events, as HTML; empty if the page shows none of them."""


@dataclass(slots=True)
class _Rendered:
    """The message of one view after a look-up; None as long as it is not rendered."""

    lock: trio.Lock = field(default_factory=trio.Lock)
    message: bytes | None = None


class Feed:
    """The new events of all domains."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._turn = trio.Lock()
        self._last_id = -1
        self._looked_at = -math.inf
        self._kept = deque[DomainEvent](maxlen=KEPT)
        self._rendered: dict[tuple[Hashable, int, int], _Rendered] = {}

    async def newest_id(self) -> int:
        """Return the id of the newest event. All events with a greater id are new. Raises StoreError."""
        return await self._events.last_id()

    async def after(self, event_id: int) -> list[DomainEvent]:
        """Return the events that are newer than an event, oldest first. Raises StoreError."""
        async with self._turn:
            if trio.current_time() - self._looked_at >= EVERY_S:
                since = event_id if self._last_id < 0 else self._last_id
                found, self._last_id = await self._events.after(since, KEPT)
                self._kept += found
                self._looked_at = trio.current_time()
                self._rendered = {}
        return [*takewhile(lambda event: event.id > event_id, reversed(self._kept))][::-1]

    async def message(self, view: Hashable, new: Sequence[DomainEvent], rows: Rows) -> bytes:
        """Return the message with the rows of new events; empty if the page shows none of them. The rows are rendered
        once for all pages of a view.

        view: everything that the rows depend on, except the events. new: must not be empty.
        """
        rendered = self._rendered.setdefault((view, new[0].id, new[-1].id), _Rendered())
        async with rendered.lock:
            if rendered.message is None:
                html = await rows(new)
                rendered.message = message(html) if html else b""
            return rendered.message


class Viewer(NamedTuple):
    """The token or administrator whose session opens a stream, and the tenant of the session."""

    person: str
    tenant_id: int


class Streams:
    """The open streams. stopping: an event that is set when the service begins to stop."""

    def __init__(self, feed: Feed, stopping: trio.Event) -> None:
        self.feed = feed
        self.stopping = stopping
        self._open = Counter[str]()
        self._room = Room(MAX_STREAMS)

    async def response(self, viewer: Viewer, is_valid: IsValid, view: Hashable, rows: Rows) -> Response:
        """Return a stream of new rows. is_valid: a function that returns whether the session is still valid. view:
        everything that the rows depend on, except the events. Raises TooMany, StoreError.

        The stream is counted when it begins. If the last room is taken by then, it answers with status 429.
        """
        with self.counted(viewer):
            pass
        return _Stream(self, viewer, is_valid, view, rows, await self.feed.newest_id())

    @contextmanager
    def counted(self, viewer: Viewer) -> Iterator[None]:
        """Count a stream during the block. Raises TooMany if there is no room for the stream."""
        if self._open[viewer.person] >= MAX_OF_PERSON or not self._room.take(viewer.person, viewer.tenant_id):
            raise TooMany("too many live pages are open: close some")
        self._open[viewer.person] += 1
        try:
            yield
        finally:
            self._open[viewer.person] -= 1
            self._room.leave(viewer.person, viewer.tenant_id)


class _Stream(Response):
    """One stream. It ends when the browser disconnects, the session ends, or the service stops."""

    media_type = "text/event-stream"

    def __init__(
        self, streams: Streams, viewer: Viewer, is_valid: IsValid, view: Hashable, rows: Rows, since: int
    ) -> None:
        super().__init__(headers={**HEADERS, "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._streams = streams
        self._viewer = viewer
        self._is_valid = is_valid
        self._view = view
        self._rows = rows
        self._since = since

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as room:
            try:
                room.enter_context(self._streams.counted(self._viewer))
            except TooMany as error:
                await problem.response(error, "")(scope, receive, send)
                return
            await self._serve(receive, send)

    async def _serve(self, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_wait_until_gone, receive, nursery.cancel_scope)
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            with parked():
                await self._send_rows(send)
            await send({"type": "http.response.body", "body": b""})
            nursery.cancel_scope.cancel()

    async def _send_rows(self, send: Send) -> None:
        stopping, now = self._streams.stopping, trio.current_time()
        checked, sent = now, now
        await _send(send, b"retry: 2000\n\n")
        while not stopping.is_set():
            with trio.move_on_after(EVERY_S):
                await stopping.wait()
            now = trio.current_time()
            if now - checked >= RECHECK_S:
                checked = now
                if not await self._is_valid():
                    await _send(send, b"event: end\ndata:\n\n")
                    return
            octets = await self._new_rows()
            if octets or now - sent >= BEAT_S:
                sent = now
                await _send(send, octets or b":\n\n")

    async def _new_rows(self) -> bytes:
        with suppress(StoreError):  # the next look-up finds the events
            if new := await self._streams.feed.after(self._since):
                self._since = new[-1].id
                return await self._streams.feed.message(self._view, new, self._rows)
        return b""


async def _send(send: Send, octets: bytes) -> None:
    await send({"type": "http.response.body", "body": octets, "more_body": True})


async def _wait_until_gone(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def message(html: bytes) -> bytes:
    """Return HTML as a message of the stream (HTML Living Standard, section 9.2)."""
    lines = html.replace(b"\r", b"").split(b"\n")
    return b"event: row\n" + b"".join(b"data: %b\n" % line for line in lines if line.strip()) + b"\n"
