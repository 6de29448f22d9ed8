"""Reads a request's body of one content type, up to a limit."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import ClientDisconnect, Request

from sallyport.web.problem import TooLarge, WrongContentType


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


def _check_head(request: Request, kind: str, limit: int) -> None:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        raise WrongContentType(f"the content type is {kind}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise WrongContentType("the body is sent without content encoding")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > limit):
        raise TooLarge(f"the body is over {_size(limit)}")


def _size(limit: int) -> str:
    return f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit >> 10} KiB"
