"""Compact JSON Web Signatures."""

import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws as joserfc
from joserfc.jwk import OKPKey

from sallyport.areas.did.crypto import jws
from sallyport.areas.did.crypto.encoding import from_base64url, to_base64url
from sallyport.areas.did.crypto.keys import from_jwk
from sallyport.base.errors import CredentialError
from tests.areas.did.crypto.signers import HOLDER, ISSUERS

KEY = HOLDER.key.public


def part(value: object) -> str:
    """Return a header or a payload as a part of a token."""
    return to_base64url(json.dumps(value).encode())


def token(header: dict[str, object], payload: object, signature: bytes = bytes(64)) -> str:
    """Return a token of the given header, payload and signature."""
    return f"{part(header)}.{part(payload)}.{to_base64url(signature)}"


@pytest.mark.parametrize("name", ISSUERS)
def test_a_signed_token_is_verified(name: str) -> None:
    """A signed token names its algorithm and its key, and it verifies only with that key."""
    issuer = ISSUERS[name]
    read = jws.parse(jws.sign({"a": 1}, issuer))
    read.verify(issuer.key.public)
    assert read.payload == {"a": 1}
    assert read.key_id == issuer.method_id
    with pytest.raises(CredentialError):
        read.verify(KEY)


@pytest.mark.filterwarnings(
    "ignore:EdDSA is deprecated"
)  # RFC 9864 renames it to Ed25519, which few verifiers know yet
def test_another_library_reads_our_tokens() -> None:
    """joserfc verifies an EdDSA token."""
    found = joserfc.deserialize_compact(
        jws.sign({"a": "\u00e9"}, HOLDER), OKPKey.import_key(KEY.jwk), algorithms=["EdDSA"]
    )  # type: ignore[arg-type]
    assert json.loads(found.payload) == {"a": "\u00e9"}


def test_the_example_of_rfc_8037() -> None:
    """The token of RFC 8037 appendix A.4 verifies with the key of A.2. Its payload is not JSON, so only the signature
    is checked.
    """
    key = from_jwk({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})
    signed = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
    signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
    assert key.verify(from_base64url(signature), signed)


@pytest.mark.parametrize("algorithm", ["none", "None", "", "HS256", "RS256", "ES384"])
@pytest.mark.parametrize("is_keyed", [False, True], ids=["unsigned", "keyed"])
def test_no_algorithm_and_keyed_hashes(algorithm: str, is_keyed: bool) -> None:
    """The algorithm `none` is refused, and so is HS256 with the public key as its key. Both are refused before a
    signature is verified.
    """
    signed = f"{part({'alg': algorithm, 'kid': HOLDER.method_id})}.{part({'a': 1})}"
    signature = hmac.digest(KEY.octets, signed.encode(), hashlib.sha256) if is_keyed else b""
    with pytest.raises(CredentialError):
        jws.parse(f"{signed}.{to_base64url(signature)}")


def signed_as(algorithm: str) -> jws.Token:
    """Return a token that has HOLDER's signature and another algorithm in its header."""
    signed = f"{part({'alg': algorithm, 'kid': HOLDER.method_id})}.{part({})}"
    return jws.parse(f"{signed}.{to_base64url(HOLDER.key.sign(signed.encode()))}")


@pytest.mark.parametrize("algorithm", ["ES256", "ES256K"])
def test_the_algorithm_of_another_curve_is_refused(algorithm: str) -> None:
    """The header must name the algorithm of the key's curve. Otherwise the token is refused, even if the signature
    verifies.
    """
    with pytest.raises(CredentialError):
        signed_as(algorithm).verify(KEY)


@pytest.mark.parametrize("algorithm", ["EdDSA", "Ed25519"])
def test_both_names_of_eddsa_are_accepted(algorithm: str) -> None:
    """EdDSA and Ed25519, its new name in RFC 9864, are both accepted."""
    signed_as(algorithm).verify(KEY)


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
def test_an_unsuitable_header_is_refused(header: dict[str, object]) -> None:
    """A header is refused if it has no algorithm, no key, a critical extension or another type."""
    with pytest.raises(CredentialError):
        jws.parse(token(header, {}))


GOOD = {"alg": "EdDSA", "kid": "k"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("..", id="empty parts"),
        pytest.param("a.b", id="two parts"),
        pytest.param(token(GOOD, {}) + ".x", id="four parts"),
        pytest.param(token(GOOD, []), id="no object"),
        pytest.param(token(GOOD, {}) + "=", id="padding"),
        pytest.param(to_base64url(b'{"alg":"none","alg":"EdDSA","kid":"k"}') + f".{part({})}.AAAA", id="a name twice"),
        pytest.param(token(GOOD, {"a": "x" * jws.MAX_LENGTH}), id="too long"),
    ],
)
def test_a_malformed_token_is_refused(text: str) -> None:
    """A token is refused if it has a wrong number of parts, padding, duplicate names, a part that is not an object, or
    too much text.
    """
    with pytest.raises(CredentialError):
        jws.parse(text)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any text is read, or it raises CredentialError and nothing else."""
    with pytest.raises(CredentialError):
        jws.parse(text)
