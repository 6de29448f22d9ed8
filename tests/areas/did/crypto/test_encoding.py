"""base64url, base58btc, strict JSON and its canonical form."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.did.crypto import encoding
from sallyport.base.errors import CredentialError


@given(st.binary(max_size=80))
def test_octets_survive_encoding(octets: bytes) -> None:
    assert encoding.from_base58(encoding.to_base58(octets)) == octets
    assert encoding.from_base64url(encoding.to_base64url(octets)) == octets


@pytest.mark.parametrize(
    ("text", "octets"),
    [("", b""), ("1", b"\0"), ("2NEpo7TZRRrLZSi2U", b"Hello World!"), ("11233QC4", bytes.fromhex("0000287fb4cd"))],
)
def test_base58_vectors(text: str, octets: bytes) -> None:
    """The vectors of draft-msporny-base58-03 section 5 are encoded and decoded correctly."""
    assert encoding.from_base58(text) == octets
    assert encoding.to_base58(octets) == text


@pytest.mark.parametrize("text", ["YQ==", "YR", "Y+==", "Y Q", "Y", "\u00e9"])
def test_only_the_canonical_encoding_is_accepted(text: str) -> None:
    """A base64url text with padding, with trailing bits or with a character outside of the alphabet is refused."""
    with pytest.raises(CredentialError):
        encoding.from_base64url(text)


@pytest.mark.parametrize("text", ["0", "l", " ", "1" * 513])
def test_malformed_or_long_base58_is_refused(text: str) -> None:
    """A base58 text is refused if it has a character outside of the alphabet or is so long that decoding would be
    slow.
    """
    with pytest.raises(CredentialError):
        encoding.from_base58(text)


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":1}', "NaN", "1e999", '{"a":Infinity}', '"\\ud800"', "[" * 100_000, "", "{", "\ufeff{}", "9" * 5000],
)
def test_ambiguous_json_is_refused(text: str) -> None:
    """JSON is refused if it has duplicate names, NaN, infinity, lone surrogates or deeply nested arrays."""
    with pytest.raises(CredentialError):
        encoding.read_json(text)


def test_other_json_is_parsed() -> None:
    """Other JSON values are parsed. The caller can require an object."""
    assert encoding.read_json('{"a":[1,2.5,null,true,"\\ud83d\\ude00"]}') == {"a": [1, 2.5, None, True, "\U0001f600"]}
    with pytest.raises(CredentialError):
        encoding.read_object("[]")


@pytest.mark.parametrize(
    ("double", "text"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555554", "333333333.33333325"),
        ("41b3de4355555555", "333333333.3333333"),
        ("41b3de4355555556", "333333333.3333334"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers_are_in_canonical_form(double: str, text: str) -> None:
    """Each double of RFC 8785 appendix B is written as its text there."""
    assert encoding.canonical(struct.unpack(">d", bytes.fromhex(double))[0]).decode() == text


def test_names_are_sorted_by_utf_16() -> None:
    """Names are sorted by their UTF-16 code units: in the example of RFC 8785 section 3.2.3, a surrogate pair comes
    before U+FB33.
    """
    value = encoding.read_json(
        r'{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",'
        r'"\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}'
    )
    written = encoding.canonical(value).decode()
    places = [written.index(word) for word in ("Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew")]
    assert places == sorted(places)


def test_the_example_of_the_rfc() -> None:
    """The canonical form of the example in RFC 8785 section 3.2.2 has the octets that the RFC gives."""
    value = encoding.read_json(
        r'{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],'
        r'"string":"\u20ac$\u000F\u000aA\u0027\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}'
    )
    assert (
        encoding.canonical(value)
        == (
            '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
            '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
        ).encode()
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {"\udc00": 1}, 10**400])
def test_a_value_without_canonical_form_is_refused(value: float) -> None:
    """A value that has no canonical form, because JSON cannot represent it, is refused."""
    with pytest.raises(CredentialError):
        encoding.canonical(value)
