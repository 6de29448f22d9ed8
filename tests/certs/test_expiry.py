"""Tests of the expiry of certificate files."""

from datetime import timedelta
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding

from sallyport.certs.authority import Authority
from sallyport.certs.credentials import Certificates, Credentials
from sallyport.certs.expiry import FileExpiries, first_expiry, pem_texts
from sallyport.certs.folder import CertificateFolder, present, read_certificates, read_list


def test_each_file_has_the_time_of_its_first_expiry(data_dir: Path, folder: CertificateFolder) -> None:
    """The files of EAP, the authority and the revocation list are read; the API's file is the given one."""
    found = FileExpiries(folder.client("ann@example.org"), Certificates(data_dir).server).read()
    server, authority = read_certificates(folder.server)[0], read_certificates(folder.ca)[0]
    ends = read_list(folder.crl).next_update_utc
    assert ends is not None
    assert found == {
        ("api",): read_certificates(folder.client("ann@example.org"))[0].not_valid_after_utc.timestamp(),
        ("eap",): server.not_valid_after_utc.timestamp(),
        ("authority",): authority.not_valid_after_utc.timestamp(),
        ("revocation_list",): ends.timestamp(),
    }


def test_a_renewed_certificate_is_read_again(data_dir: Path, folder: CertificateFolder) -> None:
    """After a renewal, the next scrape has the new time."""
    expiries = FileExpiries(None, Certificates(data_dir, look_s=0.0).server)
    before = expiries.read()["eap",]
    folder.renew(None, (), present() + timedelta(days=10))
    renewed = read_certificates(folder.server)[0].not_valid_after_utc.timestamp()
    assert expiries.read()["eap",] == renewed >= before + 10 * 86400 - 1


def test_an_external_revocation_list_is_apart(data_dir: Path, folder: CertificateFolder, tmp_path: Path) -> None:
    """A revocation list in the file of eap_ca belongs to an external authority."""
    combined = tmp_path / "authorities.pem"
    combined.write_bytes(folder.ca.read_bytes() + folder.crl.read_bytes())
    files = Certificates(data_dir, certificate=folder.server, key=folder.server_key, ca=combined)
    assert set(FileExpiries(None, files.server).read()) == {("eap",), ("authority",), ("external_revocation_list",)}


def test_files_that_cannot_be_read_are_absent(tmp_path: Path) -> None:
    """A missing file and a file without a certificate have no expiry."""
    (tmp_path / "bad.pem").write_bytes(b"\xff no certificate")
    files = Credentials(tmp_path / "bad.pem", tmp_path / "key.pem", tmp_path / "bad.pem")
    assert FileExpiries(tmp_path / "missing.pem", lambda: files).read() == {}
    assert FileExpiries(None, lambda: None).read() == {}


def test_the_certificate_that_expires_first_counts() -> None:
    """Of several certificates in a text, the first to expire counts."""
    now = present()
    pems = [
        Authority.new(name, at).certificate.public_bytes(Encoding.PEM).decode()
        for name, at in (("new", now), ("old", now - timedelta(days=90)))
    ]
    assert first_expiry("".join(pems)) == first_expiry(pems[1])
    assert first_expiry("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n") is None


def test_certificates_are_found_in_nested_settings() -> None:
    """Certificates in lists and objects are found; other texts are not."""
    pem = "-----BEGIN CERTIFICATE-----\n"
    assert list(pem_texts({"servers": [{"tls": {"caCertificate": pem}, "host": "a"}], "port": 1})) == [pem]
