"""What is derived from a walletKey."""

import pytest

from sallyport.base.errors import SecretError
from sallyport.did.wallets.key import is_key, key_hash, new_wallet_key, open_with, public_of, seal_to

KEY = new_wallet_key()
IDENTITY = "dids/7/key"


def test_a_key_is_known_by_its_hash_alone() -> None:
    """The hash recognizes its key and no other, and neither holds a part of the key."""
    assert is_key(KEY, key_hash(KEY)) and not is_key(new_wallet_key(), key_hash(KEY))
    assert KEY[3:] not in key_hash(KEY) and len(key_hash(KEY)) == 64


def test_who_brings_the_key_opens() -> None:
    """What is sealed to the public half opens with the walletKey, and is never twice the same."""
    sealed = [seal_to(public_of(KEY), b"a signing key", IDENTITY) for _ in range(2)]
    assert [open_with(KEY, each, IDENTITY) for each in sealed] == [b"a signing key"] * 2
    assert sealed[0] != sealed[1] and b"a signing key" not in sealed[0]


def test_nobody_else_opens() -> None:
    """Another key, another row, an altered octet, too few octets, and a public key of order one do not open."""
    sealed = seal_to(public_of(KEY), b"a signing key", IDENTITY)
    altered = [sealed[:at] + bytes((sealed[at] ^ 1,)) + sealed[at + 1 :] for at in (0, 32, 44, len(sealed) - 1)]
    for octets in (*altered, b"", sealed[:31], sealed[:40], bytes(32) + sealed[32:]):
        with pytest.raises(SecretError):
            open_with(KEY, octets, IDENTITY)
    for key, identity in ((new_wallet_key(), IDENTITY), (KEY, "dids/8/key")):
        with pytest.raises(SecretError):
            open_with(key, sealed, identity)
