"""Entries that come to another's distinguished name: accounts and groups made anew, renamed, or the one for the other.
What an entry and what others say of its memberships stays with who is meant."""

import pytest
from pydantic import TypeAdapter

from sallyport.directory.run_bodies import AnyEntry
from tests.areas import Areas
from tests.directory.world import at_work, group, groups_of, imported, members, names, over, person

ANN, BOB = "uid=ann,ou=People,dc=x", "uid=bob,ou=People,dc=x"
OPS, OLD = "memberOf: cn=ops,dc=x", "memberOf: cn=old,dc=x"
FIRST, SECOND = (f"entryUUID: 00000000-0000-4000-8000-00000000000{digit}" for digit in "12")


def known(record: str, identity: str) -> str:
    """A record with what names it for good."""
    return record.replace("objectClass", f"{identity}\nobjectClass", 1)


@pytest.mark.parametrize("groups_first", [True, False])
async def test_an_account_made_anew(areas: Areas, groups_first: bool) -> None:
    """Under the same name it has the groups that it names, and those that name it."""

    def ldif(identity: str) -> str:
        parts = [group("ops"), group("staff", ANN), known(person("ann", OPS), identity)]
        return person("bob") + "".join(parts if groups_first else reversed(parts))

    await imported(areas, ldif(FIRST), complete=True)
    await imported(areas, ldif(SECOND), complete=True)
    assert sorted(await names(areas)) == ["ann", "bob"]
    assert await groups_of(areas, "ann") == {"ops", "staff"}


async def test_a_group_made_anew(areas: Areas) -> None:
    """It keeps its members when the one before it is removed."""
    await imported(areas, person("ann") + person("bob", OPS) + known(group("ops", ANN), FIRST), complete=True)
    await imported(areas, person("ann") + person("bob", OPS) + known(group("ops", ANN), SECOND), complete=True)
    assert await members(areas) == {"ops": 2}
    assert await groups_of(areas, "ann") == await groups_of(areas, "bob") == {"ops"}


async def test_a_name_that_is_taken_over(areas: Areas) -> None:
    """When a person is renamed and a new person gets the old name, neither has the other's groups."""
    groups = group("ops") + group("old") + group("staff", ANN)
    await imported(areas, groups + known(person("ann", OLD), FIRST), complete=True)
    taken = known(person("ann", OPS), SECOND) + known(person("anna", OLD), FIRST)
    renamed = group("ops") + group("old") + group("staff", ANN.replace("ann", "anna"))
    await imported(areas, taken + renamed, complete=True)
    assert await groups_of(areas, "ann") == {"ops"}
    assert await groups_of(areas, "anna") == {"old", "staff"}


async def test_a_change_without_the_groups(areas: Areas) -> None:
    """Without a reading of the groups, memberships follow the renamed person."""
    await imported(areas, group("staff", ANN) + known(person("ann"), FIRST))
    await imported(areas, known(person("ann"), SECOND) + known(person("anna"), FIRST))
    assert (await groups_of(areas, "ann"), await groups_of(areas, "anna")) == (set(), {"staff"})


async def test_names_that_are_swapped(areas: Areas) -> None:
    """Two accounts, or two groups, that get each other's names."""

    def ldif(ann: str, bob: str, ops: str, old: str) -> str:
        people = known(person("ann", OPS), ann) + known(person("bob", OLD), bob)
        return people + known(group("ops", ANN), ops) + known(group("old", BOB), old)

    await imported(areas, ldif(FIRST, SECOND, FIRST, SECOND), complete=True)
    await imported(areas, ldif(SECOND, FIRST, SECOND, FIRST), complete=True)
    assert (await groups_of(areas, "ann"), await groups_of(areas, "bob")) == ({"ops"}, {"old"})
    assert await members(areas) == {"ops": 1, "old": 1}


