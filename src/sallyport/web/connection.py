"""One HTTP connection: hypercorn's HTTP/1.1 protocol between a trio stream and the app, with an end to everything.

hypercorn's own glue (0.18, on trio) lets a single peer end the process (a WebSocket upgrade followed by one more octet,
an h2c upgrade), waits for ever on a client that does not read, and blocks when a body is not read. So this is the
glue, and what differs is:

- HTTP/1.1 and 1.0 only. No WebSocket, no h2c, no prior-knowledge HTTP/2: such a request is an ordinary one, or 505.
- An error ends its own connection. Nothing but a cancellation leaves `run`.
- Each wait has a limit: handshake, request head, body (which has to keep a minimum rate), idleness, every piece sent.
- A connection ends in stages (RFC 9112 section 9.6), in TLS as in clear: nothing more is sent, and for a moment what
  still comes is read. Closing at once would reset it, and the client would lose what it has not read of the answer.
- A request that has both Content-Length and Transfer-Encoding is refused (RFC 9112 section 6.3: request smuggling).
"""

import enum
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import TypeAlias, cast

import h11
import structlog
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.events import Request, Response
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ASGIReceiveEvent, ASGISendEvent, ConnectionState, Scope
from hypercorn.utils import parse_socket_addr
from starlette.types import ASGIApp

from sallyport.web import problem
from sallyport.web.inbox import Inbox
from sallyport.web.parking import PARK, Park

RECEIVE = 1 << 14
PIECE = 1 << 16
_GONE = (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError)

Stream: TypeAlias = "trio.SocketStream | trio.SSLStream[trio.SocketStream]"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Limits:
    """What a peer may take; seconds and octets."""

    connections: int = 512
    """Simultaneous ones for each address; at the limit the one that has waited longest for a request gives way."""
    handshake_s: float = 10.0
    head_s: float = 10.0
    idle_s: float = 60.0
    body_s: float = 30.0
    body_rate: int = 16_384
    """Octets a second that extend body_s, so that a long upload is no slow one."""
    send_s: float = 5.0
    """For each 64 KiB of an answer."""
    linger_s: float = 1.0
    drain_s: float = 5.0
    """How long running requests may take once the service stops."""
    head_octets: int = 16_384
    requests: int = 1000
    """On one connection, before it is closed."""

    def config(self) -> Config:
        """The part of it that hypercorn's protocol looks at; no banner, no log."""
        config = Config()
        config.include_server_header = False
        config.accesslog = None
        config.errorlog = None
        config.h11_max_incomplete_size = self.head_octets
        config.keep_alive_max_requests = self.requests
        return config


class Terms:
    """What the connections of one address share with hypercorn's protocol. `context.terminated`: no more requests."""

    def __init__(self, limits: Limits) -> None:
        self.config = limits.config()
        self.context = WorkerContext(None)


class Phase(enum.Enum):
    """What a connection waits for."""

    HANDSHAKE = enum.auto()
    IDLE = enum.auto()
    HEAD = enum.auto()
    REQUEST = enum.auto()
    CLOSING = enum.auto()


