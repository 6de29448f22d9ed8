"""Concurrent requests for the runs of agents. The other tests of runs are in `tests/api/test_directory_runs`."""

from contextlib import suppress
from pathlib import Path

import pytest
import trio

from sallyport.areas.directory.imports.files import ImportFiles
from sallyport.areas.directory.runs.service import Runs
from sallyport.base.errors import Conflict, NotFound
from tests.areas import Areas


async def test_a_request_of_another_domain_is_refused(areas: Areas) -> None:
    """A request of another domain for the run is refused, even if it is repeated, and the run continues."""
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


class RecordedFiles(ImportFiles):
    """Import files that record the names of the files that have not been deleted yet."""

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


async def test_repeated_and_refused_begins_leave_no_files(areas: Areas, tmp_path: Path) -> None:
    """If an agent continues its run, or begins a run in an unknown domain, no more files are left, however often the
    request is repeated.
    """
    files = RecordedFiles(tmp_path)
    runs = Runs(areas.store, files, areas.cluster, areas.directory.directories, areas.clock)
    run = (await runs.begin(areas.domain, "hq", None)).run_id
    for _ in range(3):
        assert (await runs.begin(areas.domain, "hq", run)).run_id == run
        with pytest.raises(NotFound):
            await runs.begin(999, "hq", None)
    assert len(files.names) == 1
