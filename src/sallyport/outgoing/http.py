"""How providers reach the network: httpx on trio, only to addresses that may be connected to.

    client = host.http("https://mfa.example.com", headers={...})
    document = json_object(await exchange(client, "POST", "/validate/check", data={...}))

`exchange` is the one place where the failures of HTTP become ProviderError: what it returns is an answer below 500
that is no redirect, complete, and not larger than MAX_BODY. It refuses to leave the origin of the client's base URL,
so an answer cannot make the service show a provider's credentials to somebody else.

Below httpx lies httpcore with a network backend of our own: it resolves a name, drops the addresses that `egress`
forbids, and connects to one that is left; SNI and the certificate's check keep the name. Requests begin, and go on with
what has come for them, a few in each turn of the event loop.
"""

from __future__ import annotations

import json as json_text
import logging
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from email.utils import parsedate_to_datetime
from functools import cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy
from importlib.metadata import version
from typing import Final

import httpcore
import httpx
import trio

from sallyport.base.config import Network
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.turns import Turns

MAX_BODY: Final = 256 * 1024
USER_AGENT: Final = f"Sallyport/{version('sallyport')}"
_KEEPALIVE_S: Final = 30.0
# httpcore looks at all connections of a pool for each request; with a thousand long polls that is felt. So many
# small pools: the first with room is taken, which keeps connections in use while there is little to do.
_POOL_SIZE: Final = 8
_POOLS: Final = 256
_AT_ONCE: Final = 4  # requests and answers in a turn of the event loop: each takes up to a millisecond
_BACK_OFF_S: Final = 5.0  # after a 429 that does not say how long

_CORE_ERRORS: Final = (
    httpcore.ConnectionNotAvailable,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
)
_FAILURES: Final = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, *_CORE_ERRORS, OSError, ValueError)
_TIMEOUTS: Final = (httpx.TimeoutException, httpcore.TimeoutException, trio.TooSlowError)

Json = Mapping[str, object]


class HttpFactory:
    """Makes the HTTP clients of providers.

    egress: the networks that may be connected to; None for all but link-local. verify: whom to trust; without it the
    system's trust store, so that an admin's own CA counts.
    """

    def __init__(self, *, egress: Sequence[Network] | None, verify: ssl.SSLContext | None = None) -> None:
        self.egress = Egress(egress)
        self._given = verify
        self._turns = Turns(_AT_ONCE)
        # They log every URL at INFO and headers at DEBUG; both hold names of users, and headers hold secrets.
        for name in ("httpx", "httpcore"):
            logging.getLogger(name).setLevel(logging.WARNING)

    @cached_property
    def trust(self) -> ssl.SSLContext:
        """Made with the first client: the system's trust store takes 20 ms to read, and many never ask anybody."""
        return self._given or ssl.create_default_context()

    def __call__(self, base_url: str, *, headers: Mapping[str, str] | None = None, timeout_s: float = 10.0) -> Client:
        """A client for one origin, for `exchange`. timeout_s: for one exchange, unless it says otherwise.

        It keeps no cookies, follows no redirects and takes nothing from the environment. Close it with `aclose`.
        """
        return Client(
            self._turns,
            base_url=base_url,
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **(headers or {})},
            timeout=timeout_s,
            transport=_Transport(self.egress, self.trust, self._turns),
        )


class Client(httpx.AsyncClient):
    """A client for one origin. turns: in which all requests begin."""

    def __init__(
        self, turns: Turns, *, base_url: str, headers: Mapping[str, str], timeout: float, transport: _Transport
    ) -> None:
        super().__init__(
            base_url=base_url,
            headers=headers,
            timeout=timeout,
            transport=transport,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            trust_env=False,
        )
        self.turns = turns


