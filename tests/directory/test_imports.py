"""Imports: what they write, how they go on after a stop, and how they end."""

import time
from functools import partial
from itertools import pairwise

import pytest
import trio

from sallyport.base.errors import Conflict
from sallyport.directory.entries import edges
from sallyport.directory.entries.model import Counts, Run
from sallyport.directory.imports import applier
from sallyport.directory.imports import repo as jobs_repo
from sallyport.directory.imports.lines import key_of
from sallyport.directory.imports.service import MOST_WAITING
from sallyport.directory.mappings.model import FieldMapping
from sallyport.store.model import Tx
from sallyport.store.search import Stretch
from tests.areas import Areas
from tests.directory.world import at_work, group, groups_of, imported, members, names, over, person, queue

DN = "uid={},ou=People,dc=x"


def counts(job: object) -> tuple[int, ...]:
    """total, added, updated, removed, skipped, failed of a job."""
    return tuple(getattr(job, name) for name in ("total", "added", "updated", "removed", "skipped", "failed"))


async def test_the_same_again_changes_nothing(areas: Areas) -> None:
    """What is as before is skipped; what differs is updated, and keeps its id."""
    ldif = person("ann", "mail: a@x") + group("ops", DN.format("ann"))
    assert counts(await imported(areas, ldif)) == (2, 2, 0, 0, 0, 0)
    assert counts(await imported(areas, ldif)) == (2, 0, 0, 0, 2, 0)
    changed = person("ann", "mail: b@x") + group("ops")
    assert counts(await imported(areas, changed)) == (2, 0, 2, 0, 0, 0)
    users, total = await areas.directory.directories.users(Stretch(areas.domain, 0, 9), "B@X")
    assert (users[0].id, users[0].email, total) == (1, "b@x", 1)
    assert await members(areas) == {"ops": 0}


async def test_a_rename_keeps_the_person(areas: Areas) -> None:
    """By entryUUID, with memberships that others have told; without one, a new name is a new person."""
    uuid = "entryUUID: 00000000-0000-4000-8000-00000000000a"
    await imported(areas, person("ann", uuid) + group("ops", DN.format("ann")))
    renamed = person("anna", uuid, ou="Sales")
    assert counts(await imported(areas, renamed)) == (1, 0, 1, 0, 0, 0)
    assert await names(areas) == ["anna"]
    assert await groups_of(areas, "anna") == {"ops"}
    # The group still names her old name, and says so when it is read again.
    await imported(areas, group("ops", DN.format("ann")))
    assert await groups_of(areas, "anna") == frozenset()


async def test_a_better_name_for_good(areas: Areas) -> None:
    """Somebody who was known by the distinguished name alone is the same when an entryUUID comes, and without it."""
    await imported(areas, person("ann"))
    uuid = "entryUUID: 00000000-0000-4000-8000-00000000000a"
    assert counts(await imported(areas, person("ann", uuid)))[1:3] == (0, 1)
    assert counts(await imported(areas, person("ann", "cn: Ann")))[1:3] == (0, 1)
    assert counts(await imported(areas, person("anna", uuid)))[1:3] == (0, 1)
    assert await names(areas) == ["anna"]


async def test_a_large_group(areas: Areas) -> None:
    """A group whose members take several transactions has all of them, gets others, and goes."""
    people = "".join(person(f"u{n}") for n in range(40))
    everybody = [DN.format(f"u{n}") for n in range(2500)]
    await imported(areas, people + group("all", *everybody))
    assert await members(areas) == {"all": 40}
    await imported(areas, group("all", *everybody[20:], "cn=all,dc=x"))
    assert await members(areas) == {"all": 21}
    assert counts(await imported(areas, group("all", *everybody[20:], "cn=all,dc=x"))) == (1, 0, 0, 0, 1, 0)
    assert counts(await imported(areas, "dn: cn=all,dc=x\nchangetype: delete\n")) == (1, 0, 0, 1, 0, 0)
    assert await members(areas) == {}
    left = await areas.store.read(lambda tx: tx.value(int, "select count(*) from directory_members"))
    assert left == 0


async def test_a_job_goes_on_after_a_stop(areas: Areas) -> None:
    """At any moment: each entry is counted once, and nothing is missing."""
    ldif = "".join(person(f"u{n}") for n in range(60)) + group("all", *(DN.format(f"u{n}") for n in range(60)))
    job_id, stops = await queue(areas, ldif), 0
    while (job := await areas.directory.jobs.get(job_id)).state != "DONE":
        before = job.position
        async with at_work(areas):
            with trio.move_on_after(60):
                while job.state != "DONE" and job.position == before and job.state != "FAILED":
                    await trio.sleep(0.001)
                    job = await areas.directory.jobs.get(job_id)
        assert job.state != "FAILED", job.message
        stops += 1
        assert stops < 1000
    assert stops > 1
    assert counts(job) == (61, 61, 0, 0, 0, 0)
    assert len(await names(areas)) == 60 and await members(areas) == {"all": 60}


