"""The time by which rows are deleted for their age.

A machine may start with a wrong clock, and an admin may set a wrong date. If the age of rows depended on the clock
alone, a clock that is 90 days ahead for a minute would delete all events. So the settled time advances as trio's clock
does, and follows the clock of the day only if both differ by at most a day. A greater difference counts only after it
has lasted for a day. The time while the service did not run is such a difference, too.

The settled time is stored once an hour, so that a restart does not lose it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog
import trio

from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import SallyportError
from sallyport.nodes.periodic import every
from sallyport.store.model import Store, Tx

LOOK_S: Final = 60.0
STORE_US: Final = 3600 * SECOND
DAY_US: Final = 86_400 * SECOND

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Settled:
    """The stored row. differs_since: the settled time when the clock of the day began to differ, or 0."""

    at: int
    differs_since: int


class SettledClock:
    """The settled time in microseconds. `run` must be running. Before the first look, the time is 0, so that no row is
    deleted.

    store: the store for periodic work of the node with the lease. clock: the clock of the day. monotonic: a clock in
    seconds that only advances.
    """

    def __init__(self, store: Store, clock: Clock, monotonic: Callable[[], float] = trio.current_time) -> None:
        self._store = store
        self._clock = clock
        self._monotonic = monotonic
        self._settled: _Settled | None = None
        self._looked_at = 0.0  # by the monotonic clock
        self._stored = _Settled(0, 0)

    def __call__(self) -> int:
        """Return the settled time, or the time of the day if it is earlier."""
        return 0 if self._settled is None else min(self._clock(), self._now(self._settled))

    def _now(self, settled: _Settled) -> int:
        return settled.at + int((self._monotonic() - self._looked_at) * SECOND)

    async def begin(self) -> None:
        """Read the time that this node or another one has stored, and compare the clocks."""
        self._settled = None
        try:
            await self.look()
        except SallyportError as error:
            log.warning("settled_time_not_stored", error=str(error))

    async def run(self) -> None:
        """Compare the clocks every LOOK_S seconds, until cancelled."""
        await every(LOOK_S, self.look, failure="settled_time_not_stored")

    async def look(self) -> None:
        """Compare the clocks once. Raises StoreError."""
        if self._settled is None:
            stored = await self._store.read(_read)
            self._stored, self._looked_at = stored or _Settled(0, 0), self._monotonic()
            self._settled = stored or _Settled(self._clock(), 0)
        before, expected, now = self._settled, self._now(self._settled), self._clock()
        if abs(now - expected) <= DAY_US:
            new = _Settled(now, 0)
        elif not before.differs_since:
            log.warning("clock_jumped", ahead_s=(now - expected) // SECOND)
            new = _Settled(expected, expected)
        elif expected - before.differs_since >= DAY_US:
            log.info("clock_jump_accepted", ahead_s=(now - expected) // SECOND)
            new = _Settled(now, 0)
        else:
            new = _Settled(expected, before.differs_since)
        self._settled, self._looked_at = new, self._monotonic()
        if new.differs_since != self._stored.differs_since or abs(new.at - self._stored.at) >= STORE_US:
            await self._store.write(lambda tx: _write(tx, new))
            self._stored = new


def _read(tx: Tx) -> _Settled | None:
    return tx.one(_Settled, "select at, differs_since from settled_time")


def _write(tx: Tx, settled: _Settled) -> None:
    tx.execute(
        "insert into settled_time (id, at, differs_since) values (1, :at, :since) "
        "on conflict (id) do update set at = excluded.at, differs_since = excluded.differs_since",
        at=settled.at,
        since=settled.differs_since,
    )
