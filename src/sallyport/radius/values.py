"""Values of RADIUS attributes: octets to text and text to octets, by the type in the dictionary.

pyrad converts numbers and addresses. This module converts octets and text itself, because pyrad would interpret texts
such as `0x41` or `65`. A password or a Class must not be changed in this way.
"""

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from pyrad import tools

from sallyport.base.errors import DictionaryError


class DataType(StrEnum):
    """The data types of RFC 8044 section 3 that pyrad supports. The values are the words in dictionary files."""

    STRING = "string"
    OCTETS = "octets"
    INTEGER = "integer"
    SIGNED = "signed"
    SHORT = "short"
    BYTE = "byte"
    INTEGER64 = "integer64"
    DATE = "date"
    IPADDR = "ipaddr"
    IPV6ADDR = "ipv6addr"
    IPV6PREFIX = "ipv6prefix"
    IFID = "ifid"
    ETHER = "ether"
    ABINARY = "abinary"
    TLV = "tlv"


NUMBERS: Final = frozenset(
    {DataType.INTEGER, DataType.SIGNED, DataType.SHORT, DataType.BYTE, DataType.INTEGER64, DataType.DATE}
)
_OPAQUE: Final = frozenset({DataType.OCTETS, DataType.ABINARY, DataType.TLV})
_NUMERAL: Final = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|[0-9]+)")
_HEX: Final = re.compile(r"0x(?:[0-9a-fA-F]{2})*")
_SECRET: Final = re.compile(
    r"(?i)-(password|passwd|pass|passphrase|pw|cpw(-[12])?|psk|dpsk|mpkey|key|secret|ha1|response|credential-hash)$"
)
MISFITS: Final = (ValueError, TypeError, OverflowError, struct.error)
"""The exceptions that pyrad.tools, datetime and int raise for a value that does not fit its type."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute as the dictionary defines it.

    vendor: the enterprise number; 0 for the attributes of the RFCs. number: the type octet, 0..255. has_tag: whether
    values have a tag (RFC 2868 section 3.1). encrypt: the kind of encryption: 0 for none, 1 as in User-Password (RFC
    2865 section 5.2), 2 as in Tunnel-Password (RFC 2868 section 3.5), 3 for Ascend's. parent: the name of the TLV that
    contains the attribute; empty without a TLV. values: the numbers of the named values by name; only for numeric
    types.
    """

    name: str
    vendor: int
    number: int
    type: DataType
    has_tag: bool = False
    encrypt: int = 0
    parent: str = ""
    values: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    @property
    def secret(self) -> bool:
        """Return whether the values are passwords or keys, or are derived from them. Secret values are never shown."""
        return self.encrypt != 0 or _SECRET.search(self.name) is not None

    @property
    def room(self) -> int:
        """Return the maximum length of a value in octets: 255 minus headers, salt and padding."""
        if self.encrypt == 1:
            return 128
        if self.encrypt == 2:
            return 239 + self.has_tag
        return 247 if self.vendor else 253

    def value_name(self, number: int) -> str | None:
        """Return the name of a value, such as "Ethernet" for the value 15 of NAS-Port-Type. Return None if the value
        has no name. If the value has several names, return the name that was defined last."""
        return next((name for name in reversed(tuple(self.values)) if self.values[name] == number), None)

    def value_number(self, name: str) -> int | None:
        """Return the number of a named value, ignoring case, such as 15 for "ethernet" of NAS-Port-Type. Return None if
        there is no such name."""
        if name in self.values:
            return self.values[name]
        return next((number for known, number in self.values.items() if known.casefold() == name.casefold()), None)


