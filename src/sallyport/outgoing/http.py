"""The HTTP clients of providers: plain httpx on trio, with a transport that connects only to allowed addresses.

    client = host.http("https://mfa.example.com", headers={...})
    document = json_object(await client.post("/validate/check", data={...}))

A response is complete, has at most MAX_BODY octets, and has a status below 500 that is no redirect. Every other end of
a request is a ProviderError, which the transport raises. It rejects a URL outside the origin of the client's base URL.
Otherwise an answer could make the service send a provider's credentials to another server. A URL that comes from an
answer must be read by `link_of` first, because httpx raises its own error for a text that is no URL.

Each pass of the event loop begins or continues only a few requests.
"""

from __future__ import annotations

import copy
import json as json_text
import logging
import ssl
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpx

from sallyport import __version__
from sallyport.base import trace
from sallyport.outgoing.egress import Egress, LookUp, look_up
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.pool import MAX_BODY, NotConnected, Pool, TooLong, origin_of
from sallyport.outgoing.tls import client_context
from sallyport.settings.values import EGRESS_DEFAULT, EgressRule

USER_AGENT: Final = f"Sallyport/{__version__}"
_MAX_PARTS: Final = 20_000
"""Maximum number of objects and arrays in a JSON answer. Parsing 87,000 of them in 256 KiB took 23 ms."""
_BACK_OFF_S: Final = 5.0  # after an answer with status 429 that states no time

_MAX_LINK_LENGTH: Final = 16_384  # parsing a very long URL takes 60 ms
REPEATABLE: Final = {"is_repeatable": True}
"""The extensions of a request that the server may get twice: a POST that has no effect, or that has an idempotency key.
It is sent again if the server closes an idle connection as the request arrives."""

_FAILURES: Final = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ValueError)

_WORDS: Final = (
    (httpx.TimeoutException, "no answer in time"),
    (httpx.RemoteProtocolError, "the answer is not HTTP, or is incomplete"),
    (httpx.ConnectError, "no connection"),
    (httpx.NetworkError, "the connection broke"),
)

Json = Mapping[str, object]


class HttpFactory:
    """A factory of the HTTP clients of providers.

    egress, look_up: see `Egress`. verify: the TLS context with the trusted authorities; without it, the clients trust
    the system's trust store, which may include an admin's own CA.

    Only the clients of `traced` send the header `traceparent`. Other servers, such as responders that a certificate
    names, public directories and identity providers, could otherwise connect requests that do not concern them.
    """

    def __init__(
        self,
        *,
        egress: Sequence[EgressRule] = (EGRESS_DEFAULT,),
        verify: ssl.SSLContext | None = None,
        look_up: LookUp = look_up,
    ) -> None:
        self.egress = Egress(egress, look_up)
        # The context is made with the first client, because reading the system's trust store takes 20 ms and many
        # processes need no client.
        self._trust = cache(lambda: verify or client_context())
        self._tenants: dict[int, HttpFactory] = {}
        self._is_sampled: bool | None = None
        logging.getLogger("httpx").setLevel(logging.WARNING)  # httpx logs every URL, and URLs contain names of users

    def of(self, tenant_id: int) -> HttpFactory:
        """Return the factory for a tenant. Each tenant has its own limits, so that slow DNS or many answers of one
        tenant cannot delay other tenants."""
        own = self._tenants.get(tenant_id)
        if own is None:
            own = self._tenants[tenant_id] = copy.copy(self)
            own.egress = self.egress.for_tenant()
        return own

    def traced(self, *, is_sampled: bool) -> HttpFactory:
        """Return the factory for servers that learn the trace of the request or login. is_sampled: whether this service
        exports the spans of logins."""
        own = copy.copy(self)
        own._is_sampled = is_sampled
        return own

    def __call__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 10.0,
        most: int = MAX_BODY,
    ) -> httpx.AsyncClient:
        """Return a client for one origin. timeout_s: the default time limit of one exchange. most: the maximum number
        of octets of an answer.

        The client keeps no cookies, follows no redirects and reads no settings from the environment. Close it with
        `aclose`.
        """
        return httpx.AsyncClient(
            base_url=base_url,
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity", **(headers or {})},
            timeout=timeout_s,
            transport=ServerTransport(
                self.egress, self._trust(), httpx.URL(base_url), most, is_sampled=self._is_sampled
            ),
            cookies=CookieJar(DefaultCookiePolicy(netscape=False, rfc2965=False)),
            trust_env=False,
        )


