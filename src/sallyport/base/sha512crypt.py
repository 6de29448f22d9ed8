"""Passwords as /etc/shadow takes them on every Linux: `$6$salt$...`, SHA-512 in 5,000 rounds.

By U. Drepper, "Unix crypt using SHA-256 and SHA-512", version 0.6; the numbers in the comments are its steps. It is
here since the service makes such hashes for machines of any kind, and Python's own `crypt` is gone after 3.12.
"""

import hmac
import secrets
from hashlib import sha512
from typing import Final

ROUNDS: Final = 5000
SALT: Final = 16
_PREFIX: Final = "$6$"
_ALPHABET: Final = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_SIZE: Final = 64


def sha512_crypt(password: bytes, salt: str | None = None) -> str:
    """The hash of a password; it takes some milliseconds. salt: 1 to 16 letters of the alphabet; random unless given.

    ValueError: the password holds NUL, with which it would end for crypt(3), or the salt is none.
    """
    chosen = "".join(secrets.choice(_ALPHABET) for _ in range(SALT)) if salt is None else salt
    if b"\0" in password or not 1 <= len(chosen) <= SALT or not set(chosen) <= set(_ALPHABET):
        raise ValueError("a password without NUL, and a salt of 1 to 16 letters")
    return f"{_PREFIX}{chosen}${_encoded(_digest(password, chosen.encode()))}"


def matches(password: bytes, hashed: str) -> bool:
    """Whether a hash that `sha512_crypt` made is this password's."""
    _, kind, salt, *_ = [*hashed.split("$"), "", "", ""]
    try:
        return kind == "6" and hmac.compare_digest(sha512_crypt(password, salt).encode(), hashed.encode())
    except ValueError:
        return False


def _digest(password: bytes, salt: bytes) -> bytes:
    other = sha512(password + salt + password).digest()  # 4 to 8
    mixed = sha512(password + salt + _stretched(other, len(password)))  # 1 to 3, 9, 10
    bits = len(password)
    while bits:  # 11
        mixed.update(other if bits & 1 else password)
        bits >>= 1
    digest = mixed.digest()
    p = _stretched(sha512(password * len(password)).digest(), len(password))  # 13 to 16
    s = _stretched(sha512(salt * (16 + digest[0])).digest(), len(salt))  # 17 to 20
    for turn in range(ROUNDS):  # 21
        octets = p if turn & 1 else digest
        octets += (s if turn % 3 else b"") + (p if turn % 7 else b"")
        digest = sha512(octets + (digest if turn & 1 else p)).digest()
    return digest


def _stretched(digest: bytes, length: int) -> bytes:
    """A digest, repeated and cut to a length."""
    return (digest * (length // _SIZE + 1))[:length]


def _encoded(digest: bytes) -> str:
    """22: three octets at a time, the lowest six bits first, in an order that walks round the thirds."""
    groups = [(turn, turn + 21, turn + 42) for turn in range(21)]
    turned = [group[turn % 3 :] + group[: turn % 3] for turn, group in enumerate(groups)]
    text = [_letters(digest[high] << 16 | digest[middle] << 8 | digest[low], 4) for high, middle, low in turned]
    return "".join(text) + _letters(digest[63], 2)


def _letters(number: int, count: int) -> str:
    return "".join(_ALPHABET[number >> 6 * place & 63] for place in range(count))
