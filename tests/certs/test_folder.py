"""Certificate files: creation, renewal, and revocation by name and by serial number."""

import stat
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from sallyport.base.errors import Conflict, Invalid, NotFound, StartError
from sallyport.certs.authority import KeyKind, host_names
from sallyport.certs.credentials import Certificates
from sallyport.certs.folder import CertificateFolder, present, read_certificates, read_key, read_list


def test_files_are_readable_by_their_owner_only(folder: CertificateFolder) -> None:
    """All files have mode 0600, and all folders have mode 0700."""
    for path in folder.path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_an_existing_authority_is_not_replaced(folder: CertificateFolder) -> None:
    """A second init is refused and changes nothing."""
    before = folder.ca.read_bytes()
    with pytest.raises(Conflict):
        folder.make("Other", ["x.example.org"], present())
    assert folder.ca.read_bytes() == before


def test_a_refused_init_can_be_repeated(tmp_path: Path) -> None:
    """An init with an invalid name creates no authority, so that it can be repeated."""
    folder = CertificateFolder(tmp_path)
    with pytest.raises(Invalid):
        folder.make("CA", ["not a host"], present())
    assert not folder.ca.exists()
    folder.make("CA", ["localhost"], present())
    assert host_names(read_certificates(folder.server)[0]) == ["localhost"]


def test_a_renewal_keeps_key_and_names(folder: CertificateFolder) -> None:
    """A renewed certificate has a new serial number and the same key and names. The service notices the changed
    file.
    """
    certificates = Certificates(folder.path.parent, look_s=0)
    before, key, used = read_certificates(folder.server)[0], folder.server_key.read_bytes(), certificates.server()
    after = folder.renew(None, (), present())
    assert after.serial_number != before.serial_number
    assert (folder.server_key.read_bytes(), host_names(after)) == (key, host_names(before))
    assert after.public_key() == before.public_key()
    assert certificates.server() != used
    assert host_names(folder.renew(None, ["other.example.org"], present())) == ["other.example.org"]


def test_the_files_are_checked_once_in_a_while(folder: CertificateFolder) -> None:
    """Between two checks, the service uses the files that it has found."""
    seldom, often = (Certificates(folder.path.parent, look_s=each) for each in (3600, 0))
    before = seldom.server()
    assert before == often.server()
    folder.server.unlink()
    assert seldom.server() is before
    assert often.server() is None


def test_a_renewal_signs_the_revocation_list_again(folder: CertificateFolder) -> None:
    """A renewal extends the revocation list, which expires like a certificate. The list keeps its entries."""
    now = present()
    folder.revoke("ann@example.org", now)
    before = read_list(folder.crl)
    folder.renew(None, (), now + timedelta(days=300))
    after = read_list(folder.crl)
    assert [each.serial_number for each in after] == [each.serial_number for each in before]
    assert before.next_update_utc is not None
    assert after.next_update_utc == before.next_update_utc + timedelta(days=300)


def test_renewing_a_client_keeps_the_server_files(folder: CertificateFolder) -> None:
    """When a client's certificate is renewed, the service does not reload, because this would disconnect RadSec peers.
    A revocation list that has passed half of its lifetime is signed again.
    """
    certificates, now = Certificates(folder.path.parent, look_s=0), present()
    before = certificates.server()
    folder.renew("ann@example.org", (), now)
    assert certificates.server() is before
    folder.renew("ann@example.org", (), now + timedelta(days=300))
    ends = read_list(folder.crl).next_update_utc
    assert ends is not None
    assert ends > now + timedelta(days=600)


def test_revoking_a_name_revokes_all_its_certificates(folder: CertificateFolder) -> None:
    """A renewed certificate has the same key as the former one, so revoking the name revokes both certificates."""
    first = read_certificates(folder.client("proxy.example.org"))[0]
    second = folder.renew("proxy.example.org", (), present())
    folder.revoke("proxy.example.org", present())
    gone = {each.serial_number for each in read_list(folder.crl)}
    assert gone == {first.serial_number, second.serial_number}
    states = {each.name: each.state(present()) for each in folder.issued() if each.kind == "client"}
    assert states == {"proxy.example.org": "revoked", "ann@example.org": "valid"}


def test_revoking_a_serial_number_revokes_one_certificate(folder: CertificateFolder) -> None:
    """A serial number is accepted in the form of `cert show` and in the form of openssl."""
    serial = f"{read_certificates(folder.client('ann@example.org'))[0].serial_number:040X}"
    (gone,) = folder.revoke(":".join(serial[at : at + 2] for at in range(0, 40, 2)), present())
    assert gone.serial_number == int(serial, 16)
    folder.revoke(serial, present())
    assert len(list(read_list(folder.crl))) == 1


def test_a_revoked_certificate_is_replaced_with_a_new_key(folder: CertificateFolder) -> None:
    """A revoked certificate cannot be renewed. A new certificate for the name gets a new key."""
    path = folder.client("ann@example.org")
    key = path.with_suffix(".key").read_bytes()
    folder.revoke("ann@example.org", present())
    with pytest.raises(Conflict):
        folder.renew("ann@example.org", (), present())
    folder.issue("ann@example.org", present())
    assert path.with_suffix(".key").read_bytes() != key


