"""The deletion of expired entries."""

import pytest
import trio

from sallyport.areas.audit.repo import AuditQuery
from sallyport.areas.audit.service import CHUNK, DAY, Retention
from sallyport.base.errors import StoreError
from sallyport.store import audit
from sallyport.store.model import Tx
from tests.areas import Areas, allow, refuse
from tests.areas.audit import trail
from tests.waiting import until

TENANT, DOMAIN = 77, 770


async def write(areas: Areas, *ages: int, domain: int | None = DOMAIN) -> None:
    """Add entries that have these ages, in microseconds."""

    def work(tx: Tx) -> None:
        for age in ages:
            at = areas.clock() - age
            audit.record(tx, "thing.set", at=at, tenant_id=TENANT, domain_id=domain, target=str(age))

    await areas.store.write(work)


async def kept(areas: Areas, **of: int) -> list[str]:
    """Return the entries of the tenant, and assert that the stored total is their number."""
    query = AuditQuery(**{"tenant_id": TENANT, "limit": 10_000, **of})
    rows, total = await areas.audit.page(query)
    assert len(rows) == total
    return [row.target for row in rows]


async def test_expired_entries_are_deleted(areas: Areas) -> None:
    """When expired entries are deleted, the totals of the tenant and the domain are reduced."""
    await write(areas, 11 * DAY, 10 * DAY + 1, 10 * DAY, DAY)
    await write(areas, 20 * DAY, 5 * DAY, domain=None)
    await Retention(areas.store, days=10, clock=areas.clock).purge()
    assert await kept(areas) == [str(DAY), str(5 * DAY), str(10 * DAY)]
    assert await kept(areas, domain_id=DOMAIN) == [str(DAY), str(10 * DAY)]
    areas.clock.pass_by(100 * 86_400)
    await Retention(areas.store, days=10, clock=areas.clock).purge()
    assert await trail(areas) == []
    assert await kept(areas) == []


async def test_0_days_keep_all_entries(areas: Areas) -> None:
    await write(areas, 20_000 * DAY)
    await Retention(areas.store, days=0, clock=areas.clock).purge()
    assert len(await kept(areas)) == 1


async def test_many_entries_are_deleted_in_chunks(areas: Areas) -> None:
    """If the store raises an error, the next run continues the deletion."""
    await write(areas, *[11 * DAY] * (CHUNK + 1), DAY)
    retention = Retention(areas.store, days=10, clock=areas.clock, every_s=0.01)
    await refuse(areas.store, "before delete on audit_trail")
    with pytest.raises(StoreError):
        await retention.purge()
    assert len(await kept(areas)) == CHUNK + 2

    async def purged() -> bool:
        return len(await kept(areas)) == 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(retention.run)
        await allow(areas.store, "audit_trail")
        await until(purged)
        nursery.cancel_scope.cancel()
    assert await kept(areas) == [str(DAY)]
