"""Imports of many RADIUS clients in short transactions."""

import pytest

from sallyport.areas.clients.plan import Wanted
from sallyport.areas.clients.service import IMPORTED, NewClient
from sallyport.base.errors import Conflict
from tests.areas import SECRET, Areas

NUMBERS = range(2 * IMPORTED + 10)


def wanted(product: str | None = None) -> list[Wanted]:
    """Return more clients than two transactions may write."""
    return [
        Wanted(f"c{number}", f"10.0.{number // 200}.{number % 200}/32", SECRET, product, "auto", "auto", None)
        for number in NUMBERS
    ]


@pytest.mark.parametrize("product", [None, "Cisco ISE"], ids=["new", "changed"])
async def test_a_large_import_takes_several_transactions(areas: Areas, product: str | None) -> None:
    """A transaction writes at most IMPORTED clients, and each increases the version of the configuration. Afterwards,
    all clients are in the table."""
    if product:
        await areas.clients.carry_out(areas.tenant, areas.clients.plan(areas.tenant, wanted()))
    before = areas.configuration.version
    await areas.clients.carry_out(areas.tenant, areas.clients.plan(areas.tenant, wanted(product)))
    assert areas.configuration.version - before == 3
    assert [client.product for client in areas.clients.of_tenant(areas.tenant)] == [product or ""] * len(NUMBERS)


async def test_an_import_that_meets_a_conflict_can_be_repeated(areas: Areas) -> None:
    """If a name is taken after the plan was made, the clients of earlier transactions stay, and the table has them. A
    new plan imports the others."""
    steps = areas.clients.plan(areas.tenant, wanted())
    await areas.clients.add(areas.tenant, NewClient(f"c{NUMBERS[-1]}", "10.9.9.9/32", SECRET))
    with pytest.raises(Conflict):
        await areas.clients.carry_out(areas.tenant, steps)
    assert len(areas.clients.of_tenant(areas.tenant)) == 2 * IMPORTED + 1
    await areas.clients.carry_out(areas.tenant, areas.clients.plan(areas.tenant, wanted()))
    assert len(areas.clients.of_tenant(areas.tenant)) == len(NUMBERS)
