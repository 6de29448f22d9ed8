"""Pre-shared keys of stations: their form, and the attributes that give one to an access point.

A key is a passphrase of 8 to 63 printable ASCII characters, or the 256-bit key itself in 64 hex digits (IEEE
802.11-2020, annex J.4). An access point asks for the key with a bypass request, before the station joins. The product
decides about the attribute:

    Tunnel-Password          hostapd with wpa_psk_radius=2, products on it, Cisco Meraki: salted, with a tag
    Aruba-MPSK-Passphrase    Aruba: salted
    Cisco-AVPair             Cisco: `psk-mode=ascii` and `psk=...`, in clear
    Ruckus-DPSK              Ruckus: the key that follows from passphrase and SSID, 32 octets, in clear
    Mikrotik-Wireless-PSK    MikroTik: in clear

An unknown product gets Tunnel-Password.
"""

import re
from base64 import b32encode
from dataclasses import dataclass, field
from hashlib import pbkdf2_hmac
from secrets import token_bytes
from typing import Final

from sallyport.radius.attributes import push_attribute, push_vendor_attribute
from sallyport.radius.salted import Hiding

TUNNEL_PASSWORD: Final = 69
ARUBA, CISCO, RUCKUS, MIKROTIK = 14823, 9, 25053, 14988
_PASSPHRASE: Final = re.compile(rb"[ -~]{8,63}")
_KEY: Final = re.compile(rb"[0-9A-Fa-f]{64}")


@dataclass(frozen=True, slots=True)
class KeyAttributes:
    """Encoded attributes with a key. in_clear: whether they have the key without encryption."""

    attributes: bytes = field(repr=False)
    in_clear: bool = False


def is_psk(key: bytes) -> bool:
    """Return whether a key has a valid form."""
    return bool(_PASSPHRASE.fullmatch(key) or _KEY.fullmatch(key))


def new_psks(number: int) -> list[bytes]:
    """Return new passphrases: each has 20 letters and digits from 2 to 7, with 100 bits of entropy. They come from one
    read of random octets, because a read takes up to 30 µs."""
    octets = token_bytes(13 * number)
    return [b32encode(octets[at : at + 13])[:20].lower() for at in range(0, len(octets), 13)]


def own_pairwise_key(key: bytes) -> bytes:
    """Return the 32 octets of a key in hexadecimal digits, or b"" if the key is a passphrase."""
    return bytes.fromhex(key.decode()) if _KEY.fullmatch(key) else b""


def derived_pairwise_key(passphrase: bytes, ssid: str) -> bytes:
    """Return the 32 octets that follow from a passphrase and an SSID (IEEE 802.11-2020, annex J.4.1). It takes about
    2 ms, without the lock of the interpreter, so call it in a thread."""
    return pbkdf2_hmac("sha1", passphrase, ssid.encode(), 4096, 32)


def key_attributes(key: bytes, product: str, hiding: Hiding, pmk: bytes) -> KeyAttributes:
    """Return the attributes that give a key to an access point.

    product: the product of the NAS. hiding: the encryption of values in the answer. pmk: the pairwise key for the SSID;
    only Ruckus needs it.
    """
    if product.startswith("Aruba"):
        return KeyAttributes(push_vendor_attribute(ARUBA, 44, hiding.hide(key)))
    if product == "Ruckus":
        return KeyAttributes(push_vendor_attribute(RUCKUS, 142, pmk), in_clear=True)
    if product.startswith("MikroTik"):
        return KeyAttributes(push_vendor_attribute(MIKROTIK, 16, key), in_clear=True)
    if product.startswith("Cisco") and product != "Cisco Meraki":
        mode = b"psk-mode=hex" if _KEY.fullmatch(key) else b"psk-mode=ascii"
        pairs = (mode, b"psk=" + key)
        return KeyAttributes(b"".join(push_vendor_attribute(CISCO, 1, pair) for pair in pairs), in_clear=True)
    return KeyAttributes(push_attribute(TUNNEL_PASSWORD, b"\0" + hiding.hide(key)))
