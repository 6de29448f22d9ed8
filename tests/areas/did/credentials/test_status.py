"""Documents of status lists."""

from sallyport.areas.did.credentials.status import BITS, list_document
from tests.areas.did.crypto.signers import NOW
from tests.areas.did.status import unpacked


def encoded(bits: bytes) -> str:
    """Return the encodedList of a list."""
    subject = list_document("https://id.example.test/list", "did:key:z", bits, NOW)["credentialSubject"]
    assert isinstance(subject, dict)
    return str(subject["encodedList"])


def test_an_empty_list_is_the_example_of_the_specification() -> None:
    """An empty list is equal to the example of StatusList2021, which has 131,072 bits."""
    example = "H4sIAAAAAAAAA-3BMQEAAADCoPVPbQwfoAAAAAAAAAAAAAAAAAAAAIC3AYbSVKsAQAAA"
    assert unpacked(encoded(bytes(BITS // 8))) == unpacked(example) == bytes(16_384)


def test_the_same_list_has_the_same_text() -> None:
    """The encoded list does not depend on the time at which it was compressed."""
    assert encoded(b"\x80" + bytes(BITS // 8 - 1)) == encoded(b"\x80" + bytes(BITS // 8 - 1))
