"""Entries with many memberships that are renamed: each transaction changes few rows, and no login changes meanwhile."""

import pytest

from sallyport.areas.directory.imports.job import ImportRun
from sallyport.areas.directory.imports.lines import key_of
from sallyport.areas.directory.mappings.mapping import FieldMapping
from sallyport.areas.directory.stored import repo
from sallyport.areas.directory.stored.groups import GROUPS
from sallyport.areas.directory.stored.memberships import MAX_CHANGED
from sallyport.areas.directory.stored.people import PEOPLE
from sallyport.store.model import Tx
from tests.areas import Areas
from tests.areas.directory.world import DN, group, groups_of, imported, members, person

FIRST, SECOND = (f"entryUUID: 00000000-0000-4000-8000-00000000000{digit}" for digit in "12")
MANY = [DN.format(f"u{number}") for number in range(2 * MAX_CHANGED + 50)]
ANN, BOB = DN.format("ann"), DN.format("bob")
OPS, OLD, NEW = (f"cn={name},dc=x" for name in ("ops", "old", "new"))
Rows = frozenset[tuple[object, ...]]


def known(record: str, identity: str) -> str:
    """Return a record that has a permanent identifier."""
    return record.replace("objectClass", f"{identity}\nobjectClass", 1)


async def _rows(areas: Areas) -> Rows:
    sql = "select member_key, group_key, told from directory_members"
    return frozenset(await areas.store.read(lambda tx: tx.rows(sql)))


async def _step(areas: Areas, dn: str, new_dn: str) -> bool:
    """Rename an entry in the memberships, in one transaction at most. Return whether the renaming is complete."""

    def work(tx: Tx) -> bool:
        directory_id = tx.value(int, "select id from directories") or 0
        run = ImportRun(areas.domain, directory_id, 9, False, False, FieldMapping({}), frozenset(), areas.clock.now)
        person = PEOPLE.find(tx, run, dn_key=key_of(dn))
        if person is not None:
            return PEOPLE.rename(tx, run, person, key_of(new_dn))
        group = GROUPS.find(tx, run, dn_key=key_of(dn))
        assert group is not None
        return GROUPS.rename(tx, run, group, key_of(new_dn))

    return await areas.store.write(work)


async def _login_groups(areas: Areas, name: str) -> frozenset[str] | None:
    """Return the groups of a login, without a cache."""

    def look(tx: Tx) -> frozenset[str] | None:
        (found,) = repo.principals(tx, areas.domain, [name])
        return repo.all_groups(tx, found)

    return await areas.store.read(look)


CASES = {
    "members of a group": (known(group("ops", ANN, *MANY), FIRST), OPS, NEW, {"ops"}),
    "groups of a person": (
        "".join(group(f"g{number}", ANN) for number in range(2 * MAX_CHANGED + 50)), ANN, DN.format("anna"),
        {f"g{number}" for number in range(2 * MAX_CHANGED + 50)},
    ),
    "a group in many groups": (
        group("ops", ANN) + "".join(group(f"g{number}", OPS) for number in range(2 * MAX_CHANGED + 50)), OPS, NEW,
        {"ops", *(f"g{number}" for number in range(2 * MAX_CHANGED + 50))},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
async def test_a_long_rename_takes_several_transactions(areas: Areas, case: str) -> None:
    """Each transaction moves at most MAX_CHANGED memberships, and after each the person has the same groups at
    login."""
    ldif, dn, new_dn, groups = CASES[case]
    await imported(areas, person("ann") + ldif)
    areas.clock.now += 1
    before, steps, done = await _rows(areas), 0, False
    while not done:
        done = await _step(areas, dn, new_dn)
        after = await _rows(areas)
        moved, before, steps = after - before, after, steps + 1
        assert len(moved) <= MAX_CHANGED + 2
        assert done or await _login_groups(areas, "ann") == groups
    assert steps == 3
    assert not [row for row in before if row[2] not in (0, 1) or key_of(dn) in row[:2]]


async def test_an_interrupted_rename_is_undone(areas: Areas) -> None:
    """If a job is cancelled during a renaming, the next job first restores the memberships."""
    await imported(areas, person("ann") + known(group("ops", ANN, *MANY), FIRST))
    before = await _rows(areas)
    assert not await _step(areas, OPS, NEW)
    assert await _rows(areas) != before
    await imported(areas, person("bob"))
    assert await _rows(areas) == before


async def test_an_interrupted_rename_continues(areas: Areas) -> None:
    """The import that renames a group with many members completes a renaming that was interrupted."""
    await imported(areas, person("ann") + known(group("ops", ANN, *MANY), FIRST))
    assert not await _step(areas, OPS, NEW)
    await imported(areas, known(group("new", ANN, *MANY), FIRST))
    assert await groups_of(areas, "ann") == {"new"}
    assert {row[1:] for row in await _rows(areas)} == {(key_of(NEW), 0)}


@pytest.mark.parametrize("how", ["modrdn", "shrunk"])
async def test_an_import_renames_a_large_group(areas: Areas, how: str) -> None:
    """A group with many members is renamed by a change of its name, and by an entry that has only few members."""
    await imported(areas, person("ann") + known(group("ops", ANN, *MANY), FIRST))
    renaming = f"dn: {OPS}\nchangetype: modrdn\nnewrdn: cn=new\ndeleteoldrdn: 1\n\n"
    job = await imported(areas, renaming if how == "modrdn" else known(group("new", ANN), FIRST))
    assert job.updated == 1
    assert await groups_of(areas, "ann") == {"new"}
    assert len(await _rows(areas)) == (1 if how == "shrunk" else len(MANY) + 1)


async def test_an_import_renames_people_in_many_groups(areas: Areas) -> None:
    """Among people that are written together, a person in many groups is renamed as well."""
    groups = [f"g{number}" for number in range(2 * MAX_CHANGED + 50)]
    people = known(person("ann"), FIRST) + known(person("bob"), SECOND)
    await imported(areas, people + "".join(group(name, BOB) for name in groups))
    job = await imported(areas, known(person("anna"), FIRST) + known(person("bobby"), SECOND))
    assert (job.updated, job.skipped) == (2, 0)
    assert await groups_of(areas, "bobby") == set(groups)


async def test_large_groups_swap_their_names(areas: Areas) -> None:
    """If two groups with many members swap their names, each keeps the people who list it."""
    listing = "".join(person(f"u{number}", f"memberOf: {OPS}") for number in range(2 * MAX_CHANGED + 50))
    both = person("ann", f"memberOf: {OPS}") + person("bob", f"memberOf: {OLD}")
    await imported(areas, both + listing + known(group("ops"), FIRST) + known(group("old"), SECOND))
    await imported(areas, known(group("old"), FIRST) + known(group("ops"), SECOND))
    assert (await groups_of(areas, "ann"), await groups_of(areas, "bob")) == ({"old"}, {"ops"})
    assert (await members(areas))["old"] == 2 * MAX_CHANGED + 51
    assert {row[2] for row in await _rows(areas)} == {1}
