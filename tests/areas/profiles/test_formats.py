"""The files of a profile, read by programs of other projects and checked against the vendors' schemas."""

import json
import plistlib
import re
import subprocess
import xml.etree.ElementTree as ET
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from sallyport.areas.domains.domain import Domain, FirstFactor
from sallyport.areas.profiles.android import typed_settings
from sallyport.areas.profiles.files import Kind, files_of
from sallyport.areas.profiles.profile import LoginBy, Method, Profile, Security, Trust, warnings_of
from sallyport.areas.profiles.windows import TTLS
from tests.areas.profiles.conftest import HOST, HOSTILE, profile
from tests.peers.programs import find, needs

SCHEMAS = Path(__file__).parent / "schemas"
COMMON = {"PayloadType", "PayloadVersion", "PayloadIdentifier", "PayloadUUID", "PayloadDisplayName"}
EAP = {
    "AcceptEAPTypes", "UserName", "PayloadCertificateAnchorUUID", "TLSTrustedServerNames", "TLSMinimumVersion",
    "TTLSInnerAuthentication", "OuterIdentity", "SystemModeCredentialsSource",
}  # fmt: skip
PAYLOADS = {
    "com.apple.security.root": {"PayloadContent", "PayloadCertificateFileName"},
    "com.apple.wifi.managed": {
        "SSID_STR", "AutoJoin", "HIDDEN_NETWORK", "EncryptionType", "EAPClientConfiguration", "SetupModes",
    },
    "com.apple.firstactiveethernet.managed": {"Interface", "EAPClientConfiguration", "SetupModes"},
}  # fmt: skip
"""The payloads that a profile may have, with their keys, from Apple's device management reference."""
UUID_FORM = re.compile(r"[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}")
FULL = profile(ssids=HOSTILE, wired=True, hidden=True, outer_identity="o'\"\\;<&>@corp.example")
"""A profile of every kind of file, with all characters that could end a value."""


def made(one: Profile, trust: Trust, end: str, user: str = "") -> bytes:
    """Return the file of a profile whose name ends like this."""
    (found,) = [each for each in files_of(one) if each.file.endswith(end)]
    return found.make(trust, user)


def payloads(octets: bytes) -> list[dict[str, Any]]:
    """Return the payloads of a configuration profile."""
    found: list[dict[str, Any]] = plistlib.loads(octets)["PayloadContent"]
    return found


def settings(octets: bytes) -> dict[str, str]:
    """Return the texts of an XML document by the local names of their elements."""
    whole = ET.fromstring(octets)  # noqa: S314  our own file
    return {each.tag.rpartition("}")[2]: each.text or "" for each in whole.iter()}


@pytest.mark.parametrize("login_by", LoginBy)
@pytest.mark.parametrize("method", Method)
def test_apple_payloads_have_the_keys_of_the_reference(trust: Trust, method: Method, login_by: LoginBy) -> None:
    """Each payload has a known type and known keys. Each reference names a payload of the file, and the anchor is the
    authority that issued the server's certificate.
    """
    one = replace(FULL, method=method, login_by=login_by)
    for end, kind in ((".mobileconfig", "com.apple.wifi.managed"), ("-wired.mobileconfig", "com.apple.firstactive")):
        whole = plistlib.loads(made(one, trust, f"office{end}"))
        assert (whole["PayloadType"], whole["PayloadVersion"]) == ("Configuration", 1)
        assert whole["PayloadScope"] == ("User" if login_by is LoginBy.PERSON else "System")
        every = [whole, *whole["PayloadContent"]]
        assert all(each.keys() >= COMMON and UUID_FORM.fullmatch(each["PayloadUUID"]) for each in every)
        assert len({each["PayloadUUID"] for each in every}) == len({each["PayloadIdentifier"] for each in every})
        assert len({each["PayloadUUID"] for each in every}) == len(every)
        assert all(each.keys() - COMMON <= PAYLOADS[each["PayloadType"]] for each in whole["PayloadContent"])
        root, *networks = whole["PayloadContent"]
        assert root["PayloadContent"] == trust.anchors[0].der
        assert all(each["PayloadType"].startswith(kind) for each in networks)
        for each in networks:
            eap = each["EAPClientConfiguration"]
            assert eap.keys() <= EAP and eap["AcceptEAPTypes"] == [method.eap_type]
            assert eap["PayloadCertificateAnchorUUID"] == [root["PayloadUUID"]]
            assert eap["TLSTrustedServerNames"] == [HOST] and "UserName" not in eap
            assert ("SetupModes" in each) == (login_by is not LoginBy.PERSON)
            assert ("OuterIdentity" in eap) == method.has_password
            of_machine = "ActiveDirectory" if method is Method.PEAP and login_by is not LoginBy.PERSON else None
            assert eap.get("SystemModeCredentialsSource") == of_machine


