"""An authenticator with its browser, in software (WebAuthn sections 5.8.1, 6.1 and 6.5). It encodes its messages
itself."""

import hashlib
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

ORIGIN = "https://vpn.example.org"
HOST = "vpn.example.org"
UP, UV, BE, BS, AT = 0x01, 0x04, 0x08, 0x10, 0x40
ES256, EDDSA, RS256 = -7, -8, -257

Key = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey


def cbor(value: object) -> bytes:
    """Return whole numbers, octets, texts and maps in CBOR (RFC 8949)."""
    if isinstance(value, int):
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if isinstance(value, bytes):
        return _head(2, len(value)) + value
    if isinstance(value, str):
        return _head(3, len(value.encode())) + value.encode()
    assert isinstance(value, Mapping)
    return _head(5, len(value)) + b"".join(cbor(each) for pair in value.items() for each in pair)


def _head(major: int, number: int) -> bytes:
    if number < 24:
        return bytes([major << 5 | number])
    size = 1 if number < 256 else 2 if number < 65_536 else 4
    return bytes([major << 5 | {1: 24, 2: 25, 4: 26}[size]]) + number.to_bytes(size, "big")


def in_base64(octets: bytes) -> str:
    """Return octets in base64url without padding."""
    return urlsafe_b64encode(octets).rstrip(b"=").decode()


def of_base64(text: str) -> bytes:
    """Return the octets of a text in base64url without padding."""
    return urlsafe_b64decode(text + "==")


@cache
def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    """Return an RSA key. It is made once in a process."""
    return rsa.generate_private_key(65537, bits)


def new_key(algorithm: int) -> Key:
    """Return a key for an algorithm of COSE."""
    if algorithm == ES256:
        return ec.generate_private_key(ec.SECP256R1())
    return ed25519.Ed25519PrivateKey.generate() if algorithm == EDDSA else rsa_key()


def cose(key: Key) -> dict[int, Any]:
    """Return the public key as a map of COSE (RFC 9053 section 7, RFC 8230)."""
    if isinstance(key, ec.EllipticCurvePrivateKey):
        numbers = key.public_key().public_numbers()
        return {1: 2, 3: ES256, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return {1: 1, 3: EDDSA, -1: 6, -2: key.public_key().public_bytes_raw()}
    public = key.public_key().public_numbers()
    return {1: 3, 3: RS256, -1: public.n.to_bytes(key.key_size // 8, "big"), -2: b"\1\0\1"}


def client_data(kind: str, challenge: str, origin: str, **more: object) -> bytes:
    """Return clientDataJSON. challenge: in base64url."""
    return json.dumps({"type": kind, "challenge": challenge, "origin": origin, "crossOrigin": False, **more}).encode()


def data(host: str, flags: int, count: int, credential: bytes = b"") -> bytes:
    """Return authenticator data. credential: the attested credential data."""
    return hashlib.sha256(host.encode()).digest() + bytes([flags]) + count.to_bytes(4, "big") + credential


def registration(credential_id: bytes, page: bytes, auth_data: bytes, *, transports: object = ("internal",)) -> str:
    """Return a RegistrationResponseJSON without attestation."""
    attested = cbor({"fmt": "none", "attStmt": {}, "authData": auth_data})
    response = {"clientDataJSON": in_base64(page), "attestationObject": in_base64(attested), "transports": transports}
    return json.dumps({**_named(credential_id), "response": response})


def assertion(credential_id: bytes, page: bytes, auth_data: bytes, signature: bytes, handle: bytes = b"") -> str:
    """Return an AuthenticationResponseJSON."""
    response = {
        "clientDataJSON": in_base64(page),
        "authenticatorData": in_base64(auth_data),
        "signature": in_base64(signature),
        "userHandle": in_base64(handle),
    }
    return json.dumps({**_named(credential_id), "response": response})


def _named(credential_id: bytes) -> dict[str, object]:
    name = in_base64(credential_id)
    return {
        "id": name, "rawId": name, "type": "public-key", "clientExtensionResults": {},
        "authenticatorAttachment": "platform",
    }  # fmt: skip


@dataclass
class Authenticator:
    """An authenticator with one passkey, and the browser that asks it.

    counts: whether it counts its signatures. flags: the flags of its messages. host, origin: what the browser says.
    """

    algorithm: int = ES256
    counts: bool = False
    flags: int = UP | UV
    host: str = HOST
    origin: str = ORIGIN
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    count: int = 0
    handle: bytes = b""
    public: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.key = new_key(self.algorithm)
        self.public = self.public or cose(self.key)

    def create(self, options: Mapping[str, Any], **page: object) -> str:
        """Return the response to the options of a registration. page: further members of clientDataJSON."""
        self.handle = of_base64(options["user"]["id"])
        attested = bytes(16) + len(self.credential_id).to_bytes(2, "big") + self.credential_id + cbor(self.public)
        return registration(
            self.credential_id,
            client_data("webauthn.create", options["challenge"], self.origin, **page),
            data(self.host, self.flags | AT, self._counted(), attested),
        )

    def get(self, options: Mapping[str, Any], *, kind: str = "webauthn.get", **page: object) -> str:
        """Return the response to the options of an assertion."""
        shown = client_data(kind, options["challenge"], self.origin, **page)
        auth_data = data(self.host, self.flags, self._counted())
        signature = self._sign(auth_data + hashlib.sha256(shown).digest())
        return assertion(self.credential_id, shown, auth_data, signature, self.handle)

    def _counted(self) -> int:
        self.count += self.counts
        return self.count

    def _sign(self, octets: bytes) -> bytes:
        if isinstance(self.key, ec.EllipticCurvePrivateKey):
            return self.key.sign(octets, ec.ECDSA(SHA256()))
        if isinstance(self.key, ed25519.Ed25519PrivateKey):
            return self.key.sign(octets)
        return self.key.sign(octets, padding.PKCS1v15(), SHA256())
