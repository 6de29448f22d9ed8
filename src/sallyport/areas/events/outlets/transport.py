"""The targets of events in settings, and their transports.

    file:///var/log/sallyport/logins.jsonl    lines of JSON, appended to a file
    unix:///run/siem.sock, tcp://siem:5170    lines of JSON over a stream
    syslog+udp://siem:514                     RFC 5424 in datagrams (RFC 5426)
    syslog+tcp://siem:601                     RFC 5424 with octet counting (RFC 6587 section 3.4.1)
    syslog+tls://siem:6514?ca=/etc/ssl/siem.pem   RFC 5424 over TLS (RFC 5425); without `ca` the system's authorities

With `?format=json`, a syslog message has the JSON object as its text, and no structured data.

Transports are a file, a stream (TCP, TLS, a Unix socket) and datagrams. A failed send raises OSError or ProviderError.
The next send then opens the transport again.
"""

import os
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import parse_qsl, urlsplit

import trio

from sallyport.base.errors import ConfigError
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.errors import ProviderError
from sallyport.settings.settings import Settings

PATIENCE_S = 10.0
FILES: Final = frozenset({"file", "unix"})
PORTS: Final = {"tcp": 0, "syslog+udp": 514, "syslog+tcp": 601, "syslog+tls": 6514}


@dataclass(frozen=True, slots=True)
class Target:
    """A target of events.

    scheme: the scheme of the URL; the docstring of this module lists the schemes. path: the path of a file or a socket.
    ca: the file with the authorities that are trusted for TLS. is_json: whether a syslog message has the JSON object as
    its text.
    """

    url: str
    scheme: str
    host: str = ""
    port: int = 0
    path: Path | None = None
    ca: Path | None = None
    is_json: bool = False

    @property
    def is_syslog(self) -> bool:
        """Whether the target receives syslog messages instead of lines of JSON."""
        return self.scheme.startswith("syslog")

    @property
    def is_counted(self) -> bool:
        """Whether the length of each message is sent in front of the message."""
        return self.scheme in {"syslog+tcp", "syslog+tls"}


def parse_target(text: str) -> Target:
    """Return the target of a setting. Raises ValueError if the text is malformed. The error message does not contain
    the text."""
    parts = urlsplit(text.strip())
    if parts.scheme in FILES:
        if parts.netloc or not parts.path.startswith("/"):
            raise ValueError("file:// and unix:// require an absolute path")
        return Target(text.strip(), parts.scheme, path=Path(parts.path))
    if parts.scheme not in PORTS:
        raise ValueError(f"an outlet must begin with one of {', '.join(sorted(FILES | PORTS.keys()))}")
    if not parts.hostname or parts.username or parts.path not in ("", "/"):
        raise ValueError("an outlet must have a host, and neither a user nor a path")
    port = parts.port or PORTS[parts.scheme]
    if not port:
        raise ValueError("tcp:// requires a port")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if not options.keys() <= {"ca", "format"}:
        raise ValueError("the parameters of an outlet are ca and format")
    ca, form = options.get("ca"), options.get("format", "fields")
    if ca and parts.scheme != "syslog+tls":
        raise ValueError("ca is allowed only with syslog+tls")
    if form not in ("fields", "json") or ("format" in options and not parts.scheme.startswith("syslog")):
        raise ValueError("format is fields or json, and is allowed only with syslog; tcp:// always sends JSON")
    is_json = form == "json"
    return Target(text.strip(), parts.scheme, parts.hostname, port, ca=Path(ca) if ca else None, is_json=is_json)


def targets_of(settings: Settings) -> tuple[Target, ...]:
    """Return the targets of all outlets in the settings. Raises ConfigError if a target is malformed."""
    try:
        return tuple(dict.fromkeys(map(parse_target, settings.event_outlets)))
    except ValueError as error:
        raise ConfigError(f"setting event_outlets: {error}") from None


class Transport(Protocol):
    """A transport of messages to a target. It keeps the order of the messages."""

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send all messages. After an OSError or ProviderError, an unknown number of the messages has been sent."""

    async def close(self) -> None:
        """Close the transport. Raises no errors."""


class Appending:
    """A transport that appends to a file of mode 0600. The file is opened for each batch, so that it may be rotated at
    any time."""

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
        """Do nothing, because no file stays open."""


class Streaming:
    """A transport over a stream. The stream is connected when there are messages to send."""

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
            raise OSError(str(error.__cause__ or error) or "the target does not answer in time") from error
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
    """A transport of one message in each datagram (RFC 5426). A lost datagram is not sent again."""

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
        """Do nothing, because no socket stays open."""


def transport_to(target: Target, egress: Egress) -> Transport:
    if target.scheme == "file" and target.path is not None:
        return Appending(target.path)
    return Datagrams(target, egress) if target.scheme == "syslog+udp" else Streaming(target, egress)


def _has_ended(stream: trio.abc.Stream) -> bool:
    """Return whether the peer has closed a stream without TLS. If so, data sent to the peer would be lost, and no error
    would be raised."""
    return isinstance(stream, trio.SocketStream) and stream.socket.is_readable()