def test_apple_networks(trust: Trust) -> None:
    """Each SSID has a network, with its octets unchanged. The inner method, the security and the user are those of the
    profile.
    """
    one = replace(FULL, method=Method.TTLS_PAP, security=Security.WPA3)
    networks = payloads(made(one, trust, "office.mobileconfig", "ann"))[1:]
    assert tuple(each["SSID_STR"] for each in networks) == HOSTILE
    assert all(each["HIDDEN_NETWORK"] and each["EncryptionType"] == "WPA3" for each in networks)
    eap = networks[0]["EAPClientConfiguration"]
    assert (eap["TTLSInnerAuthentication"], eap["OuterIdentity"], eap["UserName"]) == (
        "PAP", FULL.outer_identity, "ann",
    )  # fmt: skip
    (network,) = payloads(made(profile(), trust, "office.mobileconfig"))[1:]
    assert network["EncryptionType"] == "WPA2" and not network["HIDDEN_NETWORK"]


@needs("plistutil")
def test_libplist_reads_apples_files(trust: Trust, tmp_path: Path) -> None:
    """libplist reads the same values as Python."""
    for end in ("office.mobileconfig", "-wired.mobileconfig"):
        file, binary = tmp_path / "profile", tmp_path / "binary"
        file.write_bytes(made(FULL, trust, end))
        subprocess.run([find("plistutil"), "-i", file, "-f", "bin", "-o", binary], check=True, timeout=30)
        assert plistlib.loads(binary.read_bytes()) == plistlib.loads(file.read_bytes())


@needs("xmllint")
@pytest.mark.parametrize("security", Security)
@pytest.mark.parametrize("method", Method)
def test_windows_files_follow_the_schemas(trust: Trust, tmp_path: Path, method: Method, security: Security) -> None:
    """xmllint checks each file against Microsoft's schemas, which name the order and the values of all elements."""
    one = replace(FULL, method=method, security=security, login_by=LoginBy.BOTH)
    for schema in ("wlan", "lan"):
        files = []
        for each in files_of(one):
            if each.kind is Kind.WINDOWS and ("-wired" in each.file) == (schema == "lan"):
                files.append(tmp_path / each.file)
                files[-1].write_bytes(each.make(trust, ""))
        assert len(files) == (1 if schema == "lan" else len(HOSTILE))
        command = [find("xmllint"), "--nonet", "--noout", "--schema", SCHEMAS / f"{schema}.xsd", *files]
        checked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
        assert checked.returncode == 0, checked.stderr


@needs("xmllint")
def test_the_schemas_refuse_other_files(trust: Trust, tmp_path: Path) -> None:
    """The schemas are strict: another order, an unknown element or a wrong value is refused."""
    good = made(profile(), trust, "office-1.xml").decode()
    for old, new in (
        ("<authentication>WPA2<", "<authentication>WPA9<"),
        ("<useOneX>true</useOneX>", "<useOneX>true</useOneX><password>x</password>"),
        ("<FastReconnect>true</FastReconnect>", ""),
        (f"<TrustedRootCA>{trust.anchors[0].sha1}<", "<TrustedRootCA>no digits<"),
        ("<authMode>user<", "<authMode>person<"),
    ):
        assert old in good
        bad = good.replace(old, new)
        if not new:
            bad = bad.replace("<ServerValidation>", f"{old}<ServerValidation>")
        (tmp_path / "bad.xml").write_text(bad)
        command = [find("xmllint"), "--nonet", "--noout", "--schema", SCHEMAS / "wlan.xsd", tmp_path / "bad.xml"]
        assert subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 3, new


