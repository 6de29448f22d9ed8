"""What the tests of this folder share."""

import pytest

from tests.areas import Areas, areas, clock
from tests.audit import Since

__all__ = ["areas", "clock"]


@pytest.fixture
async def since(areas: Areas) -> Since:
    """The trail after what the areas begin with."""
    since = Since(areas)
    await since.rows()
    return since
