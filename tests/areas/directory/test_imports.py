"""Imports: what they write, how they continue after a stop, and how they end."""

import os
import time
from base64 import b64encode
from functools import partial

import pytest
import trio

from sallyport.areas.directory.imports import applier
from sallyport.areas.directory.imports import repo as jobs_repo
from sallyport.areas.directory.imports.job import EntryCounts, ImportRun
from sallyport.areas.directory.imports.lines import MAX_ALIASES, MAX_GROUPS
from sallyport.areas.directory.imports.service import MAX_WAITING
from sallyport.areas.directory.mappings.mapping import FieldMapping
from sallyport.base.errors import Conflict
from sallyport.store.model import ListQuery, Tx
from sallyport.store.slices import BATCH_S
from tests.areas import Areas, only_sqlite
from tests.areas.directory.world import (
    DN,
    at_work,
    counts,
    group,
    groups_of,
    imported,
    members,
    names,
    over,
    person,
    queue,
)


async def test_an_unchanged_entry_is_skipped(areas: Areas) -> None:
    """A second import skips unchanged entries. It updates changed entries, which keep their IDs."""
    ldif = person("ann", "mail: a@x") + group("ops", DN.format("ann"))
    assert counts(await imported(areas, ldif)) == (2, 2, 0, 0, 0, 0)
    assert counts(await imported(areas, ldif)) == (2, 0, 0, 0, 2, 0)
    changed = person("ann", "mail: b@x") + group("ops")
    assert counts(await imported(areas, changed)) == (2, 0, 2, 0, 0, 0)
    users, total = await areas.directory.directories.users(ListQuery(areas.domain, 0, 9), "B@X")
    assert (users[0].id, users[0].email, total) == (1, "b@x", 1)
    assert await members(areas) == {"ops": 0}


async def test_an_import_without_changes_counts_nothing_again(areas: Areas) -> None:
    """It does not look at all people and groups, unless a job has changed something since the last complete end."""
    ldif = person("ann") + group("ops", DN.format("ann"))
    await imported(areas, ldif)
    await areas.store.write(lambda tx: tx.execute("update directory_groups set members = 7"))
    assert counts(await imported(areas, ldif)) == (2, 0, 0, 0, 2, 0)
    assert await members(areas) == {"ops": 7}
    await imported(areas, person("bob"))
    assert await members(areas) == {"ops": 1}
    for sql in (
        "update directory_groups set members = 7",
        "update directories set finished_job = finished_job - 1",
        "update directory_jobs set state = 'FAILED', added = 0 where id > (select max(finished_job) from directories)",
    ):
        await areas.store.write(lambda tx, sql=sql: tx.execute(sql))
    await imported(areas, ldif)
    assert await members(areas) == {"ops": 1}


async def test_a_renamed_person_keeps_memberships(areas: Areas) -> None:
    """An entry with the same entryUUID and a new name is the same person. The person keeps the groups until they are
    read again.
    """
    uuid = "entryUUID: 00000000-0000-4000-8000-00000000000a"
    await imported(areas, person("ann", uuid) + group("ops", DN.format("ann")))
    renamed = person("anna", uuid, ou="Sales")
    assert counts(await imported(areas, renamed)) == (1, 0, 1, 0, 0, 0)
    assert await names(areas) == ["anna"]
    assert await groups_of(areas, "anna") == {"ops"}
    # The group still has the old DN as a member. When it is read again, ann's membership ends.
    await imported(areas, group("ops", DN.format("ann")))
    assert await groups_of(areas, "anna") == frozenset()


async def test_a_person_keeps_the_id_when_an_entry_uuid_appears(areas: Areas) -> None:
    """A person that is known by the DN stays the same person when an entryUUID appears and when it disappears."""
    await imported(areas, person("ann"))
    uuid = "entryUUID: 00000000-0000-4000-8000-00000000000a"
    assert counts(await imported(areas, person("ann", uuid)))[1:3] == (0, 1)
    assert counts(await imported(areas, person("ann", "cn: Ann")))[1:3] == (0, 1)
    assert counts(await imported(areas, person("anna", uuid)))[1:3] == (0, 1)
    assert await names(areas) == ["anna"]


async def test_a_large_group(areas: Areas) -> None:
    """A group with so many members that they need several transactions is written, changed and deleted completely."""
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


