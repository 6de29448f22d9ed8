"""Values derived from a walletKey."""

import pytest

from sallyport.base.errors import SecretError
from sallyport.did.wallets.key import is_key, key_hash, new_wallet_key, open_with, public_of, seal_to

KEY = new_wallet_key()
IDENTITY = "dids/7/key"
SEALED = seal_to(public_of(KEY), b"a signing key", IDENTITY)


def test_a_key_is_known_by_its_hash_alone() -> None:
    """The hash recognizes its key and no other, and neither holds a part of the key."""
    assert is_key(KEY, key_hash(KEY)) and not is_key(new_wallet_key(), key_hash(KEY))
    assert KEY[3:] not in key_hash(KEY) and len(key_hash(KEY)) == 64


def test_who_brings_the_key_opens() -> None:
    """Octets that are sealed to the public half open with the walletKey, and are never twice the same."""
    sealed = [seal_to(public_of(KEY), b"a signing key", IDENTITY) for _ in range(2)]
    assert [open_with(KEY, each, IDENTITY) for each in sealed] == [b"a signing key"] * 2
    assert sealed[0] != sealed[1] and b"a signing key" not in sealed[0]


@pytest.mark.parametrize("at", [0, 32, 44, -1], ids=["public key", "nonce", "ciphertext", "tag"])
def test_an_altered_octet_does_not_open(at: int) -> None:
    """Every part of the sealed octets counts."""
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
def test_only_the_key_and_the_row_open(key: str, octets: bytes, identity: str) -> None:
    """Another key, another row and other octets do not open."""
    with pytest.raises(SecretError):
        open_with(key, octets, identity)
