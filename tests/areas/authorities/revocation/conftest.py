"""Fixtures of the tests of revocation."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sallyport.store.model import Engine
from tests.areas import SetClock, running_engine
from tests.areas.authorities.revocation.bench import Bench, running


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Engine]:
    """A new store."""
    async with running_engine(tmp_path) as engine:
        yield engine


@pytest.fixture
async def bench(store: Engine) -> AsyncIterator[Bench]:
    """A bench on a new store."""
    async with running(store, SetClock()) as made:
        yield made
