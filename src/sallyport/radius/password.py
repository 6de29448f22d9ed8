"""The method of an Access-Request, and the fields of PAP and CHAP (RFC 2865 sections 5.2 and 5.3).

Passwords are octets here. `base.text.password_text` knows their encodings.
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
    """The authentication methods of logins. The constants are texts, because every event contains the method."""

    PAP: Final = "pap"
    CHAP: Final = "chap"
    MSCHAP: Final = "mschap"
    MSCHAP2: Final = "mschapv2"
    EAP: Final = "eap"  # events contain the inner method too, such as eap-peap-mschapv2
    EAP_TLS: Final = "eap-tls"
    PEAP_GTC: Final = "eap-peap-gtc"
    TTLS_GTC: Final = "eap-ttls-eap-gtc"
    MAB: Final = "mab"  # MAC authentication bypass
    NONE: Final = "none"


TYPED: Final = frozenset({Method.PAP, Method.CHAP, Method.PEAP_GTC, Method.TTLS_GTC})
"""The methods in which the user can answer an Access-Challenge with a typed code."""


_VERSION_1: Final = frozenset((MICROSOFT, kind) for kind in (MS_CHAP_RESPONSE, MS_CHAP_CPW_1, MS_CHAP_CPW_2))
_VERSION_2: Final = frozenset((MICROSOFT, kind) for kind in (MS_CHAP2_RESPONSE, MS_CHAP2_CPW))
"""The (vendor, type) of the attributes with an MS-CHAP attempt, by version."""


def method_of(request: Request) -> str:
    """Return the authentication method of an Access-Request: a constant of `Method`."""
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
    if not _VERSION_2.isdisjoint(values):
        return Method.MSCHAP2
    return Method.NONE if _VERSION_1.isdisjoint(values) else Method.MSCHAP


def sent_password(request: Request, secret: SharedSecret) -> bytes:
    """Return the decrypted password of a PAP request. Raises PacketError if the User-Password is malformed."""
    return reveal_password(request.first[USER_PASSWORD], secret, request.authenticator)


def sent_chap(request: Request) -> tuple[bytes, bytes]:
    """Return the value of CHAP-Password (identifier and response), and the challenge that the NAS has sent to the
    client."""
    return request.first[CHAP_PASSWORD], request.first.get(CHAP_CHALLENGE, request.authenticator)


def reveal_password(hidden: bytes, secret: SharedSecret, authenticator: bytes) -> bytes:
    """Decrypt a User-Password value of 16..128 octets (RFC 2865 section 5.2), and remove the padding.

    With a wrong secret the result is random octets, not an error. Raises PacketError if the length is not a multiple of
    16, or not 16..128.
    """
    size = len(hidden)
    if size == 16:
        pad = md5(secret.octets + authenticator).digest()
        return (int.from_bytes(pad) ^ int.from_bytes(hidden)).to_bytes(16).rstrip(b"\0")
    if not 16 < size <= MAX_PASSWORD or size & 15:
        raise PacketError(f"the User-Password has {size} octets; valid are multiples of 16 from 16 to {MAX_PASSWORD}")
    return reveal_blocks(hidden, secret, authenticator).rstrip(b"\0")


def is_garbled(password: bytes) -> bool:
    """Return whether a decrypted password contains control characters or is not UTF-8. This is true for nearly every
    password that was encrypted with another secret."""
    if any(octet < 0x20 or octet == 0x7F for octet in password):
        return True
    try:
        password.decode()
    except UnicodeDecodeError:
        return True
    return False


def hides_garbage(request: Request, secret: SharedSecret) -> bool:
    """Return whether the password of a PAP request was probably encrypted with a wrong secret. Return False for a
    signed request, because its Message-Authenticator proves that the secret is correct. Raises PacketError if the
    password is malformed."""
    return not request.signed and USER_PASSWORD in request.first and is_garbled(sent_password(request, secret))


def hide_password(password: bytes, secret: SharedSecret, authenticator: bytes) -> bytes:
    """Return the User-Password value for a password (RFC 2865 section 5.2). Raises ValueError if the password has more
    than 128 octets."""
    if len(password) > MAX_PASSWORD:
        raise ValueError(f"the password has {len(password)} octets, but RADIUS allows only {MAX_PASSWORD}")
    if len(password) <= 16:
        pad = md5(secret.octets + authenticator).digest()
        return (int.from_bytes(pad) ^ int.from_bytes(password.ljust(16, b"\0"))).to_bytes(16)
    return hide_blocks(password.ljust((len(password) + 15) // 16 * 16, b"\0"), secret, authenticator)


def reveal_blocks(hidden: bytes, secret: SharedSecret, seed: bytes) -> bytes:
    """Decrypt blocks of 16 octets. Each block was XORed with MD5(secret + the encrypted block before).

    seed: replaces the encrypted block before the first block. It is the authenticator (RFC 2865 section 5.2), or the
    authenticator and a salt (RFC 2868 section 3.5).
    """
    clear, last = b"", seed
    for at in range(0, len(hidden), 16):
        block = hidden[at : at + 16]
        pad = md5(secret.octets + last).digest()
        clear += (int.from_bytes(pad) ^ int.from_bytes(block)).to_bytes(16)
        last = block
    return clear


def hide_blocks(clear: bytes, secret: SharedSecret, seed: bytes) -> bytes:
    """Encrypt blocks of 16 octets. `reveal_blocks` is the inverse. clear: the length must be a multiple of 16."""
    octets, hidden, last = secret.octets, b"", seed
    for (block,) in _BLOCK.iter_unpack(clear):
        pad = md5(octets + last).digest()
        last = (int.from_bytes(pad) ^ int.from_bytes(block)).to_bytes(16)
        hidden += last
    return hidden


def chap_response(identifier: int, password: bytes, challenge: bytes) -> bytes:
    """Return the value of CHAP-Password: identifier and MD5(identifier + password + challenge) (RFC 2865 section
    5.3)."""
    return bytes((identifier,)) + md5(bytes((identifier,)) + password + challenge).digest()


def chap_holds(value: bytes, password: bytes, challenge: bytes) -> bool:
    """Return whether a CHAP-Password value of 17 octets was computed from this password."""
    return compare_digest(chap_response(value[0], password, challenge), value)
