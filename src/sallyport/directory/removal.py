"""Directories that are to be removed, with everybody in them: a job of its own kind does it (`imports.remover`).

The secret is forgotten at once. The rest takes its time: once nobody finds the directory any more, all of it is gone,
and until then nothing else can be asked of it.
"""

from collections.abc import Sequence

from sallyport.base.clock import Clock
from sallyport.base.errors import NotFound
from sallyport.directory import repo
from sallyport.directory.imports import repo as jobs_repo
from sallyport.directory.imports.model import Kind, NewJob
from sallyport.directory.imports.service import Jobs
from sallyport.directory.service import NO_DIRECTORY
from sallyport.store import audit
from sallyport.store.model import Store, Tx


class Removal:
    """Takes requests to remove directories."""

    def __init__(self, store: Store, jobs: Jobs, clock: Clock) -> None:
        self._store = store
        self._jobs = jobs
        self._clock = clock

    async def ask(self, wanted: Sequence[tuple[int, str]]) -> list[int]:
        """Queue the removal of directories, by domain and name, all or none; the jobs' ids. One that waits already is
        the one. NotFound; Conflict: too many jobs wait."""
        jobs = await self._store.write(lambda tx: [self._asked(tx, domain_id, name) for domain_id, name in wanted])
        self._jobs.wake()
        return jobs

    def _asked(self, tx: Tx, domain_id: int, name: str) -> int:
        directory = repo.named(tx, domain_id, name)
        if directory is None:
            raise NotFound(NO_DIRECTORY)
        waits = jobs_repo.open_removal(tx, directory.id)
        if waits is not None:
            return waits
        repo.update(tx, directory.id, {"secret": None}, self._clock())
        audit.record(
            tx,
            "directory.remove",
            at=self._clock(),
            tenant_id=audit.tenant_of(tx, domain_id),
            domain_id=domain_id,
            target=f"directory {directory.id} {directory.name}",
        )
        return self._jobs.add(tx, domain_id, NewJob(directory.id, Kind.REMOVAL))
