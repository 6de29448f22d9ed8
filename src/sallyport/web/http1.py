"""HTTP/1.1 on the server side (RFC 9112), sans-io: a `Parser` for requests and a `ResponseFraming` for each
response.

h11 parses heads and chunks. But h11 accepts heads that a server behind a proxy must not accept. So the parser checks a
head first: lines must end with CRLF, no line may be folded, and the head must not be too long.

h11 takes 60 us for a head. A head in the most common form is read by one regular expression in 10 us instead. The body
of a request with Content-Length needs no parsing. A chunked request is the last request of its connection. Otherwise
another parser could read the octets after it as the next request.

This module writes answers without h11. The framing of an answer depends only on the version of the request, and on
whether the application sets Content-Length.
"""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Final, TypeAlias

import h11

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]

_END_OF_HEAD: Final = b"\r\n\r\n"
_BARE_LINE_FEED: Final = re.compile(rb"(?<!\r)\n")
_BARE_RETURN_OR_FOLD: Final = re.compile(rb"\r(?!\n)|\n[ \t]")
_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_COMMON_HEAD: Final = re.compile(rb"([A-Z]+) (/[!-~]*) HTTP/1\.1\r\n((?:%b:[ -~]*\r\n)+)\r\n" % _TOKEN)
_UNCOMMON: Final = frozenset({b"expect", b"transfer-encoding", b"upgrade"})
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")
_CHUNKS_AT_ONCE: Final = 64
"""Maximum number of chunks that one call parses, because h11 takes 10 us for each."""


