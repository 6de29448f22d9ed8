"""TLS on the server side, for RadSec and HTTPS."""

import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

import trio

RECORD: Final = 16 << 10
T = TypeVar("T")


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

    async def handshake(self, turn: trio.Lock) -> bytes:
        """Do the handshake. Return the peer's certificate in DER, or b"" if the peer has sent no certificate.

        turn: a lock that all handshakes of the listener share. Because of this lock, only one handshake continues in
        each pass of the event loop.
        """
        try:
            await self._step(self._tls.do_handshake, turn)
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

    async def _step(self, work: Callable[[], T], turn: trio.Lock | None = None) -> T:
        """Call a TLS operation, and call it again each time octets arrive, until the operation succeeds."""
        while True:
            if turn is not None:
                async with turn:
                    await trio.lowlevel.checkpoint()
            try:
                return work()
            except ssl.SSLWantReadError:
                await self._flush()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                raise
            except ssl.SSLError as error:
                await self._flush()
                raise trio.BrokenResourceError(str(error)) from error
            received = await self.transport.receive_some(RECORD)
            if received:
                self._incoming.write(received)
            else:
                self._incoming.write_eof()

    async def _flush(self) -> None:
        async with self._one_sends:  # without the lock, two tasks could send octets in the wrong order
            if self._outgoing.pending:
                await self.transport.send_all(self._outgoing.read())
