"""The runs of directory agents. In a run, an agent sends the entries of a directory in batches. A file collects the
batches until the run is finished. Then an import job writes the entries to the store.

A run belongs to the node that has its file. If the agent's request reaches another node, this node does not find the
run. The agent then begins a new run on this node.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import trio

from sallyport.areas.directory import repo
from sallyport.areas.directory.directory import DirectoryKind
from sallyport.areas.directory.imports import repo as jobs_repo
from sallyport.areas.directory.imports.files import MAX_SIZE, ImportFiles
from sallyport.areas.directory.imports.job import JobKind, NewJob
from sallyport.areas.directory.repo import RunRow
from sallyport.areas.directory.runs.bodies import AnyEntry
from sallyport.areas.directory.service import Directories
from sallyport.base.clock import Clock
from sallyport.base.errors import Conflict, NotFound
from sallyport.nodes.service import Cluster
from sallyport.store import audit
from sallyport.store.model import Store, Tx

NO_RUN: Final = "run not found: start a new run"


class OutOfOrder(Conflict):
    """The error for a batch that has the wrong number. details: the expected number."""

    def __init__(self, sequence: int) -> None:
        super().__init__("the batch has the wrong number: send the batch with the number in `sequence`")
        self.details = {"sequence": sequence}


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run of an agent. It has the number of the next batch, and the cursor that was stored by the last import from
    the agent."""

    run_id: int
    sequence: int
    cursor: str


class Runs:
    """The runs in which directory agents send entries, for all directories."""

    def __init__(
        self, store: Store, files: ImportFiles, cluster: Cluster, directories: Directories, clock: Clock
    ) -> None:
        self._store = store
        self._files = files
        self._cluster = cluster
        self._directories = directories
        self._clock = clock
        self._busy: set[tuple[int, int]] = set()

    async def begin(self, domain_id: int, name: str, run_id: int | None) -> OpenRun:
        """Begin a run, or continue a run, in which an agent sends the entries of a directory. If the directory does not
        exist, create it. Raises NotFound if the domain was removed. Raises Conflict if the directory is of a kind that
        no agent reads. Raises StoreFull."""
        file = await trio.to_thread.run_sync(self._files.new, "spool", 0)

        def transaction(tx: Tx) -> tuple[OpenRun, str]:
            audit.tenant_of(tx, domain_id)
            directory = self._directories.make(tx, domain_id, name, DirectoryKind.AGENT)
            if directory.kind != DirectoryKind.AGENT:
                raise Conflict("the directory of that name is not read by an agent: choose another name")
            known = repo.run_of_directory(tx, directory.id)
            if known is not None and known.id == run_id and known.node_id == self._cluster.id:
                return OpenRun(known.id, known.sequence + 1, directory.cursor), file
            if known is not None:
                repo.delete_run(tx, known.id)
            new_id = repo.add_run(tx, domain_id, directory.id, file, self._cluster.id, self._clock())
            return OpenRun(new_id, 1, directory.cursor), known.file if known is not None else ""

        unneeded = file
        try:
            begun, unneeded = await self._store.write(transaction)
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._files.delete, unneeded)
        return begun

    async def take(self, domain_id: int, run_id: int, sequence: int, entries: Sequence[AnyEntry]) -> int:
        """Store a batch that an agent has sent. Return the number of the next batch. Raises Conflict if the file of the
        run would be too large. Raises NotFound, OutOfOrder, StoreFull."""
        async with self._reserved(domain_id, run_id):
            run = await self._run(domain_id, run_id)
            if sequence <= run.sequence:
                return run.sequence + 1
            if sequence != run.sequence + 1:
                raise OutOfOrder(run.sequence + 1)
            octets = await trio.to_thread.run_sync(_lines, entries)
            if run.octets + len(octets) > MAX_SIZE:
                raise Conflict(
                    f"the batches of a run have more than {MAX_SIZE >> 20} MiB: start a new run with fewer entries"
                )
            await trio.to_thread.run_sync(self._files.check_room)
            await trio.to_thread.run_sync(self._files.append, run.file, octets, run.octets)
            if not await self._store.write(
                partial(repo.batch_taken, run=run, octets=run.octets + len(octets), at=self._clock())
            ):
                raise NotFound(NO_RUN)
            return sequence + 1

    async def finish(self, domain_id: int, run_id: int, sequence: int, cursor: str, *, complete: bool) -> int:
        """Finish a run: queue an import of the entries that the agent has sent. Return the id of the import. If the
        method is called again, it returns the same id. Raises NotFound, OutOfOrder, Conflict."""
        async with self._reserved(domain_id, run_id):
            done = await self._store.read(lambda tx: repo.job_of_run(tx, domain_id, run_id))
            if done is not None:
                return done
            run = await self._run(domain_id, run_id)
            if sequence != run.sequence + 1:
                raise OutOfOrder(run.sequence + 1)
            if not run.octets:
                await trio.to_thread.run_sync(self._files.append, run.file, b"", 0)

            def transaction(tx: Tx) -> int:
                directory = repo.get(tx, run.directory_id)
                if directory is None or repo.get_run(tx, domain_id, run_id) is None:
                    raise NotFound(NO_RUN)
                new = NewJob(run.directory_id, JobKind.AGENT, repo.run_name(run_id), run.file, complete)
                job_id = self._directories.queue(tx, directory, new)
                jobs_repo.collected(tx, job_id, run.file, cursor, complete=complete)
                repo.delete_run(tx, run_id)
                return job_id

            job_id = await self._store.write(transaction)
            self._directories.jobs.wake()
            return job_id

    async def _run(self, domain_id: int, run_id: int) -> RunRow:
        run = await self._store.read(lambda tx: repo.get_run(tx, domain_id, run_id))
        if run is None or run.node_id != self._cluster.id:
            raise NotFound(NO_RUN)
        return run

    @asynccontextmanager
    async def _reserved(self, domain_id: int, run_id: int) -> AsyncIterator[None]:
        """Reserve a run until the block ends. The caller must check that the run belongs to the domain. Raises Conflict
        if another request for this run is still being processed."""
        run = domain_id, run_id
        if run in self._busy:
            raise Conflict("another request for this run is not answered yet: try again later")
        self._busy.add(run)
        try:
            yield
        finally:
            self._busy.remove(run)


def _lines(entries: Sequence[AnyEntry]) -> bytes:
    return b"".join(each.model_dump_json().encode() + b"\n" for each in entries)
