"""Keys of the three supported curves."""

from collections.abc import Callable

import pytest
from joserfc.jwk import ECKey, OKPKey

from sallyport.areas.did.crypto.encoding import CURVES, ED25519, P256, SECP256K1, Curve, from_base64url, to_base58
from sallyport.areas.did.crypto.keys import PrivateKey, from_jwk, from_multikey, public_key
from sallyport.base.errors import CredentialError
from sallyport.base.secret import Secret
from sallyport.base.wire import JSON

# did:key's test vectors: ed25519-x25519.json, secp256k1.json (seed in hex), nist-curves.json (`d` of the JWK).
VECTORS = [
    (ED25519, "00" * 32, "z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp"),
    (ED25519, "00" * 31 + "01", "z6MkjchhfUsD6mmvni8mCdXHw216Xrm9bQe2mBH1P5RDjVJG"),
    (ED25519, "00" * 31 + "02", "z6MknGc3ocHs3zdPiJbnaaqDi58NGb4pk1Sp9WxWufuXSdxf"),
    (ED25519, "00" * 31 + "03", "z6MkvqoYXQfDDJRv8L4wKzxYeuKyVZBfi9Qo6Ro8MiLH3kDQ"),
    (ED25519, "00" * 31 + "04", "z6MkwW6aqMnjgrhJXFUko3NnZPGzVpkNzhYK7yEhnsibmLwL"),
    (
        SECP256K1,
        "9085d2bef69286a6cbb51623c8fa258629945cd55ca705cc4e66700396894e0c",
        "zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme",
    ),
    (
        SECP256K1,
        "f0f4df55a2b3ff13051ea814a8f24ad00f2e469af73c363ac7e9fb999a9072ed",
        "zQ3shtxV1FrJfhqE1dvxYRcCknWNjHc3c5X1y3ZSoPDi2aur2",
    ),
    (
        SECP256K1,
        "6b0b91287ae3348f8c2f2552d766f30e3604867e34adc37ccbb74a8e6b893e02",
        "zQ3shZc2QzApp2oymGvQbzP8eKheVshBHbU4ZYjeXqwSKEn6N",
    ),
    (
        P256,
        from_base64url("gPh-VvVS8MbvKQ9LSVVmfnxnKjHn4Tqj0bmbpehRlpc").hex(),
        "zDnaerx9CtbPJ1q36T5Ln5wYt3MQYeGRG5ehnPAmxcf5mDZpv",
    ),
    (
        P256,
        from_base64url("YjRs6vNvw4sYrzVVY8ipkEpDAD9PFqw1sUnvPRMA-WI").hex(),
        "zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169",
    ),
]


@pytest.mark.parametrize(("curve", "seed", "multikey"), VECTORS)
def test_official_vectors_are_encoded_and_decoded(curve: Curve, seed: str, multikey: str) -> None:
    """The multikey of each vector's private key is the one that the vector gives, and decoding it returns the same
    public key.
    """
    public = PrivateKey(curve, Secret(bytes.fromhex(seed))).public
    assert public.multikey == multikey
    assert from_multikey(multikey) == public == from_jwk(public.jwk)


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_a_signature_verifies_for_its_key_and_octets_only(curve: Curve) -> None:
    """A signature has 64 octets. It verifies only for its own key and its own octets."""
    key, other = PrivateKey.new(curve), PrivateKey.new(curve)
    signature = key.sign(b"octets")
    assert len(signature) == 64
    assert key.public.verify(signature, b"octets")
    assert not key.public.verify(signature, b"others")
    assert not other.public.verify(signature, b"octets")


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize(
    "change",
    [lambda _: b"", lambda good: good[:-1], lambda good: good + b"\0", lambda _: bytes(64), lambda _: b"\xff" * 64],
    ids=["empty", "short", "long", "zeros", "ones"],
)
def test_a_malformed_signature_does_not_verify(curve: Curve, change: Callable[[bytes], bytes]) -> None:
    """A signature that has a wrong length, zeros, or numbers outside of the group does not verify and raises no
    error.
    """
    key = PrivateKey.new(curve)
    assert not key.public.verify(change(key.sign(b"octets")), b"octets")


