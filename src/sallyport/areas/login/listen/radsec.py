"""RADIUS over TLS (RFC 6614). A certificate identifies the peer. The peer's packets are processed like packets over
UDP.

All connections share two exchanges, one for authentication and one for accounting. The source of a packet includes the
connection. Therefore packets of different connections are never duplicates. If a connection ends while a login waits
for a second factor, the login continues to wait. When the peer retransmits on another connection, the retransmission
joins the login.

`Limits` bounds what a peer can use. Connections without a verified certificate have their own limit. If this limit is
reached, the network with the most such connections loses its oldest one. Tenants share the connections in the same way
as the slots for pending requests (`Room`). A worker thread does one step of a handshake at a time, because a step needs
a signature, which takes a millisecond or more.
"""

import ipaddress
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from shlex import quote
from typing import Final

import structlog
import trio

from sallyport.areas.clients.client import Client, ClientTable
from sallyport.areas.login.listen.causes import CERTIFICATE
from sallyport.areas.login.listen.exchange import Exchange
from sallyport.areas.login.listen.senders import Senders
from sallyport.areas.login.listen.tls import radsec_context
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import StartError
from sallyport.base.fair import Room
from sallyport.base.tls import TlsStream
from sallyport.certs.authority import PeerCertificate, read_peer
from sallyport.certs.credentials import Credentials
from sallyport.certs.folder import present
from sallyport.metrics import RadiusMetrics
from sallyport.radius.duplicates import Source
from sallyport.radius.packet import ACCOUNTING_REQUEST, MAX_LENGTH, MIN_LENGTH, Request, SharedSecret, decode

LABEL: Final = "radsec"
CHUNK = 8192
AT_ONCE = 64  # number of packets of one connection after which the next connection has its turn
WATCH_S = 0.5
MAX_NAME_LENGTH: Final = 255
"""Maximum length in characters of the name of a certificate in `client add`."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of RadSec.

    connections: the maximum number of connections. per_address: the maximum number of connections from one IPv4
    address, or from one /64 of IPv6. unverified: the maximum number of connections without a verified certificate. The
    fields whose names end with _s are timeouts in seconds. unread: the maximum length, in octets, of the answers that
    wait for one peer because the peer does not read them.
    """

    connections: int = 1000
    per_address: int = 100
    unverified: int = 200
    handshake_s: float = 10.0
    first_packet_s: float = 30.0
    packet_s: float = 10.0
    idle_s: float = 300.0
    send_s: float = 30.0
    goodbye_s: float = 1.0
    unread: int = 256 << 10


