"""Entries that get the distinguished name of another entry, because accounts or groups were created again, renamed or
swapped. A membership stays with the entry for which it was given.
"""

import pytest
from pydantic import TypeAdapter

from sallyport.areas.directory.runs.bodies import AnyEntry
from tests.areas import Areas
from tests.areas.directory.world import at_work, group, groups_of, imported, members, names, over, person

ANN, BOB = "uid=ann,ou=People,dc=x", "uid=bob,ou=People,dc=x"
OPS, OLD = "memberOf: cn=ops,dc=x", "memberOf: cn=old,dc=x"
FIRST, SECOND = (f"entryUUID: 00000000-0000-4000-8000-00000000000{digit}" for digit in "12")


def known(record: str, identity: str) -> str:
    """Return a record that has a permanent identifier."""
    return record.replace("objectClass", f"{identity}\nobjectClass", 1)


@pytest.mark.parametrize("groups_first", [True, False])
async def test_a_recreated_account_has_the_groups_of_its_name(areas: Areas, groups_first: bool) -> None:
    """An account that is created again under the same name is in the groups of its memberOf, and in the groups that
    have it as a member.
    """

    def ldif(identity: str) -> str:
        parts = [group("ops"), group("staff", ANN), known(person("ann", OPS), identity)]
        return person("bob") + "".join(parts if groups_first else reversed(parts))

    await imported(areas, ldif(FIRST), complete=True)
    await imported(areas, ldif(SECOND), complete=True)
    assert sorted(await names(areas)) == ["ann", "bob"]
    assert await groups_of(areas, "ann") == {"ops", "staff"}


async def test_a_recreated_group_has_its_members(areas: Areas) -> None:
    """A group that is created again under the same name has its members, even after the former group is removed."""
    await imported(areas, person("ann") + person("bob", OPS) + known(group("ops", ANN), FIRST), complete=True)
    await imported(areas, person("ann") + person("bob", OPS) + known(group("ops", ANN), SECOND), complete=True)
    assert await members(areas) == {"ops": 2}
    assert await groups_of(areas, "ann") == await groups_of(areas, "bob") == {"ops"}


async def test_a_new_person_with_a_former_name(areas: Areas) -> None:
    """If a person is renamed and a new person gets the old name, neither person is in the groups of the other."""
    groups = group("ops") + group("old") + group("staff", ANN)
    await imported(areas, groups + known(person("ann", OLD), FIRST), complete=True)
    taken = known(person("ann", OPS), SECOND) + known(person("anna", OLD), FIRST)
    renamed = group("ops") + group("old") + group("staff", ANN.replace("ann", "anna"))
    await imported(areas, taken + renamed, complete=True)
    assert await groups_of(areas, "ann") == {"ops"}
    assert await groups_of(areas, "anna") == {"old", "staff"}


async def test_memberships_follow_a_renamed_person(areas: Areas) -> None:
    """If the groups are not read again, memberships stay with the renamed person."""
    await imported(areas, group("staff", ANN) + known(person("ann"), FIRST))
    await imported(areas, known(person("ann"), SECOND) + known(person("anna"), FIRST))
    assert (await groups_of(areas, "ann"), await groups_of(areas, "anna")) == (set(), {"staff"})


async def test_swapped_names_with_the_groups(areas: Areas) -> None:
    """If two accounts and two groups swap their names and the groups are read again, the memberships follow the
    names.
    """

    def ldif(ann: str, bob: str, ops: str, old: str) -> str:
        people = known(person("ann", OPS), ann) + known(person("bob", OLD), bob)
        return people + known(group("ops", ANN), ops) + known(group("old", BOB), old)

    await imported(areas, ldif(FIRST, SECOND, FIRST, SECOND), complete=True)
    await imported(areas, ldif(SECOND, FIRST, SECOND, FIRST), complete=True)
    assert (await groups_of(areas, "ann"), await groups_of(areas, "bob")) == ({"ops"}, {"old"})
    assert await members(areas) == {"ops": 1, "old": 1}


