"""The stored forms for comparison of a domain's name and realms."""

from functools import partial

import pytest

from sallyport.areas.domains import repo
from sallyport.areas.domains.domain import Domain, Mode, folded_realms
from sallyport.areas.domains.repo import Change, Update
from sallyport.base.errors import Conflict
from sallyport.store.model import Tx
from sallyport.store.schema import statements_of, step_files
from sallyport.store.schema.dialect import SqliteDialect
from tests.areas import Areas, only_sqlite
from tests.plans import plans


async def test_names_are_folded_only_when_they_are_written(areas: Areas) -> None:
    """A reload finds a domain by its stored keys, and folds no name."""
    domain_id = await areas.domains.add(areas.tenant, "branch", realms=["branch.example"])
    stored = "update domain_realms set realm_key = 'stored ' || realm_key where domain_id = :d"
    await areas.store.write(lambda tx: tx.execute(stored, d=domain_id))
    await areas.configuration.reload()
    table = areas.domains.table
    assert table.by_id[domain_id].realm_keys == ("stored branch", "stored branch.example")
    assert table.by_realm(areas.tenant, "Stored Branch.example") is table.by_id[domain_id]
    assert table.by_realm(areas.tenant, "branch") is None


async def test_domains_without_stored_keys(areas: Areas) -> None:
    """A domain that a node of an earlier release has added is found by its name and realms. Its next change stores its
    keys."""
    domain_id = await areas.domains.add(areas.tenant, "branch", realms=["BR"])
    await areas.store.write(lambda tx: tx.execute("delete from domain_realms where domain_id = :d", d=domain_id))
    await areas.configuration.reload()
    table = areas.domains.table
    assert table.by_realm(areas.tenant, "br") is table.by_realm(areas.tenant, "BRANCH") is table.by_id[domain_id]
    await areas.domains.update(domain_id, Update(add_realms=("new",)))
    with pytest.raises(Conflict):
        await areas.domains.add(areas.tenant, "br")


async def test_equal_realms_of_one_domain(areas: Areas) -> None:
    """A domain may have realms that differ only in case. Each of them has a stored key."""
    domain_id = await areas.domains.add(areas.tenant, "branch", realms=["Branch", "BRANCH", "BRANCH"])
    sql = "select realm, realm_key from domain_realms where domain_id = :d order by realm"
    rows = await areas.store.read(lambda tx: tx.rows(sql, d=domain_id))
    assert rows == [("BRANCH", "branch"), ("Branch", "branch"), ("branch", "branch")]


async def test_a_removed_domain_frees_its_realms(areas: Areas) -> None:
    """The realms of a removed domain can be used again, also if a node of an earlier release has removed it."""
    for number in range(2):
        domain_id = await areas.domains.add(areas.tenant, "branch", realms=["branch.example"])
        if number:
            await areas.removal.remove(domain_id)
        else:
            old = "update domains set removed_at = 1, name_key = ' ', realms = '' where id = :d"
            await areas.store.write(lambda tx, d=domain_id, sql=old: tx.execute(sql, d=d))  # type: ignore[misc]
            await areas.configuration.reload()
    assert await areas.domains.add(areas.tenant, "branch", realms=["branch.example"])


async def test_an_upgrade_stores_the_keys(areas: Areas) -> None:
    """The step of the schema stores the keys of all realms, whatever characters they contain, but not those of removed
    domains."""
    for number, name in enumerate(('Say "Hi"', "BACK\\SLASH", "removed")):
        domain_id = await areas.domains.add(
            areas.tenant, name, realms=[f"Zürich {number}", "STRASSE", "Strasse"][:number]
        )
    await areas.removal.remove(domain_id)
    sql = "select domain_id, realm, realm_key, tenant_id from domain_realms order by domain_id, realm"
    before = await areas.store.read(lambda tx: tx.rows(sql))
    (step,) = [each for each in step_files("m", has_nodes=False) if each.topic == "domain_realms"]
    *_, fill = statements_of(step.file, SqliteDialect())

    def again(tx: Tx) -> None:
        tx.execute("delete from domain_realms where domain_id >= 0")
        tx.execute(fill)

    await areas.store.write(again)
    assert await areas.store.read(lambda tx: tx.rows(sql)) == before
    assert ('Say "Hi"', 'say "hi"') in [row[1:3] for row in before]


@only_sqlite
async def test_a_change_reads_one_domain(areas: Areas) -> None:
    """A change of a domain finds rows of domains by an index, and does not read the domains of other tenants."""
    domain_id = await areas.domains.add(areas.tenant, "branch", realms=["BR"])
    keys = folded_realms(["new", "other"])

    def add(tx: Tx) -> None:
        with pytest.raises(Conflict):
            repo.add(tx, Domain(0, areas.tenant, "new", realms=("br",)), {**keys, "br": "br"}, 1)

    def update(tx: Tx) -> None:
        repo.update(tx, domain_id, Update(name="new", add_realms=("other",)), keys)

    def switch(tx: Tx) -> None:
        repo.states(tx, [domain_id])
        repo.set_mode(tx, [domain_id], Change(Mode.ENFORCE), 1)

    for work in (add, update, switch, partial(repo.find, domain_id=domain_id)):
        found = plans(areas.store.path, work)
        assert found
        assert [plan for plan in found if "SCAN domain" in plan] == []
