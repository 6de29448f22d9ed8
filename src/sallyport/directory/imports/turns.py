"""Whose turn it is: one job of a domain at a time, two of a tenant, and two of all that write.

How long a reading takes is up to the directory that is read, which need not hurry, nor ever come to an end. So it keeps
no place that another tenant could use. To write takes no longer than there is something to write, and there whoever
came first is first.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import trio

from sallyport.directory.imports import repo
from sallyport.directory.imports.job import Job
from sallyport.store.model import Work

AT_ONCE: Final = 2


@dataclass(frozen=True, slots=True)
class _AtWork:
    tenant_id: int
    scope: trio.CancelScope


class Turns:
    """The jobs that are being done. writing: the places of those that write."""

    def __init__(self) -> None:
        self.writing = trio.CapacityLimiter(AT_ONCE)
        self._at_work: dict[int, _AtWork] = {}
        self._domains: set[int] = set()

    def look(self) -> Work[list[Job]]:
        """Reads the jobs whose turn it is now, for each of which `begin` is called."""
        held = Counter(each.tenant_id for each in self._at_work.values())
        return partial(repo.waiting, busy=frozenset(self._domains), held=held, most=AT_ONCE)

    def begin(self, job: Job) -> None:
        """It is this one's; `keeping` must follow."""
        self._domains.add(job.domain_id)
        self._at_work[job.id] = _AtWork(job.tenant_id, trio.CancelScope())

    @contextmanager
    def keeping(self, job: Job) -> Iterator[None]:
        """Keep other jobs of the domain from their turn for the time of the block."""
        try:
            yield
        finally:
            self._domains.discard(job.domain_id)

    @contextmanager
    def at_work(self, job: Job) -> Iterator[None]:
        """Do a job, unless it is cancelled, for the time of the block: it counts among its tenant's."""
        try:
            with self._at_work[job.id].scope:
                yield
        finally:
            del self._at_work[job.id]

    def cancel(self, job_id: int) -> bool:
        """End a job that is being done; whether it is."""
        if job_id not in self._at_work:
            return False
        self._at_work[job_id].scope.cancel()
        return True

    def cancel_all(self) -> None:
        """End all of them."""
        for each in self._at_work.values():
            each.scope.cancel()
