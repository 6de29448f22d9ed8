"""MD4 (RFC 1320), which Windows makes NT password hashes with and OpenSSL 3 no longer offers.

Written for one block at a time: an NT hash of a password of up to 27 characters is one block, some 15 µs. The four
registers turn in place instead of being moved, so that a round is four times its four steps.
"""

import struct
from typing import Final

_WORD: Final = 0xFFFFFFFF
_BLOCK: Final = struct.Struct("<16I")
_STATE: Final = struct.Struct("<4I")
_START: Final = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)  # section 3.3


def md4(message: bytes) -> bytes:
    """The digest of a message of any length: 16 octets (RFC 1320 section 3). Not safe for anything new."""
    size = len(message)
    padded = message + b"\x80" + bytes(-(size + 9) % 64) + (size * 8 & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")
    state = _START
    for at in range(0, len(padded), 64):
        state = _mix(state, _BLOCK.unpack_from(padded, at))
    return _STATE.pack(*state)


def _mix(state: tuple[int, int, int, int], x: tuple[int, ...]) -> tuple[int, int, int, int]:
    """The state after one block of sixteen words: the three rounds of RFC 1320 section 3.4."""
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
