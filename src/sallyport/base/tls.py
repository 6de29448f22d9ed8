"""TLS on the server side: RadSec and HTTPS."""

import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

import trio

RECORD: Final = 16 << 10
T = TypeVar("T")


class TlsStream:
    """The server's side of a TLS connection. One task may read while another task sends.

    Unlike trio.SSLStream it sends an alert with the reason if it refuses a peer (RFC 8446 section 6.2).
    BrokenResourceError: the connection is broken, or the peer violates TLS.
    """

    def __init__(self, transport: trio.SocketStream, context: ssl.SSLContext) -> None:
        self.transport = transport
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._one_sends = trio.Lock()

    async def handshake(self, turn: trio.Lock) -> bytes:
        """Do the handshake. Return the peer's certificate in DER; empty if the peer has sent none.

        turn: a lock that all handshakes of the listener share. It ensures that only one handshake continues in each
        pass of the event loop.
        """
        try:
            await self._step(self._tls.do_handshake, turn)
        except ssl.SSLError as error:
            raise trio.BrokenResourceError(str(error)) from error
        await self._flush()
        return self._tls.getpeercert(binary_form=True) or b""

    async def receive_some(self, most: int) -> bytes:
        """Return received octets. They are empty if the peer has closed the connection, with or without a closure
        alert."""
        try:
            return await self._step(lambda: self._tls.read(most))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    async def send_all(self, octets: bytes) -> None:
        """Send octets. If the call is cancelled, the connection cannot be used any more."""
        self._tls.write(octets)
        await self._flush()

    async def close(self) -> None:
        """Send a closure alert to the peer, without waiting for its answer."""
        with suppress(ssl.SSLError, trio.BrokenResourceError, trio.ClosedResourceError):
            with suppress(ssl.SSLWantReadError):
                self._tls.unwrap()
            await self._flush()

    async def _step(self, work: Callable[[], T], turn: trio.Lock | None = None) -> T:
        """Call a TLS operation, and repeat it each time octets arrive, until it needs no more octets from the peer."""
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
        async with self._one_sends:  # the lock ensures that octets are sent in the order of the buffer
            if self._outgoing.pending:
                await self.transport.send_all(self._outgoing.read())
