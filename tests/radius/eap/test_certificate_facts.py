"""Tests of the facts of a client certificate that login rules compare."""

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given
from hypothesis import strategies as st

from sallyport.radius.eap.certificate import _of_microsoft, certificate_facts
from sallyport.radius.eap.certificate_names import CERTIFICATE_KEYS, MAX_FACT, MAX_FACTS
from tests.radius.eap.certificates import Authority, upn

SID = "S-1-5-21-1004336348-1177238915-682003330-512"
TEMPLATE = "1.3.6.1.4.1.311.21.8.1234567.890.42"
SID_EXTENSION = (
    bytes.fromhex("3041a03f060a2b060104018237190201a031042f"[:38]) + b"\x04" + bytes((len(SID),)) + SID.encode()
)


def microsoft(number: str, octets: bytes) -> x509.UnrecognizedExtension:
    """Return an extension of Microsoft."""
    return x509.UnrecognizedExtension(x509.ObjectIdentifier(f"1.3.6.1.4.1.311.{number}"), octets)


def oid(dotted: str) -> bytes:
    """Return an object identifier in DER."""
    first, second, *rest = map(int, dotted.split("."))
    octets = bytes((first * 40 + second,))
    for number in rest:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(number & 0x7F | 0x80)
        octets += bytes(reversed(groups))
    return b"\x06" + bytes((len(octets),)) + octets


def sequence(octets: bytes) -> bytes:
    """Return a SEQUENCE in DER."""
    return b"\x30" + bytes((len(octets),)) + octets


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return an authority."""
    return Authority(tmp_path_factory.mktemp("ca"), "Corp CA")


def test_a_certificate_of_active_directory(authority: Authority) -> None:
    """Its facts are the issuer, the template, the key usages, the names and the security identifier."""
    template = sequence(oid(TEMPLATE) + b"\x02\x01\x64\x02\x01\x05")
    certificate = authority.certificate(
        "Ann",
        [upn("ann@corp.example"), x509.DNSName("pc1.corp.example"), x509.RFC822Name("ann@example.com")],
        extensions=[
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, x509.ObjectIdentifier("1.2.3.4")]),
            microsoft("21.7", template),
            microsoft("20.2", b"\x1e\x08" + "User".encode("utf-16-be")),
            microsoft("25.2", SID_EXTENSION),
        ],
    ).certificate
    assert certificate_facts(certificate) == (
        "issuer=CN=Corp CA", "issuer=Corp CA", "san=ann@corp.example", "san=pc1.corp.example", "san=ann@example.com",
        "eku=1.3.6.1.5.5.7.3.2", "eku=clientAuth", "eku=1.2.3.4", f"template={TEMPLATE}", "template=User",
        f"sid={SID}",
    )  # fmt: skip
    assert {each.partition("=")[0] for each in certificate_facts(certificate)} <= set(CERTIFICATE_KEYS)


def test_a_certificate_of_intune(authority: Authority) -> None:
    """The security identifier is a URI in the subject alternative name."""
    uri = f"tag:microsoft.com,2022-09-14:sid:{SID}"
    certificate = authority.certificate("pc1", [x509.UniformResourceIdentifier(uri)]).certificate
    assert certificate_facts(certificate)[2:] == (f"san={uri}", f"sid={SID}")


def test_a_huge_certificate_has_few_facts(authority: Authority) -> None:
    """Long names are left out, and the number is limited."""
    names = [x509.DNSName("x" * (MAX_FACT + 1)), *(x509.DNSName(f"host{number}") for number in range(200))]
    facts = certificate_facts(authority.certificate("pc1", names).certificate)
    assert len(facts) == MAX_FACTS + 1
    assert max(map(len, facts)) < MAX_FACT
    assert facts[2] == "san=host0"
    assert facts[-1] == "more=san"


def test_a_name_that_is_too_long_is_said_to_be_left_out(authority: Authority) -> None:
    """A rule must not treat it as absent."""
    names = [x509.DNSName("x" * (MAX_FACT + 1)), x509.DNSName("pc1")]
    facts = certificate_facts(authority.certificate("pc1", names).certificate)
    assert facts[2:] == ("san=pc1", "more=san")


def test_an_unreadable_extension_leaves_the_issuer(authority: Authority) -> None:
    """The facts of the other extensions are missing then."""
    certificate = authority.certificate("pc1", names=b"\x30\x03\x82\x01\xff").certificate
    assert certificate_facts(certificate) == ("issuer=CN=Corp CA", "issuer=Corp CA")


@given(st.sampled_from(["20.2", "25.2"]), st.one_of(st.binary(max_size=80), st.binary(max_size=80).map(sequence)))
def test_any_octets_in_an_extension_give_texts(number: str, octets: bytes) -> None:
    """Malformed extensions raise no error."""
    for key, value in _of_microsoft(microsoft(number, octets)):
        assert key in ("template", "sid")
        assert isinstance(value, str)


def test_the_security_identifier_must_be_unambiguous(tmp_path: Path) -> None:
    """An extension with two identifiers has none."""
    assert list(_of_microsoft(microsoft("25.2", f"{SID} {SID}".encode()))) == [("sid", "")]


def test_texts_with_invalid_octets(authority: Authority) -> None:
    """A text of a template that is not valid in its encoding has replacement characters. Other octets give no text."""
    assert list(_of_microsoft(microsoft("20.2", b"\x0c\x03a\xffb"))) == [("template", "a\ufffdb")]
    assert list(_of_microsoft(microsoft("20.2", b"\x1e\x03\x00ab"))) == [("template", "a\ufffd")]
    for wrong in (b"\x0c\x04ab", b"\x1e\x04\x00a", b"\x1e\x00"):
        assert list(_of_microsoft(microsoft("20.2", wrong))) == [("template", "")]


def test_names_of_other_kinds(authority: Authority) -> None:
    """A directory name is a fact. A name of a kind that nobody knows is none."""
    other = x509.OtherName(x509.ObjectIdentifier("1.2.3.4"), b"\x0c\x03abc")
    person = x509.DirectoryName(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Ann B")]))
    certificate = authority.certificate("x", [other, person]).certificate
    assert [each for each in certificate_facts(certificate) if each.startswith("san")] == ["san=CN=Ann B"]
