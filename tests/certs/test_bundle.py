"""A client certificate as PKCS#12 and as a configuration profile for Apple devices."""

import plistlib
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

from sallyport.certs.authority import fingerprint
from sallyport.certs.bundle import Identity, Network, as_pkcs12, as_profile, new_password
from sallyport.certs.folder import CertificateFolder, read_certificates, read_key
from tests.peers.programs import find, needs

COMMON = {"PayloadType", "PayloadVersion", "PayloadIdentifier", "PayloadUUID", "PayloadDisplayName"}
KEYS = {
    "com.apple.security.pkcs12": {"PayloadContent", "PayloadCertificateFileName", "Password"},
    "com.apple.security.root": {"PayloadContent", "PayloadCertificateFileName"},
    "com.apple.wifi.managed": {
        "SSID_STR", "AutoJoin", "HIDDEN_NETWORK", "EncryptionType", "PayloadCertificateUUID", "EAPClientConfiguration",
    },
    "com.apple.vpn.managed": {"VPNType", "UserDefinedName", "IKEv2"},
}  # fmt: skip
"""The payloads that a profile may have, with their keys, from Apple's device management reference."""
EAP = {
    "AcceptEAPTypes", "UserName", "PayloadCertificateAnchorUUID", "TLSTrustedServerNames", "TLSMinimumVersion",
}  # fmt: skip
IKEV2 = {
    "RemoteAddress", "RemoteIdentifier", "LocalIdentifier", "AuthenticationMethod", "ExtendedAuthEnabled", "AuthName",
    "PayloadCertificateUUID", "TLSMinimumVersion",
}  # fmt: skip
UUID = re.compile(r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}")


def identity(folder: CertificateFolder, name: str = "ann@example.org") -> Identity:
    """Return the certificate and key of a client."""
    path = folder.client(name)
    certificate, authority = read_certificates(path)
    return Identity(certificate, read_key(path.with_suffix(".key")), authority)


def payloads(profile: bytes) -> dict[str, Any]:
    """Return the payloads of a profile by type."""
    return {each["PayloadType"]: each for each in plistlib.loads(profile)["PayloadContent"]}


def opened(octets: bytes, password: str) -> tuple[str, bytes]:
    """Return the fingerprint of the certificate and the key that a PKCS#12 file contains."""
    found = pkcs12.load_pkcs12(octets, password.encode())
    assert found.cert is not None and found.key is not None
    key = found.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return fingerprint(found.cert.certificate), key


def own(ann: Identity) -> tuple[str, bytes]:
    """Return the fingerprint of ann's certificate, and ann's key."""
    return fingerprint(ann.certificate), ann.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())


@needs("openssl")
@pytest.mark.parametrize(
    ("legacy", "cipher", "mac"),
    [
        (False, "PBES2, PBKDF2, AES-256-CBC, Iteration 20000, PRF hmacWithSHA256", "MAC: sha256"),
        (True, "pbeWithSHA1And3-KeyTripleDES-CBC, Iteration 20000", "MAC: sha1"),
    ],
)
def test_openssl_opens_the_pkcs12(
    folder: CertificateFolder, tmp_path: Path, legacy: bool, cipher: str, mac: str
) -> None:
    """OpenSSL opens key, certificate and authority with the password and with no other. The salt of the MAC has 8
    octets.
    """
    ann, password, file = identity(folder), new_password(), tmp_path / "ann.p12"
    file.write_bytes(as_pkcs12(ann, password, legacy=legacy))

    def openssl(password: str, *options: str) -> "subprocess.CompletedProcess[str]":
        more = ("-legacy",) if legacy else ()
        command = [find("openssl"), "pkcs12", "-in", str(file), "-passin", f"pass:{password}", *more, *options]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)

    told = openssl(password, "-info", "-noout")
    assert told.returncode == 0
    assert told.stderr.count(cipher) == 2
    assert mac in told.stderr and "salt length: 8" in told.stderr
    assert openssl("another", "-noout").returncode != 0
    pem = openssl(password, "-nodes").stdout
    assert pem.count("BEGIN CERTIFICATE") == 2 and pem.count("BEGIN PRIVATE KEY") == 1
    assert opened(file.read_bytes(), password) == own(ann)


