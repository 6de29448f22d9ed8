"""Helpers that run imports and write LDIF."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import trio

from sallyport.areas.directory.imports.job import Job
from sallyport.store.model import ListQuery
from tests.areas import Areas

PATIENCE_S = 60.0
OVER = {"DONE", "FAILED", "CANCELLED"}
DN = "uid={},ou=People,dc=x"


def person(name: str, *more: str, ou: str = "People") -> str:
    """Return the record of a person."""
    lines = [f"dn: uid={name},ou={ou},dc=x", "objectClass: inetOrgPerson", f"uid: {name}", *more]
    return "\n".join(lines) + "\n\n"


def group(name: str, *members: str) -> str:
    """Return the record of a group. members: the distinguished names of its members."""
    lines = [
        f"dn: cn={name},dc=x",
        "objectClass: groupOfNames",
        f"cn: {name}",
        *(f"member: {each}" for each in members),
    ]
    return "\n".join(lines) + "\n\n"


def counts(job: Job) -> tuple[int, ...]:
    """Return the counts of a job: total, added, updated, removed, skipped, failed."""
    return job.total, job.added, job.updated, job.removed, job.skipped, job.failed


@asynccontextmanager
async def at_work(areas: Areas) -> AsyncIterator[None]:
    """Run the imports until the block ends."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.directory.jobs.run)
        yield
        nursery.cancel_scope.cancel()


async def queue(areas: Areas, ldif: str, *, name: str = "", complete: bool = False) -> int:
    """Queue the import of a text after all others, and return the ID of the job."""
    areas.clock.now += 1
    service = areas.directory.directories
    file = service.files.new("ldif", 0)
    service.files.append(file, ldif.encode(), 0)
    return await service.import_ldif(areas.domain, file, "test.ldif", name, complete=complete)


async def over(areas: Areas, job_id: int) -> Job:
    """Wait until a job has ended, and return it."""
    with trio.fail_after(PATIENCE_S):
        while (job := await areas.directory.jobs.get(job_id)).state not in OVER:
            await trio.sleep(0.02)
    return job


async def imported(areas: Areas, ldif: str, *, name: str = "", complete: bool = False) -> Job:
    """Import a text, assert that the job is DONE and that its files are deleted, and return it. They are deleted last,
    after the job was counted in the metrics."""
    async with at_work(areas):
        job = await over(areas, await queue(areas, ldif, name=name, complete=complete))
        with trio.fail_after(PATIENCE_S):
            while areas.directory.directories.files.path(job.file).exists():
                await trio.sleep(0.02)
    assert job.state == "DONE", job.message
    return job


async def names(areas: Areas) -> list[str]:
    """Return the names of the people in the domain."""
    users, _ = await areas.directory.directories.users(ListQuery(areas.domain, 0, 1000), "")
    return [user.name for user in users]


async def members(areas: Areas) -> dict[str, int]:
    """Return the number of direct members of each group in the domain."""
    groups, _ = await areas.directory.directories.groups(ListQuery(areas.domain, 0, 1000), "")
    return {group.name: group.members for group in groups}


async def groups_of(areas: Areas, name: str, realms: Sequence[str] = ()) -> frozenset[str] | None:
    """Return the groups that apply to a login with this name."""
    found = await areas.directory.principals.find(areas.domain, name, tuple(realms))
    return found.groups
