"""MS-CHAP and MS-CHAPv2: the attempt in a request, and how it is checked against a password (RFC 2433, 2759, 2548
section 2).

A client computes its response from the NT hash of the password. So the response can be checked with the password, with
its NT hash, or by a domain controller. `recognise` reads an attempt from a request, `NtKey` checks it, and
`mschap_reply` encodes the answer. The answer needs only the hash of the NT hash; winbind's ntlm_auth calls this hash
NT_KEY. The LAN Manager response (computed from the password in upper case) is not supported. An attempt with
only this response is Unusable.

The NT hash is an MD4 hash (RFC 1320), and OpenSSL 3 no longer has MD4. `_mix` processes one block, in about 15 µs. The
NT hash of a password of up to 27 characters takes one block. Each iteration of a loop makes four steps, so that the
four registers stay in the same variables.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from hmac import compare_digest
from typing import TYPE_CHECKING, Final, NamedTuple

from sallyport.base.text import password_text
from sallyport.radius.attributes import push_vendor_attribute

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

_WORD: Final = 0xFFFFFFFF
_BLOCK: Final = struct.Struct("<16I")
_STATE: Final = struct.Struct("<4I")
_START: Final = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)  # section 3.3


def md4(message: bytes) -> bytes:
    """Return the MD4 digest of a message, 16 octets (RFC 1320 section 3). MD4 is broken: do not use it for new
    purposes."""
    size = len(message)
    padded = message + b"\x80" + bytes(-(size + 9) % 64) + (size * 8 & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")
    state = _START
    for at in range(0, len(padded), 64):
        state = _mix(state, _BLOCK.unpack_from(padded, at))
    return _STATE.pack(*state)


def _mix(state: tuple[int, int, int, int], x: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Return the state after one block of sixteen words (the three rounds of RFC 1320 section 3.4)."""
    a, b, c, d = state
    for k in (0, 4, 8, 12):
        a = (a + (d ^ b & (c ^ d)) + x[k]) & _WORD
        a = (a << 3 | a >> 29) & _WORD
        d = (d + (c ^ a & (b ^ c)) + x[k + 1]) & _WORD
        d = (d << 7 | d >> 25) & _WORD
        c = (c + (b ^ d & (a ^ b)) + x[k + 2]) & _WORD
        c = (c << 11 | c >> 21) & _WORD
        b = (b + (a ^ c & (d ^ a)) + x[k + 3]) & _WORD
        b = (b << 19 | b >> 13) & _WORD
    for k in (0, 1, 2, 3):
        a = (a + (b & c | d & (b | c)) + x[k] + 0x5A827999) & _WORD
        a = (a << 3 | a >> 29) & _WORD
        d = (d + (a & b | c & (a | b)) + x[k + 4] + 0x5A827999) & _WORD
        d = (d << 5 | d >> 27) & _WORD
        c = (c + (d & a | b & (d | a)) + x[k + 8] + 0x5A827999) & _WORD
        c = (c << 9 | c >> 23) & _WORD
        b = (b + (c & d | a & (c | d)) + x[k + 12] + 0x5A827999) & _WORD
        b = (b << 13 | b >> 19) & _WORD
    for k in (0, 2, 1, 3):
        a = (a + (b ^ c ^ d) + x[k] + 0x6ED9EBA1) & _WORD
        a = (a << 3 | a >> 29) & _WORD
        d = (d + (a ^ b ^ c) + x[k + 8] + 0x6ED9EBA1) & _WORD
        d = (d << 9 | d >> 23) & _WORD
        c = (c + (d ^ a ^ b) + x[k + 4] + 0x6ED9EBA1) & _WORD
        c = (c << 11 | c >> 21) & _WORD
        b = (b + (c ^ d ^ a) + x[k + 12] + 0x6ED9EBA1) & _WORD
        b = (b << 15 | b >> 17) & _WORD
    return (state[0] + a) & _WORD, (state[1] + b) & _WORD, (state[2] + c) & _WORD, (state[3] + d) & _WORD


MICROSOFT: Final = 311
# RFC 2548 section 2
MS_CHAP_RESPONSE: Final = 1
MS_CHAP_ERROR: Final = 2
MS_CHAP_CPW_1: Final = 3
MS_CHAP_CPW_2: Final = 4
MS_MPPE_ENCRYPTION_POLICY: Final = 7
MS_MPPE_ENCRYPTION_TYPES: Final = 8
MS_CHAP_CHALLENGE: Final = 11
MS_CHAP_MPPE_KEYS: Final = 12
MS_MPPE_SEND_KEY: Final = 16
MS_MPPE_RECV_KEY: Final = 17
MS_CHAP2_RESPONSE: Final = 25
MS_CHAP2_SUCCESS: Final = 26
MS_CHAP2_CPW: Final = 27