class Connection:
    """One accepted connection. `on_phase` hears of each change of phase, `park` of its request's waiting."""

    def __init__(
        self, app: ASGIApp, stream: Stream, limits: Limits, *, terms: Terms, on_phase: "OnPhase", park: "OnPark"
    ) -> None:
        self._app = app
        self._stream = stream
        self._transport = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
        self._limits = limits
        self._terms = terms
        self._on_phase = on_phase
        self._park = park
        self._scope = trio.CancelScope()
        self._reading = trio.CancelScope()
        self._sending = trio.Lock()
        self._receiving = trio.CancelScope()
        self.phase = Phase.HANDSHAKE

    async def run(self) -> None:
        """Serve until either side has had enough; closes the stream. Raises nothing but cancellation."""
        try:
            with self._scope:
                await self._serve()
        except* _GONE:
            pass
        except* Exception as errors:
            log.warning("an HTTP connection ended by an error", error=repr(errors.exceptions[0]))
        finally:
            await trio.aclose_forcefully(self._transport)

    def hang_up(self) -> None:
        """End it now, whatever it waits for."""
        self._scope.cancel()

    async def _serve(self) -> None:
        self._enter(Phase.HANDSHAKE)
        if isinstance(self._stream, trio.SSLStream):
            with trio.fail_after(self._limits.handshake_s):
                await self._stream.do_handshake()
        async with trio.open_nursery() as nursery:
            protocol = self._protocol(nursery)
            self._enter(Phase.HEAD)
            with self._reading:
                await self._read(protocol)
            await protocol.handle(Closed())
        await self._close()

    def _protocol(self, nursery: trio.Nursery) -> "Http1":
        socket = self._transport.socket
        return Http1(
            cast(AppWrapper, self._app),
            self._terms.config,
            self._terms.context,
            _Tasks(nursery, self._app, partial(self._park, self)),
            ConnectionState({}),
            isinstance(self._stream, trio.SSLStream),
            parse_socket_addr(socket.family, socket.getpeername()),
            parse_socket_addr(socket.family, socket.getsockname()),
            self._send,
        )

    async def _read(self, protocol: "Http1") -> None:
        while True:
            with self._receiving:
                octets = bytes(await self._stream.receive_some(RECEIVE))
            if self._receiving.cancelled_caught:
                return
            self._receiving = trio.CancelScope(deadline=self._receiving.deadline)
            if self.phase is Phase.IDLE and octets:
                self._enter(Phase.HEAD)
            began = trio.current_time()
            await protocol.handle(RawData(octets))
            if self.phase is Phase.REQUEST:
                self._extend(protocol, len(octets), trio.current_time() - began)
            if not octets:
                return

    def _extend(self, protocol: "Http1", octets: int, handling_s: float) -> None:
        """A body has time as long as it keeps its rate; what the app takes to read it is not the peer's fault."""
        if protocol.receives:
            self._receiving.deadline += octets / self._limits.body_rate + handling_s
        else:
            self._receiving.deadline = math.inf

    async def _send(self, event: Event) -> None:
        """What the protocol wants done: octets out, the end, or the news that a request began or ended."""
        if isinstance(event, RawData):
            await self._write(event.data)
        elif isinstance(event, Updated):
            self._enter(Phase.IDLE if event.idle else Phase.REQUEST)
        elif isinstance(event, Closed):
            self._reading.cancel()

    async def _write(self, octets: bytes) -> None:
        try:
            async with self._sending:
                for at in range(0, len(octets), PIECE):
                    with trio.fail_after(self._limits.send_s):
                        await self._stream.send_all(octets[at : at + PIECE])
        except _GONE:  # nobody reads the answer, so its request has nothing left to do
            self._scope.cancel()
            await trio.lowlevel.checkpoint()

    async def _close(self) -> None:
        """Tell the peer that nothing more comes, then read on for a moment, until it closes too."""
        self._enter(Phase.CLOSING)
        with trio.move_on_after(self._limits.linger_s):
            await self._transport.send_eof()
            while await self._transport.receive_some(RECEIVE):
                pass

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        limit = {Phase.HEAD: self._limits.head_s, Phase.IDLE: self._limits.idle_s, Phase.REQUEST: self._limits.body_s}
        self._receiving.deadline = trio.current_time() + limit.get(phase, math.inf)
        self._on_phase(self)


OnPhase: TypeAlias = Callable[[Connection], None]
OnPark: TypeAlias = Callable[[Connection, bool], None]