async def test_the_files_of_a_crash(areas: Areas) -> None:
    """What no job needs is deleted at the start; what one needs stays until it is over."""
    files = areas.directory.directories.files
    job_id = await queue(areas, person("ann"))
    stray = files.path("0123456789abcdef.ldif")
    stray.write_bytes(b"x")
    async with at_work(areas):
        job = await over(areas, job_id)
        with trio.fail_after(10):
            while files.path(job.file).exists():
                await trio.sleep(0.01)
    assert job.state == "DONE" and not stray.exists()


async def test_a_file_that_is_gone(areas: Areas) -> None:
    """A job whose file was lost fails, and the next one is done."""
    lost = await queue(areas, person("ann"))
    job = await areas.directory.jobs.get(lost)
    areas.directory.directories.files.delete(job.file)
    async with at_work(areas):
        assert (await over(areas, lost)).state == "FAILED"
    assert counts(await imported(areas, person("ben")))[1] == 1


async def test_too_many(areas: Areas) -> None:
    """A domain has so many jobs that wait, and no more; one that is cancelled makes room."""
    for _ in range(MOST_WAITING):
        last = await queue(areas, person("ann"))
    with pytest.raises(Conflict):
        await queue(areas, person("ann"))
    await areas.directory.jobs.cancel(await areas.directory.jobs.get(last))
    with pytest.raises(Conflict, match="over"):
        await areas.directory.jobs.cancel(await areas.directory.jobs.get(last))
    await queue(areas, person("ann"))


async def test_one_at_a_time(areas: Areas) -> None:
    """The next job of a domain is the oldest one, and none while one runs; other domains' go on."""
    other = await areas.domains.add(areas.tenant, "branch")
    first, second = [await queue(areas, person("ann")) for _ in range(2)]
    areas.domain, own = other, areas.domain
    third = await queue(areas, person("ben"))
    assert [job.id for job in await areas.store.read(partial(jobs_repo.waiting, busy=(), limit=9))] == [first, third]
    assert [job.id for job in await areas.store.read(partial(jobs_repo.waiting, busy=(own,), limit=9))] == [third]
    async with at_work(areas):
        ended = [(await over(areas, job)).ended_at for job in (first, second, third)]
    assert None not in ended


async def test_a_complete_import(areas: Areas) -> None:
    """Who is not in it goes, with what they were in; but not where an entry could not be used."""
    ldif = person("ann") + person("ben") + group("ops", DN.format("ben")) + group("old")
    await imported(areas, ldif)
    bad = "dn: ou=x,dc=x\nobjectClass: person\n\n"
    kept = await imported(areas, person("ann") + bad, complete=True)
    assert counts(kept) == (2, 0, 0, 0, 1, 1) and "nothing was removed" in kept.message
    assert counts(await imported(areas, person("ann") + group("ops"), complete=True)) == (2, 0, 1, 2, 1, 0)
    assert await names(areas) == ["ann"] and await members(areas) == {"ops": 0}


async def test_a_circle_of_many_groups(areas: Areas) -> None:
    """Groups that contain each other in a long circle: everybody is in each, and a login is told in time."""
    count = 500
    circle = "".join(group(f"g{n}", f"cn=g{(n + 1) % count},dc=x", DN.format("ann")) for n in range(count))
    await imported(areas, person("ann") + circle)
    found, _ = await areas.directory.directories.groups(Stretch(areas.domain, 0, 1), "")
    users, total = await areas.directory.directories.users_of_group(found[0].id, Stretch(areas.domain, 0, 9), "")
    assert ([user.name for user in users], total) == (["ann"], 1)
    assert len(await groups_of(areas, "ann") or ()) == count


async def test_turns_are_short(areas: Areas) -> None:
    """A transaction takes no more entries once its time is over, or once somebody's answer waits for it."""
    run = Run(areas.domain, 1, 1, cloud=False, marks=False, mapping=FieldMapping({}), mapped=frozenset(), started_at=0)
    loop = trio.lowlevel.current_trio_token()

    def is_slow(_tx: Tx, _entry: int, _turn: object) -> Counts:
        time.sleep(applier.TURN_S)
        return Counts()

    def somebody_comes(tx: Tx, entry: int, _turn: object) -> Counts:
        if entry == 2:
            loop.run_sync_soon(areas.store.submit, lambda _: None, lambda _result, _error: None)
            until = time.monotonic() + 30
            while not tx.others_wait() and time.monotonic() < until:
                time.sleep(0.001)
        return Counts()

    for put, done in ((is_slow, 1), (somebody_comes, 3)):
        turn = await areas.store.write(partial(applier._some, run=run, entries=range(100), put=put))
        assert turn.done == done


