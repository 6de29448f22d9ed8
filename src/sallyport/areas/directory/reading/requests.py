"""Encode LDAP requests (RFC 4511 section 4, X.690 section 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_BOOLEAN, _INTEGER, _OCTETS, _ENUMERATED, _SEQUENCE = 0x01, 0x02, 0x04, 0x0A, 0x30
_CONTROLS: Final = 0xA0
_BIND_REQUEST: Final = 0x60
_SIMPLE: Final = 0x80
_SEARCH_REQUEST: Final = 0x63
_EXTENDED_REQUEST: Final = 0x77
_REQUEST_NAME: Final = 0x80
_NEVER_DEREFERENCE: Final = b"\0"
_START_TLS: Final = b"1.3.6.1.4.1.1466.20037"
PAGED_RESULTS: Final = b"1.2.840.113556.1.4.319"
"""The control of paged results (RFC 2696)."""
PASSWORD_POLICY: Final = b"1.3.6.1.4.1.42.2.27.8.5.1"
"""The control of draft-behera-ldap-password-policy."""

# The tags of a filter (RFC 4511 section 4.5.1.7).
_AND, _OR, _NOT, _EQUAL, _SUBSTRINGS, _PRESENT, _EXTENSIBLE = 0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0x87, 0xA9
_COMPARED: Final = {">": 0xA5, "<": 0xA6, "~": 0xA8}
_MAX_DEPTH: Final = 100
_NO_FILTER: Final = "not an LDAP filter"
_LISTED: Final = {"&": _AND, "|": _OR}
_RULE, _TYPE, _VALUE, _WITH_DN = 0x81, 0x82, 0x83, 0x84
_INITIAL, _ANY, _LAST = 0x80, 0x81, 0x82


def element(tag: int, *parts: bytes) -> bytes:
    """Return an element of BER with its length (X.690 section 8.1.3)."""
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(length))) + length + content


def message(number: int, operation: bytes, control: bytes = b"") -> bytes:
    """Return an LDAPMessage. number: its messageID. control: a control to send with it."""
    return element(_SEQUENCE, _integer(number), operation, element(_CONTROLS, control) if control else b"")


def start_tls() -> bytes:
    """Return the operation StartTLS (section 4.14)."""
    return element(_EXTENDED_REQUEST, element(_REQUEST_NAME, _START_TLS))


def simple_bind(dn: str, password: str) -> bytes:
    """Return a simple bind (section 4.2)."""
    return element(_BIND_REQUEST, _integer(3), element(_OCTETS, dn.encode()), element(_SIMPLE, password.encode()))


def search(base: str, pattern: str, attributes: Sequence[str], *, whole_tree: bool, most: int = 0) -> bytes:
    """Return a search (section 4.5.1). pattern: a filter. whole_tree: whether to search below the base too. most: the
    maximum number of entries; 0 for no limit. Raises ValueError if the pattern is not a filter."""
    return element(
        _SEARCH_REQUEST,
        element(_OCTETS, base.encode()),
        element(_ENUMERATED, b"\2" if whole_tree else b"\0"),
        element(_ENUMERATED, _NEVER_DEREFERENCE),
        _integer(most),
        _integer(0),  # no time limit of the server
        element(_BOOLEAN, b"\0"),  # values too, not only types
        encoded_filter(pattern),
        element(_SEQUENCE, *(element(_OCTETS, each.encode()) for each in attributes)),
    )


def policy_control() -> bytes:
    """Return the control that requests the password policy."""
    return element(_SEQUENCE, element(_OCTETS, PASSWORD_POLICY))


def page_control(size: int, cookie: bytes) -> bytes:
    """Return the control that requests a page. cookie: the cookie of the last page, or empty for the first one."""
    value = element(_SEQUENCE, _integer(size), element(_OCTETS, cookie))
    return element(_SEQUENCE, element(_OCTETS, PAGED_RESULTS), element(_OCTETS, value))


def encoded_filter(text: str) -> bytes:
    """Return a filter as octets (RFC 4515). There may be blanks between the parts of a list, as the library of OpenLDAP
    allows. Raises ValueError if the text is not a filter: a part that is left out would widen a search."""
    encoded, end = _filter_at(text, 0, 0)
    if end != len(text):
        raise ValueError(_NO_FILTER)
    return encoded


def _filter_at(text: str, at: int, depth: int) -> tuple[bytes, int]:
    """Return the filter that begins at a position, and the position after it. depth: in how many other filters this
    filter is nested."""
    kind = text[at + 1 : at + 2]
    if text[at : at + 1] != "(" or not kind or depth > _MAX_DEPTH:
        raise ValueError(_NO_FILTER)
    if kind in "!&|":
        parts, at = list[bytes](), _after_blanks(text, at + 2)
        while text[at : at + 1] == "(":
            part, at = _filter_at(text, at, depth + 1)
            parts.append(part)
            at = _after_blanks(text, at)
        if text[at : at + 1] != ")" or (kind == "!" and len(parts) != 1):
            raise ValueError(_NO_FILTER)
        return element(_LISTED.get(kind, _NOT), *parts), at + 1
    end = text.index(")", at)
    return _condition(text[at + 1 : end]), end + 1


def _after_blanks(text: str, at: int) -> int:
    while text[at : at + 1] == " ":
        at += 1
    return at


def _condition(text: str) -> bytes:
    left, equals, value = text.partition("=")
    if not equals or "(" in text or not left.strip(":<>~ "):
        raise ValueError(_NO_FILTER)
    if left.endswith(":"):
        return _extensible(left[:-1], value)
    if left[-1] in _COMPARED:
        return element(_COMPARED[left[-1]], element(_OCTETS, left[:-1].encode()), element(_OCTETS, _octets(value)))
    attribute = left.encode()
    if value == "*":
        return element(_PRESENT, attribute)
    first, *others = map(_octets, value.split("*"))
    if not others:
        return element(_EQUAL, element(_OCTETS, attribute), element(_OCTETS, first))
    parts = [(_INITIAL, first), *((_ANY, each) for each in others[:-1]), (_LAST, others[-1])]
    wanted = [element(tag, octets) for tag, octets in parts if octets]
    return element(_SUBSTRINGS, element(_OCTETS, attribute), element(_SEQUENCE, *wanted))


def _extensible(left: str, value: str) -> bytes:
    attribute, *names = left.split(":")
    with_dn = names[:1] == ["dn"]
    rule = names[-1] if len(names) > with_dn else ""
    return element(
        _EXTENSIBLE,
        element(_RULE, rule.encode()) if rule else b"",
        element(_TYPE, attribute.encode()) if attribute else b"",
        element(_VALUE, _octets(value)),
        element(_WITH_DN, b"\xff") if with_dn else b"",
    )


def _octets(value: str) -> bytes:
    """Return the octets of a value, without its escapes (RFC 4515 section 3)."""
    first, *escaped = value.split("\\")
    if any(len(each) < 2 for each in escaped):
        raise ValueError(_NO_FILTER)
    return first.encode() + b"".join(bytes.fromhex(each[:2]) + each[2:].encode() for each in escaped)


def _integer(number: int) -> bytes:
    return element(_INTEGER, number.to_bytes(number.bit_length() // 8 + 1))
