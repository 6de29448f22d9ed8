"""The hash and the sealing key that are derived from a walletKey."""

import pytest

from sallyport.areas.did.wallets.key import is_key, key_hash, new_wallet_key, open_with, public_of, seal_to
from sallyport.base.errors import SecretError

KEY = new_wallet_key()
IDENTITY = "dids/7/key"
SEALED = seal_to(public_of(KEY), b"a signing key", IDENTITY)


def test_a_key_is_recognized_by_its_hash() -> None:
    """A key is recognized by its hash. The hash matches no other key and contains no part of the key."""
    assert is_key(KEY, key_hash(KEY)) and not is_key(new_wallet_key(), key_hash(KEY))
    assert KEY[3:] not in key_hash(KEY) and len(key_hash(KEY)) == 64


def test_sealed_octets_open_with_the_wallet_key() -> None:
    """Octets that are sealed to the public half open with the walletKey. Sealing the same octets twice gives different
    results.
    """
    sealed = [seal_to(public_of(KEY), b"a signing key", IDENTITY) for _ in range(2)]
    assert [open_with(KEY, each, IDENTITY) for each in sealed] == [b"a signing key"] * 2
    assert sealed[0] != sealed[1] and b"a signing key" not in sealed[0]


@pytest.mark.parametrize("at", [0, 32, 44, -1], ids=["public key", "nonce", "ciphertext", "tag"])
def test_altered_octets_do_not_open(at: int) -> None:
    """If any part of the sealed octets was changed, they do not open."""
    altered = bytearray(SEALED)
    altered[at] ^= 1
    with pytest.raises(SecretError):
        open_with(KEY, bytes(altered), IDENTITY)


@pytest.mark.parametrize(
    ("key", "octets", "identity"),
    [
        pytest.param(new_wallet_key(), SEALED, IDENTITY, id="another key"),
        pytest.param(KEY, SEALED, "dids/8/key", id="another row"),
        pytest.param(KEY, b"", IDENTITY, id="empty"),
        pytest.param(KEY, SEALED[:31], IDENTITY, id="a part of the public key"),
        pytest.param(KEY, SEALED[:40], IDENTITY, id="a part of the nonce"),
        pytest.param(KEY, bytes(32) + SEALED[32:], IDENTITY, id="a public key of order one"),
    ],
)
def test_only_the_same_key_and_row_open(key: str, octets: bytes, identity: str) -> None:
    """Sealed octets do not open with another key or for another row."""
    with pytest.raises(SecretError):
        open_with(key, octets, identity)
