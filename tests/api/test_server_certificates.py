"""The operations of server certificates: what they accept, refuse and show."""

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tests.api.world import Tenant, World
from tests.certs.test_supplicants import certificate, odd_certificates
from tests.radius.eap.certificates import NOW, Authority

SET, LIST = "/ad/SetServerCertificate", "/ad/ListServerCertificates"
REMOVE, CHECK = "/ad/RemoveServerCertificate", "/ad/CheckServerCertificate"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Return an authority of the tenant."""
    return Authority(tmp_path)


def pair(authority: Authority, name: str = "radius.corp.example", **details: object) -> dict[str, str]:
    """Return the fields of a new certificate and its key."""
    text = authority.certificate(name, **details).file.read_text()  # type: ignore[arg-type]
    key, begin, certificate = text.partition("-----BEGIN CERTIFICATE-----")
    return {"certificate": begin + certificate, "privateKey": key}


def test_a_certificate_is_set_listed_and_removed(tenant: Tenant, authority: Authority) -> None:
    """The list has what an admin needs to know, and never the key. The audit trail has the fingerprints."""
    own = pair(authority)
    made = tenant.ask(SET, domainId=tenant.domain, **own)
    assert made["message"] == "server certificate set"
    assert any("alternative name" in each for each in made["warnings"])
    (shown,) = tenant.ask(LIST, domainId=tenant.domain)["certificates"]
    assert (shown["realm"], shown["issuer"], shown["keyType"], shown["usable"]) == (
        "", "authority of the tests", "EC secp256r1", True,
    )  # fmt: skip
    assert shown["expires"].startswith(f"{NOW + timedelta(days=1):%Y-%m-%d}")
    assert "PRIVATE" not in str(shown)
    entries = tenant.ask("/api/v1/audit/list", action="server_certificate.set")["entries"]
    assert entries[0]["changes"]["sha256"] == [None, shown["sha256"]]
    assert own["privateKey"].splitlines()[1] not in str(entries)
    tenant.ask(REMOVE, domainId=tenant.domain)
    assert tenant.ask(LIST, domainId=tenant.domain)["certificates"] == []
    assert tenant.refused(REMOVE, domainId=tenant.domain)[0] == 404


def test_each_realm_may_have_a_certificate(tenant: Tenant, authority: Authority) -> None:
    """The realm must be the name or a realm of the domain, in any case. Setting it again replaces the certificate."""
    tenant.ask("/ad/UpdateDomain", domainId=tenant.domain, addRealms=["corp.example"])
    for realm in ("", "Corp.Example", "CORP.example", "corp"):
        tenant.ask(SET, domainId=tenant.domain, realm=realm, **pair(authority))
    listed = tenant.ask(LIST, domainId=tenant.domain)["certificates"]
    assert [each["realm"] for each in listed] == ["", "corp", "CORP.example"]
    status, text = tenant.refused(SET, domainId=tenant.domain, realm="other.example", **pair(authority))
    assert (status, text) == (400, "invalid realm")


def test_a_removed_realm_is_a_warning(tenant: Tenant, authority: Authority) -> None:
    """If a domain loses a realm, the list says that no login gets the realm's certificate."""
    tenant.ask("/ad/UpdateDomain", domainId=tenant.domain, addRealms=["gone.example"])
    tenant.ask(SET, domainId=tenant.domain, realm="gone.example", **pair(authority))
    told = "no login gets it: gone.example is no longer a realm of the domain; remove it"
    for is_told in (False, True):
        (shown,) = tenant.ask(LIST, domainId=tenant.domain)["certificates"]
        assert (told in shown["warnings"]) is is_told
        tenant.ask(
            "/ad/UpdateDomain", domainId=tenant.domain, **({} if is_told else {"removeRealms": ["gone.example"]})
        )


