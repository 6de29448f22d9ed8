"""The operations of enrolment links. This service has no site of people, so that it makes no links."""

import pytest

from tests.api.world import Tenant

USER = "/ad/EnrolUser"
GROUP = "/ad/EnrolGroup"
LIST = "/ad/ListNotEnrolled"
PROGRESS = "/ad/GetEnrolmentProgress"
NO_SITE = (409, "links need the settings people_bind and public_url, at which people open the pages")


def test_people_without_a_factor(tenant: Tenant) -> None:
    """The list has the endpoint users with a password, in pages. There is no progress yet."""
    tenant.user("carol")
    tenant.user("dave")
    answer = tenant.ask(LIST, domainId=tenant.domain, pageSize=1, pageId=1)
    assert answer["totalCount"] >= 2 and len(answer["users"]) == 1
    everybody = tenant.ask(LIST, domainId=tenant.domain)["users"]
    assert {"userName": "carol", "email": "", "link": "", "problem": "", "expiresAt": ""} in everybody
    assert tenant.ask(LIST, domainId=tenant.domain, groupName="no such group") == {"users": [], "totalCount": 0}
    assert tenant.ask(PROGRESS, domainId=tenant.domain) == {"groups": []}


def test_links_need_a_site(tenant: Tenant) -> None:
    """The message names the settings."""
    assert tenant.refused(USER, domainId=tenant.domain, userName="ann") == NO_SITE
    assert tenant.refused(GROUP, domainId=tenant.domain, groupName="staff") == NO_SITE


@pytest.mark.parametrize(
    ("path", "fields", "text"),
    [
        (USER, {}, "missing userName"),
        (USER, {"userName": ""}, "invalid userName"),
        (USER, {"userName": "x" * 254}, "invalid userName"),
        (USER, {"userName": "ann", "by": "pigeon"}, "invalid by"),
        (GROUP, {}, "missing groupName"),
        (GROUP, {"groupName": ""}, "invalid groupName"),
        (GROUP, {"groupName": "x" * 10_000}, "invalid groupName"),
    ],
    ids=["no user", "an empty user", "a long user", "a way", "no group", "an empty group", "a long group"],
)
def test_bodies_that_are_refused(tenant: Tenant, path: str, fields: dict[str, object], text: str) -> None:
    """The message names the field."""
    assert tenant.refused(path, domainId=tenant.domain, **fields) == (400, text)


def test_another_tenant_and_another_role(tenant: Tenant) -> None:
    """A tenant reaches no domain of another tenant. An auditor lists, and makes no links."""
    other, auditor = tenant.world.tenant(), tenant.role("auditor")
    bodies = {USER: {"userName": "ann"}, GROUP: {"groupName": "staff"}, LIST: {}, PROGRESS: {}}
    for path, body in bodies.items():
        assert other.refused(path, domainId=tenant.domain, **body) == (403, "domain not in tenant")
    for path in (USER, GROUP):
        refused = (403, "role not allowed")
        assert tenant.refused(path, token=auditor, domainId=tenant.domain, **bodies[path]) == refused
    for path in (LIST, PROGRESS):
        tenant.ask(path, token=auditor, domainId=tenant.domain)
