"""The operations of paused prompts. How a pause begins and what it does is tested with logins."""

import time

import pytest

from tests.api.world import Tenant

LIST, END = "/ad/ListPromptPauses", "/ad/EndPromptPause"
MINUTE = 60_000_000


def pause(tenant: Tenant, user: str, *, reason: str = "not me", minutes: int = 10) -> None:
    """Store a pause that ends in some minutes."""
    now = time.time_ns() // 1000
    row = (tenant.domain, user.lower(), user, 2, reason, now, now + minutes * MINUTE)
    tenant.world.service.execute(
        "insert into prompt_pauses (domain_id, user_key, user_name, unanswered, reason, at, until) "
        "values (?, ?, ?, ?, ?, ?, ?)",
        *row,
    )


def users(tenant: Tenant, **fields: object) -> list[str]:
    """Return the users who get no prompt."""
    return [each["userName"] for each in tenant.ask(LIST, domainId=tenant.domain, **fields)["pauses"]]


def test_pauses_are_listed_and_ended(tenant: Tenant) -> None:
    """The list has the pauses that have not ended, with reason and end. An ended pause is in the audit trail. A second
    end is no error."""
    pause(tenant, "Ann")
    pause(tenant, "ben", reason="unanswered")
    pause(tenant, "carl", minutes=-1)
    answer = tenant.ask(LIST, domainId=tenant.domain)
    assert answer["totalCount"] == 2
    (ann, ben) = answer["pauses"]
    assert (ann["userName"], ann["reason"], ben["reason"], ben["unanswered"]) == ("Ann", "not me", "unanswered", 2)
    assert ann["since"] < ann["until"]
    assert users(tenant, search="EN") == ["ben"]
    assert tenant.ask(END, domainId=tenant.domain, userName="ann")["message"] == "prompts of Ann resumed"
    for user in ("ann", "carl", "nobody"):
        assert tenant.ask(END, domainId=tenant.domain, userName=user)["message"] == "the user's prompts were not paused"
    assert users(tenant) == ["ben"]
    entries = tenant.ask("/api/v1/audit/list", action="user.prompts_resumed")["entries"]
    assert [each["target"] for each in entries] == ["user Ann"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [({}, "missing userName"), ({"userName": ""}, "invalid userName"), ({"userName": "x" * 254}, "invalid userName")],
    ids=["no user", "an empty user", "a long user"],
)
def test_bodies_that_are_refused(tenant: Tenant, fields: dict[str, object], text: str) -> None:
    """The message names the field."""
    assert tenant.refused(END, domainId=tenant.domain, **fields) == (400, text)


def test_another_tenant_and_another_role(tenant: Tenant) -> None:
    """A tenant reaches no domain of another tenant. An auditor lists pauses, and ends none."""
    pause(tenant, "dora")
    other, auditor = tenant.world.tenant(), tenant.role("auditor")
    assert other.refused(LIST, domainId=tenant.domain) == (403, "domain not in tenant")
    assert other.refused(END, domainId=tenant.domain, userName="dora") == (403, "domain not in tenant")
    tenant.ask(LIST, token=auditor, domainId=tenant.domain)
    refused = tenant.refused(END, token=auditor, domainId=tenant.domain, userName="dora")
    assert refused == (403, "role not allowed")
    assert users(tenant, search="dora") == ["dora"]