async def test_changes_of_a_group(areas: Areas) -> None:
    """Members are added and deleted by a modification; an entry that is not there fails by its name, and the rest is
    done."""
    await imported(areas, person("ann") + person("ben") + group("ops", DN.format("ann")))
    change = f"dn: cn=ops,dc=x\nchangetype: modify\nadd: member\nmember: {DN.format('ben')}\n-\n"
    change += f"delete: member\nmember: {DN.format('ann')}\n-\n\n"
    change += "dn: cn=none,dc=x\nchangetype: modify\nreplace: cn\ncn: x\n-\n"
    job = await imported(areas, change)
    assert counts(job) == (2, 0, 1, 0, 0, 1) and job.errors == '[["cn=none,dc=x", "there is no such entry"]]'
    assert (await groups_of(areas, "ann"), await groups_of(areas, "ben")) == (frozenset(), {"ops"})


async def test_a_change_of_many_members_goes_on_after_a_stop(areas: Areas) -> None:
    """No transaction takes more of them than a turn, and it ends as if there had been no stop."""
    everybody = [DN.format(f"u{n}") for n in range(1500)]
    await imported(areas, group("all", *everybody[:1000]))
    steps = (("delete", everybody[:300]), ("add", everybody[900:]), ("delete", everybody[1400:1450]))
    change = "dn: cn=all,dc=x\nchangetype: modify\n"
    for step, people in steps:
        change += f"{step}: member\n" + "".join(f"member: {dn}\n" for dn in people) + "-\n"
    told = "select count(*) from directory_members where told = 0"
    job_id, seen = await queue(areas, change), [1000]
    while (job := await areas.directory.jobs.get(job_id)).state != "DONE":
        async with at_work(areas):
            with trio.fail_after(60):
                while (count := await areas.store.read(lambda tx: tx.value(int, told) or 0)) == seen[-1]:
                    await trio.sleep(0.001)
                    if (await areas.directory.jobs.get(job_id)).state == "DONE":
                        break
        seen.append(count)
        assert job.state != "FAILED", job.message
    assert counts(job) == (1, 0, 1, 0, 0, 0)
    assert len(seen) > 2 and all(abs(after - before) < 1000 for before, after in pairwise(seen))
    left = await areas.store.read(lambda tx: edges.members_told(tx, 1, key_of("cn=all,dc=x")))
    assert left == {key_of(dn) for dn in (*everybody[300:1400], *everybody[1450:])}


async def test_changes_of_one_kind_of_members(areas: Areas) -> None:
    """Members by name and by login name are two attributes: who replaces or deletes the one keeps the other."""
    people = person("ann") + person("ben") + person("cid")
    ops = group("ops", DN.format("ann")).rstrip("\n") + "\nmemberUid: ben\n\n"

    async def inside(*steps: str) -> list[str]:
        await imported(areas, people + ops)
        await imported(areas, "dn: cn=ops,dc=x\nchangetype: modify\n" + "".join(f"{step}\n-\n" for step in steps))
        found, _ = await areas.directory.directories.groups(Stretch(areas.domain, 0, 1), "")
        users, _ = await areas.directory.directories.users_of_group(found[0].id, Stretch(areas.domain, 0, 9), "")
        return [user.name for user in users]

    assert await inside(f"replace: member\nmember: {DN.format('cid')}") == ["ben", "cid"]
    assert await inside("delete: member") == ["ben"]
    assert await inside("replace: memberUid\nmemberUid: cid") == ["ann", "cid"]
    assert await inside("add: memberUid\nmemberUid: cid", "replace: member") == ["ben", "cid"]
    assert await inside("delete: memberUid\nmemberUid: ben") == ["ann"]


