"""Limits of an LDAP server's answers, checked before libldap decodes them (RFC 4511 section 4.1.1, X.690 section 8).

The server may be a hostile tenant's. libldap and its bindings decode an entry in one piece while they hold the
interpreter, in a time that grows with the square of the number of attributes. So the octets are cut into messages
here, and an entry is handed on only if its attributes and values are few enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_MESSAGE: Final = 0x30
_SEARCH_ENTRY: Final = 0x64
_SHORT: Final = 0x80


class TooLarge(Exception):
    """An answer exceeds a limit. The message is for an admin, without values of the directory."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of answers. octets: of all messages that answer one request. message: octets of one message. attributes,
    values: of one entry."""

    octets: int
    message: int
    values: int
    attributes: int = 256


LOGIN: Final = Limits(octets=256 << 10, message=256 << 10, values=2_000)
"""For the search of a login: one entry with the names of its groups."""
READING: Final = Limits(octets=64 << 20, message=16 << 20, values=200_000)
"""For a page of an import: 100 entries, of which one may be a large group."""


class Answers:
    """The messages of one connection. exceeded: the first limit that an answer has exceeded."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pending = bytearray()
        self._octets = 0
        self.exceeded: TooLarge | None = None

    def request(self) -> None:
        """Count the octets of an answer from zero: a request was sent."""
        self._octets = 0

    def feed(self, part: bytes | bytearray) -> bytes:
        """Return the messages that are complete. TooLarge; ValueError: the octets are no LDAP."""
        self._octets += len(part)
        try:
            if self._octets > self._limits.octets:
                raise TooLarge(f"an answer has more than {self._limits.octets:,} octets")
            return self._complete(part)
        except TooLarge as error:
            self.exceeded = error
            raise

    def _complete(self, part: bytes | bytearray) -> bytes:
        self._pending += part
        end = 0
        while end < len(self._pending):
            if self._pending[end] != _MESSAGE:
                raise ValueError("not an LDAP message")
            size = message_size(self._pending[end : end + 130])
            if size is not None and size > self._limits.message:
                raise TooLarge(f"an answer has a message of more than {self._limits.message:,} octets")
            if size is None or end + size > len(self._pending):
                break
            self._check(memoryview(self._pending)[end : end + size])
            end += size
        ready = bytes(self._pending[:end])
        del self._pending[:end]
        return ready

    def _check(self, message: memoryview) -> None:
        """Raise TooLarge if the message is an entry that exceeds a limit."""
        try:
            _, at, _ = _value(message, 0)
            _, _, at = _value(message, at)  # the message's number
            kind, at, _ = _value(message, at)
            if kind == _SEARCH_ENTRY:
                _, _, at = _value(message, at)  # the entry's name
                _, at, end = _value(message, at)
                self._check_attributes(message, at, end)
        except IndexError:
            raise ValueError("not an LDAP message") from None

    def _check_attributes(self, message: memoryview, at: int, end: int) -> None:
        attributes = values = 0
        while at < end:
            attributes += 1
            if attributes > self._limits.attributes:
                raise TooLarge(f"an entry has more than {self._limits.attributes} attributes")
            _, start, at = _value(message, at)
            _, _, start = _value(message, start)  # the attribute's name
            _, start, stop = _value(message, start)
            while start < stop:
                values += 1
                if values > self._limits.values:
                    raise TooLarge(f"an entry has more than {self._limits.values:,} values")
                start = _value(message, start)[2]


def message_size(octets: bytes | bytearray) -> int | None:
    """Return the size of the LDAP message that begins here; None if its length is incomplete (X.690 section 8.1.3)."""
    if len(octets) < 2:
        return None
    if octets[1] < _SHORT:
        return 2 + octets[1]
    head = 2 + (octets[1] & 0x7F)
    return None if len(octets) < head else head + int.from_bytes(octets[2:head])


def _value(octets: memoryview, at: int) -> tuple[int, int, int]:
    """Return the tag of a value, and where its content begins and ends. IndexError."""
    size, start = octets[at + 1], at + 2
    if size >= _SHORT:
        start += size & 0x7F
        size = int.from_bytes(octets[at + 2 : start])
    if start + size > len(octets):
        raise IndexError
    return octets[at], start, start + size
