"""Domains in memory, and how bodies spell their settings."""

import pytest
from pydantic import TypeAdapter, ValidationError

from sallyport.domains.bodies import AnyFallback, AnyFirstFactor, AnyMode, UpdateDomainEnforcement
from sallyport.domains.domain import Domain, DomainTable, Fallback, FirstFactor, Mode


def make(id: int, name: str, *realms: str, tenant_id: int = 1) -> Domain:
    """A domain as the store gives it."""
    return Domain(id, tenant_id, name, Mode.MONITOR, Fallback.DENY, FirstFactor.LOCAL, "active", realms)


@pytest.mark.parametrize("realm", ["Corp", "CORP", "corp.EXAMPLE", "straße"])
def test_a_realm_is_a_name_or_a_realm_in_any_case(realm: str) -> None:
    """Within a tenant; names and realms of another tenant are not found."""
    corp, branch = make(1, "Corp", "corp.example", "STRASSE"), make(2, "Zürich")
    theirs = make(3, "Corp", tenant_id=2)
    table = DomainTable([corp, branch, theirs])
    assert table.by_realm(1, realm) is corp
    assert table.by_realm(1, "ZÜRICH") is branch
    assert table.by_realm(2, "corp") is theirs
    assert [table.by_realm(*each) for each in ((2, "corp.example"), (1, ""), (1, "corp "), (3, "corp"))] == [None] * 4


def test_a_tenants_domains_keep_their_order() -> None:
    """The first that was added is the first."""
    domains = [make(5, "e"), make(7, "a"), make(9, "c", tenant_id=2), make(11, "b")]
    table = DomainTable(domains)
    assert [domain.id for domain in table.by_tenant[1]] == [5, 7, 11]
    assert list(table.by_id) == [5, 7, 9, 11]
    assert DomainTable().by_realm(1, "a") is None


@pytest.mark.parametrize(
    ("text", "mode"),
    [("monitor", "monitor"), ("Monitoring", "monitor"), ("ENFORCE", "enforce"), ("enforcing", "enforce")],
)
def test_modes_as_people_say_them(text: str, mode: str) -> None:
    """monitoring and enforcing are taken, monitor and enforce are kept."""
    assert TypeAdapter(AnyMode).validate_python(text) == Mode(mode)


@pytest.mark.parametrize("kind", [AnyMode, AnyFallback, AnyFirstFactor], ids=["mode", "fallback", "first factor"])
@pytest.mark.parametrize("value", ["", "off", "monitor ", None, 1, True, ["monitor"], "enforced"])
def test_other_values_are_refused(kind: object, value: object) -> None:
    """Nothing is guessed: a wrong mode would lock people out, or accept them."""
    with pytest.raises(ValidationError):
        TypeAdapter[object](kind).validate_python(value)


def test_the_other_settings_in_any_case() -> None:
    """fallbackAction and firstFactor are closed sets."""
    assert TypeAdapter(AnyFallback).validate_python("Allow") == Fallback.ALLOW
    assert TypeAdapter(AnyFirstFactor).validate_python("LDAP") == FirstFactor.LDAP


@pytest.mark.parametrize("name", ["domainId", "adId"])
def test_a_domain_has_two_names(name: str) -> None:
    """updateDomainEnforcement takes domainId or adId; the claim is the same."""
    sent = {"orgId": 1, "tenantId": "1", name: "7", "enforcementMode": "enforcing"}
    body = UpdateDomainEnforcement.model_validate(sent)
    assert (body.domainId, body.claimed_domains(), body.claimed_scope()) == (7, (7,), (1, 1))
