"""The areas over a store in a temporary directory, and a machine of their domain."""

import pytest

from tests.areas import Areas, areas, clock
from tests.endpoints.agents.hosts import Host

__all__ = ["areas", "clock", "host"]


@pytest.fixture
async def host(areas: Areas) -> Host:
    """A registered machine whose agent has no state yet."""
    return await Host.register(areas, "web")
