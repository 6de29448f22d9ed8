"""Tests of the user that a certificate names, and of the verification of certificates."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from sallyport.base.errors import ConfigError
from sallyport.radius.eap import packet as eap
from sallyport.radius.eap.certificate import UPN, NamedBy, UserNames
from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.methods import Terms, offers
from sallyport.radius.eap.model import Done, Failure
from sallyport.radius.eap.server import TlsServer
from tests.radius.eap.certificates import NOW, Authority, Issued, upn
from tests.radius.eap.conftest import Site
from tests.radius.eap.supplicant import Supplicant, TlsSide, log_in, silent
from tests.radius.eap.users import EVERYTHING

ALL = [x509.DNSName("pc.example.com"), x509.RFC822Name("ann@mail.example.com"), upn("ann@example.com")]


def test_the_order_of_names(site: Site) -> None:
    """The principal name is used first, then the mail address, the host name and the common name.

    Any other order can be configured.
    """
    certificate = site.authority.certificate("Ann", ALL).certificate
    assert UserNames().of(certificate).name == "ann@example.com"
    assert [UserNames((each,)).of(certificate).name for each in NamedBy] == [
        "ann@example.com", "ann@mail.example.com", "pc.example.com", "Ann",
    ]  # fmt: skip
    assert UserNames((NamedBy.UPN, NamedBy.DNS)).of(site.authority.certificate("Ann").certificate).name == ""
    assert UserNames().of(site.authority.certificate("Ann", ALL[:1]).certificate).name == "pc.example.com"


@pytest.mark.parametrize("size", [1, 126, 127, 128, 129, 250])
def test_principal_names_of_any_length(site: Site, size: int) -> None:
    """A principal name can be so long that its length is encoded in two octets."""
    assert UserNames().of(site.authority.certificate("Ann", [upn("a" * size)]).certificate).name == "a" * size


@pytest.mark.parametrize("octets", ["0c00", "130161", "0500"])
def test_principal_names_that_are_none(site: Site, octets: str) -> None:
    """A principal name is skipped if it is not a UTF8String with the encoded length."""
    broken = x509.OtherName(UPN, bytes.fromhex(octets))
    assert UserNames().of(site.authority.certificate("Ann", [broken]).certificate).name == "Ann"


def log_in_with(site: Site, issued: Issued) -> Done:
    """Return the result of a login with a certificate."""
    server = TlsServer(site.configuration)
    side = TlsSide(eap.TLS, silent, shows=issued)
    conversation = Conversation(offers(Terms(server, EVERYTHING)), now=0)
    return log_in(conversation, site.users, Supplicant(b"anonymous", side))


def refused(reason: str) -> tuple[bool, str]:
    """Return the result that a login with a refused certificate should have."""
    return False, f"the client's certificate is refused: {reason}"


def test_a_revoked_certificate(site: Site) -> None:
    """A revoked certificate is refused, and other certificates are accepted."""
    site.configuration = replace(site.configuration, crl_file=site.authority.revocations(site.issued.certificate))
    done = log_in_with(site, site.issued)
    assert (done.success, done.reason) == refused("it is revoked")
    assert log_in_with(site, site.authority.certificate("ann")).success


def test_a_revocation_list_that_is_too_old(site: Site) -> None:
    """If the revocation list has expired, no certificate is accepted, because a revocation may be missing from the
    list."""
    file = site.authority.revocations(until=NOW - timedelta(hours=1))
    site.configuration = replace(site.configuration, crl_file=file)
    done = log_in_with(site, site.issued)
    assert (done.success, done.reason) == refused("the revocation list has expired")


def test_a_revocation_list_of_tomorrow(site: Site) -> None:
    """If a revocation list is not valid yet, the reason is a text."""
    site.configuration = replace(
        site.configuration, crl_file=site.authority.revocations(since=NOW + timedelta(hours=1))
    )
    done = log_in_with(site, site.issued)
    assert (done.success, done.reason) == refused("the revocation list is not valid yet: is the clock right?")


def test_an_expired_certificate(site: Site) -> None:
    """An expired certificate is refused."""
    done = log_in_with(site, site.authority.certificate("ann", until=NOW - timedelta(minutes=1)))
    assert (done.success, done.reason) == refused("it has expired")


def test_a_certificate_that_cannot_be_read(site: Site) -> None:
    """A certificate that OpenSSL verifies but the parser cannot read is refused.

    An example is a certificate with an ediPartyName.
    """
    names = bytes.fromhex("3008a506a1040c027879")
    done = log_in_with(site, site.authority.certificate("ann", names=names))
    assert (done.success, done.failure) == (False, Failure.CERTIFICATE)
    assert "cannot be read" in done.reason


def test_a_certificate_of_another_authority(site: Site, tmp_path: Path) -> None:
    """A certificate of another authority is refused, whatever its names are."""
    (tmp_path / "other").mkdir()
    done = log_in_with(site, Authority(tmp_path / "other", "another").certificate("ann"))
    assert (done.success, done.reason) == refused("its issuer is unknown")


@pytest.mark.parametrize("field", ["certificate_file", "key_file", "ca_file", "crl_file"])
def test_files_that_cannot_be_used(site: Site, tmp_path: Path, field: str) -> None:
    """The error names the file, whether the file is missing or has the wrong content."""
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    for file in (empty, tmp_path / "nowhere.pem"):
        with pytest.raises(ConfigError, match=file.name):
            TlsServer(replace(site.configuration, **{field: file}))


def test_a_key_of_another_certificate(site: Site) -> None:
    """A key that does not belong to the server's certificate is refused when the configuration is read."""
    with pytest.raises(ConfigError, match="the file does not contain the key of the server's certificate"):
        TlsServer(replace(site.configuration, key_file=site.authority.certificate("other").file))
