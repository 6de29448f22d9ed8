"""Fixtures of the audit tests."""

import pytest

from tests.areas import Areas, areas, clock
from tests.areas.audit import NewEntries

__all__ = ["areas", "clock"]


@pytest.fixture
async def new_entries(areas: Areas) -> NewEntries:
    """Return a reader that returns only entries that were added after the setup."""
    new_entries = NewEntries(areas)
    await new_entries.rows()
    return new_entries
