"""`sallyport cert`, and what `doctor` says of certificates: no service is needed, and nothing is overwritten."""

import json
import plistlib
import ssl
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sallyport.certs.authority import Authority, new_key
from sallyport.certs.directory import Directory, present, read_certificates
from tests.certs.conftest import data_dir, made
from tests.cli import Service

__all__ = ["data_dir", "made"]

NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "own")])


@pytest.fixture
def line(data_dir: Path) -> Service:
    """The command line over a data directory with certificates; nothing runs."""
    service = Service(data_dir, {"SALLYPORT_RADSEC_BIND": "127.0.0.1:0"})
    service.data_dir = data_dir
    service.ok("db", "migrate")
    return service


def installed(directory: Path, settings: dict[str, str] | None = None) -> Service:
    """The command line of a new installation; nothing runs."""
    service = Service(directory, settings)
    service.ok("db", "migrate")
    return service


def told(line: Service, level: str, status: int = 0) -> list[str]:
    """What the doctor finds about certificates at a level."""
    done = line.cli("doctor", "--json")
    assert done.returncode == status, done
    found = [row for row in json.loads(done.stdout) if row["check"] == "certificates"]
    return [row["finding"] for row in found if row["level"] == level]


def test_from_nothing_to_a_client(tmp_path: Path) -> None:
    """An authority, its PEM, a client, a list of both; a second authority is refused."""
    line = installed(tmp_path)
    assert line.cli("cert", "show").returncode == 1
    line.ok("cert", "init", "--host", "radius.example.org")
    assert line.cli("cert", "init").returncode == 1
    pem = line.ok("cert", "show", "--ca")
    assert ssl.PEM_cert_to_DER_cert(pem)
    certificate, key = line.ok("cert", "issue", "ann@example.org").splitlines()
    ssl.create_default_context().load_cert_chain(certificate, key)
    shown = json.loads(line.ok("cert", "show", "--json"))
    assert [(row["name"], row["kind"], row["state"]) for row in shown] == [
        ("ann@example.org", "client", "valid"), ("radius.example.org", "server", "valid"),
    ]  # fmt: skip
    trail = json.loads(line.ok("audit", "list", "--action", "certificate.issue", "--json"))
    assert [each["target"].split()[2:] for each in trail] == [
        ["ann@example.org"], ["radius.example.org"], ["Sallyport", "CA"],
    ]  # fmt: skip
    assert all(each["actorKind"] == "command line" and each["changes"]["expires"][1] for each in trail)


def test_renew_and_revoke(line: Service, data_dir: Path) -> None:
    """By name, and by the serial number that `show` prints."""
    line.ok("cert", "renew")
    line.ok("cert", "renew", "proxy.example.org")
    serial = json.loads(line.ok("cert", "show", "--json"))[0]["serial"]
    line.ok("cert", "revoke", serial)
    line.ok("cert", "revoke", "proxy.example.org")
    states = [(row["name"], row["state"]) for row in json.loads(line.ok("cert", "show", "--json"))]
    assert states[:3] == [("ann@example.org", "revoked")] + [("proxy.example.org", "revoked")] * 2
    trail = [(each["action"], each["target"]) for each in json.loads(line.ok("audit", "list", "--json"))]
    revoked = [target.split() for action, target in trail if action == "certificate.revoke"]
    assert serial in [each[1] for each in revoked]
    assert [each[2] for each in revoked].count("proxy.example.org") == 2
    assert [action for action, _ in trail].count("certificate.renew") == 2
    assert line.cli("cert", "revoke", "bob").returncode == 1
    line.ok("cert", "revoke", f"{read_certificates(Directory(data_dir).server)[0].serial_number:x}")
    assert any("server's certificate was revoked" in each for each in told(line, "problem", status=1))
    line.ok("cert", "renew")
    assert told(line, "problem") == []
    assert line.cli("cert", "renew", "proxy.example.org", "--host", "x").returncode == 2


def test_a_certificate_that_is_taken_back_ends_sessions(line: Service) -> None:
    """Of whom it let in, where the domain says so: without a running service they end after the next start."""
    line.ok("domain", "add", "example.org", "--org", "1", "--tenant", "1", "--disconnect-on-revoke")
    line.ok("cert", "revoke", "ann@example.org")
    names = [each[0] for each in line.rows("select user_name from revocations order by id")]
    assert names == ["ann", "host/ann"]