async def keep_writing(areas: Areas) -> None:
    """Write in the store without end, so that an import commits after each entry."""
    while True:
        await areas.store.write(lambda tx: None)


async def test_a_job_continues_after_a_stop(areas: Areas) -> None:
    """A job that is stopped between any two entries imports each entry and counts it once."""
    ldif = "".join(person(f"u{n}") for n in range(60)) + group("all", *(DN.format(f"u{n}") for n in range(60)))
    job_id, stops = await queue(areas, ldif), 0
    while (job := await areas.directory.jobs.get(job_id)).state != "DONE":
        before = job.position
        async with at_work(areas), trio.open_nursery() as others:
            others.start_soon(keep_writing, areas)
            with trio.fail_after(60):
                while job.state != "DONE" and job.position == before and job.state != "FAILED":
                    await trio.sleep(0.001)
                    job = await areas.directory.jobs.get(job_id)
            others.cancel_scope.cancel()
        assert job.state != "FAILED", job.message
        stops += 1
        assert stops < 1000
    assert stops > 1, stops
    assert counts(job) == (61, 61, 0, 0, 0, 0)
    assert len(await names(areas)) == 60 and await members(areas) == {"all": 60}


async def test_orphaned_files_are_deleted_at_the_start(areas: Areas) -> None:
    """At the start, files that no job needs are deleted. The file of a job is deleted when the job ends."""
    files = areas.directory.directories.files
    job_id = await queue(areas, person("ann"))
    stray = files.path("0123456789abcdef.ldif")
    stray.write_bytes(b"x")
    os.utime(stray, (0, 0))  # a younger file may belong to another worker
    async with at_work(areas):
        job = await over(areas, job_id)
        with trio.fail_after(60):
            while files.path(job.file).exists():
                await trio.sleep(0.01)
    assert job.state == "DONE" and not stray.exists()


async def test_a_job_with_a_lost_file_fails(areas: Areas) -> None:
    """A job whose file is missing fails, and the next job runs."""
    lost = await queue(areas, person("ann"))
    job = await areas.directory.jobs.get(lost)
    areas.directory.directories.files.delete(job.file)
    async with at_work(areas):
        assert (await over(areas, lost)).state == "FAILED"
    assert counts(await imported(areas, person("ben")))[1] == 1


async def test_the_number_of_waiting_jobs_is_limited(areas: Areas) -> None:
    """A domain may have at most MAX_WAITING waiting jobs. When one is cancelled, another one can be added."""
    for _ in range(MAX_WAITING):
        last = await queue(areas, person("ann"))
    with pytest.raises(Conflict):
        await queue(areas, person("ann"))
    await areas.directory.jobs.cancel(await areas.directory.jobs.get(last))
    with pytest.raises(Conflict, match="ended"):
        await areas.directory.jobs.cancel(await areas.directory.jobs.get(last))
    await queue(areas, person("ann"))


async def test_a_domain_runs_one_job_at_a_time(areas: Areas) -> None:
    """The oldest job of a domain runs next, and only one job of a domain runs at a time. Other domains are not
    affected.
    """
    other = await areas.domains.add(areas.tenant, "branch")
    first, second = [await queue(areas, person("ann")) for _ in range(2)]
    areas.domain, own = other, areas.domain
    third = await queue(areas, person("ben"))
    for busy, following in (((), [first, third]), ((own,), [third])):
        waiting = partial(jobs_repo.waiting, node_id=0, busy=busy, held={}, most=9)
        assert [job.id for job in await areas.store.read(waiting)] == following
    async with at_work(areas):
        ended = [(await over(areas, job)).ended_at for job in (first, second, third)]
    assert None not in ended


async def test_a_complete_import(areas: Areas) -> None:
    """A complete import removes missing people and their memberships, unless an entry could not be used."""
    ldif = person("ann") + person("ben") + group("ops", DN.format("ben")) + group("old")
    await imported(areas, ldif)
    bad = "dn: ou=x,dc=x\nobjectClass: person\n\n"
    kept = await imported(areas, person("ann") + bad, complete=True)
    assert counts(kept) == (2, 0, 0, 0, 1, 1) and "nothing was removed" in kept.message
    assert counts(await imported(areas, person("ann") + group("ops"), complete=True)) == (2, 0, 1, 2, 1, 0)
    assert await names(areas) == ["ann"] and await members(areas) == {"ops": 0}


