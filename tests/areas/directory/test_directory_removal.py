"""The removal of directories with all their entries."""

import pytest
import trio

from sallyport.areas.directory.directory import DirectoryConfiguration
from sallyport.areas.domains.repo import Update
from sallyport.base.errors import Conflict, NotFound
from tests.areas import Areas
from tests.areas.directory.world import PATIENCE_S, at_work, group, imported, members, names, over, person, queue

ANN = "uid=ann,ou=People,dc=x"
UNIT = "dn: ou=People,dc=x\nobjectClass: organizationalUnit\nou: People\n\n"
TABLES = (
    "directory_users", "directory_names", "directory_attributes", "directory_groups", "directory_units",
    "directory_members", "directory_jobs", "directory_runs", "directory_schedules", "directories",
)  # fmt: skip


async def rows(areas: Areas) -> dict[str, int]:
    """Return the number of rows of each directory table that is not empty."""
    counts = {
        table: await areas.store.read(lambda tx, table=table: tx.value(int, f"select count(*) from {table}"))  # noqa: S608
        for table in TABLES
    }
    return {table: count for table, count in counts.items() if count}


def has_import_metric(areas: Areas) -> bool:
    """Return whether the metrics have the time of the domain's last import."""
    name = "sallyport_directory_sync_last_success_timestamp_seconds"
    return areas.registry.get_sample_value(name, {"domain": str(areas.domain)}) is not None


async def gone(areas: Areas, name: str) -> None:
    """Wait until a directory no longer exists."""
    with trio.fail_after(PATIENCE_S):
        while name in [each.name for each in await areas.directory.directories.of_domain(areas.domain)]:
            await trio.sleep(0.02)


async def test_a_removal_leaves_nothing_behind(areas: Areas) -> None:
    """The people, groups, units, settings and jobs of the directory are removed. The sessions of its people are
    revoked, and its name can be used again.
    """
    await areas.domains.update(areas.domain, Update(settings={"disconnect_on_revoke": True}))
    people = "".join(person(f"u{number}", "memberOf: cn=elsewhere,dc=x") for number in range(60))
    await imported(areas, UNIT + people + person("ann") + group("ops", ANN, "cn=nobody,dc=x"))
    await queue(areas, person("ben"))
    await areas.directory.directories.remove([(areas.domain, "ldif")])
    assert has_import_metric(areas)
    async with at_work(areas):
        await gone(areas, "LDIF")
        with trio.fail_after(PATIENCE_S):
            while has_import_metric(areas):
                await trio.sleep(0.02)
    assert await rows(areas) == {} and await names(areas) == []
    revoked = await areas.store.read(lambda tx: tx.rows("select user_name from revocations"))
    assert len(revoked) == 62
    folder = areas.directory.directories.files.path("x").parent
    assert list(folder.iterdir()) == []
    await imported(areas, person("ann"))
    assert await names(areas) == ["ann"]


async def test_other_directories_of_the_domain_are_kept(areas: Areas) -> None:
    await imported(areas, person("ann") + group("ops", ANN), name="hq")
    before = await rows(areas)
    await imported(areas, person("ann") + person("ben") + group("vpn", ANN), name="old")
    await areas.directory.directories.remove([(areas.domain, "old")])
    async with at_work(areas):
        await gone(areas, "old")
    assert (await rows(areas), await names(areas), await members(areas)) == (before, ["ann"], {"ops": 1})
    assert has_import_metric(areas)


async def test_a_removal_continues_after_a_stop(areas: Areas) -> None:
    """A removal that is stopped repeatedly continues each time until nothing is left."""
    await imported(areas, "".join(person(f"u{number}") for number in range(60)) + group("ops"))
    await areas.directory.directories.remove([(areas.domain, "LDIF")])
    while await areas.directory.directories.of_domain(areas.domain):
        async with at_work(areas):
            for _ in range(8):
                await trio.lowlevel.checkpoint()
            await trio.sleep(0.01)
    assert await rows(areas) == {}


async def test_a_directory_being_removed_refuses_other_requests(areas: Areas) -> None:
    """The secret is deleted at once. A second request to remove the directory returns the same job. Until the removal
    is cancelled, imports, readings and changes of settings are refused.
    """
    service = areas.directory.directories
    wanted = DirectoryConfiguration("hq", app_url="ldap://127.0.0.1", secret=b"hunter2")
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


async def test_an_unknown_directory_stops_the_removal_of_all(areas: Areas) -> None:
    """If one of several names is unknown, no directory is removed."""
    await imported(areas, person("ann"), name="hq")
    with pytest.raises(NotFound):
        await areas.directory.directories.remove([(areas.domain, "hq"), (areas.domain, "none")])
    async with at_work(areas):
        assert (await over(areas, await queue(areas, person("ben"), name="hq"))).state == "DONE"
    assert await names(areas) == ["ann", "ben"]
