"""Objects of all kinds of files, for tests: certificates are made once."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import DNSName

from tests.areas.authorities.made import MadeAuthority
from tests.radius.eap.certificates import Authority

Object = tuple[str, Mapping[str, object]]
POLICY: Final[Object] = (
    "password_policy",
    {"policyName": "strict", "minLen": "12", "allowSpecial": "no", "dcredit": "-1", "usercheck": "1"},
)


@cache
def authority(number: int) -> str:
    """Return the certificate of an authority in PEM."""
    return MadeAuthority(f"Test CA {number}").certificate.public_bytes(Encoding.PEM).decode()


@cache
def server(number: int) -> tuple[str, dict[str, object]]:
    """Return a server's certificate in PEM, and its key as files give it."""
    with TemporaryDirectory() as directory:
        name = f"radius{number}.example.com"
        issued = Authority(Path(directory)).certificate(name, [DNSName(name)])
        key = issued.file.read_bytes().partition(b"-----BEGIN CERTIFICATE")[0]
        return issued.certificate.public_bytes(Encoding.PEM).decode(), {"hex": key.hex()}


def trust() -> list[Object]:
    """Return an authority, a server certificate and a profile of the domain `lab`."""
    chain, key = server(1)
    return [
        ("authority", {"name": "office", "domains": ["lab"], "certificates": authority(1), "kinds": ["people"]}),
        ("server_certificate", {"domain": "lab", "certificate": chain, "privateKey": key}),
        ("server_certificate", {"domain": "lab", "realm": "LAB.example", "certificate": chain, "privateKey": key}),
        ("profile", {"domain": "lab", "name": "wifi", "ssids": ["office"], "anchors": authority(1)}),
    ]