async def test_a_long_cycle_of_groups(areas: Areas) -> None:
    """If groups contain each other in a long cycle, each person in one of them is a member of all. A login is still
    answered in time.
    """
    count = 500
    circle = "".join(group(f"g{n}", f"cn=g{(n + 1) % count},dc=x", DN.format("ann")) for n in range(count))
    await imported(areas, person("ann") + circle)
    found, _ = await areas.directory.directories.groups(ListQuery(areas.domain, 0, 1), "")
    users, total = await areas.directory.directories.users_of_group(found[0].id, ListQuery(areas.domain, 0, 9), "")
    assert ([user.name for user in users], total) == (["ann"], 1)
    assert len(await groups_of(areas, "ann") or ()) == count


@pytest.mark.parametrize(
    "more",
    [
        [f"memberOf: cn=g{number},dc=x" for number in range(MAX_GROUPS + 1)],
        [f"uid: a{number}" for number in range(MAX_ALIASES + 1)],
    ],
    ids=["groups", "names"],
)
async def test_a_person_with_too_many_groups_or_names_is_an_error(areas: Areas, more: list[str]) -> None:
    """Only the entry with too many groups or names fails. The person stays the same, also in a complete import."""
    assert counts(await imported(areas, person("ann", *more) + person("ben")))[1:] == (1, 0, 0, 0, 1)
    await imported(areas, person("ann"))
    assert counts(await imported(areas, person("ann", *more) + person("ben"), complete=True))[3:] == (0, 1, 1)
    assert await names(areas) == ["ben", "ann"]
    change = f"dn: {DN.format('ann')}\nchangetype: modify\nadd: {more[0].partition(':')[0]}\n"
    if "memberOf" in more[0]:
        assert counts(await imported(areas, change + "\n".join([*more, "-", "", ""])))[5] == 1


@only_sqlite  # on PostgreSQL, logins write over another connection, so an import waits for nobody
async def test_transactions_are_short(areas: Areas) -> None:
    """A transaction ends when its time limit is reached or when another writer waits."""
    run = ImportRun(
        areas.domain, 1, 1, cloud=False, marks=False, mapping=FieldMapping({}), mapped=frozenset(), started_at=0
    )
    loop = trio.lowlevel.current_trio_token()

    def is_slow(_tx: Tx, _entry: int, _turn: object) -> EntryCounts:
        time.sleep(BATCH_S)
        return EntryCounts()

    def another_writer_waits(tx: Tx, entry: int, _turn: object) -> EntryCounts:
        if entry == 2:
            loop.run_sync_soon(areas.store.submit, lambda _: None, lambda _result, _error: None)
            until = time.monotonic() + 30
            while not tx.others_wait() and time.monotonic() < until:
                time.sleep(0.001)
        return EntryCounts()

    for put, done in ((is_slow, 1), (another_writer_waits, 3)):
        turn = await areas.store.write(partial(applier._some, run=run, entries=range(100), put=put))
        assert turn.done == done


async def test_a_file_without_people_removes_no_people(areas: Areas) -> None:
    """A complete import of a file without people removes no people, and its message states this."""
    await imported(areas, person("ann") + group("ops"))
    for without_people in ("", group("vpn")):
        job = await imported(areas, without_people, complete=True)
        assert (job.removed, job.message) == (0, "nothing was removed, because the source has no people")
    assert await names(areas) == ["ann"]


async def test_a_mapped_attribute_is_kept_among_many(areas: Areas) -> None:
    """A mapped attribute is kept even if the entry has more attributes than the limit, also after the entry was
    changed.
    """
    directories = areas.directory.directories
    await imported(areas, person("ben"))
    await areas.directory.mappings.set(await directories.named(areas.domain, "LDIF"), {"group": "zzz"}, apply=False)
    await imported(areas, person("ann", *(f"a{number}: x" for number in range(100)), "zzz: seven"))
    await imported(areas, f"dn: {DN.format('ann')}\nchangetype: modify\nadd: a000\na000: x\n-\nreplace: zz\nzz: y\n-\n")
    users, _ = await directories.users(ListQuery(areas.domain, 0, 9), "ann")
    assert '"group": "seven"' in users[0].fields


