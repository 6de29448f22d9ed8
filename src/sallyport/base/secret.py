"""A secret in memory, which no log, error or repr shows, and random names: tokens, keys, shared secrets, error ids."""

import hashlib
import hmac
import secrets
import string
from typing import Final


class Secret:
    """Octets that show themselves as `***`; `reveal` is the only way to them.

    Equality takes the same time wherever the octets differ.
    """

    __slots__ = ("_octets",)

    def __init__(self, octets: bytes) -> None:
        self._octets: Final = octets

    def reveal(self) -> bytes:
        """The octets themselves, for the one place that uses them."""
        return self._octets

    def __repr__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._octets, other._octets)

    def __hash__(self) -> int:
        return hash((Secret, self._octets))

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")


TOKEN_PREFIX = "sp_"  # noqa: S105  lets a scanner of leaked text recognize one
KEY_PREFIX = "spk_"

_ALPHABET = string.ascii_letters + string.digits


def new_token() -> str:
    """An access token: `sp_` and 32 random octets in base64url."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def new_key() -> str:
    """An API key: `spk_` and 32 random octets in base64url."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """What the store keeps of a token or a key: its SHA-256 in hex. It has 256 random bits, so no salt is needed."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_shared_secret() -> str:
    """A RADIUS shared secret: 32 letters and digits, which every product takes, 190 random bits."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(32))


def new_error_id() -> str:
    """Names one unexpected error, in the answer and in the log."""
    return secrets.token_hex(8)