@pytest.mark.parametrize("method", Method)
def test_windows_checks_the_server(trust: Trust, method: Method) -> None:
    """A file names the server and the thumbprint of its authority, and does not let the user accept another
    server. No file has a password.
    """
    one = replace(FULL, method=method, server_names=("r1.example.org", "r2.example.org"))
    octets = made(one, replace(trust, server_names=one.server_names), "office-1.xml")
    found, sha1 = settings(octets), trust.anchors[0].sha1
    assert found["hex"] == HOSTILE[0].encode().hex().upper() and found["name"] == HOSTILE[0]
    assert found["ServerNames"] == "r1.example.org;r2.example.org" and found["nonBroadcast"] == "true"
    assert found.get("DisableUserPromptForServerValidation", found.get("DisablePrompt")) == "true"
    assert sha1 in (found.get("TrustedRootCA", ""), found.get("TrustedRootCAHash", "").replace(" ", ""))
    if TTLS.encode() not in octets:
        assert found["PerformServerValidation"] == found["AcceptServerName"] == "true"
    assert found["AuthorId"] == ("311" if method.eap_type == 21 else "0")
    if method.has_password:
        assert FULL.outer_identity.startswith(found.get("AnonymousIdentity", found.get("AnonymousUserName", "-")))
    assert "WPA2" in found["authentication"] and found["authMode"] == "user"


@pytest.mark.parametrize(
    ("outer", "hidden"),
    [("anonymous@corp.example", "anonymous"), ("@corp.example", ""), ("CORP\\anonymous", "anonymous"), ("", None)],
)
def test_windows_hides_the_user_in_peap(trust: Trust, outer: str, hidden: str | None) -> None:
    """Each outer identity hides the user name, also one that is only a realm. Windows appends the realm."""
    found = settings(made(profile(Method.PEAP, outer_identity=outer), trust, "office-1.xml"))
    assert (found.get("EnableIdentityPrivacy"), found.get("AnonymousUserName")) == (
        None if hidden is None else "true",
        hidden,
    )


@pytest.mark.parametrize(
    ("method", "login_by", "first", "warnings"),
    [
        (Method.PEAP, LoginBy.MACHINE, FirstFactor.RADIUS, []),
        (Method.TLS, LoginBy.BOTH, FirstFactor.LOCAL, []),
        (Method.TTLS_PAP, LoginBy.PERSON, FirstFactor.LOCAL, []),
        (Method.PEAP, LoginBy.BOTH, FirstFactor.LOCAL, ["first factor is local"]),
        (Method.TTLS_PAP, LoginBy.MACHINE, FirstFactor.LDAP, ["a machine has no password for TTLS with PAP"]),
    ],
)
def test_machines_without_a_password(
    method: Method, login_by: LoginBy, first: FirstFactor, warnings: list[str]
) -> None:
    """A machine has a password only for PEAP, and no local account."""
    found = warnings_of(profile(method, login_by=login_by), Domain(1, 1, "corp", first_factor=first))
    assert len(found) == len(warnings) and all(part in text for part, text in zip(warnings, found, strict=True))


def test_windows_knows_wpa3(trust: Trust) -> None:
    assert settings(made(profile(security=Security.WPA3), trust, "-1.xml"))["authentication"] == "WPA3ENT"


