"""Fixtures: the areas with a store in a temporary directory, and a registered machine."""

import pytest

from tests.areas import Areas, areas, clock
from tests.areas.agents.hosts import Host

__all__ = ["areas", "clock", "host"]


@pytest.fixture
async def host(areas: Areas) -> Host:
    """Return a registered machine whose agent has fetched no state."""
    return await Host.register(areas, "web")