def test_a_wrong_key_or_certificate_is_refused(tenant: Tenant, authority: Authority, tmp_path: Path) -> None:
    """The error names the field and what to do. Nothing is stored."""
    (tmp_path / "other").mkdir()
    own, other = pair(authority), pair(authority, "other")
    encrypted = serialization.load_pem_private_key(own["privateKey"].encode(), None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    root = authority.file.read_text()
    for fields, field, message in (
        ({**own, "privateKey": other["privateKey"]}, "privateKey", "must be the key of the first certificate"),
        ({**own, "certificate": root + own["certificate"]}, "privateKey", "put the server's certificate first"),
        ({**own, "privateKey": encrypted.decode()}, "privateKey", "without a passphrase"),
        ({**own, "privateKey": "no key"}, "privateKey", "must be a private key in PEM"),
        ({**own, "certificate": "no certificate"}, "certificate", "must be certificates in PEM"),
        ({**own, "certificate": ""}, "certificate", "must"),
        ({**own, "certificate": own["certificate"] + root * 8}, "certificate", "at most 8 certificates"),
        ({**own, "certificate": own["certificate"] + root * 16}, "certificate", "at most 16 certificates"),
        ({**own, "certificate": own["certificate"] + "x" * 16_384}, "certificate", "at most 16384 characters"),
        (pair(authority, until=NOW - timedelta(hours=1)), "certificate", "this certificate expired at"),
    ):
        answer = tenant.world.post(SET, tenant.token, json=tenant.scoped(domainId=tenant.domain, **fields))
        assert answer.status_code == 400, answer.text
        (wrong,) = answer.json()["errors"]
        assert wrong["field"] == field
        assert message in wrong["message"], wrong
    assert tenant.ask(LIST, domainId=tenant.domain)["certificates"] == []


def test_only_admins_of_the_tenant_set_certificates(world: World, tenant: Tenant, authority: Authority) -> None:
    """An operator and another tenant are refused."""
    own = pair(authority)
    assert tenant.refused(SET, token=tenant.role("operator"), domainId=tenant.domain, **own)[0] == 403
    foreign = world.tenant("foreign")
    for path, fields in ((SET, own), (LIST, {}), (REMOVE, {}), (CHECK, {})):
        assert foreign.refused(path, domainId=tenant.domain, **fields)[0] in {403, 404}


def test_the_check_tells_what_supplicants_say(tenant: Tenant, authority: Authority) -> None:
    """A certificate is checked before it is set, and the certificate of the domain afterwards."""
    own = pair(authority)
    told = tenant.ask(CHECK, domainId=tenant.domain, certificate=own["certificate"], serverName="radius.other.example")
    assert {each["supplicant"] for each in told["remarks"] if each["verdict"] == "refuses"} == {
        "Windows 10, 11", "iOS, macOS", "Android 11 and newer", "wpa_supplicant, NetworkManager",
    }  # fmt: skip
    assert tenant.refused(CHECK, domainId=tenant.domain)[0] == 404
    tenant.ask(SET, domainId=tenant.domain, **own)
    assert tenant.ask(CHECK, domainId=tenant.domain)["remarks"][-1]["verdict"] == "note"


def test_a_removed_domain_takes_its_certificates_along(tenant: Tenant, authority: Authority) -> None:
    """The rows with the keys are deleted at once."""
    tenant.ask(SET, domainId=tenant.domain, **pair(authority))
    sql = "select domain_id from server_certificates"
    assert (tenant.domain,) in tenant.world.service.rows(sql)
    tenant.ask("/ad/RemoveDomain", domainId=tenant.domain)
    assert (tenant.domain,) not in tenant.world.service.rows(sql)


def texts(
    own: x509.Certificate, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey
) -> dict[str, str]:
    """Return the fields of a certificate and its key."""
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return {
        "certificate": own.public_bytes(serialization.Encoding.PEM).decode(),
        "privateKey": key.private_bytes(*form).decode(),
    }


def refusal(tenant: Tenant, path: str, **fields: object) -> str:
    """Return why a request is refused. It must be about the certificate."""
    answer = tenant.world.post(path, tenant.token, json=tenant.scoped(domainId=tenant.domain, **fields))
    assert answer.status_code == 400, answer.text
    (wrong,) = answer.json()["errors"]
    assert wrong["field"] == "certificate"
    return str(wrong["message"])


def test_an_odd_certificate_is_refused(tenant: Tenant) -> None:
    """A certificate with a part that cannot be read, or with too many names, is refused by both operations. The
    certificate of the domain stays."""
    key = ec.generate_private_key(ec.SECP256R1())
    own = certificate(key=key, days=36_500)
    tenant.ask(SET, domainId=tenant.domain, **texts(own, key))
    listed = tenant.ask(LIST, domainId=tenant.domain)
    many = x509.SubjectAlternativeName([x509.DNSName(f"n{number}.example") for number in range(101)])
    wrong = {**odd_certificates(key), "many names": certificate(many, key=key, days=36_500)}
    for part, each in wrong.items():
        told = [
            refusal(tenant, SET, **texts(each, key)),
            refusal(tenant, CHECK, certificate=texts(each, key)["certificate"]),
        ]
        assert all(("at most 100" if part == "many names" else "can be read") in each for each in told), part
    assert tenant.ask(LIST, domainId=tenant.domain) == listed


def test_a_key_with_slow_signatures_is_refused(tenant: Tenant) -> None:
    """RSA of more than 3072 bits, other curves and other algorithms are refused, before a login needs a signature."""
    for key in (
        rsa.generate_private_key(public_exponent=65537, key_size=3080),
        ec.generate_private_key(ec.BrainpoolP512R1()),
        ed25519.Ed25519PrivateKey.generate(),
    ):
        own = certificate(key=key, days=36_500)
        assert "an RSA key of at most 3072 bits, or an EC key on P-256" in refusal(tenant, SET, **texts(own, key))