def test_a_certificate_for_a_device(line: Service, data_dir: Path, tmp_path: Path) -> None:
    """--p12 and --mobileconfig write files for their owner alone, with the server's names and authority; the last line
    is their password, which neither the audit trail nor a file of the service has."""
    p12, profile = tmp_path / "eve.p12", tmp_path / "eve.mobileconfig"
    files = ("--p12", str(p12), "--mobileconfig", str(profile))
    done = line.cli("cert", "issue", "eve@example.org", *files, "--ssid", "Büro", "--vpn-server", "vpn.example.org")
    assert done.returncode == 0, done.stderr
    *paths, password = done.stdout.splitlines()
    assert paths[2:] == [str(p12), str(profile)]
    assert password not in done.stderr
    assert [path.stat().st_mode & 0o777 for path in (p12, profile)] == [0o600, 0o600]
    assert pkcs12.load_pkcs12(p12.read_bytes(), password.encode()).key is not None
    found = {each["PayloadType"]: each for each in plistlib.loads(profile.read_bytes())["PayloadContent"]}
    wifi = found["com.apple.wifi.managed"]
    assert wifi["SSID_STR"] == "Büro"
    assert wifi["EAPClientConfiguration"]["TLSTrustedServerNames"] == ["radius.example.org", "192.0.2.7", "localhost"]
    assert found["com.apple.vpn.managed"]["IKEv2"]["RemoteAddress"] == "vpn.example.org"
    kept = [path for path in data_dir.rglob("*") if path.is_file() and path not in (p12, profile)]
    assert not [path for path in kept if password.encode() in path.read_bytes()]
    assert password not in line.ok("audit", "list", "--json")


def test_a_renewal_for_a_device(line: Service, tmp_path: Path) -> None:
    """The new certificate with the same key; `--legacy` for older systems."""
    p12 = tmp_path / "ann.p12"
    password = line.ok("cert", "renew", "ann@example.org", "--p12", str(p12), "--legacy").splitlines()[-1]
    certificate = pkcs12.load_pkcs12(p12.read_bytes(), password.encode()).cert
    assert certificate is not None and certificate.friendly_name == b"ann@example.org"