class Malformed(Exception):
    """The received octets are not an acceptable HTTP/1 request. status: the HTTP status of the error answer."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class BrokenAnswer(Exception):
    """The application sent more or fewer octets than it declared, or a header with a line break."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a request.

    target: path and query, in ASCII. headers: pairs of a name in lower case and a value. content_length: the length of
    the body, or 0 if the request has no Content-Length.
    """

    method: str
    target: bytes
    version: bytes
    headers: list[tuple[bytes, bytes]]
    content_length: int = 0
    keeps_alive: bool = True
    expects_continue: bool = False


def common_head(octets: bytes) -> Head | None:
    """Return a head in the most common form, including the empty line at its end. Return None if h11 must read the
    head.

    The most common form has HTTP/1.1, a path, one Host, no duplicate header, and no header that needs special handling,
    such as Transfer-Encoding.
    """
    match = _COMMON_HEAD.fullmatch(octets)
    if match is None:
        return None
    method, target, fields = match.groups()
    lines = [line.partition(b":") for line in fields.split(b"\r\n")[:-1]]
    headers = [(name.lower(), value.strip(b" ")) for name, _, value in lines]
    found = dict(headers)
    length = found.get(b"content-length", b"0")
    if (
        len(found) < len(headers)
        or b"host" not in found
        or not _LENGTH.fullmatch(length)
        or found.get(b"connection", b"keep-alive").lower() != b"keep-alive"
        or not _UNCOMMON.isdisjoint(found)
    ):
        return None
    return Head(method.decode("ascii"), target, b"1.1", headers, int(length))


class Parser:
    """A parser for the requests of one connection.

    The caller passes received octets to `feed`, and then asks for the head and for parts of the body. head_octets: the
    maximum length of a head.
    """

    def __init__(self, head_octets: int) -> None:
        self._head_octets = head_octets
        self._held = bytearray()
        self._searched = 0  # the number of octets of an incomplete head that were searched already
        self._chunks: h11.Connection | None = None
        self._remaining = 0
        self.body_due = False
        """Whether the body of the current request has octets that `take_body` has not returned yet."""

    @property
    def in_chunks(self) -> bool:
        """Whether the body of the current request is chunked."""
        return self._chunks is not None

    @property
    def held(self) -> int:
        """The number of octets that were fed to the parser and are not parsed yet."""
        return len(self._held)

    def feed(self, octets: bytes) -> None:
        """Add received octets."""
        self._held += octets

    def head(self) -> Head | None:
        """Return the head of the next request, or None if the head is not complete yet. Raises Malformed."""
        end = self._held.find(_END_OF_HEAD, max(self._searched - len(_END_OF_HEAD), 0))
        size = len(self._held) if end < 0 else end + len(_END_OF_HEAD)
        if size > self._head_octets:
            raise Malformed("the head of the request is too long", 431)
        if _BARE_LINE_FEED.search(self._held, self._searched, size):
            raise Malformed("a line ends without a carriage return")
        self._searched = size if end < 0 else 0
        if end < 0:
            return None
        octets = bytes(self._held[:size])
        del self._held[:size]
        head = common_head(octets)
        if head is not None:
            self._remaining = head.content_length
            self.body_due = self._remaining > 0
            return head
        if _BARE_RETURN_OR_FOLD.search(octets):
            raise Malformed("a line is folded or has a bare carriage return")
        return self._begin(octets)

    def _begin(self, octets: bytes) -> Head:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=self._head_octets)
        try:
            connection.receive_data(octets)
            request = connection.next_event()
        except (h11.RemoteProtocolError, ValueError) as error:
            raise Malformed("the head of the request is malformed", getattr(error, "error_status_hint", 400)) from None
        assert isinstance(request, h11.Request)  # noqa: S101  the head is complete
        if not request.http_version.startswith(b"1."):
            raise Malformed("the request is not HTTP/1", 505)
        headers = list(request.headers)
        found = dict(headers)
        if b"transfer-encoding" in found:
            if b"content-length" in found or request.http_version == b"1.0":
                raise Malformed("the length of the body is ambiguous (RFC 9112 section 6.3)")
            self._chunks = connection
        self._remaining = int(found.get(b"content-length", 0))
        self.body_due = self._chunks is not None or self._remaining > 0
        return Head(
            method=request.method.decode("ascii").upper(),
            target=_origin_form(request.target),
            version=request.http_version,
            headers=headers,
            content_length=self._remaining,
            keeps_alive=self._chunks is None and not _closes(request.http_version, headers),
            expects_continue=connection.they_are_waiting_for_100_continue,
        )

    def take_body(self) -> bytes:
        """Return octets of the body that were fed. The result is empty if the parser needs more octets. Raises
        Malformed."""
        if self._chunks is not None:
            return self._take_chunks(self._chunks)
        piece = bytes(self._held[: self._remaining])
        del self._held[: len(piece)]
        self._remaining -= len(piece)
        self.body_due = self._remaining > 0
        return piece

    def _take_chunks(self, connection: h11.Connection) -> bytes:
        taken = bytearray()
        try:
            if self._held:
                connection.receive_data(bytes(self._held))
                self._held.clear()
            for _ in range(_CHUNKS_AT_ONCE):
                event = connection.next_event()
                if isinstance(event, h11.Data):
                    taken += event.data
                elif isinstance(event, h11.EndOfMessage):
                    self.body_due = False
                    break
                else:
                    break
        except h11.RemoteProtocolError:
            raise Malformed("the chunks of the body are malformed") from None
        return bytes(taken)


class ResponseFraming:
    """The framing of one response.

    head: the head of the request. closes: whether the connection ends after this answer.
    """

    def __init__(self, head: Head, *, closes: bool = False) -> None:
        self._head = head
        self._chunked = False
        self._without_body = False
        self._remaining: int | None = None
        self.closes = closes or not head.keeps_alive
        self.begun = False
        self.complete = False

    def begin(self, status: int, headers: Headers) -> bytes:
        """Return the head of the response in octets. Raises BrokenAnswer if a header contains a line break."""
        lines = [b"HTTP/1.1 %d %s" % (status, _phrase(status))]
        for name, value in headers:
            if name.lower() == b"content-length":
                self._remaining = int(value)
            lines.append(name + b": " + value)
        self._without_body = self._head.method == "HEAD" or status in (204, 304)
        if self._remaining is None and not self._without_body:
            self._chunked = self._head.version == b"1.1"
            if self._chunked:
                lines.append(b"transfer-encoding: chunked")
            else:
                self.closes = True
        lines.append(_date(int(time.time())))
        if self.closes:
            lines.append(b"connection: close")
        octets = b"\r\n".join(lines)
        if not octets.count(b"\r") == octets.count(b"\n") == len(lines) - 1:
            raise BrokenAnswer("a header has a line break")
        self.begun = True
        return octets + _END_OF_HEAD

    def piece(self, octets: bytes, *, more: bool) -> bytes:
        """Return a part of the body with its framing. Raises BrokenAnswer if the body does not have the declared
        length.

        more: whether another part follows.
        """
        self.complete = not more
        if self._without_body:
            return b""
        if self._chunked:
            chunk = b"%x\r\n%s\r\n" % (len(octets), octets) if octets else b""
            return chunk if more else chunk + b"0\r\n\r\n"
        if self._remaining is not None:
            self._remaining -= len(octets)
            if self._remaining < 0 or (self._remaining and not more):
                raise BrokenAnswer("the body is not as long as its Content-Length")
        return octets


def _closes(version: bytes, headers: Headers) -> bool:
    """Return whether the connection ends after this request (RFC 9112 section 9.3). HTTP/1.0 connections always end."""
    options = {
        option.strip().lower() for name, value in headers if name == b"connection" for option in value.split(b",")
    }
    return version == b"1.0" or b"close" in options


def _origin_form(target: bytes) -> bytes:
    """Return the path of a target in absolute form (RFC 9112 section 3.2.2). Return any other target unchanged."""
    scheme, mark, rest = target.partition(b"://")
    if not mark or scheme.lower() not in (b"http", b"https"):
        return target
    _, slash, path = rest.partition(b"/")
    return slash + path or b"/"


@lru_cache(maxsize=64)
def _phrase(status: int) -> bytes:
    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b""


@lru_cache(maxsize=1)
def _date(second: int) -> bytes:
    return b"date: " + formatdate(second, usegmt=True).encode()
