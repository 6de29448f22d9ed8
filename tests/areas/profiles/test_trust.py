"""What devices must know of the server: its names and its authority."""

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from sallyport.areas.profiles.profile import Profile
from sallyport.areas.profiles.trust import ServerTrust, checked_anchors
from sallyport.base.errors import Conflict, Invalid
from sallyport.certs.credentials import Certificates, Credentials
from sallyport.certs.folder import CertificateFolder, present
from sallyport.radius.eap.server_certificate import ServerCertificate
from tests.areas.profiles.conftest import HOST, profile, trust_in
from tests.peers.authority import Authority


def of_files(tmp_path: Path, certificate: bytes, ca: str = "") -> ServerTrust:
    """Return the reader of a server's certificate whose authority is not that of the data directory."""
    server, authorities = tmp_path / "server.pem", tmp_path / "ca.pem"
    server.write_bytes(certificate)
    authorities.write_text(ca)
    files = Credentials(server, server, authorities if ca else None)
    return ServerTrust(lambda: files, lambda _domain_id: None, tmp_path / "missing.pem")


def own_certificate(authority: Authority, name: str) -> ServerCertificate:
    """Return a server certificate of a domain, with its root."""
    pem = authority.key_for(name)
    return ServerCertificate.parse(pem + authority.pem.encode(), pem, chain_name="", key_name="")


