"""The operations of passkeys. Passkeys are registered by browsers, so here are none."""

import pytest

from tests.api.world import Tenant

LIST = "/ad/ListPasskeys"
REMOVE = "/ad/RemovePasskey"


def test_a_domain_without_passkeys(tenant: Tenant) -> None:
    """The list is empty, and names no host, because this service has no public_url. There is nothing to remove."""
    for fields in ({}, {"userName": "ann"}):
        answer = tenant.ask(LIST, domainId=tenant.domain, **fields)
        assert answer == {"host": "", "passkeys": [], "totalCount": 0}
    absent = (404, "the user has no passkey with this id")
    assert tenant.refused(REMOVE, domainId=tenant.domain, userName="ann", passkeyId=1) == absent


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"passkeyId": 1}, "missing userName"),
        ({"userName": "ann"}, "missing passkeyId"),
        ({"userName": "", "passkeyId": 1}, "invalid userName"),
        ({"userName": "x" * 254, "passkeyId": 1}, "invalid userName"),
        ({"userName": "ann", "passkeyId": True}, "invalid passkeyId"),
    ],
    ids=["no user", "no id", "an empty user", "a long user", "a flag as id"],
)
def test_bodies_that_are_refused(tenant: Tenant, fields: dict[str, object], text: str) -> None:
    """The message names the field."""
    assert tenant.refused(REMOVE, domainId=tenant.domain, **fields) == (400, text)


def test_another_tenant_and_another_role(tenant: Tenant) -> None:
    """A tenant reaches no domain of another tenant. An auditor lists passkeys, and removes none."""
    other, auditor = tenant.world.tenant(), tenant.role("auditor")
    body = {"userName": "ann", "passkeyId": 1}
    assert other.refused(LIST, domainId=tenant.domain) == (403, "domain not in tenant")
    assert other.refused(REMOVE, domainId=tenant.domain, **body) == (403, "domain not in tenant")
    tenant.ask(LIST, token=auditor, domainId=tenant.domain)
    assert tenant.refused(REMOVE, token=auditor, domainId=tenant.domain, **body) == (403, "role not allowed")