@needs("nmcli")
@pytest.mark.parametrize("method", Method)
def test_networkmanager_reads_the_key_files(trust: Trust, method: Method) -> None:
    """nmcli reads each key file as a complete connection, with the octets of the SSID and the texts unchanged."""
    one = replace(FULL, method=method)
    for each in files_of(one):
        if each.kind is not Kind.NETWORK_MANAGER:
            continue
        command = [find("nmcli"), "--offline", "connection", "modify", "connection.autoconnect-priority", "1"]
        octets = each.make(trust, "ann \\n[x]")
        read = subprocess.run(command, input=octets, capture_output=True, check=False, timeout=30)
        assert read.returncode == 0, read.stderr
        lines = read.stdout.decode().splitlines()
        assert f"eap={ {13: 'tls', 21: 'ttls', 25: 'peap'}[method.eap_type] };" in lines
        assert f"domain-match={HOST}" in lines and "identity=ann \\\\n[x]" in lines
        assert ("anonymous-identity=o'\"\\\\;<&>@corp.example" in lines) == method.has_password
        assert any(line.startswith("ca-cert=data:;base64,") for line in lines)
        if "-wired" not in each.file:
            ssid = next(line for line in lines if line.startswith("ssid="))
            number = int(each.file.split("-")[1].split(".")[0])
            assert read_ssid(ssid.removeprefix("ssid=")) == HOSTILE[number - 1].encode()


def read_ssid(value: str) -> bytes:
    """Return the octets of an SSID in a key file: numbers with semicolons, or text with escapes. NetworkManager escapes
    a semicolon, and then the backslash.
    """
    if re.fullmatch(r"([0-9]+;)+", value):
        return bytes(int(each) for each in value.rstrip(";").split(";"))
    return re.sub(r"\\(.)", lambda found: {"s": " "}.get(found[1], found[1]), value).replace("\\;", ";").encode()


def test_open_network_configuration(trust: Trust) -> None:
    """The networks have the fields that the Android Management API requires, and name the authority."""
    found = json.loads(made(replace(FULL, method=Method.TTLS_MSCHAPV2), trust, "-onc.json"))
    assert found["Type"] == "UnencryptedConfiguration"
    (authority,) = found["Certificates"]
    assert authority["Type"] == "Authority" and b64decode(authority["X509"]) == trust.anchors[0].der
    assert [each["WiFi"]["SSID"] for each in found["NetworkConfigurations"]] == list(HOSTILE)
    for each in found["NetworkConfigurations"]:
        assert each.keys() == {"GUID", "Name", "Type", "WiFi"} and each["Type"] == "WiFi"
        wifi, eap = each["WiFi"], each["WiFi"]["EAP"]
        assert bytes.fromhex(wifi["HexSSID"]) == wifi["SSID"].encode() and wifi["Security"] == "WPA-EAP"
        assert eap == {
            "Outer": "EAP-TTLS", "Inner": "MSCHAPv2", "ServerCARefs": [authority["GUID"]],
            "DomainSuffixMatch": [HOST], "AnonymousIdentity": FULL.outer_identity,
        }  # fmt: skip


def test_settings_to_type(trust: Trust) -> None:
    """The settings for Android have what the method needs and nothing else."""
    typed = dict(typed_settings(profile(Method.TTLS_PAP), trust))
    assert typed["EAP method"] == "TTLS" and typed["Phase 2 authentication"] == "PAP" and typed["Domain"] == HOST
    assert "User certificate" not in typed
    typed = dict(typed_settings(profile(Method.TLS), trust))
    assert typed["EAP method"] == "TLS" and "User certificate" in typed and not typed.keys() & {"Password"}


def test_files_are_the_same_at_each_time(trust: Trust) -> None:
    """A file depends only on the profile and the server. Another profile has other UUIDs."""
    first = {each.file: each.make(trust, "") for each in files_of(FULL)}
    assert first == {each.file: each.make(trust, "") for each in files_of(replace(FULL))}
    other = replace(FULL, uuid=UUID(int=8))
    assert first["office.mobileconfig"] != made(other, trust, "office.mobileconfig")
    assert all(re.fullmatch(r"[a-z0-9_.-]+", name) for name in first)
    odd = replace(profile(), name='../"Büro;\r\n')
    assert files_of(odd)[0].file == "b-ro.mobileconfig" and files_of(replace(odd, name="日本"))[0].file.startswith(
        "prof"
    )


def test_no_file_has_a_secret(trust: Trust) -> None:
    """No file contains a key, or a password but a reference to it."""
    for method in Method:
        for each in files_of(replace(FULL, method=method)):
            octets = each.make(trust, "")
            assert b"PRIVATE KEY" not in octets and b"<Password>" not in octets and b"psk" not in octets
