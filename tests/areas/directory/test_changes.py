"""LDIF changes of single entries: what they write, and how they continue after a stop if they need several
transactions.
"""

from itertools import pairwise

import pytest
import trio

from sallyport.areas.directory.imports.lines import key_of
from sallyport.areas.directory.stored import memberships
from sallyport.store.model import ListQuery
from tests.areas import Areas
from tests.areas.directory.world import DN, at_work, counts, group, groups_of, imported, members, names, person, queue


async def test_a_modification_changes_the_members_of_a_group(areas: Areas) -> None:
    """A modification adds and deletes members. A modification of an unknown entry is reported as an error with its DN,
    and the others are applied.
    """
    await imported(areas, person("ann") + person("ben") + group("ops", DN.format("ann")))
    change = f"dn: cn=ops,dc=x\nchangetype: modify\nadd: member\nmember: {DN.format('ben')}\n-\n"
    change += f"delete: member\nmember: {DN.format('ann')}\n-\n\n"
    change += "dn: cn=none,dc=x\nchangetype: modify\nreplace: cn\ncn: x\n-\n"
    job = await imported(areas, change)
    assert counts(job) == (2, 0, 1, 0, 0, 1) and job.errors == '[["cn=none,dc=x", "no entry has this name"]]'
    assert (await groups_of(areas, "ann"), await groups_of(areas, "ben")) == (frozenset(), {"ops"})


async def test_a_change_of_many_members_continues_after_a_stop(areas: Areas) -> None:
    """Each transaction writes only a limited number of members. After a stop, the result is the same as without one."""
    everybody = [DN.format(f"u{n}") for n in range(1500)]
    await imported(areas, group("all", *everybody[:1000]))
    steps = (("delete", everybody[:300]), ("add", everybody[900:]), ("delete", everybody[1400:1450]))
    change = "dn: cn=all,dc=x\nchangetype: modify\n"
    for step, people in steps:
        change += f"{step}: member\n" + "".join(f"member: {dn}\n" for dn in people) + "-\n"
    added = "select count(*) from directory_members where told = 0"
    job_id, seen = await queue(areas, change), [1000]
    while (job := await areas.directory.jobs.get(job_id)).state != "DONE":
        async with at_work(areas):
            with trio.fail_after(60):
                while (count := await areas.store.read(lambda tx: tx.value(int, added) or 0)) == seen[-1]:
                    await trio.sleep(0.001)
                    if (await areas.directory.jobs.get(job_id)).state == "DONE":
                        break
        seen.append(count)
        assert job.state != "FAILED", job.message
    assert counts(job) == (1, 0, 1, 0, 0, 0)
    assert len(seen) > 2 and all(abs(after - before) < 1000 for before, after in pairwise(seen))
    left = await areas.store.read(lambda tx: memberships.stated_members(tx, 1, key_of("cn=all,dc=x")))
    assert left == {key_of(dn) for dn in (*everybody[300:1400], *everybody[1450:])}


async def test_member_and_member_uid_change_separately(areas: Areas) -> None:
    """Replacing or deleting the values of `member` keeps those of `memberUid`, and the other way round."""
    people = person("ann") + person("ben") + person("cid")
    ops = group("ops", DN.format("ann")).rstrip("\n") + "\nmemberUid: ben\n\n"

    async def inside(*steps: str) -> list[str]:
        await imported(areas, people + ops)
        await imported(areas, "dn: cn=ops,dc=x\nchangetype: modify\n" + "".join(f"{step}\n-\n" for step in steps))
        found, _ = await areas.directory.directories.groups(ListQuery(areas.domain, 0, 1), "")
        users, _ = await areas.directory.directories.users_of_group(found[0].id, ListQuery(areas.domain, 0, 9), "")
        return [user.name for user in users]

    assert await inside(f"replace: member\nmember: {DN.format('cid')}") == ["ben", "cid"]
    assert await inside("delete: member") == ["ben"]
    assert await inside("replace: memberUid\nmemberUid: cid") == ["ann", "cid"]
    assert await inside("add: memberUid\nmemberUid: cid", "replace: member") == ["ben", "cid"]
    assert await inside("delete: memberUid\nmemberUid: ben") == ["ann"]


async def test_a_renaming_to_a_taken_name_is_an_error(areas: Areas) -> None:
    """If a person or a group is renamed to the name of another entry, only this renaming fails, also on the second
    import.
    """
    unit = "dn: ou=rest,dc=x\nobjectClass: organizationalUnit\nou: rest\n\n"
    everybody = person("ann") + person("ben") + group("ops") + group("vpn") + unit

    def renamed(dn: str, name: str, superior: str = "dc=x") -> str:
        return f"dn: {dn}\nchangetype: modrdn\nnewrdn: {name}\ndeleteoldrdn: 1\nnewsuperior: {superior}\n\n"

    taken = renamed(DN.format("ann"), "uid=ben", "ou=People,dc=x") + renamed("cn=ops,dc=x", "CN=VPN")
    taken += renamed("cn=ops,dc=x", "ou=rest") + renamed(DN.format("ann"), "cn=vpn")
    for _ in range(2):
        job = await imported(areas, everybody + taken + renamed(DN.format("ben"), "UID=Ben", "ou=People,dc=x"))
        assert job.failed == 4 and job.errors.count("another entry has the new name") == 4
        assert [name.lower() for name in await names(areas)] == ["ann", "ben"] and set(await members(areas)) == {
            "ops",
            "vpn",
        }


def unit(dn: str) -> str:
    """Return the record of an organizational unit."""
    return f"dn: {dn}\nobjectClass: organizationalUnit\nou: {dn.partition(',')[0][3:]}\n\n"


