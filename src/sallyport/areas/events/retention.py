"""Retention of events, accounting records and past sessions: rows are deleted if they are too old or take too much
space.

A purge shares the store's writer with the requests. It deletes a few hundred rows in one transaction, which delays a
login by one or two milliseconds. Then the purge pauses for a tenth of a second. So it deletes five thousand rows a
second. This is ten times the number of rows that a large site writes. If the purge deleted four times as many rows, the
p99 of a commit would double, because the write-ahead log would be checkpointed more often.

Each transaction also updates the counters. Therefore a crash loses nothing, and the next start continues. The database
reuses the space of deleted rows; the file does not shrink. There is a purge by age and a purge by size. Both find a
domain's oldest rows by the index that pages use. So the rows need no further index.

If all rows together exceed the limit, the purge deletes the oldest rows of the tenant with the most octets. It repeats
this until the rows fit. The tenant with the most octets uses more than an equal share of the limit. Therefore a tenant
below its share loses nothing. If a live session was deleted, its next record creates the session again.

The history of devices and of RADIUS clients is not purged. It grows when an admin makes a change or a new device
appears, and does not grow with the traffic. The limits of a tenant apply to it (`settings/limits.py`). The audit trail
has its own retention in `audit`.
"""

import math
from collections import defaultdict
from functools import partial

import structlog
import trio

from sallyport.areas.events import repo
from sallyport.areas.events.repo import TABLES, RetainedTable, TableUsage
from sallyport.base.clock import SECOND, Clock, iso, now_us
from sallyport.metrics import LoginMetrics
from sallyport.nodes.periodic import every
from sallyport.store.model import Store, Tx, Work

log = structlog.get_logger()

DAY = 86_400 * SECOND
EVERY_S = 60.0
CHUNK = 500  # rows in a transaction; they need 0.4 ms of work, and one or two milliseconds for the sync to disk
PAUSE_S = 0.1
PAUSE_FACTOR = 9.0  # the purge uses the writer for at most a tenth of the time, even on a slow disk
CALM = 0.9  # if the size falls below this share of the limit, the next excess is logged as a new warning


class Retention:
    """The purge of expired rows.

    days: the retention time in days. limit: the maximum size of all rows together, in octets.
    """

    def __init__(
        self,
        store: Store,
        metrics: LoginMetrics,
        *,
        days: int,
        limit: int,
        clock: Clock = now_us,
        every_s: float = EVERY_S,
    ) -> None:
        self._store = store
        self._metrics = metrics
        self.days = days
        self.limit = limit
        self._clock = clock
        self._every_s = every_s
        self._warned = False

    async def run(self) -> None:
        """Delete expired rows every `every_s` seconds, until cancelled."""
        await every(self._every_s, self.purge, failure="event_purge_failed")

    async def purge(self) -> None:
        """Delete all expired rows in chunks. Raises StoreError. Chunks that were already deleted stay deleted."""
        before = self._clock() - self.days * DAY
        for table in TABLES:
            for domain_id in await self._store.search(partial(repo.domains_with_older, table=table, at=before)):
                chunk = partial(repo.delete_older, table=table, domain_id=domain_id, at=before, limit=CHUNK)
                while await self._delete(table, "age", chunk) == CHUNK:
                    pass
        await self._purge_excess()

    async def _purge_excess(self) -> None:
        """Delete the oldest rows of the largest tenant until all rows fit into the limit.

        The sizes are read only once. Therefore this purge does not see rows that arrive during the purge. The next
        purge sees them.
        """
        tenants = defaultdict[tuple[int, int], list[TableUsage]](list)
        for part in await self._store.search(repo.table_usage):
            tenants[part.organization, part.tenant].append(part)
        sizes = {tenant: sum(part.octets for part in parts) for tenant, parts in tenants.items()}
        excess = sum(sizes.values()) - self.limit
        if excess < -self.limit * (1 - CALM):
            self._warned = False
        while excess > 0:
            largest = max(sizes, key=sizes.__getitem__)
            parts = [part for part in tenants[largest] if part.rows > 0]
            oldest = min(parts, key=lambda part: part.first_at)
            self._warn(oldest)
            await self._delete_first(oldest, min(CHUNK, math.ceil(excess / oldest.row_octets)))
            sizes[largest] = sum(part.octets for part in parts)
            excess = sum(sizes.values()) - self.limit

    async def _delete_first(self, part: TableUsage, limit: int) -> None:
        """Delete the oldest rows of a domain in a table, and update `part`. limit: the maximum number of rows."""

        def chunk(tx: Tx) -> int:
            count = repo.delete_first(tx, part.table, part.domain_id, limit)
            part.first_at = repo.first_at(tx, part.table, part.domain_id)
            return count

        count = await self._delete(part.table, "size", chunk)
        part.rows = part.rows - count if count == limit else 0

    def _warn(self, first: TableUsage) -> None:
        if not self._warned:
            log.warning(
                "event_limit_exceeded",
                event_limit_mib=self.limit >> 20,
                event_days=self.days,
                organization=first.organization,
                tenant=first.tenant,
                oldest=iso(first.first_at),
            )
            self._warned = True

    async def _delete(self, table: RetainedTable, reason: str, chunk: Work[int]) -> int:
        """Delete one chunk of rows, pause, and return the number of deleted rows."""
        started = trio.current_time()
        count = await self._store.write(chunk)
        self._metrics.purged.cell(table.name, reason).count += count
        await trio.sleep(max(PAUSE_S, PAUSE_FACTOR * (trio.current_time() - started)))
        return count
