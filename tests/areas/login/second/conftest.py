"""Logins with a scripted second factor: enforce mode, ann with the password hello, and a push that waits."""

import pytest

from tests.areas import Areas
from tests.areas.login.conftest import FakeListener, areas, clock, listener
from tests.areas.login.second.scripted import Script

__all__ = ["areas", "clock", "listener"]


@pytest.fixture
async def script(areas: Areas, listener: FakeListener) -> Script:
    """Return the script of the provider."""
    script = Script()
    await script.attach(areas)
    return script
