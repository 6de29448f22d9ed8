"""The method of an Access-Request, and the fields of PAP and CHAP (RFC 2865 sections 5.2 and 5.3).

Octets in, octets out: no encoding is assumed.
"""

from hmac import compare_digest
from struct import Struct
from typing import Final

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import (
    CHAP_CHALLENGE,
    CHAP_PASSWORD,
    EAP_MESSAGE,
    USER_PASSWORD,
    VENDOR_SPECIFIC,
)
from sallyport.radius.mschap import (
    MICROSOFT,
    MS_CHAP2_CPW,
    MS_CHAP2_RESPONSE,
    MS_CHAP_CPW_1,
    MS_CHAP_CPW_2,
    MS_CHAP_RESPONSE,
)
from sallyport.radius.packet import Request, SharedSecret, md5

MAX_PASSWORD = 128
_BLOCK: Final = Struct("16s")


class Method:
    """The authentication method of a login, as plain text, since every event contains it."""

    PAP: Final = "pap"
    CHAP: Final = "chap"
    MSCHAP: Final = "mschap"
    MSCHAP2: Final = "mschapv2"
    EAP: Final = "eap"  # events name the inner method too: eap-peap-mschapv2
    EAP_TLS: Final = "eap-tls"
    PEAP_GTC: Final = "eap-peap-gtc"
    TTLS_GTC: Final = "eap-ttls-eap-gtc"
    MAB: Final = "mab"  # MAC authentication bypass
    NONE: Final = "none"


TYPED: Final = frozenset({Method.PAP, Method.CHAP, Method.PEAP_GTC, Method.TTLS_GTC})
"""The methods by which a user can answer a challenge with a code."""


def method_of(request: Request) -> str:
    """Return the method of an Access-Request, as `Method` names it."""
    first = request.first
    if USER_PASSWORD in first:
        return Method.PAP
    if CHAP_PASSWORD in first:
        return Method.CHAP
    if EAP_MESSAGE in first:
        return Method.EAP
    return _microsoft(request) if VENDOR_SPECIFIC in first else Method.NONE


def _microsoft(request: Request) -> str:
    values = request.vendor_values()
    if any((MICROSOFT, kind) in values for kind in (MS_CHAP2_RESPONSE, MS_CHAP2_CPW)):
        return Method.MSCHAP2
    if any((MICROSOFT, kind) in values for kind in (MS_CHAP_RESPONSE, MS_CHAP_CPW_1, MS_CHAP_CPW_2)):
        return Method.MSCHAP
    return Method.NONE


def sent_password(request: Request, secret: SharedSecret) -> bytes:
    """Return the User-Password of a PAP request in clear. PacketError: it is malformed."""
    return reveal_password(request.first[USER_PASSWORD], secret, request.authenticator)


def sent_chap(request: Request) -> tuple[bytes, bytes]:
    """Return the CHAP-Password of a request (identifier and response), and the challenge that it answers."""
    return request.first[CHAP_PASSWORD], request.first.get(CHAP_CHALLENGE, request.authenticator)


def reveal_password(hidden: bytes, secret: SharedSecret, authenticator: bytes) -> bytes:
    """Return the password of a User-Password value of 16..128 octets (RFC 2865 section 5.2).

    Octets of padding are removed from the end. A wrong secret gives other octets, not an error. PacketError: the length
    is no multiple of 16 up to 128.
    """
    size = len(hidden)
    if size == 16:
        pad = md5(secret.octets + authenticator).digest()
        return (int.from_bytes(pad) ^ int.from_bytes(hidden)).to_bytes(16).rstrip(b"\0")
    if not 16 < size <= MAX_PASSWORD or size & 15:
        raise PacketError(f"User-Password of {size} octets")
    return reveal_blocks(hidden, secret, authenticator).rstrip(b"\0")


def is_garbled(password: bytes) -> bool:
    """Return whether a decrypted password is unlikely to be one: it has control characters, or is not UTF-8. Nearly
    every password that was hidden with another secret looks so."""
    if any(octet < 0x20 or octet == 0x7F for octet in password):
        return True
    try:
        password.decode()
    except UnicodeDecodeError:
        return True
    return False


def hides_garbage(request: Request, secret: SharedSecret) -> bool:
    """Return whether an unsigned PAP request has a password that was probably hidden with another secret. A signed
    request proves its secret. PacketError: the password is malformed."""
    return not request.signed and USER_PASSWORD in request.first and is_garbled(sent_password(request, secret))


def hide_password(password: bytes, secret: SharedSecret, authenticator: bytes) -> bytes:
    """Return the User-Password value of up to 128 octets of password (RFC 2865 section 5.2). ValueError: longer."""
    if len(password) > MAX_PASSWORD:
        raise ValueError(f"a password of {len(password)} octets; RADIUS carries {MAX_PASSWORD}")
    clear = password.ljust(max(16, (len(password) + 15) // 16 * 16), b"\0")
    return hide_blocks(clear, secret, authenticator)


def reveal_blocks(hidden: bytes, secret: SharedSecret, seed: bytes) -> bytes:
    """Return blocks of 16 octets in clear: each was XORed with MD5(secret + the hidden block before it).

    seed: the input before the first block: the authenticator (RFC 2865 section 5.2), or the authenticator and a salt
    (RFC 2868 section 3.5).
    """
    clear, last = b"", seed
    for at in range(0, len(hidden), 16):
        block = hidden[at : at + 16]
        pad = md5(secret.octets + last).digest()
        clear += (int.from_bytes(pad) ^ int.from_bytes(block)).to_bytes(16)
        last = block
    return clear


def hide_blocks(clear: bytes, secret: SharedSecret, seed: bytes) -> bytes:
    """Hide blocks, the counterpart of `reveal_blocks`. clear: a multiple of 16 octets."""
    octets, hidden, last = secret.octets, b"", seed
    for (block,) in _BLOCK.iter_unpack(clear):
        pad = md5(octets + last).digest()
        last = (int.from_bytes(pad) ^ int.from_bytes(block)).to_bytes(16)
        hidden += last
    return hidden


def chap_response(identifier: int, password: bytes, challenge: bytes) -> bytes:
    """Return the CHAP-Password value: identifier and MD5(identifier + password + challenge) (RFC 2865 section 5.3)."""
    return bytes((identifier,)) + md5(bytes((identifier,)) + password + challenge).digest()


def chap_holds(value: bytes, password: bytes, challenge: bytes) -> bool:
    """Return whether a CHAP-Password value of 17 octets was made from the password."""
    return compare_digest(chap_response(value[0], password, challenge), value)
