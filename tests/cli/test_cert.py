"""`sallyport cert`, and the doctor's findings about certificates. No service runs."""

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
from sallyport.certs.folder import CertificateFolder, present, read_certificates
from tests.certs.conftest import data_dir, made
from tests.cli import Service

__all__ = ["data_dir", "made"]

NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "own")])


@pytest.fixture
def installation(data_dir: Path) -> Service:
    """Return the command line of a stopped installation that has certificates."""
    service = Service(data_dir, {"SALLYPORT_RADSEC_BIND": "127.0.0.1:0"})
    service.data_dir = data_dir
    service.ok("db", "migrate")
    return service


def new_installation(directory: Path, settings: dict[str, str] | None = None) -> Service:
    """Return the command line of a new, stopped installation."""
    service = Service(directory, settings)
    service.ok("db", "migrate")
    return service


def findings(installation: Service, level: str, status: int = 0) -> list[str]:
    """Return the doctor's findings about certificates at a level."""
    done = installation.cli("doctor", "--json")
    assert done.returncode == status, done
    found = [row for row in json.loads(done.stdout) if row["check"] in {"certificates", "server certificates"}]
    return [row["finding"] for row in found if row["level"] == level]


def test_init_issue_and_show_work_in_a_new_installation(tmp_path: Path) -> None:
    """`init` creates the authority once, `issue` creates the certificate of a client, and `show` lists both. Each
    change is in the audit trail.
    """
    installation = new_installation(tmp_path)
    assert installation.cli("cert", "show").returncode == 1
    installation.ok("cert", "init", "--host", "radius.example.org")
    assert installation.cli("cert", "init").returncode == 1
    pem = installation.ok("cert", "show", "--ca")
    assert ssl.PEM_cert_to_DER_cert(pem)
    certificate, key = installation.ok("cert", "issue", "ann@example.org").splitlines()
    ssl.create_default_context().load_cert_chain(certificate, key)
    shown = json.loads(installation.ok("cert", "show", "--json"))
    assert [(row["name"], row["kind"], row["state"]) for row in shown] == [
        ("ann@example.org", "client", "valid"), ("radius.example.org", "server", "valid"),
    ]  # fmt: skip
    trail = json.loads(installation.ok("audit", "list", "--action", "certificate.issue", "--json"))
    assert [each["target"].split()[2:] for each in trail] == [
        ["ann@example.org"], ["radius.example.org"], ["Sallyport", "CA"],
    ]  # fmt: skip
    assert all(each["actorKind"] == "command line" and each["changes"]["expires"][1] for each in trail)


def test_certificates_are_renewed_and_revoked(installation: Service, data_dir: Path) -> None:
    """A certificate is selected by its name or by the serial number that `show` prints."""
    installation.ok("cert", "renew")
    installation.ok("cert", "renew", "proxy.example.org")
    serial = json.loads(installation.ok("cert", "show", "--json"))[0]["serial"]
    installation.ok("cert", "revoke", serial)
    installation.ok("cert", "revoke", "proxy.example.org")
    states = [(row["name"], row["state"]) for row in json.loads(installation.ok("cert", "show", "--json"))]
    assert states[:3] == [("ann@example.org", "revoked")] + [("proxy.example.org", "revoked")] * 2
    trail = [(each["action"], each["target"]) for each in json.loads(installation.ok("audit", "list", "--json"))]
    revoked = [target.split() for action, target in trail if action == "certificate.revoke"]
    assert serial in [each[1] for each in revoked]
    assert [each[2] for each in revoked].count("proxy.example.org") == 2
    assert [action for action, _ in trail].count("certificate.renew") == 2
    assert installation.cli("cert", "revoke", "bob").returncode == 1
    installation.ok("cert", "revoke", f"{read_certificates(CertificateFolder(data_dir).server)[0].serial_number:x}")
    assert any("server's certificate was revoked" in each for each in findings(installation, "problem", status=1))
    installation.ok("cert", "renew")
    assert findings(installation, "problem") == []
    assert installation.cli("cert", "renew", "proxy.example.org", "--host", "x").returncode == 2


def test_a_revoked_certificate_ends_sessions(installation: Service) -> None:
    """Revoking a certificate ends the sessions of its user in a domain with `--disconnect-on-revoke`. If no service
    runs, the revocation is stored for the next start.
    """
    installation.ok("domain", "add", "example.org", "--org", "1", "--tenant", "1", "--disconnect-on-revoke")
    installation.ok("cert", "revoke", "ann@example.org")
    names = [each[0] for each in installation.rows("select user_name from revocations order by id")]
    assert names == ["ann", "host/ann"]


