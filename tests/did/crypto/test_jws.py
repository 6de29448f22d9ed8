"""Compact tokens."""

import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws as joserfc
from joserfc.jwk import OKPKey

from sallyport.base.errors import CredentialError
from sallyport.did.crypto import jws
from sallyport.did.crypto.encoding import from_base64url, to_base64url
from sallyport.did.crypto.keys import from_jwk
from tests.did.crypto.signers import HOLDER, ISSUERS

KEY = HOLDER.key.public


def part(value: object) -> str:
    """A header or a payload as it stands in a token."""
    return to_base64url(json.dumps(value).encode())


def token(header: dict[str, object], payload: object, signature: bytes = bytes(64)) -> str:
    """A token of anything."""
    return f"{part(header)}.{part(payload)}.{to_base64url(signature)}"


@pytest.mark.parametrize("name", ISSUERS)
def test_what_is_signed_is_read(name: str) -> None:
    """A token names its algorithm and key, and holds for that key alone."""
    issuer = ISSUERS[name]
    read = jws.parse(jws.sign({"a": 1}, issuer))
    read.verify(issuer.key.public)
    assert read.payload == {"a": 1}
    assert read.key_id == issuer.method_id
    with pytest.raises(CredentialError):
        read.verify(KEY)


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")  # RFC 9864 calls it Ed25519, which few verifiers know yet
def test_another_library_reads_our_tokens() -> None:
    """joserfc verifies an EdDSA token."""
    found = joserfc.deserialize_compact(
        jws.sign({"a": "\u00e9"}, HOLDER), OKPKey.import_key(KEY.jwk), algorithms=["EdDSA"]
    )  # type: ignore[arg-type]
    assert json.loads(found.payload) == {"a": "\u00e9"}


def test_the_example_of_rfc_8037() -> None:
    """Appendix A.4's token verifies under A.2's key, whose payload is no JSON: only the signature is looked at."""
    key = from_jwk({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
    signed = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
    signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
    assert key.verify(from_base64url(signature), signed)


def test_no_algorithm_and_keyed_hashes() -> None:
    """`none`, and HS256 keyed with the public key, are refused before anything is verified."""
    payload = part({"a": 1})
    for algorithm in ("none", "None", "", "HS256", "RS256", "ES384"):
        header = part({"alg": algorithm, "kid": HOLDER.method_id})
        signature = hmac.digest(KEY.octets, f"{header}.{payload}".encode(), hashlib.sha256)
        for each in (b"", signature):
            with pytest.raises(CredentialError):
                jws.parse(f"{header}.{payload}.{to_base64url(each)}")


def test_the_algorithm_is_the_keys_own() -> None:
    """A header that names another curve's algorithm is refused, though the signature holds; Ed25519 is EdDSA."""
    for algorithm, fits in (("ES256", False), ("ES256K", False), ("EdDSA", True), ("Ed25519", True)):
        signed = f"{part({'alg': algorithm, 'kid': HOLDER.method_id})}.{part({})}"
        read = jws.parse(f"{signed}.{to_base64url(HOLDER.key.sign(signed.encode()))}")
        if fits:
            read.verify(KEY)
        else:
            with pytest.raises(CredentialError):
                read.verify(KEY)


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"alg": "EdDSA"},
        {"alg": "EdDSA", "kid": 7},
        {"alg": ["EdDSA"], "kid": "k"},
        {"alg": "EdDSA", "kid": "k", "crit": ["b64"], "b64": False},
        {"alg": "EdDSA", "kid": "k", "crit": []},
        {"alg": "EdDSA", "kid": "k", "typ": "JWE"},
    ],
)
def test_headers_that_are_refused(header: dict[str, object]) -> None:
    """Without algorithm or key, with an extension, or of another type."""
    with pytest.raises(CredentialError):
        jws.parse(token(header, {}))


def test_texts_that_are_no_tokens() -> None:
    """Other parts, padding, names twice, no object, and a text that is too long."""
    good = {"alg": "EdDSA", "kid": "k"}
    twice = to_base64url(b'{"alg":"none","alg":"EdDSA","kid":"k"}')
    for text in (
        "",
        "..",
        "a.b",
        token(good, {}) + ".x",
        token(good, []),
        token(good, {}) + "=",
        f"{twice}.{part({})}.AAAA",
        token(good, {"a": "x" * jws.LONGEST}),
    ):
        with pytest.raises(CredentialError):
            jws.parse(text)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Nothing but CredentialError comes of a text."""
    with pytest.raises(CredentialError):
        jws.parse(text)
