"""The HTTP server. Each address has its own app and its own limit of connections. A flood of connections to one address
does not block the other addresses.

    async with trio.open_nursery() as nursery:
        bound = await nursery.start(serve_http, [Listener(app, settings.http_bind, tls)], stop)

`stop` closes the listeners and the connections that wait for a request. Running requests may finish within `drain_s`.
If an address has reached its limit, a new connection replaces a waiting connection, which the module `connections`
chooses. A connection with a parked request (see `connections`) does not count.

If the peer is a proxy in `trusted_proxies`, the client's address comes from X-Forwarded-For. If this header has no
address that can be read, the client is UNKNOWN, and never the proxy's machine.
"""

import errno
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog
import trio
from starlette.types import ASGIApp

from sallyport.base.addresses import Address as AnyAddress
from sallyport.base.addresses import Network, parse_hop
from sallyport.base.errors import ConfigError
from sallyport.base.tls import TlsStream, server_context
from sallyport.settings.listening import cannot_listen
from sallyport.settings.values import Address
from sallyport.web.connection import Connection, Phase, Stream
from sallyport.web.connections import ConnectionTable, Limits
from sallyport.web.http1 import Head

BACKLOG = 512
UNKNOWN: Final = "unknown"
"""The address of a client that a proxy has not named (RFC 7239 section 6.2)."""
_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

log = structlog.get_logger()


@dataclass(slots=True)
class Tls:
    """The PEM files of the server's certificate. certificate: the certificate with its chain. key: the private key."""

    certificate: Path
    key: Path
    _contexts: list[ssl.SSLContext] = field(default_factory=list, repr=False, compare=False)

    def load(self, context: ssl.SSLContext) -> None:
        """Load the files into a context. Later calls of `reload` update this context. Raises ConfigError if a file
        cannot be used."""
        self._take(context)
        self._contexts.append(context)

    def reload(self, certificate: Path | None = None, key: Path | None = None) -> None:
        """Load the files again for new connections. certificate, key: the paths from now on; None for the same paths.

        Raises ConfigError if a file cannot be used. In this case, the server continues to use the former certificate.
        """
        wanted = Tls(certificate or self.certificate, key or self.key)
        for context in (server_context(), *self._contexts):
            wanted._take(context)
        self.certificate, self.key = wanted.certificate, wanted.key

    def _take(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"tls_certificate {self.certificate}, tls_key {self.key}: {error}") from error


@dataclass(frozen=True, slots=True)
class Listener:
    """An app on an address, with or without TLS.

    trusted_proxies: the networks of proxies. The X-Forwarded-For header is used only if it comes from such a proxy. A
    list may change while the listener runs.
    setting: the name of the setting that contains the address, for error messages. bound: a socket that already listens
    on the address, or None.
    """

    app: ASGIApp
    bind: Address
    tls: Tls | None = None
    trusted_proxies: Sequence[Network] = ()
    setting: str = "http_bind"
    bound: socket.socket | None = None