def test_a_profile_has_the_keys_of_the_reference(folder: CertificateFolder) -> None:
    """Each payload has a known type and known keys. Identifiers are unique, and each reference names a payload of the
    profile.
    """
    ann, authority = identity(folder), read_certificates(folder.ca)[0]
    network = Network("Office", "vpn.example.org", "", ["radius.example.org"], [authority])
    password = new_password()
    octets = as_profile(ann, password, network)
    whole = plistlib.loads(octets)
    assert (whole["PayloadType"], whole["PayloadVersion"]) == ("Configuration", 1)
    assert password.encode() not in octets
    every = [whole, *whole["PayloadContent"]]
    assert all(each.keys() >= COMMON and UUID.fullmatch(each["PayloadUUID"]) for each in every)
    assert len({each["PayloadUUID"] for each in every}) == len({each["PayloadIdentifier"] for each in every}) == 5
    found = payloads(octets)
    assert found.keys() == KEYS.keys()
    assert all(each.keys() - COMMON <= KEYS[kind] for kind, each in found.items())
    own_uuid = found["com.apple.security.pkcs12"]["PayloadUUID"]
    wifi, vpn = found["com.apple.wifi.managed"], found["com.apple.vpn.managed"]
    eap, ikev2 = wifi["EAPClientConfiguration"], vpn["IKEv2"]
    assert eap.keys() == EAP and ikev2.keys() == IKEV2
    assert (wifi["SSID_STR"], wifi["EncryptionType"], eap["AcceptEAPTypes"]) == ("Office", "WPA2", [13])
    assert eap["TLSTrustedServerNames"] == ["radius.example.org"]
    assert eap["PayloadCertificateAnchorUUID"] == [found["com.apple.security.root"]["PayloadUUID"]]
    assert wifi["PayloadCertificateUUID"] == ikev2["PayloadCertificateUUID"] == own_uuid
    assert (vpn["VPNType"], ikev2["RemoteAddress"], ikev2["RemoteIdentifier"], ikev2["ExtendedAuthEnabled"]) == (
        "IKEv2", "vpn.example.org", "vpn.example.org", 1,
    )  # fmt: skip
    assert eap["UserName"] == ikev2["LocalIdentifier"] == "ann@example.org"


def test_the_identity_in_a_profile_opens_with_the_password(folder: CertificateFolder) -> None:
    """The identity contains only ann's certificate and key. The authority is in a payload of its own."""
    ann, authority = identity(folder), read_certificates(folder.ca)[0]
    password = new_password()
    found = payloads(as_profile(ann, password, Network(authorities=[authority])))
    assert found.keys() == {"com.apple.security.pkcs12", "com.apple.security.root"}
    inner = found["com.apple.security.pkcs12"]["PayloadContent"]
    assert opened(inner, password) == own(ann)
    assert pkcs12.load_pkcs12(inner, password.encode()).additional_certs == []
    root = x509.load_der_x509_certificate(found["com.apple.security.root"]["PayloadContent"])
    assert fingerprint(root) == fingerprint(authority)


def test_a_host_has_the_user_name_of_a_machine(folder: CertificateFolder) -> None:
    """The user name in the profile of a host begins with host/, as in Windows, so that login rules recognize a
    machine.
    """
    proxy = identity(folder, "proxy.example.org")
    wifi = payloads(as_profile(proxy, "x", Network("Office")))["com.apple.wifi.managed"]
    assert wifi["EAPClientConfiguration"]["UserName"] == "host/proxy.example.org"
    assert "PayloadCertificateAnchorUUID" not in wifi["EAPClientConfiguration"]


def test_passwords_are_random() -> None:
    """A password has twenty letters and digits in groups. It has no characters that look alike."""
    found = {new_password() for _ in range(100)}
    assert len(found) == 100
    assert all(re.fullmatch(r"([a-hj-km-np-z2-9]{5}-){3}[a-hj-km-np-z2-9]{5}", each) for each in found)
