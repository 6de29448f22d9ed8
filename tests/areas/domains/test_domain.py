"""Domains in memory, and the values that request bodies may have for their settings."""

import pytest
from pydantic import TypeAdapter, ValidationError

from sallyport.areas.domains.bodies import AnyFallback, AnyFirstFactor, AnyMode, UpdateDomainEnforcement
from sallyport.areas.domains.domain import Domain, DomainTable, Fallback, FirstFactor, Mode


def make(id: int, name: str, *realms: str, tenant_id: int = 1) -> Domain:
    """Return a domain in the form in which it is read from the store."""
    return Domain(id, tenant_id, name, realms=realms)


@pytest.mark.parametrize("realm", ["Corp", "CORP", "corp.EXAMPLE", "straße"])
def test_a_domain_is_found_by_name_or_realm_in_any_case(realm: str) -> None:
    """A realm matches the name or a realm of a domain, in any letter case, but only in the same tenant."""
    corp, branch = make(1, "Corp", "corp.example", "STRASSE"), make(2, "Zürich")
    theirs = make(3, "Corp", tenant_id=2)
    table = DomainTable([corp, branch, theirs])
    assert table.by_realm(1, realm) is corp
    assert table.by_realm(1, "ZÜRICH") is branch
    assert table.by_realm(2, "corp") is theirs
    assert [table.by_realm(*each) for each in ((2, "corp.example"), (1, ""), (1, "corp "), (3, "corp"))] == [None] * 4


def test_domains_of_a_tenant_are_in_order_of_addition() -> None:
    domains = [make(5, "e"), make(7, "a"), make(9, "c", tenant_id=2), make(11, "b")]
    table = DomainTable(domains)
    assert [domain.id for domain in table.by_tenant[1]] == [5, 7, 11]
    assert list(table.by_id) == [5, 7, 9, 11]
    assert DomainTable().by_realm(1, "a") is None


@pytest.mark.parametrize(
    ("text", "mode"),
    [("monitor", "monitor"), ("Monitoring", "monitor"), ("ENFORCE", "enforce"), ("enforcing", "enforce")],
)
def test_both_spellings_of_a_mode_are_accepted(text: str, mode: str) -> None:
    """`monitoring` and `enforcing` are accepted and stored as monitor and enforce."""
    assert TypeAdapter(AnyMode).validate_python(text) == Mode(mode)


@pytest.mark.parametrize("kind", [AnyMode, AnyFallback, AnyFirstFactor], ids=["mode", "fallback", "first factor"])
@pytest.mark.parametrize("value", ["", "off", "monitor ", None, 1, True, ["monitor"], "enforced"])
def test_other_values_are_refused(kind: object, value: object) -> None:
    """Other values are refused and not guessed, because a wrong mode would lock users out or admit them."""
    with pytest.raises(ValidationError):
        TypeAdapter[object](kind).validate_python(value)


def test_fallback_and_first_factor_are_accepted_in_any_case() -> None:
    assert TypeAdapter(AnyFallback).validate_python("Allow") == Fallback.ALLOW
    assert TypeAdapter(AnyFirstFactor).validate_python("LDAP") == FirstFactor.LDAP


@pytest.mark.parametrize("name", ["domainId", "adId"])
def test_a_domain_id_has_two_field_names(name: str) -> None:
    """updateDomainEnforcement takes domainId or adId, and the check of the scope is the same for both."""
    sent = {"orgId": 1, "tenantId": "1", name: "7", "enforcementMode": "enforcing"}
    body = UpdateDomainEnforcement.model_validate(sent)
    assert (body.domainId, body.claimed_domains(), body.claimed_scope()) == (7, (7,), (1, 1))
