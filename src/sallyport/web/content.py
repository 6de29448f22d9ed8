"""Limits for the size of bodies: of each request body, and of all large answers of a tenant together.

A client may read as slowly as 64 KiB in 5 s. Without a limit for each tenant, 512 clients that read lists of 13 MB at
this rate would fill the machine's memory.
"""

import math
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sallyport.base.errors import TooMany, TooManyAtOnce
from sallyport.web import problem

LARGE: Final = 256 << 10
MAX_OCTETS_SENT: Final = 64 << 20
"""Maximum number of octets of a tenant's large answers that are being sent."""
_HEADERS: Final = "sallyport.headers"
"""The key in an ASGI scope under which the headers are stored as a dict."""


async def read(request: Request, *, kind: str, limit: int) -> bytes:
    """Return the body of a request. kind: the required content type, without parameters.

    Raises WrongContentType. Raises TooLarge if the body is larger than `limit`. Then the remaining body is not read.
    """
    _check_head(request, kind, limit)
    octets, more = bytearray(), True
    while more:  # `pieces` is not used, because its generators take as long as the parsing of a short body
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        octets += message.get("body", b"")
        more = message.get("more_body", False)
        if len(octets) > limit:
            raise _too_large(limit)
    return bytes(octets)


async def pieces(request: Request, *, kind: str, limit: int) -> AsyncGenerator[bytes, None]:
    """Yield the parts of a request's body as they arrive. kind: the required content type, without parameters.

    Raises WrongContentType. Raises TooLarge if the body is larger than `limit`. Then the remaining body is not read.
    """
    _check_head(request, kind, limit)
    received = 0
    async with aclosing(request.stream()) as chunks:
        async for chunk in chunks:
            received += len(chunk)
            if received > limit:
                raise _too_large(limit)
            yield chunk


def headers_of(request: Request) -> dict[str, str]:
    """Return the headers of a request as a dict. If several headers have the same name, the first one counts.

    The dict is stored in the ASGI scope, because Starlette searches all headers at each look-up.
    """
    headers: dict[str, str] | None = request.scope.get(_HEADERS)
    if headers is None:
        raw = reversed(request.scope["headers"])
        headers = request.scope[_HEADERS] = {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}
    return headers


def declared_size(request: Request) -> float:
    """Return the Content-Length of a request, or infinity if the request does not declare it."""
    declared = headers_of(request).get("content-length", "")
    if not declared.isdecimal():
        return math.inf
    return int(declared) if len(declared) <= 18 else math.inf


def _check_head(request: Request, kind: str, limit: int) -> None:
    headers = headers_of(request)
    if headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        raise problem.WrongContentType(f"send the content type {kind}")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise problem.WrongContentType("send the body without content encoding")
    if "content-length" in headers and declared_size(request) > limit:
        raise _too_large(limit)


def _too_large(limit: int) -> problem.TooLarge:
    size = f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit >> 10} KiB"
    return problem.TooLarge(f"the body is larger than {size}")


class LargeAnswers:
    """The large answers that are being sent, counted in octets for each tenant."""

    def __init__(self) -> None:
        self.octets = Counter[int]()

    @contextmanager
    def reserved(self, tenant_id: int, octets: int) -> Iterator[None]:
        """Count octets of a tenant during the block. Raises TooMany if the tenant would exceed its limit. A tenant
        without other large answers is always admitted."""
        waiting = self.octets[tenant_id]
        if waiting and waiting + octets > MAX_OCTETS_SENT:
            raise TooManyAtOnce(
                "other large answers to this tenant are not read yet: read them first, or request smaller pages"
            )
        self.octets[tenant_id] += octets
        try:
            yield
        finally:
            self.octets[tenant_id] -= octets

    def counted(self, response: Response, tenant_id: int) -> Response:
        """Return a response that counts for a limit of its tenant. The octets of the response count while it is sent.

        If the tenant would exceed its limit when the response starts, status 429 is sent instead.
        """
        return _Counted(response, self, tenant_id) if len(response.body) > LARGE else response


class _Counted(Response):
    """A large response. It is always sent if the tenant has no other large response in progress."""

    def __init__(self, response: Response, answers: LargeAnswers, tenant_id: int) -> None:
        super().__init__(response.body, response.status_code)
        self.raw_headers = response.raw_headers
        self._answers = answers
        self._tenant_id = tenant_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with self._answers.reserved(self._tenant_id, len(self.body)):
                await super().__call__(scope, receive, send)
        except TooMany as error:
            await problem.response(error, scope["path"])(scope, receive, send)
