"""Runs of agents, where several requests are under way; `tests/api/test_directory_runs` has the rest."""

from contextlib import suppress

import trio

from sallyport.base.errors import Conflict, NotFound
from tests.areas import Areas


async def test_anothers_requests_are_not_of_this_run(areas: Areas) -> None:
    """Who names the run of another domain, however often, is not let in and does not hold the run up."""
    runs = areas.directory.runs
    run = (await runs.begin(areas.domain, "hq", None)).run_id
    foreign = await areas.domains.add(await areas.tenancy.ensure_tenant(2, 1), "corp")

    async def intrude() -> None:
        with suppress(NotFound, Conflict):
            raise AssertionError(await runs.take(foreign, run, 1, []))

    for sequence in range(1, 11):
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(intrude)
            nursery.start_soon(runs.take, areas.domain, run, sequence, [])
