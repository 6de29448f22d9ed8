"""Reads a request's body of one content type, up to a limit."""

import math
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import ClientDisconnect, Request

from sallyport.web.problem import TooLarge, WrongContentType

_HEADERS = "sallyport.headers"
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
            raise TooLarge(f"the body is over {_size(limit)}")
    return bytes(octets)


async def pieces(request: Request, *, kind: str, limit: int) -> AsyncGenerator[bytes, None]:
    """The body piece by piece, as it comes. WrongContentType, TooLarge: nothing more is read."""
    _check_head(request, kind, limit)
    received = 0
    async with aclosing(request.stream()) as chunks:
        async for chunk in chunks:
            received += len(chunk)
            if received > limit:
                raise TooLarge(f"the body is over {_size(limit)}")
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
        raise WrongContentType(f"the content type is {kind}")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise WrongContentType("the body is sent without content encoding")
    if "content-length" in headers and declared_size(request) > limit:
        raise TooLarge(f"the body is over {_size(limit)}")


def _size(limit: int) -> str:
    return f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit >> 10} KiB"