# The attributes with an attempt: name, length of the value, and length of the MS-CHAP-Challenge, in octets (RFC 2548
# sections 2.1 and 2.3).
_OFFERS: Final = {
    MS_CHAP_RESPONSE: ("MS-CHAP-Response", 50, 8),
    MS_CHAP_CPW_1: ("MS-CHAP-CPW-1", 70, 8),
    MS_CHAP_CPW_2: ("MS-CHAP-CPW-2", 84, 8),
    MS_CHAP2_RESPONSE: ("MS-CHAP2-Response", 50, 16),
    MS_CHAP2_CPW: ("MS-CHAP2-CPW", 68, 16),
}
_PASSWORD_CHANGES: Final = {MS_CHAP_CPW_1: 1, MS_CHAP_CPW_2: 2, MS_CHAP2_CPW: 3}
_USE_NT_RESPONSE: Final = 0x01  # a flag of MS-CHAP-Response (RFC 2548 section 2.1.3)

# RFC 2759 section 8.7
_SIGNING: Final = b"Magic server to client signing constant"
_ITERATION: Final = b"Pad to make it do more than one iteration"


class MsChap1(NamedTuple):
    """An MS-CHAP attempt (RFC 2548 section 2.1.3). challenge: 8 octets. response: the NT response of 24 octets."""

    identifier: int
    challenge: bytes
    response: bytes

    def nt_challenge(self, name: bytes) -> bytes:
        """Return the 8-octet challenge for the NT response. In MS-CHAP, the name is not used."""
        return self.challenge


class MsChap2(NamedTuple):
    """An MS-CHAPv2 attempt (RFC 2548 section 2.3.2).

    challenge, peer_challenge: 16 octets each. response: 24 octets. flags: the octet Flags, as sent.
    """

    identifier: int
    challenge: bytes
    peer_challenge: bytes
    response: bytes
    flags: int = 0

    def nt_challenge(self, name: bytes) -> bytes:
        """Return the 8-octet challenge for the NT response (ChallengeHash of RFC 2759 section 8.2). The user's name is
        a part of the hash."""
        return sha1(self.peer_challenge + self.challenge + name).digest()[:8]


@dataclass(frozen=True, slots=True)
class PasswordChange:
    """A request to change an expired password (RFC 2548 sections 2.1.6, 2.1.7 and 2.3.4). It contains the new password,
    which this module does not decrypt.

    version: 1 for MS-CHAP-CPW-1, 2 for MS-CHAP-CPW-2, 3 for MS-CHAP2-CPW.
    """

    identifier: int
    version: int


@dataclass(frozen=True, slots=True)
class Unusable:
    """An MS-CHAP attempt that cannot be checked. reason: why it cannot be checked, without any part of the response."""

    reason: str


Offer = MsChap1 | MsChap2 | PasswordChange | Unusable


def recognise(values: Mapping[tuple[int, int], Sequence[bytes]]) -> Offer | None:
    """Return the MS-CHAP attempt of a request. Return None if the request has no attempt.

    values: the vendor attributes, as `Request.vendor_values()` returns them.
    """
    offers = [(key[1], value) for key in values if key[0] == MICROSOFT and key[1] in _OFFERS for value in values[key]]
    if not offers:
        return None
    if len(offers) > 1:
        return Unusable(" beside ".join(_OFFERS[kind][0] for kind, _ in sorted(offers)))
    challenges = values.get((MICROSOFT, MS_CHAP_CHALLENGE), ())
    if len(challenges) != 1:
        return Unusable(f"{len(challenges)} MS-CHAP-Challenges")
    return _offer(*offers[0], challenges[0])


def _offer(kind: int, value: bytes, challenge: bytes) -> Offer:
    name, size, challenge_size = _OFFERS[kind]
    if len(value) != size:
        return Unusable(f"{name} of {len(value)} octets")
    if len(challenge) != challenge_size:
        return Unusable(f"MS-CHAP-Challenge of {len(challenge)} octets beside {name}")
    if kind in _PASSWORD_CHANGES:
        return PasswordChange(value[1], _PASSWORD_CHANGES[kind])
    if kind == MS_CHAP2_RESPONSE:
        return MsChap2(value[0], challenge, value[2:18], value[26:], value[1])
    if not value[1] & _USE_NT_RESPONSE:
        return Unusable("a LAN Manager response, which is not supported")
    return MsChap1(value[0], challenge, value[26:])


