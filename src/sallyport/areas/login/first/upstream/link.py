"""RADIUS over TLS to a home server (RFC 6614).

To the pool, a TLS connection looks like a UDP socket, so the pool does not depend on the transport. For this purpose, a
channel has one end of a local socket pair. A task moves packets between the other end and the TLS connection. When the
connection ends, the task closes its end of the socket pair.
"""

from __future__ import annotations

import math
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import trio

from sallyport.base.fair import LoopTurns
from sallyport.outgoing.certificate import ISSUER_UNKNOWN
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.errors import PemError
from sallyport.outgoing.tls import LazyContext, client_context, secured, show_certificate
from sallyport.radius.packet import MAX_LENGTH, MIN_LENGTH

CONNECT_S: Final = 10.0
GOODBYE_S: Final = 1.0
CHUNK: Final = 16 << 10
RECONNECT_S: Final = 1.0
"""Pause in seconds after a failed connection. Requests wait until the next attempt."""
TAKEN_S: Final = 10.0
"""Time limit in seconds for the TCP acknowledgement of sent octets (RFC 5482).

A firewall that has lost the state of the connection drops packets silently. Without the limit, the kernel would
retransmit for a quarter of an hour. A new connection would work at once.
"""
BATCH: Final = 64
"""Maximum number of packets in one write."""

Tls: TypeAlias = trio.SSLStream[trio.SocketStream]


@dataclass(frozen=True, slots=True, repr=False)
class TlsSettings:
    """The settings of RADIUS over TLS.

    certificate, key: the client certificate and its key, in PEM. authorities: the trusted certificates in PEM; if it is
    None, those in the system's store are trusted. server_name: the name that the server's certificate must have; if it
    is empty, it is the host name.
    """

    certificate: str
    key: str
    authorities: str | None
    server_name: str

    def context(self) -> ssl.SSLContext:
        """Return a context for TLS 1.2 or newer that verifies the server's name and sends the client certificate (RFC
        6614 section 2.3).

        Call it in a worker thread, because it takes up to 100 ms. Raises PemError, ssl.SSLError.
        """
        made = client_context(self.authorities)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        show_certificate(made, self.certificate, self.key)
        return made


class Link:
    """The TLS connections to one home server. egress: the tenant's rules for outgoing connections. taken_s: the time
    limit for TCP acknowledgements, in seconds."""

    def __init__(self, host: str, settings: TlsSettings, egress: Egress, *, taken_s: float = TAKEN_S) -> None:
        self._egress = egress
        self._taken_ms = int(taken_s * 1000)
        self._name = settings.server_name or host
        self._context = LazyContext(settings.context)
        self._failed_at = -math.inf

    def pair(self) -> tuple[socket.socket, socket.socket]:
        """Return a socket pair: the end for a channel, and the end for `carry`. Raises OSError if no socket can be
        opened."""
        return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)

    async def carry(self, far: socket.socket, address: str, port: int) -> str:
        """Connect to the server, and forward packets in both directions until either side closes. Return the reason for
        the end of the connection, as a text for an admin."""
        with far:
            await trio.sleep_until(self._failed_at + RECONNECT_S)
            try:
                with trio.fail_after(CONNECT_S):
                    stream = await self._egress.sockets.connect(address, port)
            except (OSError, trio.TooSlowError) as error:
                self._failed_at = trio.current_time()
                return getattr(error, "strerror", None) or "no TCP connection in time"
            async with stream:
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self._taken_ms)
                try:
                    with trio.fail_after(CONNECT_S):
                        tls = await secured(stream, await self._context.get(), self._name, self._egress.handshakes)
                except (trio.BrokenResourceError, trio.TooSlowError, PemError, ssl.SSLError) as error:
                    self._failed_at = trio.current_time()
                    return f"TLS: {_why(error)}"
                try:
                    return await _converse(far, tls, self._egress.turns)
                finally:
                    with trio.move_on_after(GOODBYE_S, shield=True):
                        await tls.aclose()


async def _converse(far: socket.socket, tls: Tls, turns: LoopTurns) -> str:
    """Forward packets in both directions until either side closes. Return the reason for the end, in words."""
    reasons: list[str] = []
    async with trio.open_nursery() as nursery:

        async def one_way(work: Callable[[socket.socket, Tls], Awaitable[None]]) -> None:
            try:
                await work(far, tls)
                reasons.append("the connection was closed")
            except trio.BrokenResourceError as error:
                reasons.append(f"the connection broke: {_why(error)}")
            except OSError:
                reasons.append("closed, because no request uses the connection")
            nursery.cancel_scope.cancel()

        nursery.start_soon(one_way, _to_server)
        nursery.start_soon(one_way, partial(_to_channel, turns=turns))
    return reasons[0]


async def _to_server(far: socket.socket, tls: Tls) -> None:
    while True:
        await trio.lowlevel.wait_readable(far)
        packets: list[bytes] = []
        while len(packets) < BATCH and (not packets or packets[-1]):
            try:
                packets.append(far.recv(MAX_LENGTH))
            except BlockingIOError:
                break
        await tls.send_all(b"".join(packets))
        if packets and not packets[-1]:
            return


async def _to_channel(far: socket.socket, tls: Tls, turns: LoopTurns) -> None:
    """Forward packets from the server to the channel. Return when the connection ends, or when the length in a packet
    is invalid (RFC 6613 section 2.6.3)."""
    pending = bytearray()
    while received := await tls.receive_some(CHUNK):
        await turns.take()
        pending += received
        while len(pending) >= 4:
            length = pending[2] << 8 | pending[3]
            if not MIN_LENGTH <= length <= MAX_LENGTH:
                return
            if len(pending) < length:
                break
            try:
                far.send(pending[:length])
            except BlockingIOError:
                await trio.lowlevel.wait_writable(far)
                continue
            del pending[:length]


def _why(error: BaseException) -> str:
    """Return an error's text for an admin. For an error of OpenSSL, leave out the source location."""
    if isinstance(error, PemError):
        return f"the certificate or key {error}"
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        trusted = "; if the certificate is correct, set its issuer as caCertificate (--radius-tls-ca FILE)"
        return cause.verify_message + (trusted if cause.verify_code in ISSUER_UNKNOWN else "")
    return (isinstance(cause, ssl.SSLError) and cause.reason) or str(error) or "no TLS handshake in time"
