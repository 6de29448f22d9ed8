"""The service for the audit trail. It returns pages of entries, and deletes old entries.

Entries are deleted after `audit_days` days. If `audit_days` is 0, entries are never deleted. Once an hour, the service
looks for expired entries. It deletes them in chunks of a few hundred rows. Each transaction deletes one chunk and
updates the totals. The service pauses after each transaction, so that logins can write to the store.
"""

from functools import partial

import structlog
import trio

from sallyport.areas.audit import repo
from sallyport.areas.audit.repo import AuditQuery, AuditRow
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.nodes.periodic import every
from sallyport.store.model import Store, Tx

log = structlog.get_logger()

DAY = 86_400 * SECOND
EVERY_S = 3600.0
CHUNK = 500
PAUSE_S = 0.1


class Audit:
    """The service that reads the audit trail."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(self, query: AuditQuery) -> tuple[list[AuditRow], int]:
        """Return one page of entries, the newest first, and the number of all matching entries. Raises StoreError."""

        def look(tx: Tx) -> tuple[list[AuditRow], int]:
            rows = repo.newest(tx, query)
            return rows, repo.matching(tx, query, len(rows))

        return await self._store.search(look)

    async def newest(self, query: AuditQuery) -> list[AuditRow]:
        """Return one page of entries, the newest first, without the total. Raises StoreError."""
        return await self._store.search(lambda tx: repo.newest(tx, query))


class Retention:
    """The task that deletes expired entries. days: the retention time in days; 0 if entries are never deleted."""

    def __init__(self, store: Store, *, days: int, clock: Clock = now_us, every_s: float = EVERY_S) -> None:
        self._store = store
        self.days = days
        self._clock = clock
        self._every_s = every_s

    async def run(self) -> None:
        """Delete expired entries every `every_s` seconds, until cancelled."""
        await every(self._every_s, self.purge, failure="audit_purge_failed")

    async def purge(self) -> None:
        """Delete all expired entries in chunks. Raises StoreError. If an error occurs, the chunks that were deleted
        before the error are not restored."""
        if not self.days:
            return
        chunk = partial(repo.delete_older, at=self._clock() - self.days * DAY, limit=CHUNK)
        deleted = 0
        while count := await self._store.write(chunk):
            deleted += count
            await trio.sleep(PAUSE_S)
        if deleted:
            log.info("audit_purged", entries=deleted, audit_days=self.days)