class Http1(H11Protocol):
    """hypercorn's HTTP/1.1 without the ways out of it."""

    @property
    def receives(self) -> bool:
        """Whether more of the request's body has to come."""
        return self.connection.their_state is h11.SEND_BODY

    async def stream_send(self, event: StreamEvent) -> None:
        """As hypercorn's; an answer that comes before the end of the body tells that the connection ends with it."""
        if isinstance(event, Response) and self.receives:
            event = replace(event, headers=[*event.headers, (b"connection", b"close")])
        await super().stream_send(event)

    async def _check_protocol(self, event: h11.Request) -> None:
        """Refuse what is not HTTP/1, or could be understood in two ways."""
        names = [name for name, _ in event.headers]
        if not event.http_version.startswith(b"1."):
            raise h11.RemoteProtocolError("not HTTP/1", error_status_hint=505)
        if b"content-length" in names and b"transfer-encoding" in names:
            raise h11.RemoteProtocolError("two lengths", error_status_hint=400)

    async def _create_stream(self, request: h11.Request) -> None:
        """Every request is an ordinary one, whatever it asks to be upgraded to."""
        self.stream = HTTPStream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        await self.stream.handle(
            Request(
                stream_id=STREAM_ID,
                headers=list(request.headers),
                http_version=request.http_version.decode(),
                method=request.method.decode("ascii").upper(),
                raw_path=_origin_form(request.target),
                state=self.connection_state,
            )
        )
        self.keep_alive_requests += 1

    async def handle(self, event: Event) -> None:
        """As hypercorn's, and a request that is refused before its stream exists is answered."""
        try:
            await super().handle(event)
        except (h11.RemoteProtocolError, ValueError) as error:  # int() of a length with thousands of digits
            with suppress(h11.LocalProtocolError):
                await self._send_error_response(getattr(error, "error_status_hint", 400))
            await self.send(Closed())

    async def _send_error_response(self, status_code: int) -> None:
        answer = problem.body("", status_code, "malformed request")
        headers = [*answer.raw_headers, (b"connection", b"close"), *self.config.response_headers("h11")]
        await self._send_h11_event(h11.Response(status_code=status_code, headers=headers))
        await self._send_h11_event(h11.Data(data=bytes(answer.body)))
        await self._send_h11_event(h11.EndOfMessage())


def _origin_form(target: bytes) -> bytes:
    """The path of an absolute-form target (RFC 9112 section 3.2.2), else the target as it is."""
    scheme, mark, rest = target.partition(b"://")
    if not mark or scheme.lower() not in (b"http", b"https"):
        return target
    _, slash, path = rest.partition(b"/")
    return slash + path or b"/"


class _Tasks:
    """hypercorn's TaskGroup on the connection's nursery: the app of each request in a task, behind an Inbox."""

    def __init__(self, nursery: trio.Nursery, app: ASGIApp, park: Park) -> None:
        self._nursery = nursery
        self._app = app
        self._park = park

    async def spawn_app(
        self, app: AppWrapper, config: Config, scope: Scope, send: Callable[[ASGISendEvent | None], Awaitable[None]]
    ) -> Callable[[ASGIReceiveEvent], Awaitable[None]]:
        inbox = Inbox()
        self._nursery.start_soon(self._run, scope, inbox, send)
        return inbox.put

    async def _run(self, scope: Scope, inbox: Inbox, send: Callable[[ASGISendEvent | None], Awaitable[None]]) -> None:
        PARK.set(self._park)
        try:
            await cast("_Asgi", self._app)(scope, inbox.receive, send)
        except h11.LocalProtocolError as error:
            log.warning("an answer broke off", error=str(error))
        finally:
            inbox.close()
        await send(None)

    def spawn(self, func: Callable[..., Awaitable[None]], *args: object) -> None:
        self._nursery.start_soon(func, *args)

    async def __aenter__(self) -> "_Tasks":
        return self

    async def __aexit__(self, kind: type, value: BaseException, trace: TracebackType) -> None:
        return None


_Asgi: TypeAlias = Callable[
    [Scope, Callable[[], Awaitable[ASGIReceiveEvent]], Callable[[ASGISendEvent | None], Awaitable[None]]],
    Awaitable[None],
]