async def serve_http(
    listeners: Sequence[Listener],
    stop: trio.Event,
    *,
    limits: Limits | None = None,
    task_status: trio.TaskStatus[list[Address]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve HTTP until `stop` is set and the running requests have ended, but at most `drain_s` after `stop`.

    The function reports the bound addresses by `task_status.started`, in the order of `listeners`, with the actual
    ports. No peer can make the function raise. Raises StartError if an address cannot be bound, and ConfigError if a
    certificate cannot be used.
    """
    limits = limits or Limits()
    acceptors: list[_Acceptor] = []
    try:
        for listener in listeners:
            acceptors.append(await _open(listener, limits))
        async with trio.open_nursery() as connections:
            async with trio.open_nursery() as accepting:
                for acceptor in acceptors:
                    accepting.start_soon(acceptor.accept, connections)
                task_status.started([acceptor.address for acceptor in acceptors])
                await stop.wait()
                accepting.cancel_scope.cancel()
            for acceptor in acceptors:
                acceptor.close()
            connections.cancel_scope.deadline = trio.current_time() + limits.drain_s
    finally:
        for acceptor in acceptors:
            acceptor.socket.close()


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Return a context for TLS 1.2 or newer, with HTTP/1.1 only. Raises ConfigError if the files cannot be used."""
    context = server_context()
    context.set_alpn_protocols(["http/1.1"])
    tls.load(context)
    return context


async def _open(listener: Listener, limits: Limits) -> "_Acceptor":
    context = tls_context(listener.tls) if listener.tls else None
    if listener.bound is not None:
        return _Acceptor(listener, trio.socket.from_stdlib_socket(listener.bound), context, limits)
    try:
        (opened,) = await trio.open_tcp_listeners(listener.bind.port, host=listener.bind.host, backlog=BACKLOG)
    except OSError as error:
        raise cannot_listen(listener.setting, listener.bind, socket.SOCK_STREAM, error) from error
    return _Acceptor(listener, opened.socket, context, limits)


class _Acceptor:
    """One listening socket and its connections.

    closing: whether the listener accepts no more requests. turn: the limit of threads for TLS handshakes.
    """

    def __init__(
        self, listener: Listener, socket: trio.socket.SocketType, context: ssl.SSLContext | None, limits: Limits
    ) -> None:
        host, port = socket.getsockname()[:2]
        self.address = Address(host, port)
        self.socket = socket
        self.closing = False
        self.turn = trio.CapacityLimiter(1)
        self._app = listener.app
        self._proxies = listener.trusted_proxies
        self._tls = context
        self._limits = limits
        self.table: ConnectionTable[Connection] = ConnectionTable(limits.unauthenticated)
        self._room = trio.Semaphore(limits.connections)
        self._parked: set[Connection] = set()
        self._overdrawn = 0

    async def accept(self, nursery: trio.Nursery) -> None:
        """Accept connections until cancelled. No error of a peer or of the system ends the loop."""
        while True:
            try:
                socket, client = await self.socket.accept()
            except OSError as error:
                await self._refused(error)
                continue
            try:
                await self._make_room()
            except trio.Cancelled:
                socket.close()
                raise
            nursery.start_soon(self._connection(socket, client[:2]).run)

    def close(self) -> None:
        """Stop accepting, and close the connections that wait for a request.

        A connection with a running request ends after that request.
        """
        self.socket.close()
        self.closing = True
        for connection in self.table.waiting():
            if connection.phase not in (Phase.SENDING, Phase.CLOSING):
                connection.hang_up()

    def park(self, connection: Connection, parks: bool) -> None:
        """Stop counting a parked request, or count it again when it continues.

        A request continues even if the limit of connections is reached. In this case, the end of the next connection
        does not make room for a new connection.
        """
        if parks and connection not in self._parked:
            self._parked.add(connection)
            self._leave()
        elif not parks and connection in self._parked:
            self._parked.remove(connection)
            try:
                self._room.acquire_nowait()
            except trio.WouldBlock:
                self._overdrawn += 1

    def forwarded(self, connection: Connection, head: Head) -> str:
        given = b",".join(value for name, value in head.headers if name == b"x-forwarded-for").decode("latin-1")
        hops = [hop.strip() for hop in given.split(",")]
        address = _parsed(next((hop for hop in reversed(hops) if not self._is_proxy(hop)), ""))
        if address is None or address.is_loopback:  # the proxy's own machine is not trusted more than another client
            return UNKNOWN
        self.table.enter(connection, str(address))
        return str(address)

    def _is_proxy(self, host: str) -> bool:
        address = _parsed(host) if self._proxies else None
        return address is not None and any(address in network for network in self._proxies)

    async def _make_room(self) -> None:
        if self._room.value == 0:
            self.table.make_room()
        await self._room.acquire()

    def _connection(self, socket: trio.socket.SocketType, client: tuple[str, int]) -> Connection:
        proxied = self._is_proxy(client[0])
        connection = Connection(self._app, self._stream(socket), client, self._limits, self, proxied=proxied)
        if not proxied:
            self.table.enter(connection, client[0])
        return connection

    def _stream(self, socket: trio.socket.SocketType) -> Stream:
        stream = trio.SocketStream(socket)
        if self._tls is None:
            return stream
        return TlsStream(stream, self._tls)

    def left(self, connection: Connection) -> None:
        self.table.leave(connection)
        self.park(connection, parks=False)
        self._leave()

    def _leave(self) -> None:
        if self._overdrawn:
            self._overdrawn -= 1
        else:
            self._room.release()

    async def _refused(self, error: OSError) -> None:
        """Handle an error of `accept`. If the system has no free descriptors or memory, log the error and close a
        connection that waits for its peer.

        Errors of a single peer (ECONNABORTED) are ignored.
        """
        if error.errno in _EXHAUSTED:
            log.warning("http_accept_failed", error=error.strerror)
            self.table.make_room()
        await trio.sleep(0.1 if error.errno in _EXHAUSTED else 0)


def _parsed(host: str) -> AnyAddress | None:
    try:
        return parse_hop(host)
    except ValueError:
        return None