async def test_a_name_that_is_taken(areas: Areas) -> None:
    """A renaming onto it, of a person, a group or onto another kind of entry, is an error of that entry alone, at the
    second time too."""
    unit = "dn: ou=rest,dc=x\nobjectClass: organizationalUnit\nou: rest\n\n"
    everybody = person("ann") + person("ben") + group("ops") + group("vpn") + unit

    def renamed(dn: str, name: str, superior: str = "dc=x") -> str:
        return f"dn: {dn}\nchangetype: modrdn\nnewrdn: {name}\ndeleteoldrdn: 1\nnewsuperior: {superior}\n\n"

    taken = renamed(DN.format("ann"), "uid=ben", "ou=People,dc=x") + renamed("cn=ops,dc=x", "CN=VPN")
    taken += renamed("cn=ops,dc=x", "ou=rest") + renamed(DN.format("ann"), "cn=vpn")
    for _ in range(2):
        job = await imported(areas, everybody + taken + renamed(DN.format("ben"), "UID=Ben", "ou=People,dc=x"))
        assert job.failed == 4 and job.errors.count("an entry of that name is there") == 4
        assert [name.lower() for name in await names(areas)] == ["ann", "ben"] and set(await members(areas)) == {
            "ops",
            "vpn",
        }


def unit(dn: str) -> str:
    """A record of a unit."""
    return f"dn: {dn}\nobjectClass: organizationalUnit\nou: {dn.partition(',')[0][3:]}\n\n"


async def told(areas: Areas, table: str) -> dict[str, int]:
    """The names in a table, with their ids."""
    rows = await areas.store.read(lambda tx: tx.rows(f"select dn, id from {table} order by id"))  # noqa: S608
    return {str(dn): int(str(row_id)) for dn, row_id in rows}


async def test_a_unit_that_is_renamed(areas: Areas) -> None:
    """Everything below it goes with it, however it is spelled, and stays who it is, with what it is in; nothing else
    does. Read again under the new names, nobody has changed."""
    inner = group("vpn", DN.format("ann")).replace("dc=x", "ou=People,dc=x", 1)
    everybody = person("ann") + person("ben", ou="Sales, OU = people ") + person("carl", ou="Peoples") + inner
    units = unit("ou=People,dc=x") + unit("ou=Sales,ou=People,dc=x")
    await imported(areas, units + everybody + group("ops", DN.format("ann"), "cn=vpn,ou=people,dc=x"))
    before = await told(areas, "directory_users")
    change = "dn: OU=people,dc=x\nchangetype: {}\nnewrdn: ou=Staff\ndeleteoldrdn: 1\nnewsuperior: o=y\n\n"
    job = await imported(areas, change.format("moddn"))
    assert counts(job) == (1, 0, 5, 0, 0, 0)
    people = ["uid=ann,ou=Staff,o=y", "uid=ben,ou=Sales,ou=Staff,o=y", "uid=carl,ou=Peoples,dc=x"]
    assert await told(areas, "directory_users") == dict(zip(people, before.values(), strict=True))
    assert set(await told(areas, "directory_units")) == {"ou=Staff,o=y", "ou=Sales,ou=Staff,o=y"}
    assert await groups_of(areas, "ann") == {"vpn", "ops"}
    again = (units + everybody.partition("dn: uid=carl")[0]).replace(", OU = people ", ",ou=People")
    job = await imported(areas, again.replace("ou=People,dc=x", "ou=Staff,o=y").replace("ou: People", "ou: Staff"))
    assert counts(job) == (4, 0, 0, 0, 4, 0)


async def test_where_a_unit_cannot_go(areas: Areas) -> None:
    """Onto another entry, or below itself; an entry below it whose new name is another's stays, and is told of."""
    await imported(areas, unit("ou=People,dc=x") + unit("ou=Staff,dc=x") + person("ann") + person("ben"))
    change = "dn: ou=People,dc=x\nchangetype: modrdn\nnewrdn: ou={}\ndeleteoldrdn: 1\nnewsuperior: {}\n\n"
    ways = change.format("staff", "dc=x") + change.format("a", "OU=People,dc=x") + change.format("People", "x")
    job = await imported(areas, ways + person("ben", ou="Team") + change.format("Team", "dc=x"))
    assert counts(job) == (5, 1, 2, 0, 0, 4)
    for what in ("an entry of that name is there", "a unit is not moved into itself", "not a distinguished name"):
        assert what in job.errors
    assert [*await told(areas, "directory_users")] == ["uid=ann,ou=Team,dc=x", DN.format("ben"), "uid=ben,ou=Team,dc=x"]


async def test_a_renaming_goes_on_after_a_stop(areas: Areas) -> None:
    """Each entry below the unit is counted once, and none is left behind."""
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
    assert all(dn.endswith(",ou=Staff,dc=x") for dn in await told(areas, "directory_users"))