async def test_swapped_names_without_the_groups(areas: Areas) -> None:
    """In changes of Active Directory, two accounts may swap their names without their groups being read again. Then the
    memberships stay with the accounts. The same holds for two groups and their members.
    """
    people = known(person("ann"), FIRST) + known(person("bob"), SECOND) + person("cid", OPS) + person("dan", OLD)
    groups = [known(group(name, *of), by) for name, of, by in (("ops", [ANN], FIRST), ("old", [BOB], SECOND))]
    await imported(areas, people + "".join(groups))
    await imported(areas, known(person("bob"), FIRST) + known(person("ann"), SECOND))
    assert (await groups_of(areas, "bob"), await groups_of(areas, "ann")) == ({"ops"}, {"old"})
    await imported(areas, known(group("old", BOB), FIRST) + known(group("ops", ANN), SECOND))
    assert (await groups_of(areas, "bob"), await groups_of(areas, "ann")) == ({"old"}, {"ops"})
    assert (await groups_of(areas, "cid"), await groups_of(areas, "dan")) == ({"old"}, {"ops"})
    assert await members(areas) == {"ops": 2, "old": 2}


async def test_the_name_of_a_removed_person(areas: Areas) -> None:
    """If a person gets the name of a removed person, memberships under that name belong to the new holder of the
    name.
    """
    await imported(areas, group("staff", BOB) + known(person("ann"), FIRST) + known(person("bob"), SECOND))
    await imported(areas, known(person("bob"), FIRST))
    assert await names(areas) == ["bob", "bob"]
    both = group("staff", BOB) + known(person("bob"), FIRST) + person("cid") + person("dan")
    await imported(areas, both, complete=True)
    assert await groups_of(areas, "bob") == {"staff"}


async def test_a_new_group_with_a_former_name(areas: Areas) -> None:
    """If a group is renamed and a new group gets the old name, each group has its own members."""
    people = person("ann") + person("bob")
    await imported(areas, people + known(group("ops", ANN), FIRST), complete=True)
    taken = known(group("ops", BOB), SECOND) + known(group("old", ANN), FIRST)
    await imported(areas, people + taken, complete=True)
    assert (await groups_of(areas, "ann"), await groups_of(areas, "bob")) == ({"old"}, {"ops"})


async def test_a_deletion_removes_the_current_holder_of_a_name(areas: Areas) -> None:
    """A deletion by name removes the entry that has the name now, not the entry that had it before."""
    await imported(areas, known(person("ann", "displayName: Before"), FIRST))
    await imported(areas, known(person("ann", "displayName: Now"), SECOND))
    await imported(areas, f"dn: {ANN}\nchangetype: delete\n")
    left = await areas.store.read(lambda tx: tx.rows("select display_name from directory_users"))
    assert left == [("Before",)]


async def send_run(areas: Areas, *entries: dict[str, object]) -> None:
    """Send a complete run as an agent, and wait until it is imported."""
    areas.clock.now += 1
    runs, domain = areas.directory.runs, areas.domain
    begun = await runs.begin(domain, "hq", None)
    several = TypeAdapter(list[AnyEntry]).validate_python(list(entries))
    following = await runs.take(domain, begun.run_id, begun.sequence, several)
    async with at_work(areas):
        job = await runs.finish(domain, begun.run_id, following, "", complete=True)
        assert (await over(areas, job)).state == "DONE"


async def test_an_unchanged_group_keeps_its_members(areas: Areas) -> None:
    """A group keeps its members if it is sent without them. Active Directory sends it so when a member is renamed."""
    ann: dict[str, object] = {"kind": "person", "externalId": "1", "dn": ANN, "name": "ann"}
    ops = {"externalId": "2", "dn": "cn=ops,dc=x"}
    await send_run(areas, ann, {"kind": "group", **ops, "name": "ops", "members": [ANN]})
    anna = {**ann, "dn": ANN.replace("ann", "anna"), "name": "anna"}
    await send_run(areas, {"kind": "unchanged", **ops}, {**ann, "externalId": "3"}, anna)
    assert (await groups_of(areas, "ann"), await groups_of(areas, "anna")) == (set(), {"ops"})