def test_issue_writes_a_bundle_and_a_profile(installation: Service, data_dir: Path, tmp_path: Path) -> None:
    """--p12 and --mobileconfig write files with mode 0600. The profile has the names of the server. The last line of
    the output is the password of the files, which is in no other file and not in the audit trail.
    """
    p12, profile = tmp_path / "eve.p12", tmp_path / "eve.mobileconfig"
    files = ("--p12", str(p12), "--mobileconfig", str(profile))
    done = installation.cli(
        "cert", "issue", "eve@example.org", *files, "--ssid", "Büro", "--vpn-server", "vpn.example.org"
    )
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
    assert password not in installation.ok("audit", "list", "--json")


def test_renew_writes_a_bundle(installation: Service, tmp_path: Path) -> None:
    """`renew --p12` writes the new certificate. `--legacy` writes a file that older systems can read."""
    p12 = tmp_path / "ann.p12"
    password = installation.ok("cert", "renew", "ann@example.org", "--p12", str(p12), "--legacy").splitlines()[-1]
    certificate = pkcs12.load_pkcs12(p12.read_bytes(), password.encode()).cert
    assert certificate is not None and certificate.friendly_name == b"ann@example.org"


def test_an_existing_file_is_not_overwritten(installation: Service, tmp_path: Path) -> None:
    """If an output file exists or is a link, no certificate is issued and no other file is written."""
    old, new, link = tmp_path / "old", tmp_path / "new.p12", tmp_path / "link"
    old.write_text("precious")
    link.symlink_to(tmp_path / "target")
    for name in (old, link):
        done = installation.cli("cert", "issue", "eve", "--p12", str(new), "--mobileconfig", str(name))
        assert (done.returncode, done.stdout) == (1, "")
        assert f"{name} exists and is not overwritten" in done.stderr
    assert old.read_text() == "precious"
    assert not new.exists() and not (tmp_path / "target").exists()
    assert "eve" not in installation.ok("cert", "show")
    same = installation.cli("cert", "issue", "eve", "--p12", str(new), "--mobileconfig", str(new))
    assert (same.returncode, new.exists()) == (1, False)
    taken = installation.cli("cert", "issue", "ann@example.org", "--p12", str(new))
    assert (taken.returncode, new.exists()) == (1, False)
    nowhere = installation.cli("cert", "issue", "eve", "--p12", str(tmp_path / "no" / "file"))
    assert (nowhere.returncode, "No such file" in nowhere.stderr) == (1, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("issue", "eve", "--ssid", "Office"), "--ssid requires --mobileconfig"),
        (("issue", "eve", "--vpn-server", "v"), "--vpn-server requires --mobileconfig"),
        (("issue", "eve", "--mobileconfig", "f", "--vpn-id", "v"), "--vpn-id requires --vpn-server"),
        (("issue", "eve", "--mobileconfig", "f", "--server-name", "v"), "--server-name requires --ssid"),
        (("issue", "eve", "--mobileconfig", "f", "--ssid", "é" * 17), "at most 32 octets"),
        (("issue", "eve", "--legacy"), "--legacy requires --p12"),
        (("renew", "--p12", "f"), "for the certificate of a client"),
    ],
)
def test_invalid_options_are_refused(installation: Service, options: tuple[str, ...], message: str) -> None:
    """Invalid options have exit status 2, and no certificate is issued."""
    done = installation.cli("cert", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_profile_trusts_the_names_of_a_configured_certificate(data_dir: Path, tmp_path: Path) -> None:
    """The profile has the names of the certificate in eap_certificate. If the file of that certificate contains its
    authority, the profile has the authority too. Otherwise the command warns.
    """
    authority, key = Authority.new("Own CA", present()), new_key()
    server = authority.server(["wifi.example.com"], key.public_key(), present())
    chain, own_key, profile = tmp_path / "own.pem", tmp_path / "own.key", tmp_path / "f.mobileconfig"
    own_key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    installation = Service(data_dir, {"SALLYPORT_EAP_CERTIFICATE": str(chain), "SALLYPORT_EAP_KEY": str(own_key)})
    installation.data_dir = data_dir
    installation.ok("db", "migrate")
    for name, files in (("eve", [server]), ("kim", [server, authority.certificate])):
        chain.write_bytes(b"".join(each.public_bytes(Encoding.PEM) for each in files))
        installation.ok("db", "migrate")
        done = installation.cli("cert", "issue", name, "--mobileconfig", str(profile), "--ssid", "Office")
        assert done.returncode == 0, done.stderr
        found = {each["PayloadType"]: each for each in plistlib.loads(profile.read_bytes())["PayloadContent"]}
        eap = found["com.apple.wifi.managed"]["EAPClientConfiguration"]
        assert eap["TLSTrustedServerNames"] == ["wifi.example.com"]
        assert (
            ("com.apple.security.root" in found)
            is (len(files) == 2)
            is ("install that authority on the device" not in done.stderr)
        )
        profile.unlink()


# --- tenants ------------------------------------------------------------------------------------------------------


@pytest.fixture
def tenants(installation: Service) -> Service:
    """Add a second tenant (organization 2, tenant 1), and return the command line."""
    installation.ok("domain", "add", "branch", "--org", "2", "--tenant", "1")
    return installation


def owners(installation: Service) -> dict[str, list[tuple[int | None, int | None]]]:
    """Return the organization and tenant of each listed client certificate, by name."""
    found: dict[str, list[tuple[int | None, int | None]]] = {}
    for row in json.loads(installation.ok("cert", "show", "--json")):
        if row["kind"] == "client":
            found.setdefault(row["name"], []).append((row["org"], row["tenant"]))
    return found


def test_a_certificate_belongs_to_the_only_tenant(installation: Service) -> None:
    """If there is only one tenant, `issue` needs no tenant. A certificate that has no tenant gets this one when it is
    renewed.
    """
    installation.ok("cert", "issue", "nas.example.org")
    installation.ok("cert", "renew", "proxy.example.org")
    found = owners(installation)
    assert found["nas.example.org"] == [(1, 1)]
    assert sorted(found["proxy.example.org"], key=str) == [(1, 1), (None, None)]
    assert found["ann@example.org"] == [(None, None)]


def test_a_certificate_is_issued_for_a_tenant(tenants: Service) -> None:
    """If there are several tenants, --org and --tenant are required, and the tenant must exist. Then no other tenant
    can have a certificate for the name, in any letter case.
    """
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
    """A renewal for another tenant is refused. When a certificate without a tenant is renewed, it gets the given
    tenant, or none.
    """
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


def test_a_name_is_free_once_its_certificates_are_revoked(tenants: Service) -> None:
    """When all certificates of a name are revoked, another tenant can issue a certificate for the name."""
    tenants.ok("cert", "issue", "nas.example.org", "--org", "2", "--tenant", "1")
    tenants.ok("cert", "revoke", "nas.example.org")
    tenants.ok("cert", "issue", "nas.example.org", "--org", "1", "--tenant", "1")
    assert set(owners(tenants)["nas.example.org"]) == {(None, None), (1, 1)}


def test_a_tls_name_and_a_certificate_have_the_same_tenant(tenants: Service) -> None:
    """A RADIUS client cannot have the name of another tenant's certificate as its TLS name. No certificate is issued
    for a name that is the TLS name of another tenant's client.
    """
    tenants.ok("cert", "issue", "nas.example.org", "--org", "2", "--tenant", "1")
    add = ("client", "add", "n", "--address", "192.0.2.9", "--org", "1", "--tenant", "1")
    refused = tenants.cli(*add, "--tls-name", "nas.example.org")
    assert (refused.returncode, "certificate of another tenant" in refused.stderr) == (1, True)
    tenants.ok(*add, "--tls-name", "elsewhere.example.org")
    assert tenants.cli("cert", "issue", "elsewhere.example.org", "--org", "2", "--tenant", "1").returncode == 1


def test_the_doctor_warns_of_a_tls_name_that_was_not_issued_for_the_tenant(installation: Service) -> None:
    """If there are several tenants, the doctor warns of a client whose TLS name was not issued for its tenant."""
    installation.ok("cert", "issue", "own.example.org")
    for number, name in enumerate(("own.example.org", "foreign.example.org"), 1):
        client = ("--address", f"192.0.2.{number}", "--org", "1", "--tenant", "1", "--tls-name", name)
        installation.ok("client", "add", f"client {number}", *client)

    def warned() -> list[str]:
        rows = json.loads(installation.cli("doctor", "--json").stdout)
        return [row["finding"] for row in rows if "`cert issue`" in row["finding"]]

    assert warned() == []
    installation.ok("domain", "add", "branch", "--org", "2", "--tenant", "1")
    (text,) = warned()
    assert text.startswith("client 2 (192.0.2.2): tls_name")


# --- doctor -------------------------------------------------------------------------------------------------------


def test_a_valid_certificate_is_ok(installation: Service) -> None:
    """The finding about a valid certificate has its names and its expiry, and there is no warning."""
    (fine,) = findings(installation, "ok")
    assert "radius.example.org, 192.0.2.7, localhost, until " in fine
    assert findings(installation, "warning") == []


def test_the_server_certificates_of_domains_are_checked(installation: Service, data_dir: Path, tmp_path: Path) -> None:
    """The doctor has a finding about each server certificate of a domain. `cert check` has the reasons, and its exit
    code is 1 if a supplicant refuses the certificate."""
    own, key = data_dir / "certs" / "server.pem", data_dir / "certs" / "server.key"
    domain = ("--domain", "default")
    assert installation.cli("cert", "add", *domain, "--file", str(key), "--key-file", str(key)).returncode == 1
    assert installation.cli("cert", "add", *domain, "--file", str(own), "--key-file", str(own)).returncode == 1
    installation.ok("cert", "add", *domain, "--file", str(own), "--key-file", str(key))
    (shown,) = json.loads(installation.ok("cert", "list", *domain, "--json"))
    assert (shown["realm"], shown["hostNames"][0], shown["warnings"]) == ("", "radius.example.org", [])
    assert any("default: server certificate of the domain: until" in each for each in findings(installation, "ok"))
    for checked in ((), (str(own),), domain, (str(own), *domain)):
        assert installation.cli("cert", "check", *checked, "--server-name", "radius.example.org").returncode == 0
        told = installation.cli("cert", "check", *checked, "--server-name", "radius.other.example", "--json")
        assert told.returncode == 1
        assert [each["verdict"] for each in json.loads(told.stdout)][:4] == ["refuses"] * 4
    assert installation.cli("cert", "check", "--realm", "default").returncode == 2
    (tmp_path / "empty.pem").write_text("nothing")
    assert installation.cli("cert", "check", str(tmp_path / "empty.pem")).returncode == 1
    installation.ok("cert", "remove", *domain)
    assert installation.cli("cert", "check", *domain).returncode == 1
    assert installation.cli("cert", "remove", *domain).returncode == 1


def test_a_missing_certificate_is_a_problem_only_for_radsec(tmp_path: Path) -> None:
    """Without a certificate RadSec does not start, but other listeners do. So this is a problem only with RadSec."""
    assert findings(new_installation(tmp_path), "ok") == ["no certificate for EAP and RadSec: run sallyport cert init"]
    wanted = new_installation(tmp_path, {"SALLYPORT_RADSEC_BIND": "127.0.0.1:0"})
    assert findings(wanted, "problem", status=1) == ["no certificate for EAP and RadSec: run sallyport cert init"]


def test_a_certificate_without_an_authority_is_a_problem_only_for_radsec(data_dir: Path, tmp_path: Path) -> None:
    """Methods with passwords work without an authority for client certificates, but RadSec does not start without
    one.
    """
    own = {"SALLYPORT_EAP_CERTIFICATE": str(data_dir / "certs" / "server.pem")}
    own["SALLYPORT_EAP_KEY"] = str(data_dir / "certs" / "server.key")
    missing = "no authority for the certificates of clients: set eap_ca, or run sallyport cert init"
    assert missing in findings(new_installation(tmp_path, own), "ok")
    secure = new_installation(tmp_path, {**own, "SALLYPORT_RADSEC_BIND": "127.0.0.1:0"})
    assert findings(secure, "problem", status=1) == [f"RadSec does not start: {missing}"]


def test_a_certificate_that_names_no_domain_is_a_warning_with_several_domains(
    installation: Service, data_dir: Path
) -> None:
    """If there are several domains, EAP-TLS refuses a certificate whose name has no realm, and the doctor warns. It
    does not warn of a TLS name of a RADIUS client or of a name with a realm.
    """
    for name in ("ann", "old proxy"):
        CertificateFolder(data_dir).issue(name, present())
    client = ("--address", "192.0.2.1", "--org", "1", "--tenant", "1", "--tls-name", "old proxy")
    installation.ok("client", "add", "proxy", *client)
    assert findings(installation, "warning") == []
    installation.ok("domain", "add", "branch", "--org", "1", "--tenant", "1")
    assert findings(installation, "warning") == [
        "the certificate of ann has no realm, but there are several domains: EAP-TLS logins with it are rejected; "
        "run sallyport cert issue ann@REALM"
    ]


def test_expiring_certificates_are_warnings_and_expired_ones_problems(installation: Service, data_dir: Path) -> None:
    """From 30 days before the expiry, the doctor warns of the server's certificate, a client's certificate and the
    revocation list. When they have expired, they are problems.
    """
    directory = CertificateFolder(data_dir)
    directory.issue("soon.example.org", present() - timedelta(days=380))
    directory.renew(None, (), present() - timedelta(days=380))
    warnings = " ".join(findings(installation, "warning"))
    for part in ("server.pem expires at", "the certificate of soon.example.org expires at", "crl.pem expires at"):
        assert part in warnings
    directory.renew(None, (), present() - timedelta(days=400))
    problems = " ".join(findings(installation, "problem", status=1))
    assert "server.pem expired at" in problems
    assert "crl.pem expired at" in problems


def test_missing_and_expired_revocation_lists_are_reported(data_dir: Path, tmp_path: Path) -> None:
    """The file of authorities may contain revocation lists. If one authority has a list and another one has none, this
    is a warning. An expired list is a problem.
    """
    directory, other, file = (
        CertificateFolder(data_dir),
        CertificateFolder(data_dir / "other"),
        tmp_path / "authorities.pem",
    )
    other.make("Other", ["localhost"], present() - timedelta(days=400))
    own = {"SALLYPORT_EAP_CERTIFICATE": str(directory.server), "SALLYPORT_EAP_KEY": str(directory.server_key)}
    installation = new_installation(tmp_path, {**own, "SALLYPORT_EAP_CA": str(file)})
    parts = [each.read_bytes() for each in (directory.ca, directory.crl, other.ca, other.crl)]
    file.write_bytes(b"".join(parts[:2]))
    assert [findings(installation, level) for level in ("problem", "warning")] == [[], []]
    file.write_bytes(b"".join(parts[:3]))
    assert findings(installation, "warning") == [
        f"{file} has revocation lists, but none of Other: clients of this authority are rejected; append the list"
    ]
    file.write_bytes(b"".join(parts))
    (expired,) = findings(installation, "problem", status=1)
    assert expired.startswith(f"{file}: the revocation list of CN=Other expired at ")


def test_a_wrong_or_readable_key_is_a_problem(installation: Service, data_dir: Path) -> None:
    """It is a problem if the key does not belong to the certificate, or if other users can read it."""
    key = data_dir / "certs" / "server.key"
    key.write_bytes((data_dir / "certs" / "ca.key").read_bytes())
    key.chmod(0o644)
    problems = " ".join(findings(installation, "problem", status=1))
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
def test_properties_that_supplicants_refuse_are_reported(
    installation: Service, data_dir: Path, change: Change, bits: int, days: int, finding: str
) -> None:
    """The doctor reports a server certificate that supplicants would refuse."""
    key = new_key(2048) if bits >= 2048 else rsa.generate_private_key(public_exponent=65537, key_size=bits)
    now: datetime = present()
    builder = (
        x509.CertificateBuilder(NAME, NAME, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=days))
    )
    own = change(builder).sign(key, hashes.SHA256())
    (data_dir / "certs" / "server.pem").write_bytes(own.public_bytes(Encoding.PEM))
    done = installation.cli("doctor", "--json")
    assert any(finding in row["finding"] for row in json.loads(done.stdout) if row["level"] != "ok"), done.stdout


def test_a_broken_chain_is_a_problem(installation: Service, data_dir: Path) -> None:
    """It is a problem if a certificate in the chain has not signed the one before it."""
    other = CertificateFolder(data_dir / "other")
    other.make("Other", ["localhost"], present())
    server = data_dir / "certs" / "server.pem"
    pems = [read_certificates(server)[0], read_certificates(other.ca)[0]]
    server.write_bytes(b"".join(each.public_bytes(Encoding.PEM) for each in pems))
    assert "has not signed it" in " ".join(findings(installation, "problem", status=1))
