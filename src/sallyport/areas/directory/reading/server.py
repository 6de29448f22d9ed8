"""Connect to a directory server: resolve the host of its URL, check that `egress` allows the address, connect, and
encrypt."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from sallyport.areas.directory.directory import split_url
from sallyport.areas.directory.reading.answers import message_size
from sallyport.areas.directory.reading.requests import message, start_tls
from sallyport.outgoing.certificate import verification_error, why_refused
from sallyport.outgoing.errors import ProviderError, no_connection
from sallyport.outgoing.tls import secured

if TYPE_CHECKING:
    from collections.abc import Callable

    from sallyport.outgoing.egress import Egress

    Report = Callable[[str], None]
    Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]

# The fixed parts of the answer to StartTLS (RFC 4511 sections 4.12 and 4.14).
_ANSWER: Final = b"\x02\x01\x01\x78"
_ENUMERATED: Final = b"\x0a\x01"
_MAX_ANSWER: Final = 4096


class Unreachable(Exception):
    """The error for a server that cannot be reached, or has closed the connection. The message is for an admin and has
    no secrets."""


@dataclass(frozen=True, slots=True)
class Server:
    """One directory server. start_tls: whether an `ldap://` connection is encrypted with StartTLS before the first
    request. trusted: the name of the setting for trusted certificates; error messages mention it."""

    url: str
    start_tls: bool
    trusted: str = "caCertificate"

    def __str__(self) -> str:
        return self.url

    async def connect(self, trust: ssl.SSLContext, egress: Egress, report: Report) -> Stream:
        """Return an encrypted connection to one of the server's allowed addresses. The server's certificate must be
        valid for the host of the URL. Raises Unreachable."""
        scheme, host, port = split_url(self.url)
        stream = await _connected(host, port, egress, report)
        if scheme == "ldap" and not self.start_tls:
            return stream
        try:
            if scheme == "ldap":
                await _start_tls(stream)
            tls = await secured(stream, trust, host, egress.handshakes)
        except BaseException as error:
            await trio.aclose_forcefully(stream)
            refused = verification_error(error)
            if refused is not None:
                again = partial(self._before_tls, egress)
                why = await why_refused(refused, host, again, egress.handshakes, trusted=self.trusted)
                raise Unreachable(f"{self}: {why}") from None
            if isinstance(error, (trio.BrokenResourceError, OSError)):
                raise Unreachable(f"{self}: {_why(error)}") from None
            raise
        report(f"{self}: encrypted, and the certificate is valid for {host}")
        return tls

    async def _before_tls(self, egress: Egress) -> trio.SocketStream:
        """Return a new stream that is ready for TLS. Raises Unreachable if no connection is possible. Raises
        trio.BrokenResourceError if the server refuses StartTLS."""
        scheme, host, port = split_url(self.url)
        stream = await _connected(host, port, egress, lambda _: None)
        if scheme == "ldap":
            await _start_tls(stream)
        return stream


async def _connected(host: str, port: int, egress: Egress, report: Report) -> trio.SocketStream:
    """Connect to the first address that answers. The remaining time is divided equally among the addresses."""
    try:
        addresses = await egress.resolve(host, port)
    except ProviderError as error:
        raise Unreachable(str(error)) from None
    why = ""
    for left in range(len(addresses), 0, -1):
        address = addresses[-left]
        share = (trio.current_effective_deadline() - trio.current_time()) / left
        with trio.move_on_after(max(share, 0.0)):
            try:
                stream = await egress.sockets.connect(address, port)
            except OSError as error:
                why = no_connection(error, port)
                report(f"{address} port {port}: {why}")
                continue
            report(f"connected to {address} port {port}")
            return stream
        why = "the connection timed out: check the address, and the firewalls between this host and the server"
        report(f"{address} port {port}: {why}")
    raise Unreachable(f"{host} port {port}: {why}")


async def _start_tls(stream: trio.SocketStream) -> None:
    """Request StartTLS. If octets follow the answer, raise an error, because an attacker may have inserted them."""
    await stream.send_all(message(1, start_tls()))
    answer = bytearray()
    while (size := message_size(answer)) is None or len(answer) < size:
        part = await stream.receive_some(_MAX_ANSWER)
        answer += part
        if not part or len(answer) > _MAX_ANSWER:
            raise trio.BrokenResourceError
    at = answer.find(_ENUMERATED)
    if len(answer) != size or _ANSWER not in answer or at < 0 or answer[at + 2 : at + 3] != b"\0":
        raise _NoTls


class _NoTls(trio.BrokenResourceError):
    """The error for a server that does not offer StartTLS."""


def _why(error: BaseException) -> str:
    if isinstance(error, _NoTls):
        return "the server refuses StartTLS: use ldaps://, or enable TLS on the server"
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__
    return (
        "no TLS connection: check that the port is a TLS port"
        if cause is not None
        else "the server closed the connection"
    )
