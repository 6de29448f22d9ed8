"""The operations of bypass codes."""

import re

import pytest

from tests.api.world import Tenant

MAKE = "/ad/MakeBypassCodes"
LIST = "/ad/ListBypassCodes"
REMOVE = "/ad/RemoveBypassCodes"


def test_codes_are_made_listed_and_removed(tenant: Tenant) -> None:
    """The digits are in the first answer only."""
    tenant.user("carol")
    made = tenant.ask(MAKE, domainId=tenant.domain, userName="CAROL", codes=2, uses=3, hours=1)
    assert (made["message"], made["userName"], made["uses"]) == ("2 bypass codes of carol made", "carol", 3)
    assert all(re.fullmatch("[0-9]{8}", code) for code in made["codes"])
    listed = tenant.ask(LIST, domainId=tenant.domain, userName="carol")
    assert listed["totalCount"] == 2
    assert [(each["firstDigit"], each["state"], each["uses"], each["used"]) for each in listed["bypassCodes"]] == [
        (int(code[0]), "valid", 3, 0) for code in made["codes"]
    ]
    assert {each["expiresAt"] for each in listed["bypassCodes"]} == {made["expiresAt"]}
    assert not any(code[1:] in str(listed) for code in made["codes"])
    again = tenant.ask(MAKE, domainId=tenant.domain, userName="carol")
    assert again["message"] == "1 bypass code of carol made; 2 former codes replaced"
    removed = tenant.ask(REMOVE, domainId=tenant.domain, userName="carol")
    assert removed["message"] == "1 bypass code of carol removed"
    assert tenant.refused(REMOVE, domainId=tenant.domain, userName="carol") == (404, "the user has no bypass codes")
    assert tenant.refused(MAKE, domainId=tenant.domain, userName="nobody") == (404, "user not found")


def test_a_warning_if_the_codes_help_nobody(tenant: Tenant) -> None:
    """Only the provider `own` with the factor `bypass` takes the codes, also beside the default provider."""
    tenant.user("carol")

    def warnings() -> object:
        return tenant.ask(MAKE, domainId=tenant.domain, userName="carol")["warnings"]

    none = ["no MFA provider of the domain takes bypass codes: set or add the provider own with the factor bypass"]
    assert warnings() == none
    tenant.ask("/ad/SetMFAProvider", domainId=tenant.domain, provider="totp")
    tenant.ask("/ad/AddMFAProvider", domainId=tenant.domain, provider="own", factors="totp")
    assert warnings() == none
    tenant.ask("/ad/AddMFAProvider", domainId=tenant.domain, provider="own", factors="totp,bypass")
    assert warnings() == []


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "missing userName"),
        ({"userName": "x" * 254}, "invalid userName"),
        ({"userName": "ann", "codes": 0}, "invalid codes"),
        ({"userName": "ann", "codes": 11}, "invalid codes"),
        ({"userName": "ann", "uses": 101}, "invalid uses"),
        ({"userName": "ann", "uses": True}, "invalid uses"),
        ({"userName": "ann", "hours": 0}, "invalid hours"),
        ({"userName": "ann", "hours": 8785}, "invalid hours"),
    ],
    ids=["no user", "a long user", "no codes", "many codes", "many uses", "a flag", "no time", "a long time"],
)
def test_bodies_that_are_refused(tenant: Tenant, fields: dict[str, object], text: str) -> None:
    """The message names the field."""
    assert tenant.refused(MAKE, domainId=tenant.domain, **fields) == (400, text)


def test_another_tenant_and_another_role(tenant: Tenant) -> None:
    """A tenant reaches no domain of another tenant. An auditor lists codes, and makes and removes none."""
    other, auditor = tenant.world.tenant(), tenant.role("auditor")
    for path in (MAKE, LIST, REMOVE):
        refused = (403, "domain not in tenant")
        assert other.refused(path, domainId=tenant.domain, userName="ann") == refused
    tenant.ask(LIST, token=auditor, domainId=tenant.domain)
    for path in (MAKE, REMOVE):
        refused = (403, "role not allowed")
        assert tenant.refused(path, token=auditor, domainId=tenant.domain, userName="ann") == refused
