"""Runs of agents, where several requests are under way; `tests/api/test_directory_runs` has the rest."""

from contextlib import suppress
from pathlib import Path

import pytest
import trio

from sallyport.base.errors import Conflict, Contradiction, NotFound
from sallyport.directory.imports.files import ImportFiles
from sallyport.directory.runs import Runs
from tests.areas import Areas


async def test_anothers_requests_are_not_of_this_run(areas: Areas) -> None:
    """A request for a run of another domain is refused, however often, and does not block the run."""
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


class Watching(ImportFiles):
    """Files of which the names are known that are neither a run's nor given back."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir)
        self.names = set[str]()

    def new(self, kind: str, octets: int) -> str:
        name = super().new(kind, octets)
        self.names.add(name)
        return name

    def delete(self, name: str) -> None:
        super().delete(name)
        self.names.discard(name)


async def test_a_run_that_goes_on(areas: Areas, tmp_path: Path) -> None:
    """Leaves no name of a file to remember, nor does a request that is refused, however often an agent repeats them."""
    files = Watching(tmp_path)
    runs = Runs(areas.store, files, areas.directory.directories, areas.clock)
    run = (await runs.begin(areas.domain, "hq", None)).run_id
    for _ in range(3):
        assert (await runs.begin(areas.domain, "hq", run)).run_id == run
        with pytest.raises(Contradiction):
            await runs.begin(999, "hq", None)
    assert len(files.names) == 1
