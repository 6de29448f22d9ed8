"""SSH keys that were made for the tests; nobody has their other halves."""

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def _line(key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


ED25519 = _line(ed25519.Ed25519PrivateKey.generate())
ECDSA = _line(ec.generate_private_key(ec.SECP256R1()))
RSA = _line(rsa.generate_private_key(public_exponent=65537, key_size=2048))
SHORT_RSA = RSA.split()[0] + " AAAAB3NzaC1yc2EAAAADAQABAAAAQQCxT0Ma6Yb7"
