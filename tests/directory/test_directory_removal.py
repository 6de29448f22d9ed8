"""Directories that are removed, with everybody in them."""

import pytest
import trio

from sallyport.base.errors import Conflict, NotFound
from sallyport.directory.directory import Configuration
from sallyport.domains.repo import Update
from tests.areas import Areas
from tests.directory.world import PATIENCE_S, at_work, group, imported, members, names, over, person, queue

ANN = "uid=ann,ou=People,dc=x"
UNIT = "dn: ou=People,dc=x\nobjectClass: organizationalUnit\nou: People\n\n"
TABLES = (
    "directory_users", "directory_names", "directory_attributes", "directory_groups", "directory_units",
    "directory_members", "directory_jobs", "directory_runs", "directory_schedules", "directories",
)  # fmt: skip


async def rows(areas: Areas) -> dict[str, int]:
    """The tables of directories that are not empty, and how many rows they have."""
    counts = {
        table: await areas.store.read(lambda tx, table=table: tx.value(int, f"select count(*) from {table}"))  # noqa: S608
        for table in TABLES
    }
    return {table: count for table, count in counts.items() if count}


def awaits_imports(areas: Areas) -> bool:
    """Whether the metrics tell when the last import of the domain was."""
    name = "sallyport_directory_sync_last_success_timestamp_seconds"
    return areas.registry.get_sample_value(name, {"domain": str(areas.domain)}) is not None


async def gone(areas: Areas, name: str) -> None:
    """Wait until a directory is not found any more."""
    with trio.fail_after(PATIENCE_S):
        while name in [each.name for each in await areas.directory.directories.of_domain(areas.domain)]:
            await trio.sleep(0.02)


async def test_nothing_is_left(areas: Areas) -> None:
    """People, groups, units, settings and jobs are gone; the members have lost their access, and the name is free."""
    await areas.domains.update(areas.domain, Update(disconnect_on_revoke=True))
    people = "".join(person(f"u{number}", "memberOf: cn=elsewhere,dc=x") for number in range(60))
    await imported(areas, UNIT + people + person("ann") + group("ops", ANN, "cn=nobody,dc=x"))
    await queue(areas, person("ben"))
    await areas.directory.directories.remove([(areas.domain, "ldif")])
    assert awaits_imports(areas)
    async with at_work(areas):
        await gone(areas, "LDIF")
        with trio.fail_after(PATIENCE_S):
            while awaits_imports(areas):
                await trio.sleep(0.02)
    assert await rows(areas) == {} and await names(areas) == []
    revoked = await areas.store.read(lambda tx: tx.rows("select user_name from revocations"))
    assert len(revoked) == 62
    folder = areas.directory.directories.files.path("x").parent
    assert list(folder.iterdir()) == []
    await imported(areas, person("ann"))
    assert await names(areas) == ["ann"]


async def test_others_stay(areas: Areas) -> None:
    """Another directory of the domain keeps everything."""
    await imported(areas, person("ann") + group("ops", ANN), name="hq")
    before = await rows(areas)
    await imported(areas, person("ann") + person("ben") + group("vpn", ANN), name="old")
    await areas.directory.directories.remove([(areas.domain, "old")])
    async with at_work(areas):
        await gone(areas, "old")
    assert (await rows(areas), await names(areas), await members(areas)) == (before, ["ann"], {"ops": 1})
    assert awaits_imports(areas)


async def test_after_a_stop(areas: Areas) -> None:
    """A removal that is stopped at any moment continues until nothing is left."""
    await imported(areas, "".join(person(f"u{number}") for number in range(60)) + group("ops"))
    await areas.directory.directories.remove([(areas.domain, "LDIF")])
    while await areas.directory.directories.of_domain(areas.domain):
        async with at_work(areas):
            for _ in range(8):
                await trio.lowlevel.checkpoint()
            await trio.sleep(0.01)
    assert await rows(areas) == {}


async def test_nothing_else_is_asked_of_it(areas: Areas) -> None:
    """While it waits: the secret is gone at once, asking again is the same job, and an import, a reading or a setting
    would be lost."""
    service = areas.directory.directories
    wanted = Configuration("hq", app_url="ldap://127.0.0.1", secret=b"hunter2")
    await service.save([(areas.domain, wanted)])
    (job,) = await areas.directory.directories.remove([(areas.domain, "hq")])
    assert await areas.directory.directories.remove([(areas.domain, "HQ")]) == [job]
    assert (await service.named(areas.domain, "hq")).secret is None
    with pytest.raises(Conflict, match="being removed"):
        await service.save([(areas.domain, wanted)])
    with pytest.raises(Conflict, match="being removed"):
        await service.sync(areas.domain, "hq")
    with pytest.raises(Conflict, match="being removed"):
        await queue(areas, person("ann"), name="hq")
    await areas.directory.jobs.cancel(await areas.directory.jobs.get(job))
    async with at_work(areas):
        assert (await over(areas, await queue(areas, person("ann"), name="hq"))).state == "DONE"


async def test_all_or_none(areas: Areas) -> None:
    """An unknown name among several leaves the others as they are."""
    await imported(areas, person("ann"), name="hq")
    with pytest.raises(NotFound):
        await areas.directory.directories.remove([(areas.domain, "hq"), (areas.domain, "none")])
    async with at_work(areas):
        assert (await over(areas, await queue(areas, person("ben"), name="hq"))).state == "DONE"
    assert await names(areas) == ["ann", "ben"]
