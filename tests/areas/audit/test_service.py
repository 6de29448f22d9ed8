"""Reading of the audit trail: pages, filters and totals."""

from contextlib import closing
from dataclasses import replace

import pytest

from sallyport.areas.audit import repo
from sallyport.areas.audit.repo import AuditQuery
from sallyport.base.actor import Actor, acting_as
from sallyport.store import audit
from sallyport.store.connections import SqliteTx, open_connection
from sallyport.store.model import Tx
from tests.areas import Areas, only_sqlite
from tests.areas.audit import trail

TENANT, DOMAIN = 77, 770


def write(tx: Tx, number: int, *, tenant: int = TENANT, domain: int | None = DOMAIN, at: int | None = None) -> None:
    """Add an entry whose target and time are `number`. Odd numbers change a client. The actor of multiples of three is
    bob.
    """
    with acting_as(Actor("token", "bob" if number % 3 == 0 else "ann", number)):
        audit.record(
            tx,
            "client.update" if number % 2 else "rule.update",
            at=number if at is None else at,
            tenant_id=tenant,
            domain_id=domain,
            target=f"thing {number}",
            changes={"name": ["old", f"Näme {number}"]},
        )


@pytest.fixture
async def written(areas: Areas) -> Areas:
    """Return areas with 30 entries: 1 to 20 belong to the domain, 21 to 25 to no domain, and 26 to 30 to another
    tenant.
    """

    def work(tx: Tx) -> None:
        for number in range(1, 31):
            write(tx, number, tenant=TENANT if number <= 25 else 78, domain=DOMAIN if number <= 20 else None)

    await areas.store.write(work)
    return areas


async def numbers(areas: Areas, **asked: object) -> tuple[list[int], int]:
    """Return the numbers of the matching entries of the tenant, and the total."""
    query = AuditQuery(**{"tenant_id": TENANT, "limit": 1000, **asked})  # type: ignore[arg-type]
    rows, total = await areas.audit.page(query)
    return [int(row.target.split()[1]) for row in rows], total


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, range(25, 0, -1)),
        ({"domain_id": DOMAIN}, range(20, 0, -1)),
        ({"tenant_id": 78}, range(30, 25, -1)),
        ({"action": "client.update"}, range(25, 0, -2)),
        ({"action": "client"}, ()),
        ({"actor": "bob", "domain_id": DOMAIN}, range(18, 0, -3)),
        ({"since": 5, "until": 8}, (7, 6, 5)),
        ({"search": "THING 2"}, (25, 24, 23, 22, 21, 20, 2)),
        ({"search": "näme 7"}, (7,)),
        ({"search": "BOB", "action": "client.update", "since": 10}, (21, 15)),
        ({"search": "nobody"}, ()),
        ({"tenant_id": 79}, ()),
    ],
)
async def test_entries_are_filtered(written: Areas, asked: dict[str, object], found: list[int]) -> None:
    """The entries that match a filter are listed newest first, and the total counts all of them."""
    assert await numbers(written, **asked) == (list(found), len(list(found)))


async def test_without_a_tenant_all_entries_are_read(written: Areas) -> None:
    """The trail of the installation includes entries without a tenant."""
    before = len(await trail(written))
    await written.store.write(lambda tx: write(tx, 31, tenant=audit.INSTALLATION, domain=None))
    rows, total = await written.audit.page(AuditQuery(limit=1000))
    assert len(rows) == total == before + 1
    assert "thing 31" in [row.target for row in rows]
    assert (await numbers(written))[1] == 25


async def test_pages_have_each_entry_once(written: Areas) -> None:
    """Pages are read by an offset or from the last entry of the previous page, even if several entries have the same
    time.
    """
    for number in (90, 91, 92, 93):
        await written.store.write(lambda tx, number=number: write(tx, number, at=25))
    by_offset = [number for at in range(0, 29, 7) for number in (await numbers(written, offset=at, limit=7))[0]]
    assert by_offset == [93, 92, 91, 90, *range(25, 0, -1)]
    query, by_cursor = AuditQuery(tenant_id=TENANT, limit=3), []
    while rows := await written.audit.newest(query):
        by_cursor += [int(row.target.split()[1]) for row in rows]
        query = replace(query, before=(rows[-1].at, rows[-1].id))
    assert by_cursor == by_offset


async def test_entries_are_in_order_of_their_times(written: Areas) -> None:
    """If the clock was set back, no page omits or repeats an entry."""
    await written.store.write(lambda tx: write(tx, 40, at=3))
    assert (await numbers(written))[0] == [*range(25, 3, -1), 40, 3, 2, 1]


@only_sqlite
async def test_lists_and_totals_use_an_index(written: Areas) -> None:
    """Queries for pages, totals and time ranges use an index, without a scan and without sorting."""
    statements: list[str] = []
    with closing(open_connection(written.store.path, read_only=True)) as connection:
        connection.set_trace_callback(statements.append)
        tx = SqliteTx(connection)
        for query in (
            AuditQuery(tenant_id=TENANT),
            AuditQuery(tenant_id=TENANT, domain_id=DOMAIN, before=(9, 9)),
            AuditQuery(tenant_id=TENANT, since=3),
            AuditQuery(since=3),
        ):
            repo.newest(tx, query)
            repo.matching(tx, query, query.limit)
        connection.set_trace_callback(None)
        plans = [row[3] for each in statements for row in connection.execute(f"explain query plan {each}")]
    assert [plan for plan in plans if "audit_trail_by_tenant" in plan]
    assert [plan for plan in plans if "audit_trail_by_domain" in plan]
    assert not [plan for plan in plans if "SCAN audit_trail" in plan or "TEMP B-TREE" in plan]
