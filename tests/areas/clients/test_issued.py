"""Tests of certificates and tenants: which tenant a certificate belongs to, and which certificates the clients of a
tenant may name."""

from typing import Any

import pytest

from sallyport.areas.clients.issued import IssuedCertificates
from sallyport.areas.clients.service import NewClient
from sallyport.base.errors import Conflict, Forbidden
from sallyport.web.scope import Role
from tests.areas import Areas

PROXY = "proxy.a.example.com"
PRINT = "ab" * 32
OTHER_PRINT = "cd" * 32
FOREIGN = "the installation has several tenants"


@pytest.fixture
async def other(areas: Areas) -> int:
    """Return the id of a second tenant. The certificate of the proxy was issued for the first tenant."""
    other = await areas.tenancy.ensure_tenant(2, 1)
    await issued(areas).record(PROXY, PRINT, areas.tenant)
    return other


def issued(areas: Areas) -> IssuedCertificates:
    """Return the records of the certificates that were issued."""
    return IssuedCertificates(areas.configuration, lambda: areas.clients.table.issued)


@pytest.mark.parametrize(
    "fields",
    [
        {"tls_name": PROXY},
        {"tls_fingerprint": PRINT},
        {"tls_name": "unknown.example.com"},
        {"tls_name": "*.example.com"},
        {"tls_fingerprint": OTHER_PRINT},
        {"tls_name": "proxy.b.example.com", "tls_fingerprint": PRINT},
        {"tls_name": PRINT},
    ],
    ids=["name", "fingerprint", "not issued", "wildcard", "print not issued", "own name, their print", "print as name"],
)
async def test_a_tenant_cannot_name_a_certificate_of_another(areas: Areas, other: int, fields: dict[str, str]) -> None:
    """If a client is added or changed, a name or fingerprint that was not issued for its tenant is refused.

    The message does not show whether another tenant has it.
    """
    await issued(areas).record("proxy.b.example.com", "ef" * 32, other)
    client = await areas.client("192.0.2.7/32", tenant=other)
    with pytest.raises(Forbidden, match=FOREIGN):
        await areas.clients.add(other, NewClient("n", "192.0.2.8/32", **fields), by=Role.ADMIN)  # type: ignore[arg-type]
    with pytest.raises(Forbidden, match=FOREIGN):
        await areas.clients.update(other, client.id, dict(fields), by=Role.ADMIN)
    assert areas.clients.table.certified(PRINT, [PROXY]) is None


async def test_a_name_that_looks_like_a_fingerprint_is_not_one(areas: Areas, other: int) -> None:
    """If the name of a certificate equals the fingerprint of another certificate, its tenant does not get that
    fingerprint."""
    await issued(areas).record(PRINT, OTHER_PRINT, other)
    with pytest.raises(Forbidden, match=FOREIGN):
        await areas.clients.add(other, NewClient("n", "192.0.2.8/32", tls_fingerprint=PRINT), by=Role.ADMIN)


@pytest.mark.parametrize("fields", [{"tls_name": PROXY}, {"tls_fingerprint": PRINT}], ids=["name", "fingerprint"])
async def test_a_tenant_names_its_own_certificate(areas: Areas, other: int, fields: dict[str, str]) -> None:
    """A name or fingerprint that was issued for the tenant is accepted, and the peer with that certificate is
    recognized as the client."""
    new = NewClient("n", "192.0.2.8/32", **fields)  # type: ignore[arg-type]
    client_id, _ = await areas.clients.add(areas.tenant, new, by=Role.ADMIN)
    found = areas.clients.table.certified(PRINT, [PROXY])
    assert found is not None and found.id == client_id


@pytest.mark.parametrize("fields", [{"tls_name": PROXY}, {"tls_fingerprint": PRINT}], ids=["name", "fingerprint"])
async def test_the_installation_names_any_certificate_except_a_tenants(
    areas: Areas, other: int, fields: dict[str, Any]
) -> None:
    """The command line accepts a name that was not issued for any tenant.

    A name that was issued for another tenant raises Conflict.
    """
    await areas.clients.add(other, NewClient("n", "192.0.2.8/32", tls_name="proxy.elsewhere.example"))
    with pytest.raises(Conflict, match="certificate of another tenant"):
        await areas.clients.add(other, NewClient("m", "192.0.2.9/32", **fields))


async def test_the_only_tenant_names_any_certificate(areas: Areas) -> None:
    """If there was only one tenant, its client keeps its TLS name after a second tenant is added.

    The name can be changed and removed.
    """
    client_id, _ = await areas.clients.add(
        areas.tenant, NewClient("n", "192.0.2.8/32", tls_name=PROXY, tls_fingerprint=PRINT), by=Role.ADMIN
    )
    await areas.tenancy.ensure_tenant(2, 1)
    same = {"tls_name": PROXY, "tls_fingerprint": PRINT, "product": "x"}
    await areas.clients.update(areas.tenant, client_id, same, by=Role.ADMIN)
    found = areas.clients.table.certified(PRINT, [PROXY])
    assert found is not None and found.product == "x"
    await areas.clients.update(areas.tenant, client_id, {"tls_name": "", "tls_fingerprint": ""}, by=Role.ADMIN)
    with pytest.raises(Forbidden, match=FOREIGN):
        await areas.clients.update(areas.tenant, client_id, {"tls_name": PROXY}, by=Role.ADMIN)


@pytest.mark.parametrize("form", [PROXY, "Proxy.A.example.COM", f"{PROXY}."])
async def test_a_name_belongs_to_one_tenant(areas: Areas, other: int, form: str) -> None:
    """A name that was issued for one tenant is refused to another tenant, regardless of case and of a final dot.

    Its own tenant can renew it.
    """
    certificates = issued(areas)
    with pytest.raises(Conflict, match="another tenant"):
        await certificates.check(form, other)
    with pytest.raises(Conflict, match="another tenant"):
        await certificates.record(form, OTHER_PRINT, other)
    await certificates.check(form, areas.tenant)
    await certificates.record(form, OTHER_PRINT, areas.tenant)
    assert certificates.by_fingerprint == {PRINT: areas.tenant, OTHER_PRINT: areas.tenant}
    assert certificates.tenant_of(form) == areas.tenant


async def test_the_name_of_a_client_is_not_issued_for_another_tenant(areas: Areas, other: int) -> None:
    """If a client got its TLS name before certificates had tenants, the name belongs to the tenant of the client."""
    await areas.client("192.0.2.8/32", tls_name="old.example.com")
    with pytest.raises(Conflict, match="another tenant"):
        await issued(areas).check("old.example.com", other)
    await issued(areas).check("old.example.com", areas.tenant)


async def test_a_name_is_free_once_all_its_certificates_are_revoked(areas: Areas, other: int) -> None:
    """If a certificate was renewed, revoking one of the two certificates keeps the name, and revoking both frees it."""
    certificates = issued(areas)
    await certificates.record(PROXY, OTHER_PRINT, areas.tenant)
    await certificates.forget([PRINT])
    with pytest.raises(Conflict):
        await certificates.check(PROXY, other)
    await certificates.forget([OTHER_PRINT, "12" * 32])
    await certificates.check(PROXY, other)
    assert certificates.tenant_of(PROXY) is None