def test_no_file_is_overwritten(line: Service, tmp_path: Path) -> None:
    """An existing file, also the target of a link, stays; no certificate is issued, and no other file is left."""
    old, new, link = tmp_path / "old", tmp_path / "new.p12", tmp_path / "link"
    old.write_text("precious")
    link.symlink_to(tmp_path / "target")
    for name in (old, link):
        done = line.cli("cert", "issue", "eve", "--p12", str(new), "--mobileconfig", str(name))
        assert (done.returncode, done.stdout) == (1, "")
        assert f"{name} exists and is not overwritten" in done.stderr
    assert old.read_text() == "precious"
    assert not new.exists() and not (tmp_path / "target").exists()
    assert "eve" not in line.ok("cert", "show")
    same = line.cli("cert", "issue", "eve", "--p12", str(new), "--mobileconfig", str(new))
    assert (same.returncode, new.exists()) == (1, False)
    taken = line.cli("cert", "issue", "ann@example.org", "--p12", str(new))
    assert (taken.returncode, new.exists()) == (1, False)
    nowhere = line.cli("cert", "issue", "eve", "--p12", str(tmp_path / "no" / "file"))
    assert (nowhere.returncode, "No such file" in nowhere.stderr) == (1, True)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("issue", "eve", "--ssid", "Office"), "--ssid is for --mobileconfig"),
        (("issue", "eve", "--vpn-server", "v"), "--vpn-server is for --mobileconfig"),
        (("issue", "eve", "--mobileconfig", "f", "--vpn-id", "v"), "--vpn-id is for --vpn-server"),
        (("issue", "eve", "--mobileconfig", "f", "--server-name", "v"), "--server-name is for --ssid"),
        (("issue", "eve", "--mobileconfig", "f", "--ssid", "é" * 17), "at most 32 octets"),
        (("issue", "eve", "--legacy"), "--legacy is for --p12"),
        (("renew", "--p12", "f"), "for the certificate of a client"),
    ],
)
def test_options_that_do_not_fit(line: Service, options: tuple[str, ...], says: str) -> None:
    """Wrong usage, before anything is made."""
    done = line.cli("cert", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_the_server_has_a_certificate_of_its_own(data_dir: Path, tmp_path: Path) -> None:
    """The profile trusts the names of that certificate; without its authority there is none to trust, which is said."""
    authority, key = Authority.new("Own CA", present()), new_key()
    server = authority.server(["wifi.example.com"], key.public_key(), present())
    chain, own_key, profile = tmp_path / "own.pem", tmp_path / "own.key", tmp_path / "f.mobileconfig"
    own_key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    line = Service(data_dir, {"SALLYPORT_EAP_CERTIFICATE": str(chain), "SALLYPORT_EAP_KEY": str(own_key)})
    line.data_dir = data_dir
    line.ok("db", "migrate")
    for name, files in (("eve", [server]), ("kim", [server, authority.certificate])):
        chain.write_bytes(b"".join(each.public_bytes(Encoding.PEM) for each in files))
        line.ok("db", "migrate")
        done = line.cli("cert", "issue", name, "--mobileconfig", str(profile), "--ssid", "Office")
        assert done.returncode == 0, done.stderr
        found = {each["PayloadType"]: each for each in plistlib.loads(profile.read_bytes())["PayloadContent"]}
        eap = found["com.apple.wifi.managed"]["EAPClientConfiguration"]
        assert eap["TLSTrustedServerNames"] == ["wifi.example.com"]
        assert ("com.apple.security.root" in found) is (len(files) == 2) is ("by itself" not in done.stderr)
        profile.unlink()


# --- tenants ------------------------------------------------------------------------------------------------------


@pytest.fixture
def tenants(line: Service) -> Service:
    """The command line of an installation with a second tenant: tenant 1 of organization 2."""
    line.ok("domain", "add", "branch", "--org", "2", "--tenant", "1")
    return line


def owners(line: Service) -> dict[str, list[tuple[int | None, int | None]]]:
    """Organization and tenant of the clients' certificates that are listed, by name."""
    found: dict[str, list[tuple[int | None, int | None]]] = {}
    for row in json.loads(line.ok("cert", "show", "--json")):
        if row["kind"] == "client":
            found.setdefault(row["name"], []).append((row["org"], row["tenant"]))
    return found


def test_the_only_tenant_has_each_certificate(line: Service) -> None:
    """A certificate is issued for the only tenant without naming it. One of before belongs to it from its renewal."""
    line.ok("cert", "issue", "nas.example.org")
    line.ok("cert", "renew", "proxy.example.org")
    found = owners(line)
    assert found["nas.example.org"] == [(1, 1)]
    assert sorted(found["proxy.example.org"], key=str) == [(1, 1), (None, None)]
    assert found["ann@example.org"] == [(None, None)]


def test_a_certificate_is_issued_for_a_tenant(tenants: Service) -> None:
    """With several tenants one must be named, which must exist; the name is refused for another one, also in another
    case and after the certificate has expired."""
    undecided = tenants.cli("cert", "issue", "nas.example.org")
    assert (undecided.returncode, "--org and --tenant" in undecided.stderr) == (1, True)
    unknown = tenants.cli("cert", "issue", "nas.example.org", "--org", "3", "--tenant", "1")
    assert (unknown.returncode, "organization 3 has no tenant 1" in unknown.stderr) == (1, True)
    assert tenants.cli("cert", "issue", "nas.example.org", "--org", "2").returncode == 1
    tenants.ok("cert", "issue", "nas.example.org", "--org", "2", "--tenant", "1")
    for name in ("nas.example.org", "NAS.example.org"):
        taken = tenants.cli("cert", "issue", name, "--org", "1", "--tenant", "1")
        assert (taken.returncode, "belongs to another tenant" in taken.stderr) == (1, True)
    assert owners(tenants)["nas.example.org"] == [(2, 1)]
    (made,) = json.loads(tenants.ok("audit", "list", "--action", "certificate.issue", "--json"))
    assert (made["changes"]["orgId"], made["changes"]["tenantId"]) == ([None, 2], [None, 1])


def test_a_renewal_keeps_the_tenant(tenants: Service) -> None:
    """The new certificate is of the same tenant; another one is refused. One of before gets the tenant that is named,
    and none without."""
    tenants.ok("cert", "issue", "nas.example.org", "--org", "2", "--tenant", "1")
    tenants.ok("cert", "renew", "nas.example.org")
    assert tenants.cli("cert", "renew", "nas.example.org", "--org", "1", "--tenant", "1").returncode == 1
    assert tenants.cli("cert", "renew", "--org", "1", "--tenant", "1").returncode == 2
    tenants.ok("cert", "renew", "ann@example.org")
    tenants.ok("cert", "renew", "proxy.example.org", "--org", "2", "--tenant", "1")
    tenants.ok("cert", "renew", "proxy.example.org")
    found = owners(tenants)
    assert found["nas.example.org"] == [(2, 1)] * 2
    assert set(found["ann@example.org"]) == {(None, None)}
    assert sorted(found["proxy.example.org"], key=str) == [(2, 1), (2, 1), (None, None)]


def test_a_revoked_name_is_free(tenants: Service) -> None:
    """Another tenant gets the name after all of its certificates were revoked."""
    tenants.ok("cert", "issue", "nas.example.org", "--org", "2", "--tenant", "1")
    tenants.ok("cert", "revoke", "nas.example.org")
    tenants.ok("cert", "issue", "nas.example.org", "--org", "1", "--tenant", "1")
    assert set(owners(tenants)["nas.example.org"]) == {(None, None), (1, 1)}


def test_a_client_has_no_certificate_of_another_tenant(tenants: Service) -> None:
    """The command line refuses the name of another tenant's certificate, and a certificate in the name of another
    tenant's client."""
    tenants.ok("cert", "issue", "nas.example.org", "--org", "2", "--tenant", "1")
    add = ("client", "add", "n", "--address", "192.0.2.9", "--org", "1", "--tenant", "1")
    refused = tenants.cli(*add, "--tls-name", "nas.example.org")
    assert (refused.returncode, "certificate of another tenant" in refused.stderr) == (1, True)
    tenants.ok(*add, "--tls-name", "elsewhere.example.org")
    assert tenants.cli("cert", "issue", "elsewhere.example.org", "--org", "2", "--tenant", "1").returncode == 1


def test_the_doctor_names_certificates_that_were_not_issued_for_their_tenant(line: Service) -> None:
    """With several tenants, a client whose TLS name was not issued for its tenant is a warning."""
    line.ok("cert", "issue", "own.example.org")
    for number, name in enumerate(("own.example.org", "foreign.example.org"), 1):
        client = ("--address", f"192.0.2.{number}", "--org", "1", "--tenant", "1", "--tls-name", name)
        line.ok("client", "add", f"client {number}", *client)

    def warned() -> list[str]:
        rows = json.loads(line.cli("doctor", "--json").stdout)
        return [row["finding"] for row in rows if "`cert issue`" in row["finding"]]

    assert warned() == []
    line.ok("domain", "add", "branch", "--org", "2", "--tenant", "1")
    (text,) = warned()
    assert text.startswith("client 2 (192.0.2.2): tls_name")


# --- doctor -------------------------------------------------------------------------------------------------------


def test_a_good_certificate(line: Service) -> None:
    """Its names and its end, and nothing to look at."""
    (fine,) = told(line, "ok")
    assert "radius.example.org, 192.0.2.7, localhost, until " in fine
    assert told(line, "warning") == []


def test_none_is_a_problem_only_where_one_is_needed(tmp_path: Path) -> None:
    """RadSec without a certificate does not start."""
    assert told(installed(tmp_path), "ok") == ["no certificate for EAP and RadSec: sallyport cert init"]
    wanted = installed(tmp_path, {"SALLYPORT_RADSEC_BIND": "127.0.0.1:0"})
    assert told(wanted, "problem", status=1) == ["no certificate for EAP and RadSec: sallyport cert init"]


def test_an_own_certificate_without_an_authority(data_dir: Path, tmp_path: Path) -> None:
    """It serves clients that have passwords; RadSec, whose peers have certificates, cannot start."""
    own = {"SALLYPORT_EAP_CERTIFICATE": str(data_dir / "certs" / "server.pem")}
    own["SALLYPORT_EAP_KEY"] = str(data_dir / "certs" / "server.key")
    missing = "no authority for the certificates of clients: set eap_ca, or sallyport cert init"
    assert missing in told(installed(tmp_path, own), "ok")
    secure = installed(tmp_path, {**own, "SALLYPORT_RADSEC_BIND": "127.0.0.1:0"})
    assert told(secure, "problem", status=1) == [f"RadSec does not start: {missing}"]


def test_a_certificate_that_names_no_domain(line: Service, data_dir: Path) -> None:
    """Where a second domain was added, it lets nobody in any more; that of a peer, or with a realm, is meant so."""
    for name in ("ann", "old proxy"):
        Directory(data_dir).issue(name, present())
    client = ("--address", "192.0.2.1", "--org", "1", "--tenant", "1", "--tls-name", "old proxy")
    line.ok("client", "add", "proxy", *client)
    assert told(line, "warning") == []
    line.ok("domain", "add", "branch", "--org", "1", "--tenant", "1")
    assert told(line, "warning") == [
        "the certificate of ann names no domain, and there are several: EAP-TLS refuses it; "
        "sallyport cert issue ann@REALM"
    ]


def test_what_ends_soon_and_what_has_ended(line: Service, data_dir: Path) -> None:
    """The server's certificate, a client's and the revocation list, 30 days before."""
    directory = Directory(data_dir)
    directory.issue("soon.example.org", present() - timedelta(days=380))
    directory.renew(None, (), present() - timedelta(days=380))
    warnings = " ".join(told(line, "warning"))
    for part in ("server.pem expires at", "the certificate of soon.example.org expires at", "crl.pem expires at"):
        assert part in warnings
    directory.renew(None, (), present() - timedelta(days=400))
    problems = " ".join(told(line, "problem", status=1))
    assert "server.pem expired at" in problems
    assert "crl.pem expired at" in problems


def test_the_revocation_lists_of_an_own_authority(data_dir: Path, tmp_path: Path) -> None:
    """They stand beside it in one file. An expired one, or none where another authority has one, refuses clients."""
    directory, other, file = Directory(data_dir), Directory(data_dir / "other"), tmp_path / "authorities.pem"
    other.make("Other", ["localhost"], present() - timedelta(days=400))
    own = {"SALLYPORT_EAP_CERTIFICATE": str(directory.server), "SALLYPORT_EAP_KEY": str(directory.server_key)}
    line = installed(tmp_path, {**own, "SALLYPORT_EAP_CA": str(file)})
    parts = [each.read_bytes() for each in (directory.ca, directory.crl, other.ca, other.crl)]
    file.write_bytes(b"".join(parts[:2]))
    assert [told(line, level) for level in ("problem", "warning")] == [[], []]
    file.write_bytes(b"".join(parts[:3]))
    assert told(line, "warning") == [
        f"{file} has no revocation list of Other, but of others: its clients are refused; append the list"
    ]
    file.write_bytes(b"".join(parts))
    (expired,) = told(line, "problem", status=1)
    assert expired.startswith(f"{file}: the revocation list of CN=Other expired at ")


def test_a_key_of_another_certificate(line: Service, data_dir: Path) -> None:
    """And one that others may read."""
    key = data_dir / "certs" / "server.key"
    key.write_bytes((data_dir / "certs" / "ca.key").read_bytes())
    key.chmod(0o644)
    problems = " ".join(told(line, "problem", status=1))
    assert "server.key is not the key of the certificate" in problems
    assert "server.key has mode 0644" in problems


Change = Callable[[x509.CertificateBuilder], x509.CertificateBuilder]


def _with(*extensions: x509.ExtensionType) -> Change:
    def change(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
        for each in extensions:
            builder = builder.add_extension(each, critical=False)
        return builder

    return change


SERVES = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
NAMED = x509.SubjectAlternativeName([x509.DNSName("own.example.org")])


@pytest.mark.parametrize(
    ("change", "bits", "days", "finding"),
    [
        (_with(SERVES), 2048, 300, "no host name as subject alternative name"),
        (_with(NAMED), 2048, 300, "no extended key usage serverAuth"),
        (_with(NAMED, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])), 2048, 300, "no extended key usage"),
        (_with(NAMED, SERVES), 1024, 300, "1024 bits: too few"),
        (_with(NAMED, SERVES), 2048, 900, "more than 825 days"),
    ],
    ids=["name", "usage", "client's", "weak", "long"],
)
def test_what_supplicants_refuse(
    line: Service, data_dir: Path, change: Change, bits: int, days: int, finding: str
) -> None:
    """Each as the doctor calls it, in an own certificate."""
    key = new_key(2048) if bits >= 2048 else rsa.generate_private_key(public_exponent=65537, key_size=bits)
    now: datetime = present()
    builder = (
        x509.CertificateBuilder(NAME, NAME, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=days))
    )
    own = change(builder).sign(key, hashes.SHA256())
    (data_dir / "certs" / "server.pem").write_bytes(own.public_bytes(Encoding.PEM))
    done = line.cli("doctor", "--json")
    assert any(finding in row["finding"] for row in json.loads(done.stdout) if row["level"] != "ok"), done.stdout


def test_a_chain_that_is_none(line: Service, data_dir: Path) -> None:
    """What stands behind the certificate has not signed it."""
    other = Directory(data_dir / "other")
    other.make("Other", ["localhost"], present())
    server = data_dir / "certs" / "server.pem"
    pems = [read_certificates(server)[0], read_certificates(other.ca)[0]]
    server.write_bytes(b"".join(each.public_bytes(Encoding.PEM) for each in pems))
    assert "has not signed it" in " ".join(told(line, "problem", status=1))
