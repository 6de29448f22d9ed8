"""Choose the jobs to run. At most one job runs at a time for each domain, and at most two for each tenant. At most two
jobs write to the store at the same time.

A job first reads its source and then writes to the store. Reading and writing have separate limits. A slow directory
can delay the reading without end. So the reading counts only against the limit of its own tenant, and does not delay
other tenants. The writing always ends. So all tenants share the limit of two writing jobs, and the jobs write in the
order of their requests.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import trio

from sallyport.areas.directory.imports import repo
from sallyport.areas.directory.imports.job import Job
from sallyport.store.model import Work

AT_ONCE: Final = 2


@dataclass(frozen=True, slots=True)
class _Running:
    tenant_id: int
    scope: trio.CancelScope


class Scheduler:
    """The running jobs of this node. node_id: a function that returns the id of the node. writers: limits how many jobs
    write at the same time."""

    def __init__(self, node_id: Callable[[], int]) -> None:
        self._node_id = node_id
        self.writers = trio.CapacityLimiter(AT_ONCE)
        self._running: dict[int, _Running] = {}
        self._domains: set[int] = set()

    def due(self) -> Work[list[Job]]:
        """Return the query that reads the jobs that may start now. Call `begin` for each of these jobs."""
        held = Counter(each.tenant_id for each in self._running.values())
        return partial(repo.waiting, node_id=self._node_id(), busy=frozenset(self._domains), held=held, most=AT_ONCE)

    def begin(self, job: Job) -> None:
        """Register a job before it starts. The caller must then run the job within the block of `domain_taken`."""
        self._domains.add(job.domain_id)
        self._running[job.id] = _Running(job.tenant_id, trio.CancelScope())

    @contextmanager
    def domain_taken(self, job: Job) -> Iterator[None]:
        """Keep other jobs of the domain from starting until the block ends."""
        try:
            yield
        finally:
            self._domains.discard(job.domain_id)

    @contextmanager
    def running(self, job: Job) -> Iterator[None]:
        """Count the job as running within the block. A call of `cancel` cancels the block."""
        try:
            with self._running[job.id].scope:
                yield
        finally:
            del self._running[job.id]

    def cancel(self, job_id: int) -> bool:
        """Cancel a running job. Return False if the job was not running."""
        if job_id not in self._running:
            return False
        self._running[job_id].scope.cancel()
        return True

    def cancel_all(self) -> None:
        """Cancel all running jobs."""
        for each in self._running.values():
            each.scope.cancel()
