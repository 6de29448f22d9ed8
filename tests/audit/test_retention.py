"""The end of entries."""

import pytest
import trio

from sallyport.audit.repo import AuditQuery
from sallyport.audit.service import CHUNK, DAY, Retention
from sallyport.base.errors import StoreError
from sallyport.store import audit
from sallyport.store.model import Tx
from tests.areas import Areas
from tests.audit import trail
from tests.waiting import until

TENANT, DOMAIN = 77, 770


async def write(areas: Areas, *ages: int, domain: int | None = DOMAIN) -> None:
    """Entries, each so many microseconds old."""

    def work(tx: Tx) -> None:
        for age in ages:
            at = areas.clock() - age
            audit.record(tx, "thing.set", at=at, tenant_id=TENANT, domain_id=domain, target=str(age))

    await areas.store.write(work)


async def kept(areas: Areas, **of: int) -> list[str]:
    """Return the entries of the tenant, whose number is the kept total."""
    query = AuditQuery(**{"tenant_id": TENANT, "limit": 10_000, **of})
    rows, total = await areas.audit.page(query)
    assert len(rows) == total
    return [row.target for row in rows]


async def test_what_is_old_goes(areas: Areas) -> None:
    """The day counts, and the totals of tenant and domain follow."""
    await write(areas, 11 * DAY, 10 * DAY + 1, 10 * DAY, DAY)
    await write(areas, 20 * DAY, 5 * DAY, domain=None)
    await Retention(areas.store, days=10, clock=areas.clock).purge()
    assert await kept(areas) == [str(DAY), str(5 * DAY), str(10 * DAY)]
    assert await kept(areas, domain_id=DOMAIN) == [str(DAY), str(10 * DAY)]
    areas.clock.pass_by(100 * 86_400)
    await Retention(areas.store, days=10, clock=areas.clock).purge()
    assert await trail(areas) == []
    assert await kept(areas) == []


async def test_for_ever(areas: Areas) -> None:
    """0 days delete nothing, however old it is."""
    await write(areas, 20_000 * DAY)
    await Retention(areas.store, days=0, clock=areas.clock).purge()
    assert len(await kept(areas)) == 1


async def test_a_chunk_at_a_time(areas: Areas) -> None:
    """More than fits into one transaction goes as well; what a failing store interrupts goes the next time."""
    await write(areas, *[11 * DAY] * (CHUNK + 1), DAY)
    retention = Retention(areas.store, days=10, clock=areas.clock, every_s=0.01)
    block = "create trigger no_delete before delete on audit_trail begin select raise(abort, 'no'); end"
    await areas.store.write(lambda tx: tx.execute(block))
    with pytest.raises(StoreError):
        await retention.purge()
    assert len(await kept(areas)) == CHUNK + 2

    async def purged() -> bool:
        return len(await kept(areas)) == 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(retention.run)
        await areas.store.write(lambda tx: tx.execute("drop trigger no_delete"))
        await until(purged)
        nursery.cancel_scope.cancel()
    assert await kept(areas) == [str(DAY)]
