"""A store in a temporary directory, and a clock that a test sets."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sallyport.store.sqlite import SqliteStore
from tests.areas import areas, clock, running_store

__all__ = ["areas", "clock"]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """The embedded store, running."""
    async with running_store(tmp_path / "s.db") as store:
        yield store
