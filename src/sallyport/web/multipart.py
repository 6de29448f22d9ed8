"""multipart/form-data (RFC 7578) sans-io: octets in, parts out, nothing held. python-multipart parses.

A part is a Begin, pieces of its octets, and an End. A preamble, which RFC 2046 allows and no HTTP client sends, is
refused.
"""

import logging
from dataclasses import dataclass
from typing import Final, TypeAlias

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from sallyport.base.errors import Invalid

MOST_PARTS: Final = 32
LONGEST_BOUNDARY: Final = 70  # RFC 2046 section 5.1.1
_MALFORMED: Final = "the body is not multipart/form-data"

logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it warns of each malformed body; the answer does too


@dataclass(frozen=True, slots=True)
class Begin:
    """The head of a part. file_name: as the client calls it; None for a plain field."""

    name: str
    file_name: str | None


@dataclass(frozen=True, slots=True)
class End:
    """The end of a part."""


Event: TypeAlias = Begin | bytes | End


class FormParser:
    """A parser for one body. complete: the last boundary has come. Invalid: the content type names no boundary.

    python-multipart limits the headers of a part to 8, of 4 KiB.
    """

    def __init__(self, content_type: str) -> None:
        boundary = parse_options_header(content_type)[1].get(b"boundary", b"")
        if not 0 < len(boundary) <= LONGEST_BOUNDARY:
            raise Invalid("the content type names no boundary")
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin_part,
                "on_header_field": self._header_name,
                "on_header_value": self._header_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_headers,
                "on_part_data": lambda data, start, end: self._events.append(data[start:end]),
                "on_part_end": lambda: self._events.append(End()),
                "on_end": self._end,
            },
        )
        self._events: list[Event] = []
        self._parts = 0
        self._name = b""
        self._value = b""
        self._disposition = b""
        self.complete = False

    def feed(self, octets: bytes) -> list[Event]:
        """Return the events of a piece. Raises Invalid."""
        if self.complete:
            return []  # RFC 2046 section 5.1.1: what follows the last boundary is ignored
        try:
            self._parser.write(octets)
        except MultipartParseError:
            raise Invalid(_MALFORMED) from None
        events, self._events = self._events, []
        return events

    def _begin_part(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise Invalid(f"the form has more than {MOST_PARTS} parts")
        self._disposition = b""

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value
        self._name = self._value = b""

    def _end_headers(self) -> None:
        try:
            kind, parameters = parse_options_header(self._disposition)
            named = {key.decode(): value.decode() for key, value in parameters.items()}
        except UnicodeError:
            raise Invalid(_MALFORMED) from None
        if kind != b"form-data" or "name" not in named:
            raise Invalid(_MALFORMED)
        self._events.append(Begin(named["name"], named.get("filename")))

    def _end(self) -> None:
        self.complete = True
