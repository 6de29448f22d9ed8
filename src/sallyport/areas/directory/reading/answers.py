"""Decode an LDAP server's answers, within limits (RFC 4511 section 4.1.1, X.690 section 8).

The server may belong to a hostile tenant. So each message must have the exact form, must be expected, and must be
within the limits. Many octets are decoded in a thread. References, intermediate responses and notices are dropped, and
so are all controls, except the password policy of a bind and the cookie of paged results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from sallyport.areas.directory.reading.requests import PAGED_RESULTS, PASSWORD_POLICY

_MESSAGE: Final = 0x30
_SHORT: Final = 0x80
_LONG_TAG: Final = 0x1F
"""The low bits that mark a tag of several octets (X.690 section 8.1.2.4). LDAP has no such tag."""
_INTEGER, _OCTETS, _ENUMERATED, _SEQUENCE, _SET = 0x02, 0x04, 0x0A, 0x30, 0x31
_BIND_RESPONSE: Final = 0x61
_SEARCH_ENTRY: Final = 0x64
_SEARCH_DONE: Final = 0x65
_DROPPED: Final = frozenset({0x73, 0x78, 0x79})  # reference, extended response (a notice), intermediate response
_CONTROLS: Final = 0xA0
_REFERRAL: Final = 0xA3
_AFTER_RESULT: Final = frozenset({_REFERRAL, 0x87})  # referral, serverSaslCreds
_NUMBERS: Final = frozenset({_INTEGER, _ENUMERATED})
_KEPT_CONTROLS: Final = {_BIND_RESPONSE: PASSWORD_POLICY, _SEARCH_DONE: PAGED_RESULTS}
"""The type of the control that is read, for each kind of message."""
_POLICY_WARNING, _POLICY_ERROR = 0xA0, 0x81
_MAX_SIZE_WITHOUT_ENTRY: Final = 64 << 10
"""Maximum size of a message without its entry, in octets."""
_MAX_TEXT_LENGTH: Final = 300


class TooLarge(Exception):
    """The error for an answer that exceeds a limit. The message is for an admin and has no values of the directory."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for the answers of a server. octets, messages, values: the maximum numbers of them in the answer to one
    request. message: the maximum size of one message, in octets. entry_values, attributes: the maximum numbers of
    values and of attributes in one entry."""

    octets: int
    messages: int
    message: int
    values: int
    entry_values: int
    attributes: int = 384


LOGIN: Final = Limits(
    octets=256 << 10, messages=256, message=256 << 10, values=4_000, entry_values=2_000, attributes=64
)
"""Limits for the search during a login, which returns one entry with the names of its groups."""
READING: Final = Limits(octets=64 << 20, messages=10_000, message=16 << 20, values=2_000_000, entry_values=200_000)
"""Limits for a page of an import: 100 entries, which may be large groups. A value takes 60 octets of memory in addition
to its size."""
SHORT: Final = 16 << 10
"""Maximum number of octets that are parsed on the event loop, in about 2 ms. More octets are parsed in a thread."""


@dataclass(frozen=True, slots=True)
class RawEntry:
    """An entry with undecoded values. values: the values, as octets, of each attribute description. A description is in
    lower case and may have options."""

    dn: str
    values: Mapping[str, tuple[bytes, ...]]


class Policy(Enum):
    """The state of an account, as the password policy control reports it (draft-behera-ldap-password-policy)."""

    LOCKED = "account locked"
    EXPIRED = "password expired"
    MUST_CHANGE = "password must be changed"


_POLICIES: Final = {0: Policy.EXPIRED, 1: Policy.LOCKED, 2: Policy.MUST_CHANGE}


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a request (RFC 4511 section 4.1.9). has_control: whether the answer has the control of its kind.
    cookie: the cookie for the next page, or empty if there is none. policy: the state of the account that a bind
    reports."""

    code: int
    text: str
    has_control: bool = False
    cookie: bytes = b""
    policy: Policy | None = None


@dataclass(slots=True)
class _Answer:
    """The part of an answer that has been received until now. number: the messageID of the answer."""

    number: int = 1
    octets: int = 0
    messages: int = 0
    values: int = 0
    entries: list[RawEntry] = field(default_factory=list)
    result: Result | None = None


