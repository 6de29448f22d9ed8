"""The operations of remembered stations. Only a login remembers a station, so here are none."""

import pytest

from tests.api.world import Tenant

LIST = "/ad/ListRememberedStations"
REMOVE = "/ad/RemoveRememberedStation"
UPDATE = "/ad/UpdateDomain"


def test_a_domain_without_stations(tenant: Tenant) -> None:
    """The list is empty, and there is nothing to remove."""
    for fields in ({}, {"userName": "ann"}):
        assert tenant.ask(LIST, domainId=tenant.domain, **fields) == {"rememberedStations": [], "totalCount": 0}
    for fields in ({}, {"rememberedId": 1}):
        absent = (404, "the user has no such remembered station")
        assert tenant.refused(REMOVE, domainId=tenant.domain, userName="ann", **fields) == absent


def test_the_setting_of_a_domain(tenant: Tenant) -> None:
    """It is off at first. Only an admin changes it."""
    assert tenant.ask(UPDATE, domainId=tenant.domain)["rememberHours"] == 0
    assert tenant.ask(UPDATE, domainId=tenant.domain, rememberHours=720)["rememberHours"] == 720
    for wrong in (-1, 2161, "x", True):
        assert tenant.refused(UPDATE, domainId=tenant.domain, rememberHours=wrong) == (400, "invalid rememberHours")
    refused = tenant.refused(UPDATE, token=tenant.role("operator"), domainId=tenant.domain, rememberHours=1)
    assert refused == (403, "role not allowed")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "missing userName"),
        ({"userName": "x" * 254}, "invalid userName"),
        ({"userName": "ann", "rememberedId": "x"}, "invalid rememberedId"),
    ],
    ids=["no user", "a long user", "no number"],
)
def test_bodies_that_are_refused(tenant: Tenant, fields: dict[str, object], text: str) -> None:
    """The message names the field."""
    assert tenant.refused(REMOVE, domainId=tenant.domain, **fields) == (400, text)


def test_another_tenant_and_another_role(tenant: Tenant) -> None:
    """A tenant reaches no domain of another tenant. An auditor lists stations, and removes none."""
    other, auditor = tenant.world.tenant(), tenant.role("auditor")
    for path in (LIST, REMOVE):
        assert other.refused(path, domainId=tenant.domain, userName="ann") == (403, "domain not in tenant")
    tenant.ask(LIST, token=auditor, domainId=tenant.domain)
    refused = tenant.refused(REMOVE, token=auditor, domainId=tenant.domain, userName="ann")
    assert refused == (403, "role not allowed")
