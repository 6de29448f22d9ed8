"""Values of a reply that only its NAS may read: keys and tunnel passwords (RFC 2548 section 2.4, RFC 2868 section 3.5).

They are hidden with the secret of one hop and the authenticator of the request on that hop. So a proxy cannot forward
them as they are: `rehide` opens the value of the upstream server and hides it for the NAS.
"""

from collections.abc import Iterable, Mapping
from secrets import token_bytes
from types import MappingProxyType
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import VENDOR_SPECIFIC, pull_attributes, pull_vendor_attributes, push_attribute
from sallyport.radius.packet import SharedSecret
from sallyport.radius.password import hide_blocks, reveal_blocks
from sallyport.radius.values import Attribute

AS_PASSWORD: Final = 1
SALTED: Final = 2
MAX_CLEAR: Final = 239
"""Octets that fit: with their length and padding 15 blocks of 16, and no 16th has room in an attribute."""

HIDDEN: Final[Mapping[tuple[int, int], int]] = MappingProxyType(
    {
        (0, 69): SALTED,  # Tunnel-Password (RFC 2868 section 3.5)
        (311, 12): AS_PASSWORD,  # MS-CHAP-MPPE-Keys (RFC 2548 section 2.4.1)
        (311, 16): SALTED,  # MS-MPPE-Send-Key (RFC 2548 section 2.4.2)
        (311, 17): SALTED,  # MS-MPPE-Recv-Key (RFC 2548 section 2.4.3)
    }
)
"""(vendor, type) of the attributes that the RFCs hide in a reply, and how: the numbers of a dictionary's `encrypt=`."""


class Hiding:
    """The inputs that hide the values of one reply. It draws the salts in turn, so it belongs to one packet alone.

    secret: of the hop. authenticator: the 16 octets of the request that the reply answers.
    """

    __slots__ = ("_salt", "authenticator", "secret")

    def __init__(self, secret: SharedSecret, authenticator: bytes) -> None:
        self.secret = secret
        self.authenticator = authenticator
        self._salt = int.from_bytes(token_bytes(2))

    def hide(self, clear: bytes) -> bytes:
        """Return salt and hidden octets of a key or password of up to 239 octets (RFC 2548 section 2.4.2).

        Returns 2 + 16n octets, n at least 1; the caller puts a tag before them if there is one. The salt has its high
        bit set, and differs in each call. ValueError: the value is longer.
        """
        if len(clear) > MAX_CLEAR:
            raise ValueError(f"a value of {len(clear)} octets; hidden, RADIUS carries {MAX_CLEAR}")
        self._salt = self._salt + 1 & 0x7FFF
        salt = (0x8000 | self._salt).to_bytes(2)
        padded = bytes((len(clear),)) + clear + bytes(-(len(clear) + 1) % 16)
        return salt + hide_blocks(padded, self.secret, self.authenticator + salt)

    def reveal(self, value: bytes) -> bytes:
        """Return the key or password in a value without tag, the counterpart of `hide`.

        A salt without its high bit is accepted too. PacketError: the value is not a salt and blocks of 16 octets, or
        the length inside runs past them, which is the usual result of a wrong secret.
        """
        if len(value) < 18 or len(value) % 16 != 2:
            raise PacketError(f"a salted value of {len(value)} octets")
        clear = reveal_blocks(value[2:], self.secret, self.authenticator + value[:2])
        if clear[0] >= len(clear):
            raise PacketError(f"a salted value with {clear[0]} octets in {len(clear) - 1}: another secret?")
        return clear[1 : clear[0] + 1]


def hidden_places(attributes: Iterable[Attribute]) -> Mapping[tuple[int, int], int]:
    """Return `HIDDEN` and the attributes that a dictionary marks with `encrypt=`.

    attributes: `Dictionary.attributes.values()`. Parts of TLVs are left out: no sender encrypts them one by one.
    """
    told = {
        (attribute.vendor, attribute.number): attribute.encrypt
        for attribute in attributes
        if attribute.encrypt in (AS_PASSWORD, SALTED) and not attribute.parent
    }
    return MappingProxyType({**told, **HIDDEN})


def rehide(attributes: bytes, received: Hiding, sent: Hiding, places: Mapping[tuple[int, int], int] = HIDDEN) -> bytes:
    """Return the attributes of a reply with the hidden ones hidden again, and all others unchanged, in order.

    attributes: the octets after the header of the upstream's reply, which was proved to be authentic. received: the
    upstream's secret and the authenticator of our request to it. sent: the NAS's secret and its request's
    authenticator. places: (vendor, type) of hidden attributes, see `hidden_places`. The result is never longer.
    PacketError: an attribute is malformed, or a hidden value does not open.
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
    """Hide a value again. Its length shows whether a tag precedes the salt: 3 + 16n octets instead of 2 + 16n."""
    if how == AS_PASSWORD:
        if not value or len(value) % 16:
            raise PacketError(f"a hidden value of {len(value)} octets")
        clear = reveal_blocks(value, received.secret, received.authenticator)
        return hide_blocks(clear, sent.secret, sent.authenticator)
    if how == SALTED:
        tag = len(value) % 16 == 3
        return value[:tag] + sent.hide(received.reveal(value[tag:]))
    return value


def without_hidden(attributes: bytes, places: Mapping[tuple[int, int], int] = HIDDEN) -> bytes:
    """Return attributes in octets without the hidden ones, which belong to one answer only.

    places: (vendor, type) of hidden attributes, see `hidden_places`. A Vendor-Specific with a hidden pair is left out
    as a whole. PacketError: an attribute is malformed.
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
