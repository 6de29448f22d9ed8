"""The HTTP client of the agents: JSON over one persistent HTTPS connection to the service.

There are two errors:

- `ServiceAway`: the service was not reached or is overloaded, or the answer is not from the service (a captive portal,
  the error page of a proxy, an incomplete answer). The agent tries again later.
- `ServiceRefused`: the service has refused the request with one of its own JSON errors.

The client uses the standard library's http.client, so that an agent starts quickly and stays small.
"""

import http.client
import json
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from sallyport.base.addresses import is_loopback
from sallyport.base.errors import ConfigError, ServiceAway, ServiceRefused
from sallyport.base.secret import Secret

TIMEOUT_S: Final = 30.0
ANSWER_LIMIT: Final = 16 << 20
IDLE_S: Final = 15.0
"""Idle time in seconds after which a connection is not used again. It is shorter than the service's idle timeout."""
_LATER: Final = frozenset({408, 425, 429})
_MAX_TEXT: Final = 300
_CHUNK: Final = 65_536


class ServiceClient:
    """A client of one service. Only one thread at a time may use it.

    url: `https://host[:port][/path]`; `http://` is allowed only for a loopback address. ca_certificate: a PEM file
    whose certificates replace the system's trust store. agent: the value of the User-Agent header. Raises ConfigError
    if the URL has another form, or if the certificate file cannot be read.
    """

    def __init__(
        self,
        url: str,
        *,
        ca_certificate: Path | None = None,
        agent: str = "sallyport-agent",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host, self._port, self._base, secure = _split(url)
        self._tls = _tls(ca_certificate) if secure else None
        self._agent = agent
        self._clock = clock
        self._connection: http.client.HTTPConnection | None = None
        self._used_at = 0.0

    def post(
        self,
        path: str,
        body: Mapping[str, object],
        *,
        key: Secret | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> dict[str, object]:
        """Send a POST request, and return the JSON object of the answer. key: the API key. timeout_s: the time limit of
        the whole request.

        If the connection is closed before the answer arrives, the request is sent a second time. So the service may
        carry out the request twice. Raises ServiceAway, ServiceRefused.
        """
        octets = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        status, kind, answer, after = self._exchange(path, octets, key, timeout_s)
        told = _object(answer) if kind == "application/json" else None
        if told is not None and 200 <= status < 300:
            return told
        text = str(told.get("message", "")) if told is not None else ""
        if told is None or told.get("code") != status or status in _LATER or status >= 500:
            raise ServiceAway(f"{self._host} answers {status}" + (f": {_clean(text)}" if text else ""), after)
        raise ServiceRefused(_clean(text) or f"refused with {status}", status)

    def close(self) -> None:
        """Close the connection. The next request opens a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(OSError):
                connection.close()

    def _exchange(
        self, path: str, octets: bytes, key: Secret | None, timeout_s: float
    ) -> tuple[int, str, bytes, float]:
        """Return (status, content type, body, seconds of Retry-After or 0.0). Raises ServiceAway."""
        deadline = self._clock() + timeout_s
        headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": self._agent}
        if key is not None:
            headers["Authorization"] = f"Bearer {key.reveal().decode()}"
        while True:
            reused = self._connection is not None and self._clock() - self._used_at < IDLE_S
            if not reused:
                self.close()
            try:
                return self._once(path, octets, headers, deadline)
            except (ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected) as error:
                # The service closes unused connections, and may have closed this one just now.
                self.close()
                if not reused:
                    raise ServiceAway(f"{self._host}: the connection was closed") from error
            except (OSError, http.client.HTTPException) as error:
                self.close()
                raise ServiceAway(f"{self._host}: {_reason(error)}") from error
            except BaseException:
                self.close()
                raise

    def _once(
        self, path: str, octets: bytes, headers: Mapping[str, str], deadline: float
    ) -> tuple[int, str, bytes, float]:
        connection = self._connected(deadline)
        connection.request("POST", self._base + path, body=octets, headers=dict(headers))
        self._limit(connection, deadline)
        response = connection.getresponse()
        body = bytearray()
        while chunk := response.read1(_CHUNK):
            body += chunk
            if len(body) > ANSWER_LIMIT:
                raise http.client.HTTPException(f"the answer is longer than {ANSWER_LIMIT} octets")
            self._limit(connection, deadline)
        if response.length:
            raise http.client.HTTPException("the connection was closed before the end of the answer")
        response.close()
        kind = response.getheader("Content-Type", "").partition(";")[0].strip().lower()
        after = response.getheader("Retry-After", "")
        if response.will_close:
            self.close()
        self._used_at = self._clock()
        return response.status, kind, bytes(body), float(after) if after.isdecimal() and len(after) < 7 else 0.0

    def _connected(self, deadline: float) -> http.client.HTTPConnection:
        left = max(0.001, deadline - self._clock())
        if self._connection is None:
            if self._tls is not None:
                self._connection = http.client.HTTPSConnection(self._host, self._port, timeout=left, context=self._tls)
            else:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=left)
            self._connection.connect()
        self._limit(self._connection, deadline)
        return self._connection

    def _limit(self, connection: http.client.HTTPConnection, deadline: float) -> None:
        """Set the socket timeout to the time that is left until the deadline. Raises TimeoutError if no time is
        left."""
        left = deadline - self._clock()
        if left <= 0:
            raise TimeoutError
        if connection.sock is not None:  # the response owns the socket of a connection that closes
            connection.sock.settimeout(left)


def _split(url: str) -> tuple[str, int, str, bool]:
    """Return (host, port, path without a final slash, whether the URL is HTTPS). Raises ConfigError if the URL is
    invalid."""
    wrong = ConfigError("service: not a URL such as https://sallyport.example.org")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise wrong from None
    plain = parts.scheme == "http"
    if not host or not url.isascii() or not url.isprintable() or " " in url or "@" in parts.netloc:
        raise wrong
    if parts.scheme not in ("http", "https") or parts.query or parts.fragment or port == 0:
        raise wrong
    if plain and not is_loopback(host):
        raise ConfigError("service: http:// would send the key unencrypted; use https://")
    return host, port or (80 if plain else 443), parts.path.rstrip("/"), not plain


def _tls(ca_certificate: Path | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=None if ca_certificate is None else str(ca_certificate))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"ca_certificate: {ca_certificate} is not a PEM file of certificates") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _object(octets: bytes) -> dict[str, object] | None:
    try:
        value = json.loads(octets)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _clean(text: str) -> str:
    """Return a text from the service in a form that is safe for a log. The text is shortened, and non-printable
    characters are replaced."""
    return "".join(character if character.isprintable() else "?" for character in text[:_MAX_TEXT])


def _reason(error: Exception) -> str:
    """Return a description of a connection error for an admin."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not trusted: {error.verify_message}"
    if isinstance(error, TimeoutError | socket.timeout):
        return "no answer in time"
    if isinstance(error, ssl.SSLError):
        return f"no TLS connection: {error.reason or 'closed'}"
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return "the answer is not HTTP" if not str(error) else _clean(str(error))
