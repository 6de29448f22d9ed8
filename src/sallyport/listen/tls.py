"""TLS of RadSec: 1.2 or newer, and nobody without a certificate (RFC 6614 section 2.3)."""

import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

import trio

from sallyport.base.errors import ConfigError
from sallyport.certs.model import Credentials

RECORD: Final = 16 << 10
T = TypeVar("T")
_LIST = "-----BEGIN X509 CRL-----"


def server_context(files: Credentials) -> ssl.SSLContext:
    """For a server that takes whoever the authority has signed and not taken back. ConfigError.

    No session is resumed from a ticket: what was taken back meanwhile would come in by it.
    """
    if files.ca_file is None:
        raise ConfigError("RadSec has no authority for its peers' certificates: set eap_ca, or sallyport cert init")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_cert_chain(files.certificate_file, files.key_file, password=_no_password)
        context.load_verify_locations(files.ca_file)
        if files.crl_file is not None:
            context.load_verify_locations(files.crl_file)
        if files.crl_file is not None or _LIST in files.ca_file.read_text(encoding="utf-8", errors="replace"):
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    except (OSError, ssl.SSLError) as error:
        names = f"{files.certificate_file}, {files.key_file}, {files.ca_file}"
        raise ConfigError(f"certificates {names}: {error}") from error
    return context


def _no_password() -> str:
    """OpenSSL would ask the terminal for one."""
    return ""


class TlsStream:
    """The server's side of a connection, over memory: unlike trio.SSLStream it sends the alert by which a peer that is
    refused hears why (RFC 8446 section 6.2). One task may read while another one sends.

    BrokenResourceError: the connection is gone, or the peer does not keep to TLS.
    """

    def __init__(self, transport: trio.SocketStream, context: ssl.SSLContext) -> None:
        self._transport = transport
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._one_sends = trio.Lock()

    async def handshake(self, turn: trio.Lock) -> bytes:
        """Let the peer in. The certificate that it has shown, in DER; empty where it has shown none. turn: of all
        handshakes, which go on one in a turn of the event loop."""
        await self._step(self._tls.do_handshake, turn)
        await self._flush()
        return self._tls.getpeercert(binary_form=True) or b""

    async def receive_some(self, most: int) -> bytes:
        """Octets that have come; none: the peer has ended."""
        try:
            return await self._step(lambda: self._tls.read(most))
        except ssl.SSLZeroReturnError:
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
            except ssl.SSLZeroReturnError:
                raise
            except ssl.SSLError as error:
                await self._flush()
                raise trio.BrokenResourceError(str(error)) from error
            received = await self._transport.receive_some(RECORD)
            if received:
                self._incoming.write(received)
            else:
                self._incoming.write_eof()

    async def _flush(self) -> None:
        async with self._one_sends:  # whoever takes octets sends them before others take the next
            if self._outgoing.pending:
                await self._transport.send_all(self._outgoing.read())