def certified(
    key: ec.EllipticCurvePrivateKey, issuer: ec.EllipticCurvePrivateKey, start: int, end: int, host: str = ""
) -> bytes:
    """Return a certificate of the authority `root` that is valid from one day to another, relative to today."""
    root = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "root")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]) if host else root
    made = x509.CertificateBuilder(root, subject, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(present() + timedelta(start)).not_valid_after(present() + timedelta(end))
    if host:
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
    made = made.add_extension(x509.BasicConstraints(ca=not host, path_length=None), critical=True)
    return made.sign(issuer, hashes.SHA256()).public_bytes(Encoding.PEM)


def anchored(pem: str, **fields: object) -> Profile:
    """Return a profile with an authority."""
    return profile(anchors=pem, **fields)


def test_the_names_and_the_root_of_the_certificate(data_dir: Path) -> None:
    """Without a wish in the profile, the DNS names of the certificate count, and the authority that issued it. After a
    renewal with another name, the next file has that name.
    """
    reader = trust_in(data_dir)
    found = reader.of(profile())
    root = x509.load_pem_x509_certificate(CertificateFolder(data_dir).ca.read_bytes())
    assert found.server_names == [HOST]
    (anchor,) = found.anchors
    assert x509.load_der_x509_certificate(anchor.der) == root and anchor.name == "Tests CA"
    CertificateFolder(data_dir).renew(None, ["new.example.org"], present())
    assert reader.of(profile()).server_names == ["new.example.org"]
    assert not reader.of(profile()).warnings
    wrong = reader.of(profile(server_names=("x.example",)))
    assert wrong.server_names == ("x.example",) and "new.example.org: serverNames has none" in wrong.warnings[0]


def test_the_root_of_other_files(tmp_path: Path) -> None:
    """The root is found in the server's file, or among the authorities of clients if it issued the certificate."""
    authority, other = Authority("root"), Authority("root")
    leaf = authority.key_for(HOST)
    assert of_files(tmp_path, leaf + authority.pem.encode()).of(profile()).anchors[0].pem == authority.pem
    both = of_files(tmp_path, leaf, other.pem + authority.pem).of(profile())
    assert [each.pem for each in both.anchors] == [authority.pem]
    for ca in ("", other.pem):
        with pytest.raises(Conflict, match="set anchors"):
            of_files(tmp_path, leaf, ca).of(profile())


def test_certificates_of_the_domain(data_dir: Path) -> None:
    """A certificate of a realm counts beside that of the installation, and a certificate of the whole domain in its
    place.
    """
    authority = Authority("corp")
    own = own_certificate(authority, "radius.corp.example")
    files = Certificates(data_dir, look_s=0)
    root = CertificateFolder(data_dir).ca
    by_realm = ServerTrust(files.server, {1: {"corp": own}}.get, root).of(profile())
    assert by_realm.server_names == ["radius.corp.example", HOST]
    assert [each.name for each in by_realm.anchors] == ["corp", "Tests CA"]
    of_all = ServerTrust(files.server, {1: {"": own}}.get, root)
    assert of_all.of(profile()).server_names == ["radius.corp.example"]
    assert [each.pem for each in of_all.of(anchored(authority.pem)).anchors] == [authority.pem]
    with pytest.raises(Conflict, match="none of the anchors issued"):
        of_all.of(anchored(root.read_text()))


def test_an_authority_must_have_issued_the_certificate(tmp_path: Path) -> None:
    """A foreign authority is refused, even one with the same name. Beside the right one it is a warning, so that
    devices can trust the next authority before the server changes to it.
    """
    authority, foreign = Authority("root"), Authority("next")
    reader = of_files(tmp_path, authority.key_for(HOST))
    alone = reader.of(anchored(authority.pem))
    assert alone.anchors[0].pem == authority.pem and not alone.warnings
    for pem in (foreign.pem, Authority("root").pem):
        with pytest.raises(Conflict, match="none of the anchors issued"):
            reader.of(anchored(pem))
    both = reader.of(anchored(authority.pem + foreign.pem))
    assert [each.pem for each in both.anchors] == [authority.pem, foreign.pem]
    (warning,) = both.warnings
    assert "authority next in anchors did not issue" in warning


def test_each_chain_needs_an_authority_and_a_name() -> None:
    """A certificate of a realm that the anchors or the server names do not cover is a warning, although those of
    another realm are covered.
    """
    first, second = Authority("first"), Authority("second")
    chains = {"": own_certificate(first, "r1.example.org"), "eu": own_certificate(second, "r2.example.org")}
    reader = ServerTrust(lambda: None, {1: chains}.get, Path("missing.pem"))
    assert not reader.of(profile()).warnings
    (warning,) = reader.of(anchored(first.pem)).warnings
    assert "certificate with r2.example.org: none of the anchors issued it" in warning
    (warning,) = reader.of(profile(server_names=("r2.example.org",))).warnings
    assert "certificate with r1.example.org: serverNames has none" in warning
    assert not reader.of(anchored(first.pem + second.pem)).warnings


def test_the_names_do_not_read_the_authorities_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Profiles with other server names share the verified signatures, and have their own names."""
    authority = Authority("root")
    reader = ServerTrust(lambda: None, {1: {"": own_certificate(authority, HOST)}}.get, Path("missing.pem"))
    reader.of(anchored(authority.pem))
    monkeypatch.setattr(x509, "load_pem_x509_certificates", None)
    found = reader.of(anchored(authority.pem, server_names=("x.example",)))
    assert found.server_names == ("x.example",) and found.warnings


def test_the_root_that_lasts_longest(tmp_path: Path) -> None:
    """A renewed root has the name and the key of the former one. The valid one that lasts longest counts. An expired
    certificate of the server or an authority is a warning.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    old, new, later = (certified(key, key, start, end) for start, end in ((-40, 10), (-20, 400), (200, 900)))
    leaf = certified(ec.generate_private_key(ec.SECP256R1()), key, -20, 30, HOST)
    reader, days = of_files(tmp_path, leaf + old, (new + later).decode()), 0
    assert [each.pem for each in reader.of(profile()).anchors] == [new.decode()]
    files = Credentials(tmp_path / "server.pem", tmp_path / "server.pem", None)
    reader = ServerTrust(lambda: files, lambda _: None, tmp_path / "missing.pem", lambda: present() + timedelta(days))
    assert not reader.of(profile()).warnings
    days = 20
    (warning,) = reader.of(profile()).warnings
    assert warning == "the authority root has expired"
    days = 31
    assert f"certificate with {HOST}: it has expired" in reader.of(profile()).warnings[0]


def test_a_server_that_no_device_could_check(tmp_path: Path) -> None:
    """A missing certificate, an unreadable one, and one with only addresses or wildcards give an error that says what
    to do.
    """
    with pytest.raises(Conflict, match="cert init"):
        trust_in(tmp_path).of(profile())
    authority = Authority("root")
    with pytest.raises(Conflict, match="cannot be read"):
        of_files(tmp_path, b"nothing").of(profile())
    for name in ("192.0.2.1", "*.example.org"):
        reader = of_files(tmp_path, authority.key_for(name) + authority.pem.encode())
        with pytest.raises(Conflict, match="set serverNames"):
            reader.of(profile())
        assert reader.of(profile(server_names=(HOST,))).server_names == (HOST,)


@pytest.mark.parametrize("pem", ["x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_anchors_that_are_no_certificates(pem: str) -> None:
    with pytest.raises(Invalid, match="anchors must be certificates in PEM"):
        checked_anchors(pem, "anchors")


def test_too_many_anchors() -> None:
    """At most four certificates are stored. Text beside them is dropped."""
    pem = Authority("root").pem
    assert checked_anchors(f"text\n{pem}", "anchors") == pem
    with pytest.raises(Invalid, match="at most 4"):
        checked_anchors(pem * 5, "anchors")
