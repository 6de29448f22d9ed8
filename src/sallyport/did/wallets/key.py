"""The walletKey: `wk_` and 256 random bits, shown once.

Of it two things are kept: its SHA-256, by which it is recognized, and an X25519 public key whose private half is
derived from it (HKDF, RFC 5869). To that key anything can be sealed while the wallet is away, such as a holder's
signing key, and only who brings the walletKey opens it: X25519 (RFC 7748) with a key made for the occasion, HKDF, then
AES-256-GCM with the row's identity as associated data.

    sealed = 32 octets of the occasion's public key | 12 octets of nonce | ciphertext and tag
"""

import hmac
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sallyport.base.errors import SecretError
from sallyport.base.secret import token_hash

PREFIX = "wk_"
LONGEST = 128
_PUBLIC, _NONCE = 32, 12


def new_wallet_key() -> str:
    """Make a walletKey."""
    return PREFIX + secrets.token_urlsafe(32)


def key_hash(wallet_key: str) -> str:
    """Return the SHA-256 of a walletKey, in hex, by which it is recognized. It has 256 random bits, so no salt is
    needed."""
    return token_hash(wallet_key)


def is_key(wallet_key: str, hashed: str) -> bool:
    """Return whether this is the walletKey of that hash, in constant time."""
    return hmac.compare_digest(key_hash(wallet_key).encode(), hashed.encode())


def public_of(wallet_key: str) -> bytes:
    """Return the 32 octets to seal to."""
    return _private(wallet_key).public_key().public_bytes_raw()


def seal_to(public: bytes, clear: bytes, identity: str) -> bytes:
    """Encrypt for the owner of the walletKey of that public key. identity: of the row, such as `dids/7/key`."""
    occasion, nonce = X25519PrivateKey.generate(), secrets.token_bytes(_NONCE)
    mine = occasion.public_key().public_bytes_raw()
    shared = occasion.exchange(X25519PublicKey.from_public_bytes(public))
    return mine + nonce + AESGCM(_derived(shared, mine + public)).encrypt(nonce, clear, identity.encode())


def open_with(wallet_key: str, sealed: bytes, identity: str) -> bytes:
    """Decrypt octets that were sealed for that walletKey and row. SecretError."""
    private = _private(wallet_key)
    mine, nonce, hidden = sealed[:_PUBLIC], sealed[_PUBLIC : _PUBLIC + _NONCE], sealed[_PUBLIC + _NONCE :]
    try:
        shared = private.exchange(X25519PublicKey.from_public_bytes(mine))
        key = _derived(shared, mine + private.public_key().public_bytes_raw())
        return AESGCM(key).decrypt(nonce, hidden, identity.encode())
    except (InvalidTag, ValueError):
        raise SecretError(f"{identity} does not open with this walletKey") from None


def _private(wallet_key: str) -> X25519PrivateKey:
    derived = HKDF(SHA256(), 32, salt=None, info=b"sallyport wallet x25519").derive(wallet_key.encode())
    return X25519PrivateKey.from_private_bytes(derived)


def _derived(shared: bytes, info: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt=None, info=b"sallyport wallet seal" + info).derive(shared)
