"""Transports: a file, a stream (TCP, TLS, a Unix socket), datagrams. A failed send raises OSError or ProviderError; the
next attempt opens the transport again."""

import os
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import trio

from sallyport.events.outlets.target import Target
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.errors import ProviderError

PATIENCE_S = 10.0


class Transport(Protocol):
    """A transport that sends messages in order."""

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send all messages. OSError, ProviderError: it is unknown how many were sent."""

    async def close(self) -> None:
        """Close it; raises nothing."""


class Appending:
    """A file of mode 0600, opened for each batch: it may be rotated at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def send(self, messages: Sequence[bytes]) -> None:
        await trio.to_thread.run_sync(self._append, b"".join(messages))

    def _append(self, octets: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(self._path, flags, 0o600), "ab", buffering=0) as file:
            while octets:
                octets = octets[file.write(octets) or 0 :]

    async def close(self) -> None:
        """Nothing is open."""


class Streaming:
    """A stream that is connected when there is something to send."""

    def __init__(self, target: Target, egress: Egress) -> None:
        self._target = target
        self._egress = egress
        self._stream: trio.abc.Stream | None = None

    async def send(self, messages: Sequence[bytes]) -> None:
        try:
            with trio.fail_after(PATIENCE_S):
                if self._stream is not None and _has_ended(self._stream):
                    await self.close()
                if self._stream is None:
                    self._stream = await self._connect()
                await self._stream.send_all(b"".join(messages))
        except (trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError, OSError) as error:
            await self.close()
            raise OSError(str(error.__cause__ or error) or "it does not answer in time") from error
        except ProviderError:
            await self.close()
            raise

    async def _connect(self) -> trio.abc.Stream:
        target = self._target
        if target.path is not None:
            return await trio.open_unix_socket(target.path)
        address = (await self._egress.resolve(target.host, target.port))[0]
        stream = await trio.open_tcp_stream(address, target.port)
        if target.scheme != "syslog+tls":
            return stream
        try:
            context = ssl.create_default_context(cafile=target.ca)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            secure = trio.SSLStream(stream, context, server_hostname=target.host, https_compatible=True)
            await secure.do_handshake()
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return secure

    async def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError, OSError):
                await trio.aclose_forcefully(stream)


class Datagrams:
    """One message in a datagram (RFC 5426); a lost datagram is not sent again."""

    def __init__(self, target: Target, egress: Egress) -> None:
        self._target = target
        self._egress = egress

    async def send(self, messages: Sequence[bytes]) -> None:
        host, port = self._target.host, self._target.port
        address = (await self._egress.resolve(host, port, socket.SOCK_DGRAM))[0]
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with trio.socket.socket(family, socket.SOCK_DGRAM) as sock:
            await sock.connect((address, port))
            for message in messages:
                await sock.send(message)

    async def close(self) -> None:
        """Nothing is open."""


def transport_to(target: Target, egress: Egress) -> Transport:
    """Return the transport for a target."""
    if target.scheme == "file" and target.path is not None:
        return Appending(target.path)
    return Datagrams(target, egress) if target.scheme == "syslog+udp" else Streaming(target, egress)


def _has_ended(stream: trio.abc.Stream) -> bool:
    """Whether the other end has closed a plain stream: data sent into it would be lost without an error."""
    return isinstance(stream, trio.SocketStream) and stream.socket.is_readable()