def test_renewing_a_revoked_server_certificate_creates_a_key(folder: CertificateFolder) -> None:
    """The first renewal after a revocation makes a new key, because the old one may be known to others. The next
    renewal keeps the new key.
    """
    serial, key = f"{read_certificates(folder.server)[0].serial_number:x}", folder.server_key.read_bytes()
    hosts = host_names(read_certificates(folder.server)[0])
    folder.revoke(serial, present())
    with pytest.raises(Invalid):
        folder.renew(None, ["no host"], present())
    assert folder.server_key.read_bytes() == key
    after = folder.renew(None, (), present())
    assert host_names(after) == hosts
    ours = load_pem_private_key(folder.server_key.read_bytes(), None)
    assert ours.public_key() == after.public_key()
    assert folder.server_key.read_bytes() != key
    assert folder.renew(None, (), present()).public_key() == after.public_key()


def test_a_certificate_without_files_can_be_renewed(folder: CertificateFolder) -> None:
    """A certificate can be renewed without its files. They may have been moved to the client, or a command may have
    been killed.
    """
    path = folder.client("ann@example.org")
    before = read_certificates(path)[0]
    path.unlink()
    path.with_suffix(".key").unlink()
    assert folder.renew("ann@example.org", (), present()).public_key() == before.public_key()
    assert path.exists()


@pytest.mark.parametrize("name", ["ann@example.org", "Ann@Example.org"])
def test_a_name_has_one_certificate(folder: CertificateFolder, name: str) -> None:
    """If a name has a valid certificate, no other one is issued for it, because that would replace the client's key."""
    with pytest.raises(Conflict, match=r"^ann@example\.org already has"):
        folder.issue(name, present())


def test_a_name_is_revoked_in_any_case(folder: CertificateFolder) -> None:
    """A name is revoked in any letter case, because logins use either case."""
    folder.revoke("ANN@example.org", present())
    assert [each.name for each in folder.issued() if each.revoked] == ["ann@example.org"]


def test_an_unknown_name_is_not_found(folder: CertificateFolder) -> None:
    """A certificate that was not issued can be neither renewed nor revoked."""
    with pytest.raises(NotFound):
        folder.renew("bob", (), present())
    with pytest.raises(NotFound):
        folder.revoke("bob", present())


def test_a_directory_without_an_authority_issues_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        CertificateFolder(tmp_path / "x").ca_pem()
    with pytest.raises(NotFound):
        CertificateFolder(tmp_path / "x").issue("bob", present())


def test_a_malformed_certificate_file_is_named_in_the_error(folder: CertificateFolder) -> None:
    folder.server.write_text("nothing")
    with pytest.raises(StartError, match=r"server\.pem"):
        folder.renew(None, (), present())


def test_configured_files_replace_the_issued_ones(data_dir: Path) -> None:
    """A configured certificate is used with the built-in authority, unless another authority is configured. If its file
    is missing, there is no server certificate.
    """
    own, key = data_dir / "own.pem", data_dir / "own.key"
    assert Certificates(data_dir, certificate=own, key=key).server() is None
    own.write_text("x")
    key.write_text("x")
    used = Certificates(data_dir, certificate=own, key=key).server()
    assert used is not None
    assert (used.certificate_file, used.ca_file, used.crl_file) == (
        own, data_dir / "certs" / "ca.pem", data_dir / "certs" / "crl.pem",
    )  # fmt: skip
    used = Certificates(data_dir, certificate=own, key=key, ca=own).server()
    assert used is not None
    assert (used.ca_file, used.crl_file) == (own, None)


def test_a_configured_certificate_needs_no_authority(data_dir: Path) -> None:
    """A configured certificate is used even if there is no authority. An authority that is created later is used from
    then on. A configured authority must exist.
    """
    own, later = data_dir / "own.pem", data_dir / "later"
    own.write_text("x")
    certificates = Certificates(later, certificate=own, key=own, look_s=0)
    used = certificates.server()
    assert used is not None
    assert (used.ca_file, used.crl_file) == (None, None)
    assert certificates.server() is used
    later.mkdir()
    (data_dir / "certs").rename(later / "certs")
    used = certificates.server()
    assert used is not None
    assert (used.ca_file, used.crl_file) == (later / "certs" / "ca.pem", later / "certs" / "crl.pem")
    assert Certificates(data_dir, certificate=own, key=own, ca=data_dir / "none.pem").server() is None


def test_an_installation_with_rsa_keys_keeps_them(tmp_path: Path) -> None:
    """A renewal keeps an RSA key and the root in the file. Another key and a file without the root are chosen."""
    folder = CertificateFolder(tmp_path)
    folder.make("CA", ["radius.example.org"], present(), KeyKind.RSA, with_root=True)
    before = read_certificates(folder.server)
    after = folder.renew(None, (), present())
    assert after.public_key() == before[0].public_key()
    assert read_certificates(folder.server) == [after, before[1]]
    changed = folder.renew(None, (), present(), KeyKind.P256, with_root=False)
    assert read_certificates(folder.server) == [changed]
    assert read_key(folder.server_key).public_key() == changed.public_key()
    assert isinstance(changed.public_key(), ec.EllipticCurvePublicKey)
    changed.verify_directly_issued_by(before[1])
    assert read_certificates(folder.server) == [changed]
    assert len([folder.renew(None, (), present()), *read_certificates(folder.server)]) == 2


def test_a_client_has_an_rsa_key_and_the_root(folder: CertificateFolder) -> None:
    """The certificate of a client keeps its form, whatever the key of the authority is."""
    own, authority = read_certificates(folder.client("ann@example.org"))
    assert isinstance(own.public_key(), rsa.RSAPublicKey)
    assert isinstance(authority.public_key(), ec.EllipticCurvePublicKey)
    own.verify_directly_issued_by(authority)
