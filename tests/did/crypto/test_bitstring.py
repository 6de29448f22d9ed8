"""Status lists."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.errors import CredentialError
from sallyport.did.crypto import bitstring
from sallyport.did.crypto.encoding import to_base64url


@given(st.sets(st.integers(0, bitstring.BITS - 1), max_size=20))
def test_bits_come_back(indexes: set[int]) -> None:
    """Those that were set are set, and no other."""
    octets = bytearray(bitstring.BITS // 8)
    for index in indexes:
        bitstring.put(octets, index)
    unpacked = bitstring.unpack(bitstring.pack(bytes(octets)))
    assert all(bitstring.get(unpacked, index) for index in indexes)
    assert sum(each.bit_count() for each in unpacked) == len(indexes)


def test_the_first_bit_is_the_leftmost() -> None:
    """Index 0 is the highest bit of the first octet."""
    octets = bytearray(bitstring.BITS // 8)
    bitstring.put(octets, 0)
    bitstring.put(octets, 9)
    assert octets[:2] == b"\x80\x40"


def test_the_example_of_the_specification() -> None:
    """The encoded list of StatusList2021's example is an empty list of 131,072 bits."""
    text = "H4sIAAAAAAAAA-3BMQEAAADCoPVPbQwfoAAAAAAAAAAAAAAAAAAAAIC3AYbSVKsAQAAA"
    assert bitstring.unpack(text) == bytes(bitstring.BITS // 8)
    assert bitstring.unpack("u" + text) == bytes(bitstring.BITS // 8)


def test_a_list_that_grows_without_end() -> None:
    """A gzip bomb is refused after as many octets as a list may have."""
    bomb = gzip.compress(bytes(64 << 20))
    assert len(bomb) < 100_000
    with pytest.raises(CredentialError):
        bitstring.unpack(to_base64url(bomb))


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"not gzip",
        gzip.compress(bytes(100)),
        gzip.compress(bytes(16384))[:-1],
        gzip.compress(bytes(16384)) + b"more",
        zlib.compress(bytes(16384)),
    ],
)
def test_lists_that_are_refused(octets: bytes) -> None:
    """No gzip, too few bits, cut off, or with more behind it."""
    with pytest.raises(CredentialError) as refused:
        bitstring.unpack(to_base64url(octets))
    assert refused.value.reason == "status"


def test_an_entry_that_is_not_there() -> None:
    """Beyond the list there is no answer, rather than `not revoked`."""
    for index in (-1, bitstring.BITS):
        with pytest.raises(CredentialError):
            bitstring.get(bytes(bitstring.BITS // 8), index)
