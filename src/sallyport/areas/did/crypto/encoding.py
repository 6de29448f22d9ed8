"""Strict base64url, base58btc and JSON, and the curves of keys with their names and prefixes.

Each octet string has exactly one text in base64url and in base58btc.
"""

import binascii
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Final

import rfc8785

from sallyport.base.errors import CredentialError
from sallyport.base.wire import JSON

_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUES: Final = {letter: value for value, letter in enumerate(_BASE58)}
_BASE64URL: Final = re.compile("[A-Za-z0-9_-]*")
MAX_BASE58: Final = 512
"""Maximum length of a base58 text, in characters. Keys and signatures are shorter. The time of decoding grows with the
square of the length."""
_EXACT: Final = 1 << 53
"""Integers below this number are exact in a double."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A curve of keys. name: the `crv` in a JWK. algorithms: the names of the JOSE algorithms; tokens are signed with
    the first algorithm. prefix: the multicodec prefix of a public key. octets: the size of a public key without the
    prefix. order: the order of the group of an ECDSA curve; 0 for Ed25519."""

    name: str
    kty: str
    algorithms: tuple[str, ...]
    prefix: bytes
    octets: int
    order: int = 0

    @property
    def algorithm(self) -> str:
        """Return the JOSE algorithm with which this service signs tokens."""
        return self.algorithms[0]


ED25519: Final = Curve("Ed25519", "OKP", ("EdDSA", "Ed25519"), b"\xed\x01", 32)
P256: Final = Curve(
    "P-256", "EC", ("ES256",), b"\x80\x24", 33, 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
)
SECP256K1: Final = Curve(
    "secp256k1", "EC", ("ES256K",), b"\xe7\x01", 33, 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
)
CURVES: Final = {curve.name: curve for curve in (ED25519, P256, SECP256K1)}


def to_base64url(octets: bytes) -> str:
    """Return base64url without padding (RFC 7515 section 2)."""
    return urlsafe_b64encode(octets).rstrip(b"=").decode()


def from_base64url(text: str) -> bytes:
    """Decode base64url. Raises CredentialError if the text has padding, a wrong character, or bits after the last
    octet."""
    if not _BASE64URL.fullmatch(text):
        raise CredentialError("the text is not base64url without padding")
    try:
        octets = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise CredentialError("the text is not base64url without padding") from None
    if to_base64url(octets) != text:
        raise CredentialError("the text is not base64url without padding")
    return octets


def to_base58(octets: bytes) -> str:
    """Return base58 in the Bitcoin alphabet. Each leading zero octet becomes a `1`."""
    number, letters = int.from_bytes(octets, "big"), []
    while number:
        number, value = divmod(number, 58)
        letters.append(_BASE58[value])
    zeros = len(octets) - len(octets.lstrip(b"\0"))
    return "1" * zeros + "".join(reversed(letters))


def from_base58(text: str) -> bytes:
    """Decode base58. Raises CredentialError if the text has a wrong character or is too long."""
    if len(text) > MAX_BASE58:
        raise CredentialError(f"the base58 text is longer than {MAX_BASE58} characters")
    number = 0
    for letter in text:
        value = _VALUES.get(letter)
        if value is None:
            raise CredentialError("the text is not base58")
        number = number * 58 + value
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


def read_json(text: str | bytes) -> JSON:
    """Parse JSON (RFC 8259) without duplicate names in an object (RFC 7515 section 4).

    Raises CredentialError if the text is not JSON or is nested too deep. Raises CredentialError if a number is too
    large for a double, or if a surrogate is unpaired.
    """
    try:
        value: JSON = json.loads(
            text, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_float, parse_int=_int
        )
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise CredentialError("the text is not JSON, or one of its objects has a duplicate name") from None
    return value


def read_object(text: str | bytes) -> dict[str, JSON]:
    """Parse JSON that must be an object. Raises CredentialError."""
    value = read_json(text)
    if not isinstance(value, dict):
        raise CredentialError("the JSON text is not an object")
    return value


def as_list(value: JSON) -> list[JSON]:
    """Return an array unchanged. Return any other value as an array that contains only this value."""
    return value if isinstance(value, list) else [value]


def _once(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a duplicate name")
    return found


def _no_number(_: str) -> JSON:
    raise ValueError("NaN and Infinity are not JSON")


def _float(text: str) -> float:
    value = float(text)
    if value in {float("inf"), float("-inf")}:
        raise ValueError("a number is too large for a double")
    return value


def _int(text: str) -> int | float:
    """Parse an integer. Integers from 2^53 become doubles, as in most JSON parsers (RFC 8785 section 3.2.2.3)."""
    value = int(text)
    return value if abs(value) < _EXACT else _float(text)


def canonical(value: JSON) -> bytes:
    """Return the canonical form of JSON (RFC 8785, JCS), which signatures cover. Raises CredentialError if the value
    has NaN, infinity, an integer from 2^53, or an unpaired surrogate, or is nested too deep."""
    try:
        return rfc8785.dumps(value)
    except (ValueError, RecursionError):
        raise CredentialError("the JSON value has no canonical form (RFC 8785)") from None
