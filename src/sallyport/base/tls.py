"""TLS on the server side, for RadSec and HTTPS. The parameters that a peer chooses must not block the event loop.

A peer needs no credential for a handshake. It chooses the group of the key exchange, and the certificates that the
server has to parse. A ClientHello with a key share of ffdhe8192 took 0.15 s, and a chain of 300 certificates 0.06 s.
Therefore a context has one group, which is cheap and which every TLS client supports. A worker thread does the
arithmetic of a handshake, and the size of a peer's part of it is limited.
"""

import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

import trio

RECORD: Final = 16 << 10
MAX_HANDSHAKE_SIZE: Final = 2 * RECORD
"""Maximum number of octets that a peer can send in a handshake. A chain of four certificates has about 8,000."""
_GROUP: Final = "prime256v1"  # RFC 8446 section 9.1: the group that each implementation has
T = TypeVar("T")


def server_context() -> ssl.SSLContext:
    """Return a context for TLS 1.2 or newer, without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_ecdh_curve(_GROUP)
    return context


class TlsStream:
    """The server side of a TLS connection. One task may read while another task sends.

    Unlike trio.SSLStream, the stream sends an alert with the reason if it rejects the peer (RFC 8446 section 6.2). The
    methods raise BrokenResourceError if the connection is broken, or if the peer violates TLS.
    """

    def __init__(self, transport: trio.SocketStream, context: ssl.SSLContext) -> None:
        self.transport = transport
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._one_sends = trio.Lock()

    async def handshake(
        self, turn: trio.CapacityLimiter, waits: Callable[[bool], object] = lambda _waits: None
    ) -> bytes:
        """Do the handshake. Return the peer's certificate in DER, or b"" if the peer has sent no certificate.

        turn: the limit of worker threads for the handshakes of the listener. waits: called with False before each step,
        which may have to wait for a thread, and with True when the stream waits for the peer again.
        """

        async def in_thread(step: Callable[[], T]) -> T:
            waits(False)
            try:
                return await trio.to_thread.run_sync(step, limiter=turn)
            finally:
                waits(True)

        try:
            await self._step(self._tls.do_handshake, in_thread)
        except ssl.SSLError as error:
            raise trio.BrokenResourceError(str(error)) from error
        await self._flush()
        return self._tls.getpeercert(binary_form=True) or b""

    async def receive_some(self, most: int) -> bytes:
        """Return received octets. Return b"" if the peer has closed the connection, with or without a closure alert."""
        try:
            return await self._step(lambda: self._tls.read(most))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    async def send_all(self, octets: bytes) -> None:
        """Send octets. If this call is cancelled, the connection cannot be used any more."""
        self._tls.write(octets)
        await self._flush()

    async def close(self) -> None:
        """Send a closure alert to the peer. Do not wait for the peer's alert."""
        with suppress(ssl.SSLError, trio.BrokenResourceError, trio.ClosedResourceError):
            with suppress(ssl.SSLWantReadError):
                self._tls.unwrap()
            await self._flush()

    async def _step(
        self, work: Callable[[], T], in_thread: Callable[[Callable[[], T]], Awaitable[T]] | None = None
    ) -> T:
        """Call a TLS operation, and call it again each time octets arrive, until the operation succeeds.

        in_thread: calls the operation in a worker thread, if it is a handshake. Others run on the event loop.
        """
        octets = 0 if in_thread is None else await self._receive()  # a peer that sends nothing takes no thread
        while True:
            try:
                return work() if in_thread is None else await in_thread(work)
            except ssl.SSLWantReadError:
                await self._flush()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                raise
            except ssl.SSLError as error:
                await self._flush()
                raise trio.BrokenResourceError(str(error)) from error
            octets += await self._receive()
            if in_thread is not None and octets > MAX_HANDSHAKE_SIZE:
                raise trio.BrokenResourceError(f"the peer's part of the handshake exceeds {MAX_HANDSHAKE_SIZE} octets")

    async def _receive(self) -> int:
        """Receive octets for the TLS engine, and return their number; 0 at the end of the stream."""
        received = await self.transport.receive_some(RECORD)
        if received:
            self._incoming.write(received)
        else:
            self._incoming.write_eof()
        return len(received)

    async def _flush(self) -> None:
        async with self._one_sends:  # without the lock, two tasks could send octets in the wrong order
            if self._outgoing.pending:
                await self.transport.send_all(self._outgoing.read())
