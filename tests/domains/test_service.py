"""The rules of domains."""

import pytest
import trio

from sallyport.base.errors import Conflict, NotFound
from sallyport.domains.domain import Fallback, FirstFactor, Mode
from sallyport.domains.repo import Update
from sallyport.domains.service import NO_PROVIDER
from tests.areas import Areas


async def test_a_domain_begins_in_monitor_mode(areas: Areas) -> None:
    """active, deny, local, without realms; it is there when `add` returns."""
    domain_id = await areas.domains.add(areas.tenant, "branch")
    domain = areas.domains.table.by_id[domain_id]
    assert (domain.name, domain.tenant_id, domain.mode, domain.fallback) == ("branch", areas.tenant, "monitor", "deny")
    assert (domain.first_factor, domain.status, domain.realms) == (FirstFactor.LOCAL, "active", ())
    assert areas.domains.tenant_of(domain.id) == areas.tenant
    assert areas.domains.tenant_of(99) is None


async def test_what_is_given_is_kept(areas: Areas) -> None:
    """Every setting, for this process and for a later start."""
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
    """A name or a realm that another domain of the tenant has, in any case, is a Conflict; another tenant may."""
    await areas.domains.add(areas.tenant, "hq", realms=["hq.example", "straße"])
    before = list(areas.domains.table.by_id)
    with pytest.raises(Conflict):
        await areas.domains.add(areas.tenant, name, realms=realms)
    assert list(areas.domains.table.by_id) == before
    other = await areas.tenancy.ensure_tenant(2, 1)
    assert await areas.domains.add(other, name, realms=realms)


async def test_adding_the_same_at_the_same_time(areas: Areas) -> None:
    """One of many concurrent requests succeeds; the others get Conflict."""
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


async def test_a_mode_holds_when_it_returns(areas: Areas) -> None:
    """For the domains that are named alone; the fallback action stays unless it is given."""
    other = await areas.domains.add(areas.tenant, "branch")
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, Fallback.ALLOW)
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    table = areas.domains.table.by_id
    assert (table[areas.domain].mode, table[areas.domain].fallback) == (Mode.ENFORCE, Fallback.ALLOW)
    assert (table[other].mode, table[other].fallback) == (Mode.MONITOR, Fallback.DENY)
    await areas.domains.set_mode([areas.domain, other], Mode.MONITOR)
    assert {domain.mode for domain in areas.domains.table.by_id.values()} == {Mode.MONITOR}


async def test_enforcing_without_a_provider_is_warned_about(areas: Areas) -> None:
    """In enforce mode alone."""
    assert areas.domains.warnings(areas.domain) == []
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    assert areas.domains.warnings(areas.domain) == [NO_PROVIDER.format("deny")]


async def test_finding_by_name_or_id(areas: Areas) -> None:
    """In a tenant and in the installation; a name that several tenants have needs the id."""
    other = await areas.tenancy.ensure_tenant(2, 1)
    theirs = await areas.domains.add(other, "CORP")
    assert areas.domains.named(areas.tenant, "Corp").id == areas.domains.named(areas.tenant, str(areas.domain)).id
    assert areas.domains.named(other, "corp").id == areas.domains.anywhere(str(theirs)).id == theirs
    for name in (str(theirs), "none", ""):
        with pytest.raises(NotFound):
            areas.domains.named(areas.tenant, name)
    with pytest.raises(NotFound, match="name it by its id"):
        areas.domains.anywhere("corp")
    with pytest.raises(NotFound):
        areas.domains.anywhere("none")


async def test_a_domain_that_is_called_like_an_id_hides_no_other(areas: Areas) -> None:
    """A number names the domain that has it as its id, whatever another tenant calls a domain of its own."""
    other = await areas.tenancy.ensure_tenant(2, 1)
    theirs = await areas.domains.add(other, str(areas.domain))
    assert areas.domains.anywhere(str(areas.domain)).id == areas.domain
    assert areas.domains.named(other, str(areas.domain)).id == areas.domains.anywhere(str(theirs)).id == theirs


async def test_the_mode_is_a_metric(areas: Areas) -> None:
    """1 for the mode in force, 0 for the other, by the domain's id."""
    for mode in Mode:
        await areas.domains.set_mode([areas.domain], mode)
        shown = {each: areas.sample("sallyport_enforcement_mode", domain=str(areas.domain), mode=each) for each in Mode}
        assert shown == {each: float(each is mode) for each in Mode}


async def test_disconnecting_who_loses_access(areas: Areas) -> None:
    """Holds when it returns, and is in the audit trail where it changes anything."""
    assert not areas.domains.table.by_id[areas.domain].disconnect_on_revoke
    for disconnects in (True, True, False):
        await areas.domains.update(areas.domain, Update(disconnect_on_revoke=disconnects))
        assert areas.domains.table.by_id[areas.domain].disconnect_on_revoke is disconnects
    sql = "select changes from audit_trail where action = 'domain.set' order by id"
    told = await areas.store.read(lambda tx: tx.rows(sql))
    assert told == [('{"disconnectOnRevoke": [false, true]}',), ('{"disconnectOnRevoke": [true, false]}',)]