def split_tag(attribute: Attribute, octets: bytes) -> tuple[int, bytes]:
    """Split a value into the tag and the value without the tag. The tag 0 means that the value has no tag.

    In a number, the first of the four octets is the tag. A value of another type has the tag in an extra octet at its
    start.
    """
    if not attribute.has_tag or not octets:
        return 0, octets
    if attribute.type is DataType.INTEGER:
        if octets[0] > 0x1F:
            raise ValueError(octets[0])
        return octets[0], b"\0" + octets[1:]
    return (octets[0], octets[1:]) if octets[0] <= 0x1F else (0, octets)


def join_tag(attribute: Attribute, tag: int, value: bytes) -> bytes:
    """Return a value with its tag. The tag 0 is not added to a text, unless the first octet of the text looks like a
    tag (RFC 2868 section 3.3)."""
    if not attribute.has_tag:
        return value
    if attribute.type is DataType.INTEGER:
        if value[0]:
            raise DictionaryError(f"{attribute.name}: with a tag, the number must be at most 16777215 (three octets)")
        return bytes((tag,)) + value[1:]
    return bytes((tag,)) + value if tag or attribute.encrypt == 2 or value[0] <= 0x1F else value


def as_hex(octets: bytes) -> str:
    return "0x" + octets.hex()


def as_text(attribute: Attribute, octets: bytes) -> str:
    """Return as text the value in `octets`, which contain no tag. Raises one of MISFITS if the value does not fit its
    type."""
    kind = attribute.type
    if kind in _OPAQUE:
        return as_hex(octets)
    if kind is DataType.STRING:
        text = octets.decode()
    elif kind is DataType.IPV6ADDR and len(octets) != 16:
        raise ValueError(octets)  # pyrad would pad a short value
    else:
        value: int | str = tools.DecodeAttr(kind.value, octets)
        text = _number_text(attribute, value) if isinstance(value, int) else value
    if not text.isprintable():
        raise ValueError(text)
    return text


def _number_text(attribute: Attribute, number: int) -> str:
    """Return a number as text: the name of the value, an ISO 8601 date, or decimal digits. If the name consists of
    digits, the name is not used, because it would be converted back to another number."""
    name = attribute.value_name(number)
    if name is not None and not _NUMERAL.fullmatch(name):
        return name
    if attribute.type is DataType.DATE:
        return datetime.fromtimestamp(number, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return str(number)


def as_octets(attribute: Attribute, text: str) -> bytes:
    """Return the octets of a value that is given as text, without a tag. Raises DictionaryError if the text does not
    fit the type, or is empty. The message does not contain the value of a secret attribute."""
    try:
        octets = _octets(attribute, text)
    except MISFITS as error:
        if attribute.secret:
            raise DictionaryError(f"{attribute.name}: the value is not valid as {attribute.type}") from None
        raise DictionaryError(f"{attribute.name}: {text[:80]!r} is not valid as {attribute.type}") from error
    if not octets:
        raise DictionaryError(f"{attribute.name}: an empty value is not allowed (RFC 2865 section 5)")
    return octets


def _octets(attribute: Attribute, text: str) -> bytes:
    """Return the octets of a value that is given as text. Raises one of MISFITS if the text does not fit the type."""
    kind = attribute.type
    if kind in _OPAQUE and text.startswith("0x"):
        if not _HEX.fullmatch(text):
            raise ValueError(text)
        return bytes.fromhex(text[2:])
    if kind in (DataType.STRING, DataType.OCTETS):
        return text.encode()
    value = _number(attribute, text) if kind in NUMBERS else text
    octets: bytes = tools.EncodeAttr(kind.value, value)
    return octets


def _number(attribute: Attribute, text: str) -> int:
    """Return the number for a text: digits, or the name of a value. For a date, the text can also be an ISO 8601 time
    with a time zone."""
    if _NUMERAL.fullmatch(text):
        return int(text, 16 if "x" in text.lower() else 10)
    number = attribute.value_number(text)
    if number is not None:
        return number
    moment = datetime.fromisoformat(text) if attribute.type is DataType.DATE else None
    if moment is None or moment.tzinfo is None:
        raise ValueError(text)
    return int(moment.timestamp())