class ServerTransport(Pool):
    """The transport of a client for one server. server: the base URL of the client. most: the maximum number of octets
    of an answer. is_sampled: see `HttpFactory.traced`; None means that requests have no header `traceparent`."""

    def __init__(
        self,
        egress: Egress,
        trust: ssl.SSLContext,
        server: httpx.URL,
        most: int = MAX_BODY,
        *,
        is_sampled: bool | None = None,
    ) -> None:
        super().__init__(egress, trust)
        self._server = server
        self._most = most
        self._is_sampled = is_sampled

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its whole answer. httpx calls this method.

        Raises ProviderError if the exchange fails. The message names the host, but neither the path nor any content. If
        the call is cancelled, the connection is closed.
        """
        host = self._server.host
        if self._is_sampled is not None and (of := trace.current()) is not None:
            request.headers["traceparent"] = of.header(is_sampled=self._is_sampled)
        await self.egress.turns.take()
        try:
            if origin_of(request.url) != origin_of(self._server):
                raise ProviderError(
                    f"{host}: the URL belongs to another server, and the service does not connect to it"
                )
            answer = await self.fetch(request, self._most, is_repeatable=request.extensions.get("is_repeatable"))
        except _FAILURES as error:
            # `from None`, because a traceback would show the request with its headers.
            raise ProviderError(f"{host}: {_why(error)}") from None
        headers = httpx.Headers(answer.headers)
        _check(answer.status, headers, host)  # before httpx sees the body, which it would decompress
        return httpx.Response(answer.status, headers=headers, content=answer.body)


def link_of(client: httpx.AsyncClient, text: str, name: str = "link") -> httpx.URL:
    """Return a URL that a client's server has answered, absolute or relative to the base URL. name: the name of its
    field. Raises ProviderError if it is not a URL of this server."""
    base = client.base_url
    try:
        if len(text) > _MAX_LINK_LENGTH:
            raise ValueError
        link = base.join(text)
        if origin_of(link) == origin_of(base) and not link.userinfo:
            return link
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, ValueError):
        raise ProviderError(f"{base.host}: the {name} in the answer is not a URL") from None
    raise ProviderError(f"{base.host}: the {name} in the answer belongs to another server")


def json_object(response: httpx.Response) -> dict[str, object]:
    """Return the JSON object in an answer. Raises ProviderError if the answer is not a JSON object."""
    document = _json(response)
    if not isinstance(document, dict):
        raise ProviderError(f"the server answered HTTP {response.status_code} without a JSON object")
    return document


def json_array(response: httpx.Response) -> list[object]:
    """Return the JSON array in an answer. Raises ProviderError if the answer is not a JSON array."""
    document = _json(response)
    if not isinstance(document, list):
        raise ProviderError(f"the server answered HTTP {response.status_code} without a JSON array")
    return document


def _json(response: httpx.Response) -> object:
    if response.content.count(b"{") + response.content.count(b"[") > _MAX_PARTS:
        raise ProviderError(f"the server answered with more than {_MAX_PARTS:,} objects and arrays")
    try:
        document: object = json_text.loads(response.content)
    except (ValueError, RecursionError):
        return None
    return document


def member(document: object, *path: str) -> object:
    """Return the value at a path of keys in a JSON document, or None if there is no value."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def text_at(document: object, *path: str) -> str:
    """Return the text at a path of keys in a JSON document, or an empty string if there is no text.

    Characters that UTF-8 cannot encode are replaced.
    """
    found = member(document, *path)
    return found.encode(errors="replace").decode() if isinstance(found, str) else ""


def _check(status: int, headers: httpx.Headers, host: str) -> None:
    if headers.get("Content-Encoding", "identity") != "identity":  # a small compressed answer could become large
        raise ProviderError(
            f"{host}: the server answered with a compressed body, although the request did not allow compression"
        )
    if status == 429:
        after = _retry_after(headers)
        raise ProviderError(f"{host}: rate limit reached (HTTP 429)", retry_after_s=after, limited=True)
    if 300 <= status < 400:
        raise ProviderError(f"{host}: the server answered with a redirect (HTTP {status}), which is not followed")
    if status >= 500:
        after = _retry_after(headers) if "Retry-After" in headers else 0.0
        raise ProviderError(f"{host}: the server answered HTTP {status}", retry_after_s=after)


def _retry_after(headers: httpx.Headers) -> float:
    """Return the number of seconds after which a request may be repeated.

    The headers of an answer contain it in one of two forms. Retry-After has a number or a date (RFC 9110 section
    10.2.3). X-Rate-Limit-Reset has a Unix time.
    """
    retry, reset = headers.get("Retry-After", ""), headers.get("X-Rate-Limit-Reset", "")
    if retry.isdecimal():
        return max(float(retry[:9]), 1.0)
    try:
        # The date is compared with the server's own clock, because the clock of this machine may differ.
        now = parsedate_to_datetime(headers["Date"]).timestamp()
        until = parsedate_to_datetime(retry).timestamp() if retry else float(reset)
    except (KeyError, ValueError, TypeError, OverflowError):
        return _BACK_OFF_S
    return max(until - now, 1.0)


def _why(error: BaseException) -> str:
    """Describe a failure for an admin.

    The text does not repeat the messages of libraries, because they may quote values that were sent.
    """
    if isinstance(error, (TooLong, NotConnected)):
        return str(error)
    if _tls_error(error) is not None:
        return "no TLS connection; check the port, and that the server speaks TLS 1.2 or 1.3"
    return next((words for kind, words in _WORDS if isinstance(error, kind)), "the request failed")


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    """Return the TLS failure among the causes of an error, or None."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return cause
