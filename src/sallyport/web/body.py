"""Reads a request's body of one content type, up to a limit."""

from contextlib import aclosing

from starlette.requests import Request

from sallyport.web.problem import TooLarge, WrongContentType


async def read(request: Request, *, kind: str, limit: int) -> bytes:
    """The body. kind: its content type, without parameters. WrongContentType, TooLarge: nothing more is read."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        raise WrongContentType(f"the content type is {kind}")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise WrongContentType("the body is sent without content encoding")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > limit):
        raise TooLarge(f"the body is over {_size(limit)}")
    octets = bytearray()
    async with aclosing(request.stream()) as chunks:
        async for chunk in chunks:
            octets += chunk
            if len(octets) > limit:
                raise TooLarge(f"the body is over {_size(limit)}")
    return bytes(octets)


def _size(limit: int) -> str:
    return f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit >> 10} KiB"
