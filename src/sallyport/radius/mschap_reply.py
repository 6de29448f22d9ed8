"""The attributes of the answer to an MS-CHAP attempt: the authenticator response, the MPPE keys, or the error (RFC 2548
section 2, RFC 3079).

All functions need only the hash of the NT hash: the result of `mschap.nt_hash_hash`, or the session key that a domain
controller returns. The `push_` functions return attributes in octets, each in a Vendor-Specific attribute of its own.
"""

from enum import IntEnum
from hashlib import sha1
from typing import Final

from sallyport.radius.attributes import push_vendor_attribute
from sallyport.radius.mschap import (
    MICROSOFT,
    MS_CHAP2_SUCCESS,
    MS_CHAP_ERROR,
    MS_CHAP_MPPE_KEYS,
    MS_MPPE_ENCRYPTION_POLICY,
    MS_MPPE_ENCRYPTION_TYPES,
    MS_MPPE_RECV_KEY,
    MS_MPPE_SEND_KEY,
    MsChap1,
    MsChap2,
    PasswordChange,
    authenticator_response,
)
from sallyport.radius.password import hide_password
from sallyport.radius.salted import Hiding

_ALLOWED: Final = 1
_RC4_OF_40_OR_128_BITS: Final = 6
ENCRYPTION: Final = push_vendor_attribute(
    MICROSOFT, MS_MPPE_ENCRYPTION_POLICY, _ALLOWED.to_bytes(4)
) + push_vendor_attribute(MICROSOFT, MS_MPPE_ENCRYPTION_TYPES, _RC4_OF_40_OR_128_BITS.to_bytes(4))
"""MS-MPPE-Encryption-Policy and MS-MPPE-Encryption-Types of an Access-Accept (RFC 2548 sections 2.4.4 and 2.4.5). The
client may encrypt, with keys of 40 or 128 bits."""

# RFC 3079 section 3.4
_MASTER_KEY: Final = b"This is the MPPE Master Key"
_PAD_1: Final = bytes(40)
_PAD_2: Final = b"\xf2" * 40
_CLIENT_SENDS: Final = (
    _PAD_1 + b"On the client side, this is the send key; on the server side, it is the receive key." + _PAD_2
)
_SERVER_SENDS: Final = (
    _PAD_1 + b"On the client side, this is the receive key; on the server side, it is the send key." + _PAD_2
)


class ErrorCode(IntEnum):
    """The error codes of a failed login (RFC 2433 section 5, RFC 2759 section 6)."""

    RESTRICTED_LOGON_HOURS = 646
    ACCOUNT_DISABLED = 647
    PASSWORD_EXPIRED = 648
    NO_DIALIN_PERMISSION = 649
    AUTHENTICATION_FAILURE = 691
    CHANGING_PASSWORD = 709


def push_success(attempt: MsChap1 | MsChap2, hash_hash: bytes, name: bytes, hiding: Hiding) -> bytes:
    """Return the attributes of an Access-Accept that differ for each correct attempt: MS-CHAP2-Success and the MPPE
    keys. After MS-CHAP (version 1), there is no MS-CHAP2-Success. `ENCRYPTION` has the other attributes.

    hash_hash: the hash of the NT hash, 16 octets. name: the name that the client has hashed. hiding: encrypts the keys.
    """
    if isinstance(attempt, MsChap1):
        return push_chap_keys(hash_hash, hiding)
    proof = bytes((attempt.identifier,)) + authenticator_response(attempt, hash_hash, name)
    master = master_key(hash_hash, attempt.response)
    return push_vendor_attribute(MICROSOFT, MS_CHAP2_SUCCESS, proof) + push_mppe_keys(
        start_key(master, sent=False), start_key(master, sent=True), hiding
    )


def push_error(
    attempt: MsChap1 | MsChap2 | PasswordChange,
    code: ErrorCode,
    *,
    challenge: bytes,
    retry: bool = False,
    message: str = "",
) -> bytes:
    """Return MS-CHAP-Error for an Access-Reject (RFC 2548 section 2.1.5, RFC 2433 section 5, RFC 2759 section 6).

    challenge: 16 new random octets for the client's next try; MS-CHAP uses only the first 8. retry: whether the client
    may try another password. message: a text for the user, sent only in MS-CHAPv2; up to 100 octets of UTF-8 always
    fit. Raises ValueError if the message is too long, or if the challenge does not have 16 octets.
    """
    if len(challenge) != 16:
        raise ValueError(f"the challenge has {len(challenge)} octets instead of 16")
    second = isinstance(attempt, MsChap2) or (isinstance(attempt, PasswordChange) and attempt.version == 3)
    text = f"E={code:d} R={retry:d} C={challenge[: 16 if second else 8].hex()} V={3 if second else 2}"
    if second and message:
        text += f" M={message}"
    return push_vendor_attribute(MICROSOFT, MS_CHAP_ERROR, bytes((attempt.identifier,)) + text.encode())


def push_chap_keys(hash_hash: bytes, hiding: Hiding) -> bytes:
    """Return MS-CHAP-MPPE-Keys, encrypted like a User-Password (RFC 2548 section 2.4.1). The value contains three
    parts: zeros in the place of the LAN Manager key, the NT key, and padding."""
    keys = hide_password(bytes(8) + hash_hash + bytes(8), hiding.secret, hiding.authenticator)
    return push_vendor_attribute(MICROSOFT, MS_CHAP_MPPE_KEYS, keys)


def push_mppe_keys(receive: bytes, send: bytes, hiding: Hiding) -> bytes:
    """Return MS-MPPE-Recv-Key and MS-MPPE-Send-Key (RFC 2548 sections 2.4.2 and 2.4.3).

    receive: the key for the octets that the NAS receives. send: the key for the octets that the NAS sends. After
    MS-CHAPv2, a key has 16 octets. After EAP, the keys are the first and the second 32 octets of the MSK (RFC 5216
    section 2.3).
    """
    return push_vendor_attribute(MICROSOFT, MS_MPPE_RECV_KEY, hiding.hide(receive)) + push_vendor_attribute(
        MICROSOFT, MS_MPPE_SEND_KEY, hiding.hide(send)
    )


def master_key(hash_hash: bytes, response: bytes) -> bytes:
    """Return the master key (GetMasterKey of RFC 3079 section 3.4), 16 octets. response: the response of the attempt,
    24 octets."""
    return sha1(hash_hash + response + _MASTER_KEY).digest()[:16]


def start_key(master: bytes, *, sent: bool) -> bytes:
    """Return the 128-bit start key of the server side, 16 octets (GetAsymmetricStartKey of RFC 3079 section 3.4).

    sent: True for the key of the octets that the NAS sends, False for the key of the octets that the NAS receives.
    """
    return sha1(master + (_SERVER_SENDS if sent else _CLIENT_SENDS)).digest()[:16]