async def ids_by_dn(areas: Areas, table: str) -> dict[str, int]:
    """Return the IDs of the rows of a table, by DN."""
    rows = await areas.store.read(lambda tx: tx.rows(f"select dn, id from {table} order by id"))  # noqa: S608
    return {str(dn): int(str(row_id)) for dn, row_id in rows}


async def test_renaming_a_unit_renames_all_entries_below_it(areas: Areas) -> None:
    """Entries below the unit are renamed, whatever the spelling of their DN is. They keep their IDs and groups. An
    import with the new names then changes nothing.
    """
    inner = group("vpn", DN.format("ann")).replace("dc=x", "ou=People,dc=x", 1)
    everybody = person("ann") + person("ben", ou="Sales, OU = people ") + person("carl", ou="Peoples") + inner
    units = unit("ou=People,dc=x") + unit("ou=Sales,ou=People,dc=x")
    await imported(areas, units + everybody + group("ops", DN.format("ann"), "cn=vpn,ou=people,dc=x"))
    before = await ids_by_dn(areas, "directory_users")
    change = "dn: OU=people,dc=x\nchangetype: {}\nnewrdn: ou=Staff\ndeleteoldrdn: 1\nnewsuperior: o=y\n\n"
    job = await imported(areas, change.format("moddn"))
    assert counts(job) == (1, 0, 5, 0, 0, 0)
    people = ["uid=ann,ou=Staff,o=y", "uid=ben,ou=Sales,ou=Staff,o=y", "uid=carl,ou=Peoples,dc=x"]
    assert await ids_by_dn(areas, "directory_users") == dict(zip(people, before.values(), strict=True))
    assert set(await ids_by_dn(areas, "directory_units")) == {"ou=Staff,o=y", "ou=Sales,ou=Staff,o=y"}
    assert await groups_of(areas, "ann") == {"vpn", "ops"}
    again = (units + everybody.partition("dn: uid=carl")[0]).replace(", OU = people ", ",ou=People")
    job = await imported(areas, again.replace("ou=People,dc=x", "ou=Staff,o=y").replace("ou: People", "ou: Staff"))
    assert counts(job) == (4, 0, 0, 0, 4, 0)


async def test_an_impossible_renaming_of_a_unit_is_refused(areas: Areas) -> None:
    """A unit cannot be renamed to the name of another entry or moved below itself. If the new name of an entry below it
    is taken, that entry keeps its name and is reported.
    """
    await imported(areas, unit("ou=People,dc=x") + unit("ou=Staff,dc=x") + person("ann") + person("ben"))
    change = "dn: ou=People,dc=x\nchangetype: modrdn\nnewrdn: ou={}\ndeleteoldrdn: 1\nnewsuperior: {}\n\n"
    ways = change.format("staff", "dc=x") + change.format("a", "OU=People,dc=x") + change.format("People", "x")
    job = await imported(areas, ways + person("ben", ou="Team") + change.format("Team", "dc=x"))
    assert counts(job) == (5, 1, 2, 0, 0, 4)
    for what in ("another entry has the new name", "a unit cannot be moved into itself", "not a distinguished name"):
        assert what in job.errors
    assert [*await ids_by_dn(areas, "directory_users")] == [
        "uid=ann,ou=Team,dc=x",
        DN.format("ben"),
        "uid=ben,ou=Team,dc=x",
    ]


async def test_a_renaming_continues_after_a_stop(areas: Areas) -> None:
    """After a stop the renaming continues, and each entry below the unit is renamed and counted once."""
    await imported(areas, unit("ou=People,dc=x") + "".join(person(f"u{n}") for n in range(60)))
    job_id = await queue(areas, "dn: ou=People,dc=x\nchangetype: modrdn\nnewrdn: ou=Staff\ndeleteoldrdn: 1\n")
    stops = 0
    while (job := await areas.directory.jobs.get(job_id)).state != "DONE":
        before = job.updated
        async with at_work(areas):
            with trio.move_on_after(60):
                while job.state != "DONE" and job.updated == before:
                    await trio.sleep(0.001)
                    job = await areas.directory.jobs.get(job_id)
        assert job.state != "FAILED", job.message
        stops += 1
    assert stops > 1 and job.updated == 61
    assert all(dn.endswith(",ou=Staff,dc=x") for dn in await ids_by_dn(areas, "directory_users"))


async def test_only_a_replaced_cn_renames_a_group(areas: Areas) -> None:
    """Adding a second cn does not rename a group. Replacing the cn or changing the DN does."""
    change = "dn: cn=ops,dc=x\nchangetype: modify\n{step}: cn\ncn: {name}\n-\n\n"
    await imported(areas, group("ops") + change.format(step="add", name="operators"))
    assert set(await members(areas)) == {"ops"}
    await imported(areas, change.format(step="replace", name="operators"))
    assert set(await members(areas)) == {"operators"}
    await imported(areas, "dn: cn=ops,dc=x\nchangetype: modrdn\nnewrdn: cn=vpn\ndeleteoldrdn: 1\n\n")
    assert set(await members(areas)) == {"vpn"}


@pytest.mark.parametrize(
    "disabled", ["pwdAccountLockedTime: 000001010000Z", "userAccountControl: 514", "nsAccountLock: TRUE"]
)
async def test_a_change_of_other_attributes_keeps_an_account_disabled(areas: Areas, disabled: str) -> None:
    """A disabled account stays disabled when another status attribute changes."""
    change = f"dn: {DN.format('ann')}\nchangetype: modify\nadd: shadowExpire\nshadowExpire: 99999\n-\n\n"
    await imported(areas, person("ann", disabled) + change)
    users, _ = await areas.directory.directories.users(ListQuery(areas.domain, 0, 10), "")
    assert [user.status for user in users] == ["disabled"]