class _Connection:
    """A connected peer. network: the peer's IPv4 address, or the /64 of its IPv6 address. who: the identity in the
    peer's certificate, or None until the handshake has ended."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.network = _network(source[0])
        self.who: PeerCertificate | None = None
        self.scope = trio.CancelScope()
        self.reading = trio.CancelScope()
        self.pending = bytearray()
        self.unsent = bytearray()
        self.sending = False
        self.some_unsent = trio.Event()


def _network(host: str) -> str:
    """Return the network of an address. An IPv4 address is returned unchanged. For an IPv6 address, the /64 is
    returned, because one peer may have all addresses of a /64."""
    return str(ipaddress.ip_network((host.partition("%")[0], 64), strict=False)) if ":" in host else host


class RadSec:
    """The RadSec server. Its methods `find_client` and `send` are for the exchanges, which are passed to `run`.

    credentials: a function that returns the current certificate files. table: a function that returns the current
    RADIUS clients. flush: a function that is called after packets were received.
    """

    def __init__(
        self,
        credentials: Callable[[], Credentials | None],
        table: Callable[[], ClientTable],
        flush: Callable[[], None],
        metrics: RadiusMetrics,
        senders: Senders,
        *,
        limits: Limits | None = None,
        clock: Clock = now_us,
    ) -> None:
        self._credentials = credentials
        self._table = table
        self._flush = flush
        self._metrics = metrics
        self._senders = senders
        self._limits = limits or Limits()
        self._clock = clock
        self._serial = count(1)
        self._accepting = trio.CancelScope()
        self._unverified = BoundedMap[Source, _Connection](self._limits.unverified)  # by network
        self._known: dict[Source, _Connection] = {}
        self._of_network: Counter[str] = Counter()
        self._room = Room(self._limits.connections)
        self._turn = trio.CapacityLimiter(1)
        self._context: ssl.SSLContext  # these two are loaded at the start
        self._files: Credentials
        metrics.watch_radsec(lambda: {(): float(len(self._known))})

    # --- methods for the exchanges ------------------------------------------------------------------------------

    def find_client(self, source: Source) -> Client | None:
        """Return the RADIUS client that the certificate of a connection identifies now, or None if there is none."""
        connection = self._known.get(source)
        if connection is None or connection.who is None:
            return None
        return self._table().certified(connection.who.fingerprint, connection.who.names)

    def send(self, reply: bytes, to: Source) -> None:
        """Queue a reply without waiting. If the connection has ended, the reply is lost. A peer that does not read is
        disconnected."""
        connection = self._known.get(to)
        if connection is None or connection.scope.cancel_called:
            return
        if len(connection.unsent) + len(reply) > self._limits.unread:
            self._refuse(connection, "slow_reader")
            return
        connection.unsent += reply
        connection.some_unsent.set()

    # --- start and stop -------------------------------------------------------------------------------------------

    async def run(
        self,
        sockets: Sequence[socket.socket],
        auth: Exchange,
        acct: Exchange,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept connections until `stop` is called, and serve them until cancelled. Errors of peers are not raised.

        Raises StartError if there is no certificate. Raises ConfigError if the certificate cannot be used. Without
        sockets, it returns at once.
        """
        if not sockets:
            task_status.started()
            return
        self._load()
        listeners = [trio.SocketListener(trio.socket.from_stdlib_socket(sock)) for sock in sockets]

        async def serve(stream: trio.SocketStream) -> None:
            await self._serve(stream, auth, acct)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch)
            task_status.started()
            with self._accepting:
                await trio.serve_listeners(serve, listeners, handler_nursery=nursery)

    def stop(self) -> None:
        """Accept no more connections, and read no more packets. Answers to pending requests are still sent."""
        self._accepting.cancel()
        for connection in self._unverified.values():
            connection.scope.cancel()
        for connection in self._known.values():
            connection.reading.cancel()

    async def sent(self) -> None:
        """Wait until all answers are sent."""
        while any(each.unsent or each.sending for each in self._known.values()):
            await trio.sleep(0.005)

    def _load(self) -> None:
        files = self._credentials()
        if files is None:
            raise StartError(
                "RadSec has no certificate: make one with sallyport cert init; in a new data directory, run sallyport"
                " db migrate first"
            )
        self._context, self._files = radsec_context(files), files

    async def _watch(self) -> None:
        """Watch the certificate, the authority and its revocation list. After a change, load the new files and close
        all connections, so that peers reconnect and are verified again."""
        reported: Credentials | None = None
        while True:
            await trio.sleep(WATCH_S)
            files = self._credentials()
            if files in (self._files, reported):
                continue
            try:
                self._load()
            except StartError as error:
                reported = files
                log.warning("radsec_certificates_not_reloaded", error=str(error))
                continue
            log.info("radsec_certificates_reloaded", closed=len(self._known))
            for connection in self._known.values():
                connection.scope.cancel()

    # --- a connection ---------------------------------------------------------------------------------------------

    async def _serve(self, stream: trio.SocketStream, auth: Exchange, acct: Exchange) -> None:
        """Serve a connection from its handshake to its end. Never raises."""
        async with stream:
            try:
                host, port = stream.socket.getpeername()[:2]
            except OSError:
                return  # the peer has already disconnected
            connection = _Connection((host, port, next(self._serial).to_bytes(8)))
            self._of_network[connection.network] += 1
            try:
                with connection.scope:
                    await self._admit(connection, stream, auth, acct)
            except Exception:
                log.exception("radsec_connection_failed", peer=host)
            finally:
                self._unverified.pop(connection.source)
                self._known.pop(connection.source, None)
                self._of_network[connection.network] -= 1
                if not self._of_network[connection.network]:
                    del self._of_network[connection.network]

    async def _admit(self, connection: _Connection, stream: trio.SocketStream, auth: Exchange, acct: Exchange) -> None:
        limits = self._limits
        if self._of_network[connection.network] > limits.per_address:
            return self._refuse(connection, "overload")
        displaced = self._unverified.put(connection.source, connection, connection.network)
        if displaced is not None:
            self._refuse(displaced, "overload")
        tls, files = TlsStream(stream, self._context), self._files
        try:
            with trio.fail_after(limits.handshake_s):
                connection.who = read_peer(await tls.handshake(self._turn))
        except (trio.BrokenResourceError, trio.TooSlowError, ValueError) as error:
            return self._refuse(connection, "handshake", why=str(error) or "too slow")
        self._unverified.pop(connection.source)
        self._known[connection.source] = connection
        try:
            if files == self._files:  # otherwise the certificates have changed meanwhile: the peer connects again
                await self._welcome(connection, tls, auth, acct)
        finally:
            with trio.move_on_after(limits.goodbye_s, shield=True):
                await tls.close()

    async def _welcome(self, connection: _Connection, tls: TlsStream, auth: Exchange, acct: Exchange) -> None:
        client, who = self.find_client(connection.source), connection.who
        if client is None or who is None:
            names = "" if who is None else ", ".join(who.names)
            return self._refuse(
                connection,
                "unknown_client",
                why=f"no RADIUS client of the certificate's tenant has one of the names in the certificate: {names}",
                listed=CERTIFICATE,
                option="" if who is None else _option(who),
            )
        if not self._room.take(client.id, client.tenant_id):
            return self._refuse(connection, "overload")
        self._senders.welcomed(connection.source[0])
        connection.scope.deadline = trio.current_time() + (who.expires - present(self._clock)).total_seconds()
        log.info("radsec_connected", client=client.name, peer=connection.source[0])
        try:
            await self._converse(connection, tls, auth, acct)
        finally:
            self._room.leave(client.id, client.tenant_id)
            log.info("radsec_closed", client=client.name, peer=connection.source[0])

    async def _converse(self, connection: _Connection, tls: TlsStream, auth: Exchange, acct: Exchange) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._send, connection, tls)
            with connection.reading:
                with suppress(trio.BrokenResourceError):
                    await self._receive(connection, tls, auth, acct)
                # not reached when the service stops: pending requests are still answered
                nursery.cancel_scope.cancel()

    async def _receive(self, connection: _Connection, tls: TlsStream, auth: Exchange, acct: Exchange) -> None:
        """Process packets until the peer closes the connection, is too slow, or sends a malformed packet."""
        limits, pending = self._limits, connection.pending
        deadline = trio.current_time() + limits.first_packet_s
        while True:
            with trio.move_on_at(deadline) as patience:
                received = await tls.receive_some(CHUNK)
            if patience.cancelled_caught or not received:
                return None
            begins = not pending
            pending += received
            taken, at, now = 0, self._clock(), time.monotonic()
            while (packet := self._pull(connection)) is not None:
                (acct if packet[0] == ACCOUNTING_REQUEST else auth).receive([(packet, connection.source, at, now)])
                taken += 1
                if taken % AT_ONCE == 0:
                    self._flush()
                    await trio.lowlevel.checkpoint()
                    at, now = self._clock(), time.monotonic()
            self._flush()
            if taken or begins:
                deadline = trio.current_time() + (limits.packet_s if pending else limits.idle_s)
            if self.find_client(connection.source) is None:
                return self._refuse(connection, "unknown_client")

    def _pull(self, connection: _Connection) -> bytes | None:
        """Remove the next complete packet from the received octets, and return the packet (RFC 6613 section 2.6.3).
        Return None if no packet is complete yet."""
        pending = connection.pending
        if len(pending) < 4 or connection.scope.cancel_called:
            return None
        length = pending[2] << 8 | pending[3]
        if not MIN_LENGTH <= length <= MAX_LENGTH:  # the start of the next packet cannot be found
            self._refuse(connection, "malformed")
            return None
        if len(pending) < length:
            return None
        packet = bytes(pending[:length])
        del pending[:length]
        return packet

    async def _send(self, connection: _Connection, tls: TlsStream) -> None:
        """Send queued answers, until cancelled or until the peer reads too slowly."""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while True:
                await connection.some_unsent.wait()
                connection.some_unsent = trio.Event()
                replies = bytes(connection.unsent)
                connection.unsent.clear()
                connection.sending = True
                with trio.move_on_after(self._limits.send_s) as patience:
                    await tls.send_all(replies)
                connection.sending = False
                if patience.cancelled_caught:
                    self._refuse(connection, "slow_reader")
        connection.scope.cancel()

    def _refuse(
        self, connection: _Connection, reason: str, why: str = "", *, listed: str = "", option: str = ""
    ) -> None:
        """Disconnect a peer, and count and log the reason. why: details for the log. listed: the reason in the list of
        senders, if it differs. option: see `Sender`."""
        if connection.scope.cancel_called:
            return
        host = connection.source[0]
        self._metrics.discards.cell(LABEL, reason).count += 1
        is_news = self._senders.note(host, listed or reason, self._clock(), option=option)
        connection.scope.cancel()
        if is_news:
            log.warning("radsec_refused", peer=host, reason=reason, why=why)


def _option(peer: PeerCertificate) -> str:
    """Return the option of `client add` for a peer's certificate: its first name, or its fingerprint if it has no name,
    or one that is too long."""
    if peer.names and len(peer.names[0]) <= MAX_NAME_LENGTH:
        return f"--tls-name {quote(peer.names[0])}"
    return f"--tls-fingerprint {peer.fingerprint}"


def decode_proven(packet: bytes, secret: SharedSecret) -> Request:
    """Parse and verify a packet that has arrived over TLS. The packet counts as signed, because TLS has authenticated
    the sender. Raises PacketError."""
    request = decode(packet, secret)
    request.signed = True
    return request
