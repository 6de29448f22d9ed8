"""TLS of a server's connections: RadSec and HTTPS."""

import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

import trio

RECORD: Final = 16 << 10
T = TypeVar("T")


class TlsStream:
    """The server's side of a connection, over memory: unlike trio.SSLStream it sends the alert by which a peer that is
    refused hears why (RFC 8446 section 6.2). One task may read while another one sends.

    BrokenResourceError: the connection is gone, or the peer does not keep to TLS.
    """

    def __init__(self, transport: trio.SocketStream, context: ssl.SSLContext) -> None:
        self.transport = transport
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._one_sends = trio.Lock()

    async def handshake(self, turn: trio.Lock) -> bytes:
        """Do the handshake. Return the certificate of the peer, in DER; empty if the peer has shown none. turn: of the
        listener's handshakes, one of which continues in each turn of the event loop."""
        try:
            await self._step(self._tls.do_handshake, turn)
        except ssl.SSLError as error:
            raise trio.BrokenResourceError(str(error)) from error
        await self._flush()
        return self._tls.getpeercert(binary_form=True) or b""

    async def receive_some(self, most: int) -> bytes:
        """Return received octets; none if the peer has closed the connection, with a closure alert or without."""
        try:
            return await self._step(lambda: self._tls.read(most))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    async def send_all(self, octets: bytes) -> None:
        """Send octets. Cancelled, the connection is of no use any more."""
        self._tls.write(octets)
        await self._flush()

    async def close(self) -> None:
        """Tell the peer that this is the end, and wait for nothing."""
        with suppress(ssl.SSLError, trio.BrokenResourceError, trio.ClosedResourceError):
            with suppress(ssl.SSLWantReadError):
                self._tls.unwrap()
            await self._flush()

    async def _step(self, work: Callable[[], T], turn: trio.Lock | None = None) -> T:
        """Do a thing that may have to wait for the peer."""
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
        async with self._one_sends:  # octets are sent in the order in which they are taken
            if self._outgoing.pending:
                await self.transport.send_all(self._outgoing.read())
