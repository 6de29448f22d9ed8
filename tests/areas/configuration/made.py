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


ENDPOINTS: Final[list[Object]] = [
    ("instance", {"domain": "lab", "instanceName": "srv1", "osId": 1, "passwordPolicies": ["Strict"]}),
    ("instance", {"domain": "lab", "instanceName": "srv2", "publicIp": "192.0.2.7", "authType": "SSH,DID"}),
    ("group", {"domain": "lab", "groupName": "Staff", "ou": "People"}),
    (
        "group",
        {
            "domain": "lab",
            "groupName": "admins",
            "status": "off",
            "instances": ["SRV1", "srv2"],
            "credentialPolicy": {"ttlUser": "8h", "priviligedUser": "true", "policy": "strict", "homeDir": "/home/x"},
        },
    ),
    ("user", {"domain": "lab", "userName": "ann", "groups": ["staff", "Admins"], "instances": ["srv2"]}),
    ("user", {"domain": "lab", "userName": "Ben", "userType": "Guest", "did": "did:key:z6Mk", "privilegedUser": "yes"}),
]
AGENTS: Final[list[Object]] = [
    ("agent_settings", {"domain": "lab", "rotateDays": 30, "removal": "lock", "removeHomes": False}),
    ("agent_settings", {"domain": "lab", "instance": "SRV1", "privilegeSeconds": 600}),
]
DIRECTORIES: Final[list[Object]] = [
    (
        "directory",
        {
            "domain": "lab",
            "directoryName": "AD",
            "appUrl": "ldaps://dc1.example.com ldaps://dc2.example.com",
            "baseDN": "dc=example,dc=com",
            "bindDN": "cn=reader,dc=example,dc=com",
            "secret": {"hex": b"of the reader".hex()},
            "fieldMappings": {"department": "department,ou"},
            "groupMappings": [{"groupName": "Staff", "fieldMappings": {"location": "l", "email": "mail"}}],
            "schedule": {"everyMinutes": 30, "fullEvery": 12},
        },
    ),
    ("directory", {"domain": "lab", "directoryName": "files", "kind": "ldif"}),
    (
        "directory",
        {
            "domain": "lab",
            "directoryName": "cloud",
            "appUrl": "https://graph.microsoft.com",
            "tenant": "example.com",
            "clientId": "x",
            "secret": {"hex": b"of the app".hex()},
            "readDevices": True,
            "schedule": {"timesOfDay": ["2:30", "14:00"], "timeZone": "Europe/Berlin"},
        },
    ),
]


def trust() -> list[Object]:
    """Return an authority, a server certificate and a profile of the domain `lab`."""
    chain, key = server(1)
    return [
        ("authority", {"name": "office", "domains": ["lab"], "certificates": authority(1), "kinds": ["people"]}),
        ("server_certificate", {"domain": "lab", "certificate": chain, "privateKey": key}),
        ("server_certificate", {"domain": "lab", "realm": "LAB.example", "certificate": chain, "privateKey": key}),
        ("profile", {"domain": "lab", "name": "wifi", "ssids": ["office"], "anchors": authority(1)}),
    ]
