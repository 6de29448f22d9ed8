"""Search filters in text (RFC 4515): checked before they are sent, and put together."""

from __future__ import annotations

import re
from typing import Final

from sallyport.base.errors import Invalid

LONGEST: Final = 4096
DEEPEST: Final = 32

_NUMBERS: Final = r"[0-9]+(?:\.[0-9]+)+"
_ATTRIBUTE: Final = rf"(?:[A-Za-z][A-Za-z0-9-]*|{_NUMBERS})(?:;[A-Za-z0-9-]+)*"
_RULE: Final = rf"(?:[A-Za-z][A-Za-z0-9-]*|{_NUMBERS})"
_VALUE: Final = r"(?:[^()*\\\0]|\\[0-9A-Fa-f]{2})*"
_ITEM: Final = re.compile(
    rf"{_ATTRIBUTE}=(?:{_VALUE}\*)*{_VALUE}"  # equal, present, substrings
    rf"|{_ATTRIBUTE}[~<>]={_VALUE}"
    rf"|{_ATTRIBUTE}(?::dn)?(?::{_RULE})?:={_VALUE}|(?::dn)?:{_RULE}:={_VALUE}"  # extensible
)


def checked(text: str) -> str:
    """The filter that a text is, in parentheses: one without them is taken too, as most programs take it.

    Invalid: it is none, or too long, or too deep for servers to take.
    """
    pattern = text.strip()
    if not pattern.startswith("("):
        pattern = f"({pattern})"
    if len(pattern) > LONGEST:
        raise Invalid(f"not an LDAP filter: longer than {LONGEST} characters")
    if _end(pattern, 0, 0) != len(pattern):
        raise Invalid("not an LDAP filter: there is more behind its end")
    return pattern


def both(*patterns: str) -> str:
    """What fits all of some filters."""
    return f"(&{''.join(patterns)})"


def either(*patterns: str) -> str:
    """What fits one of some filters."""
    return f"(|{''.join(patterns)})"


def escaped(value: str) -> str:
    """A value as it stands in a filter (RFC 4515 section 3)."""
    return "".join(f"\\{ord(each):02x}" if each in "\\*()\0" else each for each in value)


def _end(text: str, at: int, depth: int) -> int:
    """Where the filter that begins at `at` ends."""
    if depth > DEEPEST:
        raise Invalid(f"not an LDAP filter: deeper than {DEEPEST}")
    if text[at : at + 1] != "(":
        raise Invalid(f"not an LDAP filter: no parenthesis at character {at + 1}")
    kind = text[at + 1 : at + 2]
    if kind == "!":
        at = _end(text, at + 2, depth + 1)
    elif kind in ("&", "|"):  # without parts they are true and false (RFC 4526)
        at += 2
        while text[at : at + 1] == "(":
            at = _end(text, at, depth + 1)
    else:
        item = _ITEM.match(text, at + 1)
        if item is None:
            raise Invalid(f"not an LDAP filter: at character {at + 2}")
        at = item.end()
    if text[at : at + 1] != ")":
        raise Invalid(f"not an LDAP filter: no end at character {at + 1}")
    return at + 1
