"""A store in a temporary directory, and a clock that a test sets."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.base.clock import SECOND
from sallyport.metrics import StoreMetrics
from sallyport.store.directory import Reserve
from sallyport.store.sqlite import SqliteStore


@dataclass
class SetClock:
    """Microseconds that stand still until a test moves them."""

    now: int = 1_767_225_600 * SECOND  # 2026-01-01

    def __call__(self) -> int:
        return self.now

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.now += int(seconds * SECOND)


@pytest.fixture
def clock() -> SetClock:
    """A clock that stands still."""
    return SetClock()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """The embedded store, running."""
    store = SqliteStore(tmp_path / "s.db", StoreMetrics(CollectorRegistry()), Reserve(tmp_path / "reserve", 0))
    async with trio.open_nursery() as nursery:
        await nursery.start(store.run)
        yield store
        nursery.cancel_scope.cancel()
    store.close()
