"""The walletKey is `wk_` followed by 256 random bits. It is shown once. Two values that are derived from it are stored:
a hash and a public key.

With the hash (SHA-256), the service recognizes the walletKey. The public key belongs to an X25519 private key, which is
derived from the walletKey (HKDF, RFC 5869). With the public key, the service can encrypt a value, such as a holder's
signing key, while the wallet is not connected. Only the walletKey decrypts the value. The encryption uses X25519 (RFC
7748) with an ephemeral key, then HKDF, and then AES-256-GCM. The associated data is the identity of the stored row.

    sealed = 32 octets of the ephemeral public key | 12 octets of nonce | ciphertext and tag
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
_PUBLIC, _NONCE = 32, 12


def new_wallet_key() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def key_hash(wallet_key: str) -> str:
    """Return the SHA-256 of a walletKey in hexadecimal. No salt is needed, because the walletKey has 256 random
    bits."""
    return token_hash(wallet_key)


def is_key(wallet_key: str, hashed: str) -> bool:
    """Return whether a hash belongs to a walletKey. The comparison takes constant time."""
    return hmac.compare_digest(key_hash(wallet_key).encode(), hashed.encode())


def public_of(wallet_key: str) -> bytes:
    """Return the X25519 public key of a walletKey, 32 octets."""
    return _private(wallet_key).public_key().public_bytes_raw()


def seal_to(public: bytes, clear: bytes, identity: str) -> bytes:
    """Encrypt octets for the owner of a walletKey. public: the result of `public_of`. identity: a name of the stored
    value, such as `dids/7/key`."""
    ephemeral, nonce = X25519PrivateKey.generate(), secrets.token_bytes(_NONCE)
    own_public = ephemeral.public_key().public_bytes_raw()
    shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(public))
    return own_public + nonce + AESGCM(_derived(shared, own_public + public)).encrypt(nonce, clear, identity.encode())


def open_with(wallet_key: str, sealed: bytes, identity: str) -> bytes:
    """Decrypt octets from `seal_to`. Raises SecretError if the octets were encrypted for another walletKey, or with
    another identity."""
    private = _private(wallet_key)
    own_public, nonce, ciphertext = sealed[:_PUBLIC], sealed[_PUBLIC : _PUBLIC + _NONCE], sealed[_PUBLIC + _NONCE :]
    try:
        shared = private.exchange(X25519PublicKey.from_public_bytes(own_public))
        key = _derived(shared, own_public + private.public_key().public_bytes_raw())
        return AESGCM(key).decrypt(nonce, ciphertext, identity.encode())
    except (InvalidTag, ValueError):
        raise SecretError(f"{identity} cannot be decrypted with this walletKey") from None


def _private(wallet_key: str) -> X25519PrivateKey:
    derived = HKDF(SHA256(), 32, salt=None, info=b"sallyport wallet x25519").derive(wallet_key.encode())
    return X25519PrivateKey.from_private_bytes(derived)


def _derived(shared: bytes, info: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt=None, info=b"sallyport wallet seal" + info).derive(shared)
