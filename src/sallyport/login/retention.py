"""Retention: events, accounting records and past sessions go when their time is over, or when they take more room
than they may.

Nobody waits for it, and everybody shares the one writer with it. So rows go a few hundred at a time, which holds a
login up by a millisecond or two, and after each time the writer is left alone for a tenth of a second: five thousand
rows a second, ten times what a large site writes. A faster purge is not a better one: at four times the pace the p99 of
a commit doubles, since the log has to be merged as much more often. Each time is one transaction with the kept totals:
what a crash interrupts is done up to there, and goes on after the start.
The database reuses the room of what is deleted; the file does not shrink.

By age a domain's oldest rows are found through the index that reads them, so that no row pays for an index of its own.
By size the rows that were written first go first, whosever they are; a live session that goes so is there again with
its next record.

The history of devices and of RADIUS clients is kept without end: it grows with what admins and new devices do and not
with traffic, it tells when a device that is still there came, and `registrations` is counted from it.
"""

from functools import partial

import structlog
import trio

from sallyport.base.clock import SECOND, Clock, iso, now_us
from sallyport.base.errors import StoreError
from sallyport.login import repo
from sallyport.login.repo import ACCOUNTING, EVENTS, SESSIONS, Held, Kept
from sallyport.metrics import LoginMetrics
from sallyport.store.model import Store, Tx, Work

log = structlog.get_logger()

DAY = 86_400 * SECOND
EVERY_S = 60.0
CHUNK = 500  # rows in a transaction: 0.4 ms of work, and a millisecond or two with its synchronization
PAUSE_S = 0.1
PAUSE_FACTOR = 9.0  # the writer is busy with this for a tenth of the time at most, however slow the disk is
CALM = 0.9  # the part of the limit below which a new excess is worth a new warning
TABLES = (EVENTS, ACCOUNTING, SESSIONS)


class Retention:
    """Deletes what was kept long enough. days: how long that is; limit: octets that all of it may take."""

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
        self._days = days
        self._limit = limit
        self._clock = clock
        self._every_s = every_s
        self._warned = False

    async def run(self) -> None:
        """Delete what is due, every now and then, until cancelled."""
        while True:
            try:
                await self.purge()
            except StoreError as error:  # what is left is deleted once the store is back
                log.warning("old events could not be deleted", error=str(error))
            await trio.sleep(self._every_s)

    async def purge(self) -> None:
        """Delete everything that is due, a chunk at a time. StoreError: what was deleted until then stays deleted."""
        before = self._clock() - self._days * DAY
        for table in TABLES:
            for domain_id in await self._store.search(partial(repo.domains_with_older, table=table, at=before)):
                chunk = partial(repo.delete_older, table=table, domain_id=domain_id, at=before, limit=CHUNK)
                while await self._delete(table, "age", chunk) == CHUNK:
                    pass
        await self._purge_excess()

    async def _purge_excess(self) -> None:
        """Delete what was written first until the rest takes no more than it may.

        Looked at anew before each chunk: the sizes are estimates, which become better as rows go.
        """
        while True:
            sizes = await self._store.search(_sizes)
            total = sum(each.octets for each in sizes.values())
            if total < self._limit * CALM:
                self._warned = False
            if total <= self._limit:
                return
            table, first = min(sizes.items(), key=lambda item: item[1].first_at)
            self._warn(first)
            count = min(CHUNK, -(-(total - self._limit) // first.row_octets))
            if not await self._delete(table, "size", partial(repo.delete_first, table=table, ids=count)):
                return

    def _warn(self, first: Held) -> None:
        if not self._warned:
            log.warning(
                "events take more room than event_limit_mib: the oldest are deleted before event_days are over",
                event_limit_mib=self._limit >> 20,
                event_days=self._days,
                oldest=iso(first.first_at),
            )
            self._warned = True

    async def _delete(self, table: Kept, reason: str, chunk: Work[int]) -> int:
        """One chunk, and the pause after it."""
        started = trio.current_time()
        count = await self._store.write(chunk)
        self._metrics.purged.cell(table.name, reason).count += count
        await trio.sleep(max(PAUSE_S, PAUSE_FACTOR * (trio.current_time() - started)))
        return count


def _sizes(tx: Tx) -> dict[Kept, Held]:
    return {table: repo.held(tx, table) for table in TABLES}