def test_a_signature_of_secp256k1_has_the_lower_s() -> None:
    """A signature of secp256k1 has the lower of the two possible values of s, because some verifiers refuse the higher
    one.
    """
    key = PrivateKey.new(SECP256K1)
    found = [int.from_bytes(key.sign(bytes((each,)))[32:], "big") for each in range(16)]
    assert max(found) <= SECP256K1.order // 2


@pytest.mark.parametrize(
    ("curve", "reader"), [(ED25519, OKPKey), (P256, ECKey), (SECP256K1, ECKey)], ids=["Ed25519", "P-256", "secp256k1"]
)
def test_joserfc_reads_an_exported_jwk(curve: Curve, reader: type[OKPKey | ECKey]) -> None:
    assert reader.import_key(PrivateKey.new(curve).public.jwk).curve_name == curve.name  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "octets",
    [
        b"\xed\x01" + bytes(31),
        b"\xed\x01" + bytes(33),
        b"\xed\x01" + b"\x02" + bytes(31),  # no point of the curve has this y
        b"\xed\x01" + b"\xff" * 32,
        b"\x80\x24\x02" + b"\xff" * 32,
        b"\x80\x24\x05" + bytes(32),
        b"\xe7\x01\x04" + bytes(64),
        b"\xec\x01" + bytes(32),  # X25519
        b"\x81\x24\x02" + bytes(48),  # P-384
        b"",
    ],
)
def test_a_malformed_multikey_is_refused(octets: bytes) -> None:
    """A multikey is refused if it has a wrong length, an unknown prefix, or a point that is not on the curve."""
    with pytest.raises(CredentialError):
        from_multikey("z" + to_base58(octets))


def test_another_multibase_is_refused() -> None:
    """Only base58btc is accepted."""
    with pytest.raises(CredentialError):
        from_multikey("f" + "00" * 34)


JWK = PrivateKey(P256, Secret(bytes(31) + b"\7")).public.jwk
OTHER = PrivateKey(P256, Secret(bytes(31) + b"\x08")).public.jwk


@pytest.mark.parametrize(
    "jwk",
    [
        pytest.param({**JWK, "d": "AAAA"}, id="private"),
        pytest.param({**JWK, "crv": "P-384"}, id="another curve"),
        pytest.param({**JWK, "kty": "OKP"}, id="another type"),
        pytest.param({**JWK, "y": OTHER["y"]}, id="another y"),
        pytest.param({**JWK, "x": "AAAA"}, id="short x"),
        pytest.param({"kty": "oct", "k": "AAAA"}, id="symmetric"),
        pytest.param([], id="no object"),
    ],
)
def test_an_unsuitable_jwk_is_refused(jwk: JSON) -> None:
    """A JWK with private members, of another curve, or with a point that is not on the curve is refused. The message
    does not contain the value.
    """
    with pytest.raises(CredentialError) as refused:
        from_jwk(jwk)
    assert "AAAA" not in str(refused.value)


@pytest.mark.parametrize("curve", [P256, SECP256K1], ids=["P-256", "secp256k1"])
@pytest.mark.parametrize("above", [None, 0, 1], ids=["zero", "the order", "above the order"])
def test_scalars_outside_the_group_are_refused(curve: Curve, above: int | None) -> None:
    """Zero, and numbers that are not below the order of the group, are not private keys."""
    scalar = 0 if above is None else curve.order + above
    with pytest.raises(CredentialError):
        PrivateKey(curve, Secret(scalar.to_bytes(32, "big")))


def test_the_repr_of_a_private_key_has_its_curve_only() -> None:
    assert repr(PrivateKey.new(ED25519)) == "PrivateKey(Ed25519)"
    with pytest.raises(CredentialError):
        public_key(ED25519, bytes(33))
