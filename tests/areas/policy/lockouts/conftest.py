"""Fixtures of the lock-out tests: a service that locks out after ten failures."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.areas import Areas, SetClock, clock, running_areas
from tests.areas.login.conftest import listener
from tests.areas.login.first.conftest import book, listed

__all__ = ["book", "clock", "listed", "listener"]


@pytest.fixture
async def areas(tmp_path: Path, clock: SetClock) -> AsyncIterator[Areas]:
    """The areas with a new store. Ten failures lock a name."""
    async with running_areas(tmp_path, clock, lockout_failures=10) as areas:
        yield areas
