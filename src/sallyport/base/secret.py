"""Secrets in memory that logs, errors and repr do not show. Random tokens, keys, shared secrets and error ids."""

import hashlib
import hmac
import secrets
import string
from typing import Final


class Secret:
    """Secret octets, shown as `***`. Only `reveal` returns the octets. Comparisons take constant time."""

    __slots__ = ("_octets",)

    def __init__(self, octets: bytes) -> None:
        self._octets: Final = octets

    def reveal(self) -> bytes:
        """Return the secret octets. Call this method only where the octets are used."""
        return self._octets

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._octets, other._octets)

    def __hash__(self) -> int:
        return hash((Secret, self._octets))

    def __reduce__(self) -> str:
        raise TypeError("a secret cannot be pickled")


TOKEN_PREFIX = "sp_"  # noqa: S105  so that scanners for leaked secrets recognize a token
KEY_PREFIX = "spk_"

_ALPHABET = string.ascii_letters + string.digits


def new_token() -> str:
    """Return a new access token: `sp_` and 32 random octets in base64url."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def new_key() -> str:
    """Return a new API key: `spk_` and 32 random octets in base64url."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """Return the SHA-256 of a token or key in hexadecimal digits. The store contains only this hash. The hash needs no
    salt, because a token has 256 random bits."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_shared_secret() -> str:
    """Return a new RADIUS shared secret of 32 letters and digits (190 random bits). All known products accept this
    form."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(32))


def new_error_id() -> str:
    """Return a random id for an unexpected error. Both the answer and the log contain the id."""
    return secrets.token_hex(8)