async def exchange(
    client: Client,
    method: str,
    url: str,
    *,
    params: Mapping[str, str] | None = None,
    data: Mapping[str, str] | None = None,
    json: Json | None = None,
    content: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
    most: int = MAX_BODY,
) -> httpx.Response:
    """One request and its whole answer, a status below 500 other than 3xx and 429, of at most `most` octets.

    url: a path under the client's base URL, or an absolute URL of its origin. data: a form. timeout_s: from the first
    octet to the last; without it the client's. ProviderError for everything else; its message names the host and
    neither path nor content. Cancelling drops the connection.
    """
    host = client.base_url.host
    limit = timeout_s if timeout_s is not None else client.timeout.read
    timeout = httpx.Timeout(limit)
    await client.turns.take()
    try:
        request = client.build_request(
            method, url, params=params, data=data, json=json, content=content, headers=headers, timeout=timeout
        )
        if _origin(request.url) != _origin(client.base_url):
            raise ProviderError(f"{host}: an address at another server was given, which is not asked")
        with trio.fail_after(limit if limit is not None else float("inf")):
            response = await client.send(request, stream=True)
            try:
                body = await _read(response, host, most)
            finally:
                await response.aclose()
                # It holds the response in turn, and with it everything below: work for the garbage collector, which
                # would stop all logins for it.
                response.stream = httpx.ByteStream(b"")
    except (*_FAILURES, trio.TooSlowError) as error:
        # `from None`: a trace would show the request with its headers.
        raise ProviderError(f"{host}: {_why(error)}") from None
    _check_status(response, host)
    return httpx.Response(response.status_code, headers=response.headers, content=body)


def json_object(response: httpx.Response) -> dict[str, object]:
    """The answer's JSON object. ProviderError where it is none."""
    document = _json(response)
    if not isinstance(document, dict):
        raise ProviderError(f"answered HTTP {response.status_code} without a JSON object")
    return document


def json_array(response: httpx.Response) -> list[object]:
    """The answer's JSON array. ProviderError where it is none."""
    document = _json(response)
    if not isinstance(document, list):
        raise ProviderError(f"answered HTTP {response.status_code} without a JSON array")
    return document


def _json(response: httpx.Response) -> object:
    try:
        document: object = json_text.loads(response.content)
    except (ValueError, RecursionError):
        return None
    return document


def member(document: object, *path: str) -> object:
    """What lies at a path of keys in a JSON document; None where there is nothing."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def text_at(document: object, *path: str) -> str:
    """The text at a path of keys in a JSON document; empty where there is none. It can always be encoded."""
    found = member(document, *path)
    return found.encode(errors="replace").decode() if isinstance(found, str) else ""


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


async def _read(response: httpx.Response, host: str, most: int) -> bytes:
    """The body as it comes: it was asked for without compression, so that a small answer cannot grow."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise ProviderError(f"{host}: answered compressed, which was not asked for")
    body = bytearray()
    try:
        async for part in response.aiter_raw():
            body += part
            if len(body) > most:
                # The next read fails then, which ends the generators below in order; leaving the loop would not.
                with trio.CancelScope(shield=True):
                    await response.aclose()
    except _FAILURES:
        if len(body) <= most:
            raise
    if len(body) > most:
        raise ProviderError(f"{host}: answered more than {most // 1024} KiB")
    return bytes(body)


def _check_status(response: httpx.Response, host: str) -> None:
    status = response.status_code
    if status == 429:
        raise ProviderError(f"{host}: asks to be left alone (HTTP 429)", retry_after_s=_retry_after(response.headers))
    if 300 <= status < 400:
        raise ProviderError(f"{host}: answered with a redirect (HTTP {status}), which is not followed")
    if status >= 500:
        after = _retry_after(response.headers) if "Retry-After" in response.headers else 0.0
        raise ProviderError(f"{host}: answered HTTP {status}", retry_after_s=after)


def _retry_after(headers: httpx.Headers) -> float:
    """Seconds to wait: Retry-After as a number or a date (RFC 9110 section 10.2.3), or X-Rate-Limit-Reset."""
    retry, reset = headers.get("Retry-After", ""), headers.get("X-Rate-Limit-Reset", "")
    if retry.isdecimal():
        return max(float(retry[:9]), 1.0)
    try:
        # The server's own clock, since ours may differ.
        now = parsedate_to_datetime(headers["Date"]).timestamp()
        until = parsedate_to_datetime(retry).timestamp() if retry else float(reset)
    except (KeyError, ValueError, TypeError, OverflowError):
        return _BACK_OFF_S
    return max(until - now, 1.0)


