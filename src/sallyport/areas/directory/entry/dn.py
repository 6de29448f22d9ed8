"""Distinguished names as text (RFC 4514).

The form of RFC 4514 section 2 is parsed strictly. Section 3 allows programs to accept the forms of older programs too,
and this module accepts them. In these forms, parts may be separated by `;`, values may be in quotation marks, a number
may follow `OID.`, and spaces may be around `,`, `=` and `+`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sallyport.base.errors import Invalid
from sallyport.base.text import normal

MAX_SIZE: Final = 8192
"""Maximum size of a name, in octets of UTF-8."""

Pair = tuple[str, str]
"""An attribute type in lower case, and its unescaped value."""

# The short names of attribute types, by their OIDs (RFC 4514 section 3) and by the long names that Active Directory and
# older certificates use.
_SHORT: Final = {
    "2.5.4.3": "cn", "2.5.4.4": "sn", "2.5.4.6": "c", "2.5.4.7": "l", "2.5.4.8": "st", "2.5.4.9": "street",
    "2.5.4.10": "o", "2.5.4.11": "ou", "0.9.2342.19200300.100.1.25": "dc", "0.9.2342.19200300.100.1.1": "uid",
    "commonname": "cn", "surname": "sn", "countryname": "c", "localityname": "l", "stateorprovincename": "st",
    "streetaddress": "street", "organizationname": "o", "organizationalunitname": "ou", "domaincomponent": "dc",
    "userid": "uid",
}  # fmt: skip
_TYPE: Final = re.compile(r" *(?:[oO][iI][dD]\.)?([A-Za-z][A-Za-z0-9-]*|[0-9]+(?:\.[0-9]+)+) *= *")
_HEX: Final = re.compile(r"#((?:[0-9A-Fa-f]{2})+)")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_PLAIN: Final = re.compile(r'((?:[^,;+"\\<>\0]|\\.)*)', re.DOTALL)
# Most names have this form: ASCII without escapes, with short types and single spaces. They are not parsed, which is
# twenty times as fast.
_WORD: Final = (
    r"[!$-*.-:?-\[\]-~-]+"  # printable ASCII except space and the characters that may need an escape: "#+,;<=>\
)
_LONG: Final = "|".join(name for name in _SHORT if name.isalpha())
_PART: Final = rf"(?!(?i:{_LONG})=)[A-Za-z][A-Za-z0-9-]*={_WORD}(?: {_WORD})*"
_SIMPLE: Final = re.compile(rf"{_PART}(?:, ?{_PART})*")
_BLANK: Final = re.compile(r" *")
_SEPARATORS: Final = ("", ",", ";", "+")
_STRINGS: Final = frozenset({0x04, 0x0C, 0x13, 0x14, 0x16})  # X.690: octet, UTF-8, printable, teletex, IA5
_ESCAPES: Final = re.compile(r"((?:\\[0-9A-Fa-f]{2})+)|\\(.)", re.DOTALL)
_MAY_ESCAPE: Final = frozenset(' "#+,;<=>\\')
_SPACES: Final = re.compile(r"\s+")
_SPECIAL: Final = re.compile(r'[,;+"\\<>=]')


def parsed(dn: str) -> list[list[Pair]]:
    """Return the relative distinguished names (RDNs) of a name, starting with the entry's own RDN. The empty name of
    the root has no RDN.

    Each RDN is a list of pairs, usually one. Raises Invalid if the text is not a distinguished name.
    """
    if len(dn.encode(errors="surrogatepass")) > MAX_SIZE or any("\ud800" <= each <= "\udfff" for each in dn):
        raise Invalid(f"the text is not a distinguished name: it must be Unicode text of at most {MAX_SIZE} octets")
    names: list[list[Pair]] = [[]]
    at, end = 0, len(dn)
    if not dn.strip():
        return []
    while True:
        pair, at = _pull_pair(dn, at)
        names[-1].append(pair)
        if at == end:
            return names
        if dn[at] != "+":
            names.append([])
        at += 1


def normalized(dn: str) -> str:
    """Return the normalized form of a name. All spellings of the same name have the same normalized form. Raises
    Invalid if the text is not a distinguished name.

    In the normalized form, attribute types are in lower case, values are case-folded, insignificant spaces are removed
    (RFC 4518 section 2.6), the pairs of an RDN are sorted, and each character is escaped in only one way.
    """
    if len(dn) <= MAX_SIZE and _SIMPLE.fullmatch(dn):
        return dn.lower().replace(", ", ",")
    return ",".join("+".join(sorted(f"{name}={_folded(value)}" for name, value in pairs)) for pairs in parsed(dn))


def written(names: Sequence[Sequence[Pair]]) -> str:
    """Return the text of a parsed name."""
    return ",".join("+".join(f"{kind}={escaped(value)}" for kind, value in pairs) for pairs in names)


def lies_below(dn: str, above: str) -> bool:
    """Return whether an entry is below the entry with the normalized name `above`. Return False if dn is not a
    distinguished name."""
    try:
        return normalized(dn).endswith(f",{above}")
    except Invalid:
        return False


def moved(dn: str, above: str, to: str) -> str:
    """Return the new name of an entry that is below `above`, if `above` is renamed to `to`."""
    names = parsed(dn)
    return f"{written(names[: len(names) - len(parsed(above))])},{to}"


def pairs_of(dn: str) -> Iterator[Pair]:
    """Yield all pairs of a name, starting with the pairs of the entry's own RDN. Yield nothing for a text that is not a
    distinguished name."""
    try:
        names = parsed(dn)
    except Invalid:
        return
    for pairs in names:
        yield from pairs


def _pull_pair(dn: str, at: int) -> tuple[Pair, int]:
    """Return the pair that starts at `at`, and the position after the pair. Raises Invalid."""
    name = _TYPE.match(dn, at)
    if name is None:
        raise Invalid(f"the text is not a distinguished name: at character {at + 1}, an attribute type is missing")
    at = name.end()
    form = {"#": _HEX, '"': _QUOTED}.get(dn[at : at + 1], _PLAIN)
    found = form.match(dn, at)
    behind = _BLANK.match(dn, found.end() if found is not None else at)
    if found is None or behind is None or dn[behind.end() : behind.end() + 1] not in _SEPARATORS:
        raise Invalid(f"the text is not a distinguished name: at character {at + 1}, the value is malformed")
    kind = name[1].lower()
    return (_SHORT.get(kind, kind), _value(found)), behind.end()


def _value(found: re.Match[str]) -> str:
    if found.re is _HEX:
        return _octets(found[1])
    text = found[1]
    if found.re is _PLAIN:
        kept = text.rstrip(" ")
        # An escaped space at the end is significant.
        text = kept + " " if _escapes_next(kept) and len(text) > len(kept) else kept
    return _ESCAPES.sub(_unescaped, text)


def _octets(digits: str) -> str:
    """Return the text of a value that is written in hexadecimal form. The digits are the BER encoding of a string.
    Raises Invalid if they are not, or if the string has more than 127 octets."""
    octets = bytes.fromhex(digits)
    if len(octets) < 2 or octets[0] not in _STRINGS or octets[1] != len(octets) - 2 or octets[1] > 0x7F:
        raise Invalid(
            "the text is not a distinguished name: a value in hexadecimal form must encode text of at most 127 octets"
        )
    return _utf8(octets[2:])


def _escapes_next(text: str) -> bool:
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _unescaped(escape: re.Match[str]) -> str:
    octets, character = escape.groups()
    if octets is None:
        if character not in _MAY_ESCAPE:
            raise Invalid("the text is not a distinguished name: a character is escaped that must not be escaped")
        return str(character)
    return _utf8(bytes.fromhex(octets.replace("\\", "")))


def _utf8(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        raise Invalid("the text is not a distinguished name: the escaped octets of a value are not UTF-8") from None


def _folded(value: str) -> str:
    folded = normal("NFKC", normal("NFKC", value).casefold())
    return escaped(_SPACES.sub(" ", folded).strip())


def escaped(value: str) -> str:
    """Return a value escaped for a distinguished name (RFC 4514 section 2.4)."""
    text = _SPECIAL.sub(lambda found: f"\\{found[0]}", value).replace("\0", "\\00")
    if text[:1] in ("#", " "):
        text = f"\\{text}"
    return f"{text[:-1]}\\ " if text.endswith(" ") and not _escapes_next(text[:-1]) else text
