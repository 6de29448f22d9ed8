"""Password hashes for /etc/shadow that every Linux accepts: `$6$salt$...`, SHA-512 with 5,000 rounds.

The algorithm is described in "Unix crypt using SHA-256 and SHA-512", version 0.6, by U. Drepper. The numbers in
comments are the steps of this description. This module implements the algorithm, because the service creates hashes for
other machines, and Python has no `crypt` module after version 3.12.
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
    """Return the hash of a password. The calculation takes some milliseconds.

    salt: 1 to 16 letters, digits, `.` or `/`; None for a random salt. Raises ValueError if the salt is malformed, or if
    the password contains NUL, because crypt(3) ignores everything after a NUL.
    """
    chosen = "".join(secrets.choice(_ALPHABET) for _ in range(SALT)) if salt is None else salt
    if b"\0" in password or not 1 <= len(chosen) <= SALT or not set(chosen) <= set(_ALPHABET):
        raise ValueError("the password must not contain NUL, and the salt must have 1 to 16 letters")
    return f"{_PREFIX}{chosen}${_encoded(_digest(password, chosen.encode()))}"


def matches(password: bytes, hashed: str) -> bool:
    """Return whether a password has this hash. hashed: a hash of `sha512_crypt`."""
    _, kind, salt, *_ = [*hashed.split("$"), "", "", ""]
    try:
        return kind == "6" and hmac.compare_digest(sha512_crypt(password, salt).encode(), hashed.encode())
    except ValueError:
        return False


def _digest(password: bytes, salt: bytes) -> bytes:
    other = sha512(password + salt + password).digest()  # steps 4 to 8
    mixed = sha512(password + salt + _stretched(other, len(password)))  # steps 1 to 3, 9, 10
    bits = len(password)
    while bits:  # step 11
        mixed.update(other if bits & 1 else password)
        bits >>= 1
    digest = mixed.digest()
    p = _stretched(sha512(password * len(password)).digest(), len(password))  # steps 13 to 16
    s = _stretched(sha512(salt * (16 + digest[0])).digest(), len(salt))  # steps 17 to 20
    for turn in range(ROUNDS):  # step 21
        octets = p if turn & 1 else digest
        octets += (s if turn % 3 else b"") + (p if turn % 7 else b"")
        digest = sha512(octets + (digest if turn & 1 else p)).digest()
    return digest


def _stretched(digest: bytes, length: int) -> bytes:
    """Repeat a digest up to a length, and truncate the result to the length."""
    return (digest * (length // _SIZE + 1))[:length]


def _encoded(digest: bytes) -> str:
    """Encode a digest in the base64 of crypt(3) (step 22). Three octets are encoded at a time, and their order rotates.
    In each group, the lowest six bits come first."""
    groups = [(turn, turn + 21, turn + 42) for turn in range(21)]
    turned = [group[turn % 3 :] + group[: turn % 3] for turn, group in enumerate(groups)]
    text = [_letters(digest[high] << 16 | digest[middle] << 8 | digest[low], 4) for high, middle, low in turned]
    return "".join(text) + _letters(digest[63], 2)


def _letters(number: int, count: int) -> str:
    return "".join(_ALPHABET[number >> 6 * index & 63] for index in range(count))
