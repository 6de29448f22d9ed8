"""SSH public keys that were made for the tests."""

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def line(key: ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey) -> str:
    """Return a public key as OpenSSH writes it."""
    return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


ED25519 = line(ed25519.Ed25519PrivateKey.generate().public_key())
ECDSA = line(ec.generate_private_key(ec.SECP256R1()).public_key())
RSA = line(rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key())
SHORT_RSA = RSA.split()[0] + " AAAAB3NzaC1yc2EAAAADAQABAAAAQQCxT0Ma6Yb7"