def push_attempt(attempt: MsChap2) -> bytes:
    """Return the attributes of an MS-CHAPv2 attempt in octets (RFC 2548 sections 2.1.1 and 2.3.2). `recognise` is the
    inverse."""
    value = bytes((attempt.identifier, attempt.flags)) + attempt.peer_challenge + bytes(8) + attempt.response
    return push_vendor_attribute(MICROSOFT, MS_CHAP_CHALLENGE, attempt.challenge) + push_vendor_attribute(
        MICROSOFT, MS_CHAP2_RESPONSE, value
    )


def nt_hash(password: bytes) -> bytes:
    """Return NtPasswordHash of RFC 2759 section 8.3: the MD4 hash of the password in UTF-16LE, 16 octets.

    password: octets in UTF-8. Octets that are not valid UTF-8 are read as Windows-1252.
    """
    return md4(password_text(password).encode("utf-16-le"))


def nt_hash_hash(hashed: bytes) -> bytes:
    """Return HashNtPasswordHash of RFC 2759 section 8.4, 16 octets. winbind's ntlm_auth calls this hash NT_KEY."""
    return md4(hashed)


@cache
def _des_encryptor() -> "Callable[[bytes], CipherContext]":
    """Return a function that returns a DES context for a key. Commands import this module and need no cipher, so the
    library is imported here, and only once.

    OpenSSL has single DES only as Triple DES with three equal keys. In ECB mode one context can encrypt any number of
    blocks.
    """
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.modes import ECB

    return lambda key: Cipher(TripleDES(key * 3), ECB()).encryptor()  # noqa: S305


class NtKey:
    """The NT hash of a password, with prepared DES keys. One instance can check many responses.

    hashed: the result of `nt_hash`, 16 octets.
    """

    __slots__ = ("_ciphers", "_hash_hash", "hashed")

    def __init__(self, hashed: bytes) -> None:
        self.hashed = hashed
        self._hash_hash: bytes | None = None
        key = hashed.ljust(21, b"\0")  # RFC 2759 section 8.5
        encryptor = _des_encryptor()
        self._ciphers = [encryptor(des_key(key[at : at + 7])) for at in (0, 7, 14)]

    @property
    def hash_hash(self) -> bytes:
        """Return the hash of the NT hash (see `nt_hash_hash`)."""
        if self._hash_hash is None:
            self._hash_hash = nt_hash_hash(self.hashed)
        return self._hash_hash

    def response(self, challenge: bytes) -> bytes:
        """Return the 24-octet response to an 8-octet challenge (ChallengeResponse of RFC 2759 section 8.5)."""
        return b"".join([cipher.update(challenge) for cipher in self._ciphers])

    def made(self, attempt: MsChap1 | MsChap2, name: bytes) -> bool:
        """Return whether the response of an attempt was computed from this NT hash. The comparison takes constant time.

        name: the name that the client may have hashed (see `peer_names`). MS-CHAP ignores the name.
        """
        return compare_digest(self.response(attempt.nt_challenge(name)), attempt.response)


def challenge_response(challenge: bytes, hashed: bytes) -> bytes:
    """Return the 24-octet response to an 8-octet challenge (ChallengeResponse of RFC 2759 section 8.5).

    hashed: the NT hash of the password, 16 octets.
    """
    return NtKey(hashed).response(challenge)


def peer_names(user_name: bytes) -> tuple[bytes, ...]:
    r"""Return the names that a client may have used for its hash, without duplicates. The most likely name is first.

    RFC 2759 section 4 requires the name without `DOMAIN\`. Some clients hash the complete name that they send. Other
    clients hash the name without its `@realm`.
    """
    plain = user_name.partition(b"\\")[2] or user_name
    return tuple(dict.fromkeys((plain, user_name, plain.rpartition(b"@")[0] or plain)))


def authenticator_response(attempt: MsChap2, hash_hash: bytes, name: bytes) -> bytes:
    """Return `S=` and 40 hexadecimal digits. They prove to the client that the server knows the password
    (GenerateAuthenticatorResponse of RFC 2759 section 8.7).

    hash_hash: the hash of the NT hash, 16 octets (see `nt_hash_hash`). name: the name that the client has hashed.
    """
    inner = sha1(hash_hash + attempt.response + _SIGNING).digest()
    return b"S=" + sha1(inner + attempt.nt_challenge(name) + _ITERATION).hexdigest().upper().encode()


def des_key(septets: bytes) -> bytes:
    """Return the 8-octet DES key with odd parity for a 7-octet key (RFC 2759 section 8.6)."""
    bits = int.from_bytes(septets)
    octets = ((bits >> shift & 0x7F) << 1 for shift in range(49, -1, -7))
    return bytes(octet | ~octet.bit_count() & 1 for octet in octets)
