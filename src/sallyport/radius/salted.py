"""Encrypted values in replies: keys and tunnel passwords (RFC 2548 section 2.4, RFC 2868 section 3.5).

Such a value is encrypted with the shared secret of one hop, and with the authenticator of the request on this hop. So a
proxy cannot forward the value unchanged. `rehide` decrypts the value from the upstream server, and encrypts it for the
NAS.
"""

from collections.abc import Iterable, Mapping
from secrets import token_bytes
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import VENDOR_SPECIFIC, pull_attributes, pull_vendor_attributes, push_attribute
from sallyport.radius.packet import SharedSecret
from sallyport.radius.password import hide_blocks, reveal_blocks

if TYPE_CHECKING:
    from sallyport.radius.values import Attribute  # this import takes 40 ms, and commands import this module

AS_PASSWORD: Final = 1
SALTED: Final = 2
MAX_CLEAR: Final = 239
"""Maximum length of a value in octets. The value and its length octet fill 15 blocks of 16 octets. An attribute has no
room for a 16th block."""

HIDDEN: Final[Mapping[tuple[int, int], int]] = MappingProxyType(
    {
        (0, 69): SALTED,  # Tunnel-Password (RFC 2868 section 3.5)
        (311, 12): AS_PASSWORD,  # MS-CHAP-MPPE-Keys (RFC 2548 section 2.4.1)
        (311, 16): SALTED,  # MS-MPPE-Send-Key (RFC 2548 section 2.4.2)
        (311, 17): SALTED,  # MS-MPPE-Recv-Key (RFC 2548 section 2.4.3)
    }
)
"""The attributes that are encrypted in replies according to the RFCs. The kind of encryption by (vendor, type); the
numbers are those of `encrypt=` in a dictionary."""


class Hiding:
    """The encryption of values in one packet. Each value gets another salt, so use a new instance for each packet.

    secret: the shared secret of the hop. authenticator: the Request Authenticator of the request that the packet
    answers, 16 octets.
    """

    __slots__ = ("_salt", "authenticator", "secret")

    def __init__(self, secret: SharedSecret, authenticator: bytes) -> None:
        self.secret = secret
        self.authenticator = authenticator
        self._salt = int.from_bytes(token_bytes(2))

    def hide(self, clear: bytes) -> bytes:
        """Encrypt a key or password of at most 239 octets (RFC 2548 section 2.4.2).

        Return the salt and the encrypted blocks: 2 + 16n octets, where n is at least 1. If the attribute has a tag, the
        caller puts the tag before the result. Each call uses another salt. Raises ValueError if the value is too long.
        """
        if len(clear) > MAX_CLEAR:
            raise ValueError(f"the value has {len(clear)} octets, but an encrypted attribute allows only {MAX_CLEAR}")
        self._salt = self._salt + 1 & 0x7FFF
        salt = (0x8000 | self._salt).to_bytes(2)
        padded = bytes((len(clear),)) + clear + bytes(-(len(clear) + 1) % 16)
        return salt + hide_blocks(padded, self.secret, self.authenticator + salt)

    def reveal(self, value: bytes) -> bytes:
        """Decrypt a key or password. `hide` is the inverse. value: the salt and the encrypted blocks, without a tag.

        A salt without the high bit is accepted. Raises PacketError if the value does not consist of a salt and blocks
        of 16 octets. Raises PacketError if the decrypted length is too large; the usual cause is a wrong secret.
        """
        if len(value) < 18 or len(value) % 16 != 2:
            raise PacketError(f"the salted value has the invalid length {len(value)}")
        clear = reveal_blocks(value[2:], self.secret, self.authenticator + value[:2])
        if clear[0] >= len(clear):
            raise PacketError(
                f"the salted value has {len(clear) - 1} octets but the length {clear[0]}: is the shared secret wrong?"
            )
        return clear[1 : clear[0] + 1]


def hidden_places(attributes: "Iterable[Attribute]") -> Mapping[tuple[int, int], int]:
    """Return the attributes that are encrypted in replies. These are the attributes in HIDDEN, which RFCs define, and
    the attributes with `encrypt=1` or `encrypt=2` in the dictionary.

    attributes: the values of `Dictionary.attributes`. Parts of TLVs are left out, because no sender encrypts them
    separately.
    """
    told = {
        (attribute.vendor, attribute.number): attribute.encrypt
        for attribute in attributes
        if attribute.encrypt in (AS_PASSWORD, SALTED) and not attribute.parent
    }
    return MappingProxyType({**told, **HIDDEN})


def rehide(attributes: bytes, received: Hiding, sent: Hiding, places: Mapping[tuple[int, int], int] = HIDDEN) -> bytes:
    """Re-encrypt the encrypted attributes of a reply for the next hop. Return all attributes in octets and in order.

    attributes: the octets after the header of the upstream server's verified reply. received: the encryption on the hop
    to the upstream server. sent: the encryption on the hop to the NAS. places: the encrypted attributes by (vendor,
    type) (see `hidden_places`). The result is never longer than the input. Raises PacketError if an attribute is
    malformed, or if an encrypted value cannot be decrypted.
    """
    return b"".join(
        push_attribute(kind, _rehide_attribute(kind, value, received, sent, places))
        for kind, value in pull_attributes(attributes)
    )


def _rehide_attribute(
    kind: int, value: bytes, received: Hiding, sent: Hiding, places: Mapping[tuple[int, int], int]
) -> bytes:
    if kind != VENDOR_SPECIFIC:
        return _rehide_value(places.get((0, kind)), value, received, sent)
    vendor, pairs = pull_vendor_attributes(value)
    if not any((vendor, inner) in places for inner, _ in pairs):
        return value
    return value[:4] + b"".join(
        push_attribute(inner, _rehide_value(places.get((vendor, inner)), octets, received, sent))
        for inner, octets in pairs
    )


def _rehide_value(how: int | None, value: bytes, received: Hiding, sent: Hiding) -> bytes:
    """Re-encrypt one value. A value with a tag before the salt has 3 + 16n octets; a value without a tag has 2 + 16n.

    how: the kind of encryption; None for an attribute that is not encrypted.
    """
    if how == AS_PASSWORD:
        if not value or len(value) % 16:
            raise PacketError(f"the encrypted value has {len(value)} octets, which is not a multiple of 16")
        clear = reveal_blocks(value, received.secret, received.authenticator)
        return hide_blocks(clear, sent.secret, sent.authenticator)
    if how == SALTED:
        tag = len(value) % 16 == 3
        return value[:tag] + sent.hide(received.reveal(value[tag:]))
    return value


def without_hidden(attributes: bytes, places: Mapping[tuple[int, int], int] = HIDDEN) -> bytes:
    """Return the attributes in octets, without the encrypted attributes. An encrypted value is valid only in the packet
    for which it was encrypted.

    places: the encrypted attributes by (vendor, type) (see `hidden_places`). A Vendor-Specific attribute that contains
    an encrypted attribute is removed as a whole. Raises PacketError if an attribute is malformed.
    """
    return b"".join(
        push_attribute(kind, value)
        for kind, value in pull_attributes(attributes)
        if not _is_hidden(kind, value, places)
    )


def _is_hidden(kind: int, value: bytes, places: Mapping[tuple[int, int], int]) -> bool:
    if kind != VENDOR_SPECIFIC:
        return (0, kind) in places
    vendor, pairs = pull_vendor_attributes(value)
    return any((vendor, inner) in places for inner, _ in pairs)