def _why(error: BaseException) -> str:
    """What happened, in words for an admin; texts of others may quote what was sent, so they are not repeated."""
    if isinstance(error, _TIMEOUTS):
        return "no answer in time"
    if isinstance(error, (httpx.InvalidURL, ValueError, httpx.UnsupportedProtocol)):
        return "the request cannot be made"
    tls = _tls_error(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {tls.verify_message}"
    if tls is not None:
        return "no TLS connection"
    if isinstance(error, (httpcore.ProtocolError, httpx.ProtocolError)):
        return "what it answers is not HTTP, or the answer broke off"
    return "no connection" if isinstance(error, (httpcore.ConnectError, httpx.ConnectError)) else "the connection broke"


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    """The TLS failure that lies under an error."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return cause


class _Backend(httpcore.AsyncNetworkBackend):
    """TCP to addresses that the egress setting allows."""

    def __init__(self, egress: Egress, turns: Turns) -> None:
        self._egress = egress
        self._turns = turns
        self._inner = httpcore.TrioBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Resolve, check, connect to each checked address until one answers; each gets its share of the time."""
        deadline = trio.current_time() + (timeout if timeout is not None else float("inf"))
        with trio.move_on_at(deadline) as scope:
            addresses = await self._egress.resolve(host, port)
        if scope.cancelled_caught:
            raise httpcore.ConnectTimeout
        for left in range(len(addresses), 0, -1):
            share = (deadline - trio.current_time()) / left
            try:
                stream = await self._inner.connect_tcp(
                    addresses[-left], port, max(share, 0.0), local_address, socket_options
                )
                return _Stream(stream, self._turns)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if left == 1:
                    raise
        raise AssertionError("resolve gives one address or more")

    async def sleep(self, seconds: float) -> None:
        """For httpcore's retries."""
        await self._inner.sleep(seconds)


class _Stream(httpcore.AsyncNetworkStream):
    """A connection; what has come is given out in turns."""

    def __init__(self, inner: httpcore.AsyncNetworkStream, turns: Turns) -> None:
        self._inner = inner
        self._turns = turns

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        octets = await self._inner.read(max_bytes, timeout)
        await self._turns.take()
        return octets

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return _Stream(await self._inner.start_tls(ssl_context, server_hostname, timeout), self._turns)

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)


class _Pool:
    """One of httpcore's pools and how many answers are being waited for or read."""

    def __init__(self, backend: _Backend, verify: ssl.SSLContext) -> None:
        self.busy = 0
        self.core = httpcore.AsyncConnectionPool(
            ssl_context=verify,
            max_connections=_POOL_SIZE,
            max_keepalive_connections=_POOL_SIZE,
            keepalive_expiry=_KEEPALIVE_S,
            network_backend=backend,
        )


class _Transport(httpx.AsyncBaseTransport):
    """httpx over pools with the backend above. Errors stay httpcore's: `exchange` knows them."""

    def __init__(self, egress: Egress, verify: ssl.SSLContext, turns: Turns) -> None:
        self._backend = _Backend(egress, turns)
        self._verify = verify
        self._pools: list[_Pool] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send it over a kept connection, or a new one."""
        assert isinstance(request.stream, httpx.AsyncByteStream)  # noqa: S101  an AsyncClient makes no other
        url = request.url
        pool = self._with_room()
        pool.busy += 1
        try:
            answer = await pool.core.handle_async_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        except BaseException:
            pool.busy -= 1
            raise
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer, pool))

    def _with_room(self) -> _Pool:
        for pool in self._pools:
            if pool.busy < _POOL_SIZE:
                return pool
        if len(self._pools) == _POOLS:  # the request waits there for a connection
            return min(self._pools, key=lambda pool: pool.busy)
        self._pools.append(_Pool(self._backend, self._verify))
        return self._pools[-1]

    async def aclose(self) -> None:
        """Close all connections."""
        for pool in self._pools:
            await pool.core.aclose()


class _Body(httpx.AsyncByteStream):
    """An answer's body; the pool has room again when it is closed."""

    def __init__(self, answer: httpcore.Response, pool: _Pool) -> None:
        self._answer = answer
        self._pool: _Pool | None = pool

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._answer.aiter_stream():
            yield part

    async def aclose(self) -> None:
        """Give the connection back, or drop it where the body was not read to its end."""
        if self._pool is not None:
            self._pool.busy -= 1
            self._pool = None
        await self._answer.aclose()
