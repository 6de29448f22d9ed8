"""Retention of the audit trail: entries go when their time is over, unless that is never.

They are few, and a day more or less is no matter. So the trail is looked at once an hour, and what is due goes a few
hundred rows at a time, each time a transaction with the kept totals, with a pause in which the one writer is left to
logins.
"""

from functools import partial

import structlog
import trio

from sallyport.audit import repo
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.periodic import every
from sallyport.store.model import Store

log = structlog.get_logger()

DAY = 86_400 * SECOND
EVERY_S = 3600.0
CHUNK = 500
PAUSE_S = 0.1


class Retention:
    """Deletes what was kept long enough. days: how long that is; 0: for ever."""

    def __init__(self, store: Store, *, days: int, clock: Clock = now_us, every_s: float = EVERY_S) -> None:
        self._store = store
        self._days = days
        self._clock = clock
        self._every_s = every_s

    async def run(self) -> None:
        """Delete expired entries again and again, until cancelled."""
        await every(self._every_s, self.purge, failure="audit_purge_failed")

    async def purge(self) -> None:
        """Delete everything that is due, a chunk at a time. StoreError: what was deleted until then stays deleted."""
        if not self._days:
            return
        chunk = partial(repo.delete_older, at=self._clock() - self._days * DAY, limit=CHUNK)
        deleted = 0
        while count := await self._store.write(chunk):
            deleted += count
            await trio.sleep(PAUSE_S)
        if deleted:
            log.info("audit entries deleted, kept for audit_days", entries=deleted, audit_days=self._days)