async def test_a_further_name_of_a_group(areas: Areas) -> None:
    """It is no renaming; a name in place of the former is, and so is another distinguished name."""
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
async def test_a_change_enables_nobody(areas: Areas, disabled: str) -> None:
    """Who is disabled stays so, whatever else is changed of what says so."""
    change = f"dn: {DN.format('ann')}\nchangetype: modify\nadd: shadowExpire\nshadowExpire: 99999\n-\n\n"
    await imported(areas, person("ann", disabled) + change)
    users, _ = await areas.directory.directories.users(Stretch(areas.domain, 0, 10), "")
    assert [user.status for user in users] == ["disabled"]


async def test_a_file_without_anybody(areas: Areas) -> None:
    """Though it says that it has everybody, it removes nobody, and says so."""
    await imported(areas, person("ann") + group("ops"))
    for nobody in ("", group("vpn")):
        job = await imported(areas, nobody, complete=True)
        assert (job.removed, job.message) == (0, "nothing was removed, since nobody was there")
    assert await names(areas) == ["ann"]


async def test_a_mapped_attribute_of_many(areas: Areas) -> None:
    """It is there for the mapping, of an entry with more attributes than are kept; after a change of the entry too."""
    directories = areas.directory.directories
    await imported(areas, person("ben"))
    await directories.map_fields(await directories.named(areas.domain, "LDIF"), {"group": "zzz"}, apply=False)
    await imported(areas, person("ann", *(f"a{number}: x" for number in range(100)), "zzz: seven"))
    await imported(areas, f"dn: {DN.format('ann')}\nchangetype: modify\nadd: a000\na000: x\n-\nreplace: zz\nzz: y\n-\n")
    users, _ = await directories.users(Stretch(areas.domain, 0, 9), "ann")
    assert '"group": "seven"' in users[0].fields


async def test_a_value_in_another_case(areas: Areas) -> None:
    """It is the same one, where it is deleted: somebody who is renamed is not known by the former name any more."""
    ann = "dn: uid=ann,ou=People,dc=x\nobjectClass: inetOrgPerson\nuid: Ann\nmail: Ann@X\n\n"
    change = f"dn: {DN.format('ann')}\nchangetype: modify\ndelete: mail\nmail: ann@x\n-\n\n"
    renamed = f"dn: {DN.format('ann')}\nchangetype: modrdn\nnewrdn: uid=eve\ndeleteoldrdn: 1\n\n"
    await imported(areas, ann + group("ops", DN.format("ann")) + change + renamed)
    users, _ = await areas.directory.directories.users(Stretch(areas.domain, 0, 9), "")
    assert [(user.name, user.email) for user in users] == [("eve", "")]
    assert (await groups_of(areas, "ann"), await groups_of(areas, "eve")) == (frozenset(), {"ops"})


async def test_a_further_class(areas: Areas) -> None:
    """An account to which a class is added that says nothing of accounts is one still."""
    await imported(areas, person("ann"))
    change = f"dn: {DN.format('ann')}\nchangetype: modify\nadd: objectClass\nobjectClass: ldapPublicKey\n-\n"
    job = await imported(areas, f"{change}replace: mail\nmail: a@x\n-\n")
    users, _ = await areas.directory.directories.users(Stretch(areas.domain, 0, 9), "")
    assert (job.failed, [user.email for user in users]) == (0, ["a@x"])


async def test_somebody_who_comes_twice(areas: Areas) -> None:
    """A person told of twice in one file is found by what the second says alone, also once both are gone."""
    twice = person("ann", "mail: first@x") + person("bob") + person("ann", "mail: second@x")
    assert counts(await imported(areas, twice)) == (3, 2, 1, 0, 0, 0)

    async def found(text: str) -> list[str]:
        users, _ = await areas.directory.directories.users(Stretch(areas.domain, 0, 9), text)
        return [user.name for user in users]

    assert [await found("first@x"), await found("second@x"), await found("bob")] == [[], ["ann"], ["bob"]]
    gone = "dn: uid=ann,ou=People,dc=x\nchangetype: delete\n\n"
    await imported(areas, gone)
    assert [await found("first@x"), await found("second@x"), await found("bob")] == [[], [], ["bob"]]


async def test_a_login_name_that_nobody_had(areas: Areas) -> None:
    """A member by a login name is taken out by it, also where it was told of before there was anybody of that name."""
    ops = group("ops").rstrip("\n") + "\nmemberUid: ann\n\n"
    await imported(areas, ops)
    await imported(areas, "dn: cn=ops,dc=x\nchangetype: modify\ndelete: memberUid\nmemberUid: ann\n-\n")
    await imported(areas, person("ann"))
    assert await groups_of(areas, "ann") == frozenset()
