"""Status lists: one packed bit for each credential (W3C StatusList2021 section 3.2, Bitstring Status List section 3.2).

Bit i is `octet[i >> 3] & (0x80 >> (i & 7))`. A list has at least 131,072 bits, so that a credential hides among others.
"""

import gzip
import zlib
from typing import Final

from sallyport.base.errors import CredentialError
from sallyport.did.crypto.encoding import from_base64url, to_base64url

BITS: Final = 131_072
MAX_OCTETS: Final = 1 << 20
"""Of a list that is unpacked: eight million credentials."""


def pack(octets: bytes) -> str:
    """gzip, and base64url without padding. The same list always gives the same text."""
    return to_base64url(gzip.compress(octets, mtime=0))


def unpack(text: str) -> bytes:
    """What was packed, with or without Bitstring's `u` in front. CredentialError `status`: no gzip, cut off, shorter
    than a list is, or larger than one that is taken."""
    inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        octets = inflate.decompress(from_base64url(text.removeprefix("u")), MAX_OCTETS + 1)
    except (zlib.error, CredentialError):
        raise CredentialError("the status list is no packed list", "status") from None
    if len(octets) > MAX_OCTETS or not inflate.eof or inflate.unused_data or len(octets) * 8 < BITS:
        raise CredentialError("the status list has a size that is not taken", "status")
    return octets


def get(octets: bytes, index: int) -> bool:
    """Whether a bit is set. CredentialError `status`: the list has no such bit."""
    if not 0 <= index < len(octets) * 8:
        raise CredentialError("the status list has no such entry", "status")
    return bool(octets[index >> 3] & (0x80 >> (index & 7)))


def put(octets: bytearray, index: int) -> None:
    """Set a bit that the list has."""
    octets[index >> 3] |= 0x80 >> (index & 7)
