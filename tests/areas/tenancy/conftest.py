"""A store in a temporary directory, and a clock that a test sets."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sallyport.store.model import Engine
from tests.areas import areas, clock, running_engine

__all__ = ["areas", "clock"]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Engine]:
    """The store, running."""
    async with running_engine(tmp_path) as store:
        yield store