async def test_names_that_are_swapped_without_the_groups(areas: Areas) -> None:
    """Nor do two mix up what their groups say of them, where these are not told of, as in changes of Active Directory;
    nor two groups what their members say."""
    people = known(person("ann"), FIRST) + known(person("bob"), SECOND) + person("cid", OPS) + person("dan", OLD)
    groups = [known(group(name, *of), by) for name, of, by in (("ops", [ANN], FIRST), ("old", [BOB], SECOND))]
    await imported(areas, people + "".join(groups))
    await imported(areas, known(person("bob"), FIRST) + known(person("ann"), SECOND))
    assert (await groups_of(areas, "bob"), await groups_of(areas, "ann")) == ({"ops"}, {"old"})
    await imported(areas, known(group("old", BOB), FIRST) + known(group("ops", ANN), SECOND))
    assert (await groups_of(areas, "bob"), await groups_of(areas, "ann")) == ({"old"}, {"ops"})
    assert (await groups_of(areas, "cid"), await groups_of(areas, "dan")) == ({"old"}, {"ops"})
    assert await members(areas) == {"ops": 2, "old": 2}


async def test_a_name_that_somebody_gone_had(areas: Areas) -> None:
    """When a person gets the name of a removed one, the memberships of the name belong to the new holder."""
    await imported(areas, group("staff", BOB) + known(person("ann"), FIRST) + known(person("bob"), SECOND))
    await imported(areas, known(person("bob"), FIRST))
    assert await names(areas) == ["bob", "bob"]
    both = group("staff", BOB) + known(person("bob"), FIRST) + person("cid") + person("dan")
    await imported(areas, both, complete=True)
    assert await groups_of(areas, "bob") == {"staff"}


async def test_a_group_name_that_is_taken_over(areas: Areas) -> None:
    """A group is renamed, and a new one has the old name: each has its own members."""
    people = person("ann") + person("bob")
    await imported(areas, people + known(group("ops", ANN), FIRST), complete=True)
    taken = known(group("ops", BOB), SECOND) + known(group("old", ANN), FIRST)
    await imported(areas, people + taken, complete=True)
    assert (await groups_of(areas, "ann"), await groups_of(areas, "bob")) == ({"old"}, {"ops"})


async def test_who_is_meant_by_a_taken_name(areas: Areas) -> None:
    """A deletion by name removes the present holder of the name, not the former one."""
    await imported(areas, known(person("ann", "displayName: Before"), FIRST))
    await imported(areas, known(person("ann", "displayName: Now"), SECOND))
    await imported(areas, f"dn: {ANN}\nchangetype: delete\n")
    left = await areas.store.read(lambda tx: tx.rows("select display_name from directory_users"))
    assert left == [("Before",)]


async def told(areas: Areas, *entries: dict[str, object]) -> None:
    """Send a complete reading of an agent."""
    areas.clock.now += 1
    runs, domain = areas.directory.runs, areas.domain
    begun = await runs.begin(domain, "hq", None)
    several = TypeAdapter(list[AnyEntry]).validate_python(list(entries))
    following = await runs.take(domain, begun.run_id, begun.sequence, several)
    async with at_work(areas):
        job = await runs.finish(domain, begun.run_id, following, "", complete=True)
        assert (await over(areas, job)).state == "DONE"


async def test_a_group_that_has_not_changed(areas: Areas) -> None:
    """A group that is sent without its members, as Active Directory does when one is renamed, keeps its members."""
    ann: dict[str, object] = {"kind": "person", "externalId": "1", "dn": ANN, "name": "ann"}
    ops = {"externalId": "2", "dn": "cn=ops,dc=x"}
    await told(areas, ann, {"kind": "group", **ops, "name": "ops", "members": [ANN]})
    anna = {**ann, "dn": ANN.replace("ann", "anna"), "name": "anna"}
    await told(areas, {"kind": "unchanged", **ops}, {**ann, "externalId": "3"}, anna)
    assert (await groups_of(areas, "ann"), await groups_of(areas, "anna")) == (set(), {"ops"})
