"""Fixtures: the console over the areas, and the browser of a signed-in person."""

from collections.abc import AsyncIterator

import pytest

from tests.areas import Areas, SetClock, areas, clock
from tests.console.visitor import Site, Visitor, site_of, text_of

__all__ = ["areas", "clock"]


@pytest.fixture
async def site(areas: Areas, clock: SetClock) -> Site:
    """Return the console, over a store with one tenant and its domain corp."""
    return site_of(areas, clock)


@pytest.fixture
async def admin(site: Site) -> AsyncIterator[Visitor]:
    """Yield the browser of an admin of the tenant, signed in with a token."""
    async with site.visitor() as visitor:
        answer = await visitor.sign_in(await site.token())
        assert answer.status_code == 303, text_of(answer)
        yield visitor
