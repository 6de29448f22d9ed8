"""Random names: access tokens, API keys, generated secrets, request ids."""

import hashlib
import secrets
import string

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