async def test_a_change_matches_values_without_case(areas: Areas) -> None:
    """A modification deletes a value even if the value differs in case. A renamed person keeps the groups only under
    the new name.
    """
    ann = "dn: uid=ann,ou=People,dc=x\nobjectClass: inetOrgPerson\nuid: Ann\nmail: Ann@X\n\n"
    change = f"dn: {DN.format('ann')}\nchangetype: modify\ndelete: mail\nmail: ann@x\n-\n\n"
    renamed = f"dn: {DN.format('ann')}\nchangetype: modrdn\nnewrdn: uid=eve\ndeleteoldrdn: 1\n\n"
    await imported(areas, ann + group("ops", DN.format("ann")) + change + renamed)
    users, _ = await areas.directory.directories.users(ListQuery(areas.domain, 0, 9), "")
    assert [(user.name, user.email) for user in users] == [("eve", "")]
    assert (await groups_of(areas, "ann"), await groups_of(areas, "eve")) == (frozenset(), {"ops"})


async def test_an_added_object_class_keeps_the_person(areas: Areas) -> None:
    """When an object class that is not an account class is added, the entry stays a person."""
    await imported(areas, person("ann"))
    change = f"dn: {DN.format('ann')}\nchangetype: modify\nadd: objectClass\nobjectClass: ldapPublicKey\n-\n"
    job = await imported(areas, f"{change}replace: mail\nmail: a@x\n-\n")
    users, _ = await areas.directory.directories.users(ListQuery(areas.domain, 0, 9), "")
    assert (job.failed, [user.email for user in users]) == (0, ["a@x"])


async def test_the_last_entry_of_a_person_counts(areas: Areas) -> None:
    """If a file has two entries for a person, the person has only the values of the second one. After a removal the
    person has none.
    """
    twice = person("ann", "mail: first@x") + person("bob") + person("ann", "mail: second@x")
    assert counts(await imported(areas, twice)) == (3, 2, 1, 0, 0, 0)

    async def found(text: str) -> list[str]:
        users, _ = await areas.directory.directories.users(ListQuery(areas.domain, 0, 9), text)
        return [user.name for user in users]

    assert [await found("first@x"), await found("second@x"), await found("bob")] == [[], ["ann"], ["bob"]]
    gone = "dn: uid=ann,ou=People,dc=x\nchangetype: delete\n\n"
    await imported(areas, gone)
    assert [await found("first@x"), await found("second@x"), await found("bob")] == [[], [], ["bob"]]


async def test_a_member_by_login_name_is_removed_before_the_person_exists(areas: Areas) -> None:
    """A modification can remove a memberUid for which there is no person yet. A person with this login name that is
    added later is not a member.
    """
    ops = group("ops").rstrip("\n") + "\nmemberUid: ann\n\n"
    await imported(areas, ops)
    await imported(areas, "dn: cn=ops,dc=x\nchangetype: modify\ndelete: memberUid\nmemberUid: ann\n-\n")
    await imported(areas, person("ann"))
    assert await groups_of(areas, "ann") == frozenset()


async def test_groups_are_found_by_their_sid(areas: Areas) -> None:
    """A group of Active Directory keeps its security identifier. A name that two groups have is not found. An import of
    the same file changes nothing."""

    def of_ad(name: str, rid: int, unit: str = "x") -> str:
        octets = bytes((1, 2, 0, 0, 0, 0, 0, 5)) + (21).to_bytes(4, "little") + rid.to_bytes(4, "little")
        sid = b64encode(octets).decode()
        return f"dn: cn={name},ou={unit},dc=x\nobjectClass: group\ncn: {name}\nobjectSid:: {sid}\n\n"

    ldif = of_ad("Staff", 1107) + of_ad("Twice", 1108) + of_ad("Twice", 1109, "y") + group("plain")
    await imported(areas, ldif)
    sids = ["S-1-5-21-1107", "S-1-5-21-1108", "S-1-5-21-9999"]
    service = areas.directory.directories
    assert await service.groups_by_sid(areas.domain, sids) == {"S-1-5-21-1107": "Staff"}
    again = await imported(areas, ldif)
    assert again.updated == 0
