"""Bodies within their limits: of requests, which are read up to a limit, and of large answers.

A client may take 64 KiB in 5 s. 512 clients that take lists of 13 MB so slowly would fill the memory of the machine, so
that the sum of each tenant's large answers is limited.
"""

import math
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sallyport.base.errors import TooMany
from sallyport.web import problem

LARGE: Final = 256 << 10
MOST: Final = 64 << 20
"""Octets of a tenant's large answers that are being sent."""
_HEADERS: Final = "sallyport.headers"
"""The key of a scope under which its headers are."""


async def read(request: Request, *, kind: str, limit: int) -> bytes:
    """The body. kind: its content type, without parameters. WrongContentType, TooLarge: nothing more is read."""
    _check_head(request, kind, limit)
    octets, more = bytearray(), True
    while more:  # not by `pieces`, whose generators cost a short body as much as its parser
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        octets += message.get("body", b"")
        more = message.get("more_body", False)
        if len(octets) > limit:
            raise _too_large(limit)
    return bytes(octets)


async def pieces(request: Request, *, kind: str, limit: int) -> AsyncGenerator[bytes, None]:
    """The body piece by piece, as it comes. WrongContentType, TooLarge: nothing more is read."""
    _check_head(request, kind, limit)
    received = 0
    async with aclosing(request.stream()) as chunks:
        async for chunk in chunks:
            received += len(chunk)
            if received > limit:
                raise _too_large(limit)
            yield chunk


def headers_of(request: Request) -> dict[str, str]:
    """Return the headers of a request, of several with one name the first. Each look-up in Starlette's walks them."""
    headers: dict[str, str] | None = request.scope.get(_HEADERS)
    if headers is None:
        raw = reversed(request.scope["headers"])
        headers = request.scope[_HEADERS] = {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}
    return headers


def declared_size(request: Request) -> float:
    """Return the Content-Length of a request; infinite if the request does not declare it."""
    declared = headers_of(request).get("content-length", "")
    if not declared.isdecimal():
        return math.inf
    return int(declared) if len(declared) <= 18 else math.inf


def _check_head(request: Request, kind: str, limit: int) -> None:
    headers = headers_of(request)
    if headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        raise problem.WrongContentType(f"the content type is {kind}")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise problem.WrongContentType("the body is sent without content encoding")
    if "content-length" in headers and declared_size(request) > limit:
        raise _too_large(limit)


def _too_large(limit: int) -> problem.TooLarge:
    size = f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit >> 10} KiB"
    return problem.TooLarge(f"the body is over {size}")


class Answers:
    """The octets of large answers that are being sent, by tenant."""

    def __init__(self) -> None:
        self.octets = Counter[int]()

    def counted(self, response: Response, tenant_id: int) -> Response:
        """Return a response that is counted while it is sent, or is 429 if its tenant has too many octets by then."""
        return _Counted(response, self.octets, tenant_id) if len(response.body) > LARGE else response


class _Counted(Response):
    """A large response. One alone is always sent."""

    def __init__(self, response: Response, octets: Counter[int], tenant_id: int) -> None:
        super().__init__(response.body, response.status_code)
        self.raw_headers = response.raw_headers
        self._octets = octets
        self._tenant_id = tenant_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        size, waiting = len(self.body), self._octets[self._tenant_id]
        if waiting and waiting + size > MOST:
            refused = TooMany("large answers of this tenant wait to be read: read them, or ask for smaller pages")
            return await problem.response(refused, scope["path"])(scope, receive, send)
        self._octets[self._tenant_id] += size
        try:
            return await super().__call__(scope, receive, send)
        finally:
            self._octets[self._tenant_id] -= size
