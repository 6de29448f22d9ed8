"""An import that would remove most of a directory stops until an admin confirms it."""

import pytest

from sallyport.areas.directory.imports.job import Job, Removals
from sallyport.areas.directory.imports.service import FEW_REMOVALS
from sallyport.base.errors import Conflict
from tests.areas import Areas
from tests.areas.directory.world import at_work, group, groups_of, imported, names, over, person, queue

MANY = 2 * FEW_REMOVALS


def people(count: int, *, first: int = 0) -> str:
    """Return the records of `count` people."""
    return "".join(person(f"u{number:03}") for number in range(first, first + count))


async def stopped(areas: Areas, ldif: str) -> Job:
    """Run a complete import that stops before it removes anything, and return its job."""
    async with at_work(areas):
        job = await over(areas, await queue(areas, ldif, complete=True))
    assert (job.state, job.removals, job.removed) == ("FAILED", Removals.STOPPED, 0)
    return job


async def confirmed(areas: Areas, job: Job) -> Job:
    """Confirm an import that has stopped, and return its finished job."""
    async with at_work(areas):
        await areas.directory.jobs.confirm(job)
        return await over(areas, job.id)


async def test_half_of_the_people_are_removed_without_confirmation(areas: Areas) -> None:
    """Up to half of the people are removed without a confirmation. If there are only a few people, all but one may be
    removed.
    """
    await imported(areas, people(MANY))
    job = await imported(areas, people(FEW_REMOVALS), complete=True)
    assert job.removed == FEW_REMOVALS
    job = await imported(areas, people(1), complete=True)
    assert job.removed == FEW_REMOVALS - 1


async def test_more_than_half_need_a_confirmation(areas: Areas) -> None:
    """The import adds new people and stops before the removals. New people are not counted as known ones, and the
    message has the numbers. After the confirmation the missing people are removed.
    """
    await imported(areas, people(MANY) + group("ops", "uid=u001,ou=People,dc=x"))
    job = await stopped(areas, people(FEW_REMOVALS - 1) + people(100, first=500))
    assert f"{FEW_REMOVALS + 1} of the {MANY} users" in job.message and f"confirm import {job.id}" in job.message
    assert len(await names(areas)) == MANY + 100 and await groups_of(areas, "u001") == {"ops"}
    job = await confirmed(areas, job)
    assert (job.state, job.removed) == ("DONE", FEW_REMOVALS + 2)
    assert len(await names(areas)) == FEW_REMOVALS - 1 + 100
    with pytest.raises(Conflict, match="does not wait"):
        await areas.directory.jobs.confirm(job)


async def test_groups_are_counted_separately(areas: Areas) -> None:
    """If the import would remove all groups, it stops, because the account may have lost the permission to read
    them.
    """
    await imported(areas, people(1) + "".join(group(f"g{number}") for number in range(FEW_REMOVALS)))
    job = await stopped(areas, people(1))
    assert f"{FEW_REMOVALS} of the {FEW_REMOVALS} groups" in job.message


async def test_a_late_confirmation_keeps_newer_people(areas: Areas) -> None:
    """A late confirmation does not remove people that a later import contained."""
    await imported(areas, people(MANY))
    job = await stopped(areas, people(1))
    await imported(areas, people(2) + person("u002", "mail: new@x"))
    assert (await imported(areas, people(MANY - 1), complete=True)).removed == 1
    assert (await confirmed(areas, job)).removed == 0
    assert len(await names(areas)) == MANY - 1


async def test_only_a_stopped_import_can_be_confirmed(areas: Areas) -> None:
    """An import cannot be confirmed if it is done, is waiting, or has failed for another reason."""
    await imported(areas, people(1))
    async with at_work(areas):
        broken = await over(areas, await queue(areas, "no ldif"))
    waits = await areas.directory.jobs.get(await queue(areas, people(1)))
    for job in (await areas.directory.jobs.get(1), broken, waits):
        with pytest.raises(Conflict, match="does not wait"):
            await areas.directory.jobs.confirm(job)
