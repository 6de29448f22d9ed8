"""Hashes of short secrets that people type: passwords of local administrators, and bypass codes. The function is
Argon2id (RFC 9106), with the parameters that OWASP recommends.

A hash takes 35 ms of a worker thread and 19 MiB. Other threads go on meanwhile. Earlier versions stored passwords
as SHA-512-crypt, which they calculated in Python; such a hash is replaced at the next sign-in.
"""

import secrets
from typing import Final

from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from sallyport.base.sha512crypt import matches as matches_former

MEMORY_KIB: Final = 19 * 1024
PASSES: Final = 2
_PREFIX: Final = "$argon2id$"


def hashed(password: bytes) -> str:
    """Return the hash of a password, in the form of the reference implementation: `$argon2id$v=19$...`."""
    kdf = Argon2id(salt=secrets.token_bytes(16), length=32, iterations=PASSES, lanes=1, memory_cost=MEMORY_KIB)
    return kdf.derive_phc_encoded(password)


def checked(password: bytes, known: str) -> tuple[bool, str]:
    """Return whether a password has a hash, and the hash that replaces it, or an empty text if it stays.

    known: a hash of `hashed`, or of SHA-512-crypt; empty if there is no administrator. An empty text takes as long as a
    hash of `hashed`, so that the time does not show which names exist.
    """
    if known.startswith(_PREFIX):
        try:
            Argon2id.verify_phc_encoded(password, known)
        except (InvalidKey, ValueError):  # another password, or a hash that cannot be read
            return False, ""
        return True, ""
    new = hashed(password)
    return matches_former(password, known), new
