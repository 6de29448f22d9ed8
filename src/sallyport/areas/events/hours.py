"""The number of logins in each hour of the last day, for the home page of the console.

A day may have millions of logins, so the numbers of an hour are counted only once after its end, by the index of a
domain's events by time. They are kept in memory. The present hour is counted again at most once a minute. A caller
waits at most WAIT_S: hours that are not counted by then are missing, and the next call counts them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import trio

from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import StoreError
from sallyport.store.model import Store, Tx

HOUR: Final = 3600 * SECOND
DAY: Final = 24
FRESH: Final = 60 * SECOND
SETTLED: Final = 600 * SECOND
"""Time after the end of an hour from which no event of the hour can be added any more. A login is stored with the time
at which its request arrived, after it has waited for its second factor for at most five minutes."""
WAIT_S: Final = 1.0
MAX_KEPT: Final = 100 * DAY
_COUNT: Final = (
    "select domain_id, applied_decision, reason, count(*) as logins from events "
    "where domain_id = :d and at >= :since and at < :until group by domain_id, applied_decision, reason"
)


@dataclass(frozen=True, slots=True)
class LoginCount:
    """The number of logins of a domain with the same answer and the same reason."""

    domain_id: int
    applied_decision: str
    reason: str
    logins: int


@dataclass(frozen=True, slots=True)
class HourOfLogins:
    """The logins of an hour. began: the time of its start, in microseconds. counts: None if the hour is not counted
    yet."""

    began: int
    counts: tuple[LoginCount, ...] | None

    def answered(self, decision: str) -> int | None:
        """Return the number of logins with this answer, or None if the hour is not counted yet."""
        if self.counts is None:
            return None
        return sum(each.logins for each in self.counts if each.applied_decision == decision)


@dataclass(frozen=True, slots=True)
class _Kept:
    counts: tuple[LoginCount, ...]
    at: int


class Hours:
    """The counts of the logins by hour. clock: the time in microseconds."""

    def __init__(self, store: Store, clock: Clock = now_us) -> None:
        self._store = store
        self._clock = clock
        self._kept = BoundedMap[tuple[tuple[int, ...], int], _Kept](MAX_KEPT)

    async def last_day(self, tenant_id: int, domain_ids: Sequence[int]) -> list[HourOfLogins]:
        """Return the last 24 hours of a tenant's domains, oldest first. The last hour has not ended. If the store
        fails, the hours that are not in memory are not counted."""
        domains, this = tuple(domain_ids), self._clock() // HOUR * HOUR
        deadline = trio.current_time() + WAIT_S
        found: list[HourOfLogins] = []
        for began in range(this, this - DAY * HOUR, -HOUR):  # the newest first, because an admin needs them most
            kept = self._kept.get((domains, began))
            if not self._is_valid(kept, began) and trio.current_time() < deadline:
                kept = await self._count(tenant_id, domains, began) or kept
            found.append(HourOfLogins(began, None if kept is None else kept.counts))
        return found[::-1]

    def _is_valid(self, kept: _Kept | None, began: int) -> bool:
        """Return whether the counts of an hour need not be read again."""
        return kept is not None and (kept.at >= began + HOUR + SETTLED or 0 <= self._clock() - kept.at < FRESH)

    async def _count(self, tenant_id: int, domains: tuple[int, ...], began: int) -> _Kept | None:
        at = self._clock()
        try:
            counts = await self._store.search(lambda tx: _counted(tx, domains, began))
        except StoreError:  # the store has logged the cause, and the page shows what is known
            return None
        kept = _Kept(counts, at)
        self._kept.put((domains, began), kept, tenant_id)
        return kept


def _counted(tx: Tx, domains: Sequence[int], began: int) -> tuple[LoginCount, ...]:
    each = (tx.all(LoginCount, _COUNT, d=domain_id, since=began, until=began + HOUR) for domain_id in domains)
    return tuple(count for counts in each for count in counts)
