"""Security identifiers (SID) of Windows, as text and as octets (MS-DTYP section 2.4.2)."""

from typing import Final

OBJECT_SID: Final = "objectSid"
"""The attribute with the security identifier of an account."""
_HEAD: Final = 8  # revision, number of parts, and an authority of six octets
_MAX_PARTS: Final = 15
_MAX_PART: Final = 0xFFFFFFFF


def sid_text(octets: bytes) -> str:
    """Return a security identifier as text, such as `S-1-5-21-1-2-3-1104`. Return an empty text if it is malformed."""
    if len(octets) < _HEAD or octets[0] != 1 or len(octets) != _HEAD + 4 * octets[1]:
        return ""
    parts = (int.from_bytes(octets[at : at + 4], "little") for at in range(_HEAD, len(octets), 4))
    return "-".join(("S-1", str(int.from_bytes(octets[2:_HEAD])), *map(str, parts)))


def sid_octets(text: str) -> bytes:
    """Return the octets of a security identifier. Return no octets if the text is malformed."""
    head, _, rest = text.upper().partition("S-1-")
    numbers = rest.split("-")
    if head or not all(each.isascii() and each.isdecimal() and len(each) <= _MAX_PARTS for each in numbers):
        return b""
    authority, *parts = map(int, numbers)
    if len(parts) > _MAX_PARTS or authority >= 1 << 48 or any(each > _MAX_PART for each in parts):
        return b""
    return bytes((1, len(parts))) + authority.to_bytes(6) + b"".join(each.to_bytes(4, "little") for each in parts)


def sid_filter(text: str) -> str:
    """Return a filter for the account with a security identifier (RFC 4515 section 3). Return an empty text if the
    identifier is malformed."""
    octets = sid_octets(text)
    value = "".join(f"\\{each:02x}" for each in octets)
    return f"({OBJECT_SID}={value})" if octets else ""
