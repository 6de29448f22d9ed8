"""Domains: how they are added, changed and found."""

import pytest
import trio

from sallyport.areas.domains.domain import Fallback, FirstFactor, Mode
from sallyport.areas.domains.repo import Update
from sallyport.areas.domains.service import NO_PROVIDER
from sallyport.base.errors import Conflict, NotFound
from tests.areas import Areas


async def test_a_new_domain_is_in_monitor_mode(areas: Areas) -> None:
    """As soon as `add` returns, a new domain is active. It has monitor mode, the fallback deny, the first factor local
    and no realms.
    """
    domain_id = await areas.domains.add(areas.tenant, "branch")
    domain = areas.domains.table.by_id[domain_id]
    assert (domain.name, domain.tenant_id, domain.mode, domain.fallback) == ("branch", areas.tenant, "monitor", "deny")
    assert (domain.first_factor, domain.status, domain.realms) == (FirstFactor.LOCAL, "active", ())
    assert areas.domains.tenant_of(domain.id) == areas.tenant
    assert areas.domains.tenant_of(99) is None


async def test_all_settings_are_stored(areas: Areas) -> None:
    """Each setting applies in this process and after a restart."""
    domain_id = await areas.domains.add(
        areas.tenant,
        "branch",
        directory_name="ad.example",
        mode=Mode.ENFORCE,
        fallback=Fallback.ALLOW,
        first_factor=FirstFactor.NONE,
        realms=["branch.example", "BR"],
    )
    later = Areas(areas.store, areas.clock)
    await later.configuration.reload()
    for domains in (areas.domains, later.domains):
        domain = domains.table.by_id[domain_id]
        assert (domain.mode, domain.fallback, domain.first_factor) == (Mode.ENFORCE, Fallback.ALLOW, FirstFactor.NONE)
        assert domain.realms == ("branch.example", "BR")
    kept = await areas.store.read(
        lambda tx: tx.value(str, "select directory_name from domains where id = :id", id=domain_id)
    )
    assert kept == "ad.example"


@pytest.mark.parametrize(
    ("name", "realms"),
    [("CORP", ()), ("other", ("Corp",)), ("hq.example", ()), ("other", ("x", "HQ.Example")), ("STRASSE", ())],
)
async def test_a_realm_belongs_to_one_domain(areas: Areas, name: str, realms: tuple[str, ...]) -> None:
    """If another domain of the tenant has the name or the realm, in any letter case, Conflict is raised. Another tenant
    may have the same one.
    """
    await areas.domains.add(areas.tenant, "hq", realms=["hq.example", "straße"])
    before = list(areas.domains.table.by_id)
    with pytest.raises(Conflict):
        await areas.domains.add(areas.tenant, name, realms=realms)
    assert list(areas.domains.table.by_id) == before
    other = await areas.tenancy.ensure_tenant(2, 1)
    assert await areas.domains.add(other, name, realms=realms)


async def test_concurrent_additions_of_one_name(areas: Areas) -> None:
    """If many requests add a domain of the same name at the same time, one succeeds and the others get Conflict."""
    refused = []

    async def add() -> None:
        try:
            await areas.domains.add(areas.tenant, "branch")
        except Conflict as error:
            refused.append(error)

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(add)
    assert (len(refused), len(areas.domains.of_tenant(areas.tenant))) == (9, 2)


async def test_a_mode_change_applies_at_once(areas: Areas) -> None:
    """A change of the mode applies only to the named domains. The fallback action stays the same unless it is given."""
    other = await areas.domains.add(areas.tenant, "branch")
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, Fallback.ALLOW)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    table = areas.domains.table.by_id
    assert (table[areas.domain].mode, table[areas.domain].fallback) == (Mode.ENFORCE, Fallback.ALLOW)
    assert (table[other].mode, table[other].fallback) == (Mode.MONITOR, Fallback.DENY)
    await areas.domains.set_mode([areas.domain, other], Mode.MONITOR)
    assert {domain.mode for domain in areas.domains.table.by_id.values()} == {Mode.MONITOR}


async def test_enforcing_without_a_provider_gives_a_warning(areas: Areas) -> None:
    """Enforce mode without a provider gives a warning. Monitor mode gives none."""
    assert areas.domains.warnings(areas.domains.table.present(areas.domain)) == []
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    assert areas.domains.warnings(areas.domains.table.present(areas.domain)) == [NO_PROVIDER.format("deny")]


async def test_a_domain_is_found_by_name_or_id(areas: Areas) -> None:
    """If several tenants have a domain of the name, the installation finds it only by its ID."""
    other = await areas.tenancy.ensure_tenant(2, 1)
    theirs = await areas.domains.add(other, "CORP")
    assert areas.domains.named(areas.tenant, "Corp").id == areas.domains.named(areas.tenant, str(areas.domain)).id
    assert areas.domains.named(other, "corp").id == areas.domains.anywhere(str(theirs)).id == theirs
    for name in (str(theirs), "none", ""):
        with pytest.raises(NotFound):
            areas.domains.named(areas.tenant, name)
    with pytest.raises(NotFound, match="give the id of the domain instead"):
        areas.domains.anywhere("corp")
    with pytest.raises(NotFound):
        areas.domains.anywhere("none")


async def test_a_number_finds_the_domain_with_that_id(areas: Areas) -> None:
    """A number finds the domain with that ID, even if a domain of another tenant has the number as its name."""
    other = await areas.tenancy.ensure_tenant(2, 1)
    theirs = await areas.domains.add(other, str(areas.domain))
    assert areas.domains.anywhere(str(areas.domain)).id == areas.domain
    assert areas.domains.named(other, str(areas.domain)).id == areas.domains.anywhere(str(theirs)).id == theirs


async def test_the_mode_is_a_metric(areas: Areas) -> None:
    """The metric of a domain is 1 for its current mode and 0 for the other mode."""
    for mode in Mode:
        await areas.domains.set_mode([areas.domain], mode)
        shown = {each: areas.sample("sallyport_enforcement_mode", domain=str(areas.domain), mode=each) for each in Mode}
        assert shown == {each: float(each is mode) for each in Mode}


async def test_disconnect_on_revoke_applies_at_once(areas: Areas) -> None:
    """The setting applies as soon as `update` returns. If it was changed, the audit trail has an entry."""
    assert not areas.domains.table.by_id[areas.domain].disconnect_on_revoke
    for disconnects in (True, True, False):
        await areas.domains.update(areas.domain, Update(settings={"disconnect_on_revoke": disconnects}))
        assert areas.domains.table.by_id[areas.domain].disconnect_on_revoke is disconnects
    sql = "select changes from audit_trail where action = 'domain.set' order by id"
    entries = await areas.store.read(lambda tx: tx.rows(sql))
    assert entries == [('{"disconnectOnRevoke": [false, true]}',), ('{"disconnectOnRevoke": [true, false]}',)]
