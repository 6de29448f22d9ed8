"""multipart/form-data (RFC 7578, in the form of RFC 2046 section 5.1.1) sans-io: octets in, parts out, none held.

A part is a Begin, pieces of its octets, and an End. What precedes the first boundary and follows the last is ignored.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sallyport.base.errors import Invalid

LONGEST_HEAD: Final = 8192
MOST_PARTS: Final = 32
_PARAMETER: Final = re.compile(r';\s*([A-Za-z*]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]*))')
_ESCAPED: Final = re.compile(r"\\(.)")
_DISPOSITION: Final = re.compile(r"content-disposition:\s*form-data(?=\s*(;|$))(.*)", re.IGNORECASE | re.DOTALL)
_MALFORMED: Final = "the body is no multipart/form-data"


@dataclass(frozen=True, slots=True)
class Begin:
    """A part begins. file_name: as the client calls it; None for a plain field."""

    name: str
    file_name: str | None


@dataclass(frozen=True, slots=True)
class End:
    """A part has ended."""


Event = Begin | bytes | End


def boundary_of(content_type: str) -> bytes:
    """The boundary that a content type names. Invalid: none, or none that RFC 2046 allows."""
    found = dict(_parameters(f";{content_type.partition(';')[2]}")).get("boundary", "")
    if not re.fullmatch(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]", found):
        raise Invalid("the content type names no boundary")
    return found.encode("ascii")


class MultipartParser:
    """Takes a body piece by piece. `complete`: the last boundary was there."""

    def __init__(self, boundary: bytes) -> None:
        self._delimiter = b"\r\n--" + boundary
        self._pending = bytearray(b"\r\n")  # the first boundary may be the first octets
        self._in_part = False
        self._in_head = False
        self._parts = 0
        self.complete = False

    def feed(self, octets: bytes) -> Iterator[Event]:
        """What this piece tells. Invalid: it is none of a form."""
        if self.complete:
            return
        self._pending += octets
        while True:
            if self._in_head:
                if (end := self._pending.find(b"\r\n\r\n")) < 0:
                    break
                yield self._begin(bytes(self._pending[:end]))
                del self._pending[: end + 4]
            elif (at := self._pending.find(self._delimiter)) >= 0:
                behind = at + len(self._delimiter)
                if len(self._pending) < behind + 2:
                    break
                yield from self._end(at, bytes(self._pending[behind : behind + 2]))
                if self.complete:
                    return
            else:
                yield from self._data(len(self._pending) - len(self._delimiter) + 1)
                return
        if self._in_head and len(self._pending) > LONGEST_HEAD:
            raise Invalid(_MALFORMED)

    def _data(self, length: int) -> Iterator[bytes]:
        """So many octets that are certainly no part of a boundary."""
        if length > 0:
            if self._in_part:
                yield bytes(self._pending[:length])
            del self._pending[:length]

    def _end(self, at: int, mark: bytes) -> Iterator[Event]:
        """A boundary, which ends the part before it. mark: the two octets behind it."""
        if self._in_part:
            if at:
                yield bytes(self._pending[:at])
            yield End()
        self._in_part = False
        if mark == b"--":
            self.complete = True
        elif mark == b"\r\n":
            self._in_head = True
            del self._pending[: at + len(self._delimiter)]  # its end begins an empty head's
        else:
            raise Invalid(_MALFORMED)

    def _begin(self, head: bytes) -> Begin:
        self._parts += 1
        if self._parts > MOST_PARTS or len(head) > LONGEST_HEAD:
            raise Invalid(_MALFORMED)
        try:
            lines = head.decode().strip("\r\n").split("\r\n")
        except UnicodeDecodeError:
            raise Invalid(_MALFORMED) from None
        found = next((match for line in lines if (match := _DISPOSITION.match(line))), None)
        parameters = dict(_parameters(found[2])) if found is not None else {}
        if "name" not in parameters:
            raise Invalid(_MALFORMED)
        self._in_part, self._in_head = True, False
        return Begin(parameters["name"], parameters.get("filename"))


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    for name, quoted, plain in _PARAMETER.findall(text):
        yield name.lower(), _ESCAPED.sub(r"\1", quoted) if quoted else plain
