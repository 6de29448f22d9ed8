"""base64url, base58btc and strict JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.errors import CredentialError
from sallyport.did.crypto import encoding


@given(st.binary(max_size=80))
def test_octets_come_back(octets: bytes) -> None:
    """Whatever was encoded is decoded to the same octets."""
    assert encoding.from_base58(encoding.to_base58(octets)) == octets
    assert encoding.from_base64url(encoding.to_base64url(octets)) == octets


@pytest.mark.parametrize(
    ("text", "octets"),
    [("", b""), ("1", b"\0"), ("2NEpo7TZRRrLZSi2U", b"Hello World!"), ("11233QC4", bytes.fromhex("0000287fb4cd"))],
)
def test_base58_vectors(text: str, octets: bytes) -> None:
    """The vectors of draft-msporny-base58-03 section 5 hold both ways."""
    assert encoding.from_base58(text) == octets
    assert encoding.to_base58(octets) == text


@pytest.mark.parametrize("text", ["YQ==", "YR", "Y+==", "Y Q", "Y", "\u00e9"])
def test_only_one_text_stands_for_octets(text: str) -> None:
    """Padding, bits that mean nothing, and other letters are refused."""
    with pytest.raises(CredentialError):
        encoding.from_base64url(text)


@pytest.mark.parametrize("text", ["0", "l", " ", "1" * 513])
def test_base58_refuses(text: str) -> None:
    """Letters of no alphabet, and texts that would take long, are refused."""
    with pytest.raises(CredentialError):
        encoding.from_base58(text)


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":1}', "NaN", "1e999", '{"a":Infinity}', '"\\ud800"', "[" * 100_000, "", "{", "\ufeff{}", "9" * 5000],
)
def test_json_that_readers_disagree_about(text: str) -> None:
    """A name twice, a number that is none, half a pair and a deep array are refused."""
    with pytest.raises(CredentialError):
        encoding.read_json(text)


def test_json_that_is_fine() -> None:
    """Everything else is read; an object is asked for by itself."""
    assert encoding.read_json('{"a":[1,2.5,null,true,"\\ud83d\\ude00"]}') == {"a": [1, 2.5, None, True, "\U0001f600"]}
    with pytest.raises(CredentialError):
        encoding.read_object("[]")
