"""Keys of the three supported curves, for signing and verifying. The formats of public keys are JWK (RFC 7517, RFC
8037, RFC 8812) and multikey (W3C Controlled Identifiers 1.0, section 2.2.2).

Signatures have the form that JOSE defines. An Ed25519 signature follows RFC 8032. An ECDSA signature uses SHA-256, and
consists of r and s, 32 octets each (RFC 7518 section 3.4). Two values of s are valid. The lower value is used, because
some verifiers of secp256k1 accept only this value.
"""

import secrets
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sallyport.areas.did.crypto.encoding import (
    CURVES,
    ED25519,
    P256,
    Curve,
    from_base58,
    from_base64url,
    to_base58,
    to_base64url,
)
from sallyport.base.errors import CredentialError
from sallyport.base.secret import Secret
from sallyport.base.wire import JSON

_ECDSA: Final = ec.ECDSA(SHA256())
_FIELD: Final = 2**255 - 19
_D: Final = -121665 * pow(121666, -1, _FIELD) % _FIELD


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key. Create it with `public_key`, which checks the octets. octets: the 32 octets of an Ed25519 key,
    or a compressed point of 33 octets (SEC 1 section 2.3.3)."""

    curve: Curve
    octets: bytes
    _key: Ed25519PublicKey | ec.EllipticCurvePublicKey = field(repr=False, compare=False)

    def verify(self, signature: bytes, signed: bytes) -> bool:
        """Return whether a signature is valid. signed: the octets that were signed."""

        try:
            if isinstance(self._key, Ed25519PublicKey):
                self._key.verify(signature, signed)
            elif len(signature) == 64:
                self._key.verify(_der(signature), signed, _ECDSA)
            else:
                return False
        except InvalidSignature:
            return False
        return True

    @property
    def multikey(self) -> str:
        """Return the multikey: the letter `z`, followed by the prefix and the key in base58btc."""
        return "z" + to_base58(self.curve.prefix + self.octets)

    @property
    def jwk(self) -> dict[str, JSON]:
        """Return the JWK with only the required members, in the order of RFC 7638."""

        if not isinstance(self._key, ec.EllipticCurvePublicKey):
            return {"crv": self.curve.name, "kty": self.curve.kty, "x": to_base64url(self.octets)}
        point = self._key.public_numbers()
        x, y = (to_base64url(each.to_bytes(32, "big")) for each in (point.x, point.y))
        return {"crv": self.curve.name, "kty": self.curve.kty, "x": x, "y": y}


class PrivateKey:
    """A private key. octets: the seed of an Ed25519 key (RFC 8032 section 5.1.5), or the scalar of an ECDSA key; 32
    octets."""

    def __init__(self, curve: Curve, octets: Secret) -> None:

        self.curve = curve
        self._octets = octets
        seed = octets.reveal()
        if len(seed) != 32 or (curve.order and not 0 < int.from_bytes(seed, "big") < curve.order):
            raise CredentialError(f"the octets are not a private key of {curve.name}")
        self._ed25519 = Ed25519PrivateKey.from_private_bytes(seed) if curve is ED25519 else None
        self._ecdsa = None if curve is ED25519 else ec.derive_private_key(int.from_bytes(seed, "big"), _named(curve))

    @classmethod
    def new(cls, curve: Curve) -> "PrivateKey":
        """Generate a random key."""
        if curve is ED25519:
            return cls(curve, Secret(secrets.token_bytes(32)))
        scalar = secrets.randbelow(curve.order - 1) + 1
        return cls(curve, Secret(scalar.to_bytes(32, "big")))

    def __repr__(self) -> str:
        return f"PrivateKey({self.curve.name})"

    @property
    def octets(self) -> Secret:
        """Return the secret octets of the key, for storage."""
        return self._octets

    @property
    def public(self) -> PublicKey:
        """Return the public key."""

        if self._ed25519 is not None:
            return public_key(ED25519, self._ed25519.public_key().public_bytes_raw())
        assert self._ecdsa is not None  # noqa: S101  one of the two is there
        point = self._ecdsa.public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
        return public_key(self.curve, point)

    def sign(self, octets: bytes) -> bytes:
        """Return the signature of some octets. The signature has 64 octets."""

        if self._ed25519 is not None:
            return self._ed25519.sign(octets)
        assert self._ecdsa is not None  # noqa: S101
        r, s = decode_dss_signature(self._ecdsa.sign(octets, _ECDSA))
        return r.to_bytes(32, "big") + min(s, self.curve.order - s).to_bytes(32, "big")


def public_key(curve: Curve, octets: bytes) -> PublicKey:
    """Return a public key from its octets. Raises CredentialError if the length is wrong, or if the octets are not a
    point of the curve."""

    if len(octets) != curve.octets:
        raise CredentialError(f"the key has {len(octets)} octets, but a key of {curve.name} has {curve.octets}")
    try:
        if curve is ED25519:
            if not _is_point(octets):
                raise ValueError
            return PublicKey(curve, octets, Ed25519PublicKey.from_public_bytes(octets))
        return PublicKey(curve, octets, ec.EllipticCurvePublicKey.from_encoded_point(_named(curve), octets))
    except ValueError:
        raise CredentialError(f"the key is not a point of {curve.name}") from None


def from_multikey(text: str) -> PublicKey:
    """Parse a multikey. Raises CredentialError if the encoding, the prefix or the length is wrong, or if the octets
    are not a point of the curve."""
    if not text.startswith("z"):
        raise CredentialError("a multikey must be base58btc, and begin with z")
    octets = from_base58(text[1:])
    for curve in CURVES.values():
        if octets.startswith(curve.prefix):
            return public_key(curve, octets[len(curve.prefix) :])
    raise CredentialError(f"the curve of the key is not supported; use one of {', '.join(CURVES)}")


def from_jwk(jwk: JSON) -> PublicKey:
    """Parse a JWK with a public key. Raises CredentialError if the curve is not supported, or if the point is not on
    the curve. Raises CredentialError if the JWK contains a private key, which must not be sent."""
    if not isinstance(jwk, dict):
        raise CredentialError("a JWK must be an object")
    if "d" in jwk or "k" in jwk:
        raise CredentialError("a private key was sent: replace this key, and send only the public key")
    curve = CURVES.get(str(jwk.get("crv")))
    if curve is None or jwk.get("kty") != curve.kty:
        raise CredentialError(f"the curve of the key is not supported; use one of {', '.join(CURVES)}")
    x = _coordinate(jwk.get("x"))
    if curve is ED25519:
        return public_key(curve, x)
    y = _coordinate(jwk.get("y"))
    key = public_key(curve, bytes((2 + (y[-1] & 1),)) + x)
    if key.jwk["y"] != to_base64url(y):
        raise CredentialError(f"the key is not a point of {curve.name}")
    return key


def _coordinate(value: JSON) -> bytes:
    octets = from_base64url(value) if isinstance(value, str) else b""
    if len(octets) != 32:
        raise CredentialError("a coordinate of a JWK must be 32 octets in base64url")
    return octets


def _named(curve: Curve) -> ec.EllipticCurve:

    return ec.SECP256R1() if curve is P256 else ec.SECP256K1()


def _der(signature: bytes) -> bytes:
    return encode_dss_signature(int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))


def _is_point(octets: bytes) -> bool:
    """Return whether the octets are a point of Ed25519 (RFC 8032 section 5.1.3). `cryptography` does not check this."""
    y = int.from_bytes(octets, "little") & ((1 << 255) - 1)
    u, v = y * y - 1, _D * y * y + 1
    return y < _FIELD and pow(u * v, (_FIELD - 1) // 2, _FIELD) in {0, 1}
