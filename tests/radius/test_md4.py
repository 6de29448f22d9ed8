"""MD4 against the RFC's own digests."""

import pytest

from sallyport.radius.mschap import md4

# RFC 1320 section A.5
DIGESTS = {
    b"": "31d6cfe0d16ae931b73c59d7e0c089c0",
    b"a": "bde52cb31de33e46245e05fbdbd6fb24",
    b"abc": "a448017aaf21d8525fc10ae87aa6729d",
    b"message digest": "d9130a8164549fe818874806e1c7014b",
    b"abcdefghijklmnopqrstuvwxyz": "d79e1c308aa5bbcdeea8ed63df412da9",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789": "043f8582f241db351ce627e153e7f0e4",
    b"1234567890" * 8: "e33b4ddc9c38f2199c3e7b164fcc0536",
}


@pytest.mark.parametrize(("message", "digest"), DIGESTS.items())
def test_rfc_1320(message: bytes, digest: str) -> None:
    """Each message of RFC 1320 section A.5 has the digest that the RFC says."""
    assert md4(message).hex() == digest