class Answers:
    """The messages that the server sends on one connection. The first message must answer a bind with the messageID
    1."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pending = bytearray()
        self._answer = _Answer()
        self._is_bound = False

    @property
    def entries(self) -> list[RawEntry]:
        """Return the entries of the answer to the last request. The list is complete when `result` is there."""
        return self._answer.entries

    @property
    def result(self) -> Result | None:
        """Return the result of the last request, or None if it has not arrived."""
        return self._answer.result

    def request(self, number: int) -> None:
        """Prepare for the answer to a request. If the answer to an earlier request is incomplete, it is dropped.
        number: the messageID of the request."""
        self._answer = _Answer(number)

    def is_short(self, part: bytes | bytearray) -> bool:
        """Return whether `feed` can handle this part on the event loop without a delay. If the result is False, call
        `feed` in a thread."""
        return len(self._pending) + len(part) <= SHORT

    def feed(self, part: bytes | bytearray) -> None:
        """Take received octets. Raises TooLarge if an answer exceeds a limit. Raises ValueError if the octets are not
        an expected answer."""
        self._answer.octets += len(part)
        if self._answer.octets > self._limits.octets:
            raise TooLarge(f"an answer has more than {self._limits.octets:,} octets")
        self._pending += part
        end = 0
        while end < len(self._pending):
            if self._pending[end] != _MESSAGE:
                raise ValueError("the server has sent octets that are not an LDAP message")
            size = message_size(self._pending[end : end + 130])
            if size is not None and size > self._limits.message:
                raise TooLarge(f"an answer has a message of more than {self._limits.message:,} octets")
            if size is None or end + size > len(self._pending):
                break
            self._answer.messages += 1
            if self._answer.messages > self._limits.messages:
                raise TooLarge(f"an answer has more than {self._limits.messages:,} messages")
            self._decode(memoryview(bytes(self._pending[end : end + size])))
            end += size
        del self._pending[:end]

    def _decode(self, message: memoryview) -> None:
        answer = self._answer
        _, begin, _ = _element(message, 0)
        _, first, at = _expected(message, begin, _INTEGER)  # the messageID
        kind, start, end = _element(message, at)
        if len(message) - (end - start) * (kind == _SEARCH_ENTRY) > _MAX_SIZE_WITHOUT_ENTRY:
            raise TooLarge(
                f"an answer has a message of more than {_MAX_SIZE_WITHOUT_ENTRY:,} octets that is not an entry"
            )
        is_own = int.from_bytes(message[first:at], signed=True) == answer.number
        if kind in _DROPPED:
            return
        if kind == _SEARCH_ENTRY and self._is_bound:
            entry = self._entry(message, start, end, answer)
            if is_own:
                answer.entries.append(entry)
        elif kind == (_SEARCH_DONE if self._is_bound else _BIND_RESPONSE):
            self._is_bound = True
            code, text = _result(message, start, end)
            value = None if end == len(message) else _kept_control(message, end, _KEPT_CONTROLS[kind])
            is_page = kind == _SEARCH_DONE
            cookie = _cookie(value) if value is not None and is_page else b""
            policy = _policy(value) if value is not None and not is_page else None
            if is_own and answer.result is None:
                answer.result = Result(code, text, value is not None, cookie, policy)
        else:
            raise ValueError("the server has sent an unexpected LDAP message")

    def _entry(self, message: memoryview, at: int, end: int, answer: _Answer) -> RawEntry:
        _, start, at = _expected(message, at, _OCTETS)
        dn = bytes(message[start:at]).decode(errors="replace")
        _, at, last = _expected(message, at, _SEQUENCE)
        _require(last == end)
        found = dict[str, list[bytes]]()
        attributes = values = 0
        while at < end:
            attributes += 1
            if attributes > self._limits.attributes:
                raise TooLarge(f"an entry has more than {self._limits.attributes} attributes")
            _, start, at = _expected(message, at, _SEQUENCE)
            _, name, start = _expected(message, start, _OCTETS)
            _require(bytes(message[name:start]).isascii())
            several = found.setdefault(bytes(message[name:start]).decode().lower(), [])
            _, start, stop = _expected(message, start, _SET)
            _require(stop == at)
            while start < stop:
                values += 1
                if values > self._limits.entry_values:
                    raise TooLarge(f"an entry has more than {self._limits.entry_values:,} values")
                _, begin, start = _expected(message, start, _OCTETS)
                several.append(bytes(message[begin:start]))
            _require(start == stop)
        _require(at == end)
        answer.values += values
        if answer.values > self._limits.values:
            raise TooLarge(f"an answer has more than {self._limits.values:,} values")
        return RawEntry(dn, {name: tuple(several) for name, several in found.items()})


def message_size(octets: bytes | bytearray) -> int | None:
    """Return the size of the LDAP message at the beginning of the octets. The size is taken from the length field of
    the message (X.690 section 8.1.3). Return None if the length field is incomplete."""
    if len(octets) < 2:
        return None
    if octets[1] < _SHORT:
        return 2 + octets[1]
    head = 2 + (octets[1] & 0x7F)
    return None if len(octets) < head else head + int.from_bytes(octets[2:head])


def _result(message: memoryview, at: int, end: int) -> tuple[int, str]:
    """Return the code and the text of an LDAPResult (RFC 4511 section 4.1.9)."""
    _, start, at = _expected(message, at, _ENUMERATED)
    code = int.from_bytes(message[start:at])
    _, _, at = _expected(message, at, _OCTETS)  # matchedDN
    _, start, at = _expected(message, at, _OCTETS)  # diagnosticMessage
    text = bytes(message[start : min(at, start + _MAX_TEXT_LENGTH)]).decode(errors="replace").rstrip("\0")
    for tag, start, stop in _elements(message, at, end):
        _require(tag in _AFTER_RESULT)
        if tag == _REFERRAL:
            _require(all(each[0] == _OCTETS for each in _elements(message, start, stop)))
    return code, text


def _kept_control(message: memoryview, at: int, wanted: bytes) -> memoryview | None:
    """Return the value of one of the controls at the end of a message, or None if there is no such control. wanted: the
    type of this control."""
    _, start, end = _expected(message, at, _CONTROLS)
    _require(end == len(message))
    for tag, first, last in _elements(message, start, end):
        _require(tag == _SEQUENCE)
        texts = [message[a:b] for kind, a, b in _elements(message, first, last) if kind == _OCTETS]
        if texts[:1] == [wanted]:
            _require(len(texts) == 2)
            return texts[1]
    return None


def _cookie(value: memoryview) -> bytes:
    """Return the cookie in the value of the control of paged results (RFC 2696 section 2)."""
    size, cookie = _parts(value)
    _require((size[0], cookie[0]) == (_INTEGER, _OCTETS))
    return bytes(value[cookie[1] : cookie[2]])


def _policy(value: memoryview) -> Policy | None:
    """Return the error in the value of the control of the password policy, or None if it has no error that ends a
    login."""
    found = None
    for tag, start, end in _parts(value, most=2):
        _require(tag in (_POLICY_WARNING, _POLICY_ERROR))
        if tag == _POLICY_ERROR:
            found = _POLICIES.get(int.from_bytes(value[start:end]))
    return found


def _parts(value: memoryview, most: int | None = None) -> list[tuple[int, int, int]]:
    """Return the elements of a sequence: two, or at most `most`. Raises ValueError."""
    _, start, end = _expected(value, 0, _SEQUENCE)
    found = list(_elements(value, start, end))
    _require(end == len(value) and (len(found) == 2 if most is None else len(found) <= most))
    return found


def _elements(octets: memoryview, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the elements between two positions, each as `_element` returns it. Raises ValueError."""
    while at < end:
        element = _element(octets, at)
        yield element
        at = element[2]
    _require(at == end)


def _expected(octets: memoryview, at: int, tag: int) -> tuple[int, int, int]:
    """Return the element with the given tag, as `_element` returns it. Raises ValueError."""
    end = at + 2
    if end <= len(octets) and octets[at] == tag and tag not in _NUMBERS:
        size = octets[at + 1]
        if size < _SHORT and end + size <= len(octets):  # most elements; the rest of this function returns the same
            return tag, end, end + size
    element = _element(octets, at)
    _require(element[0] == tag and (tag not in _NUMBERS or 1 <= element[2] - element[1] <= 4))
    return element


def _element(octets: memoryview, at: int) -> tuple[int, int, int]:
    """Return the tag of an element, and the start and the end of its content. Raises ValueError."""
    _require(at + 2 <= len(octets))
    tag, size, start = octets[at], octets[at + 1], at + 2
    if size >= _SHORT:
        start += size & 0x7F
        size = int.from_bytes(octets[at + 2 : start])
    _require(tag & _LONG_TAG != _LONG_TAG and start + size <= len(octets))
    return tag, start, start + size


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError("the server has sent octets that are not an LDAP message")
