"""Tests of retention: which rows are deleted, in which order, and how many in each transaction."""

import math
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from sallyport.areas.events import repo
from sallyport.areas.events.event import EventQuery
from sallyport.areas.events.repo import ACCOUNTING, ACCOUNTING_COUNTER, COUNTER, EVENTS, SESSIONS, RetainedTable
from sallyport.areas.events.retention import CHUNK, DAY, PAUSE_S, Retention
from sallyport.areas.events.service import Events
from sallyport.areas.login.accounting import COLUMNS as ACCOUNTING_COLUMNS
from sallyport.base.clock import SECOND
from sallyport.base.errors import StoreError
from sallyport.metrics import LoginMetrics
from sallyport.store import counters
from sallyport.store.connections import SqliteTx, open_connection
from sallyport.store.model import Done, Store, T, Tx, Value, Work
from tests.areas import SetClock, only_sqlite, running_engine
from tests.waiting import until

DOMAIN = 7
DAYS = 90
ROOM = 1 << 40
OLD, NEW = 100 * DAY, 10 * DAY
BODY = b"x" * 120


@dataclass
class Watched:
    """A store that records its writes and fails on demand. writes: the result of each write (the number of deleted
    rows) and its time."""

    inner: Store
    writes: list[tuple[object, float]] = field(default_factory=list)
    fails_at: int | None = None

    async def read(self, work: Work[T]) -> T:
        return await self.inner.read(work)

    async def read_now(self, work: Work[T]) -> T:
        return await self.inner.read_now(work)

    async def search(self, work: Work[T]) -> T:
        return await self.inner.search(work)

    async def write(self, work: Work[T]) -> T:
        """Write, or raise StoreError if this write is to fail."""
        if self.fails_at == len(self.writes):
            self.fails_at = None
            raise StoreError("the disk is gone")
        result = await self.inner.write(work)
        self.writes.append((result, trio.current_time()))
        return result

    def submit(self, work: Work[T], done: Done[T]) -> None:
        self.inner.submit(work, done)


@dataclass
class Log:
    """Events and accounting records of any age, and the retention that deletes them."""

    path: Path
    store: Watched
    clock: SetClock
    metrics: LoginMetrics
    registry: CollectorRegistry

    async def events(self, ages: list[int], domain: int = DOMAIN, user: str = "ann") -> None:
        """Write one event for each age. Ages are in microseconds."""
        same: dict[str, Value] = {
            "domain_id": domain, "user_name": user, "ip_address": "192.0.2.1", "client_ip": "10.0.0.1", "device_id": 1,
            "device_name": "switch", "station": "", "method": "pap", "factor": "local", "decision": "accept",
            "applied_decision": "accept", "would_have_been": "", "reason": "", "latency_us": 0,
        }  # fmt: skip
        rows = [(self.clock() - age,) for age in ages]

        def work(tx: Tx) -> None:
            tx.insert("events", ("at",), rows, same=same)
            counters.add(tx, domain, COUNTER, len(rows))

        await self.store.inner.write(work)

    async def accounting(self, ages: list[int], domain: int = DOMAIN) -> None:
        """Write one accounting record for each age. Ages are in microseconds."""
        now = self.clock()
        rows: list[tuple[Value, ...]] = [(now - age, domain, 1, 1, b"s", "ann", "", BODY) for age in ages]

        def work(tx: Tx) -> None:
            tx.insert("accounting_records", ACCOUNTING_COLUMNS, rows)
            counters.add(tx, domain, ACCOUNTING_COUNTER, len(rows))

        await self.store.inner.write(work)

    async def tenant(self, number: int, *domains: int) -> None:
        """Add a tenant of organization 1 with these domains."""

        def work(tx: Tx) -> None:
            tx.execute("insert into organizations values (1, '', 0) on conflict do nothing")
            tx.execute("insert into tenants values (:n, 1, :n, '', 0)", n=number)
            for domain in domains:
                tx.execute(
                    "insert into domains (id, tenant_id, name, name_key, directory_name, enforcement_mode, "
                    "fallback_action, first_factor, status, realms, created_at) "
                    "values (:d, :t, :d, :d, '', '', '', '', '', '', 0)",
                    d=domain,
                    t=number,
                )

        await self.store.inner.write(work)

    def retention(self, days: int = DAYS, limit: int = ROOM) -> Retention:
        """Return a retention whose clock shows the time of the tests."""
        return Retention(self.store, self.metrics, days=days, limit=limit, clock=self.clock, every_s=0.01)

    async def count(self, table: RetainedTable = EVENTS, domain: int = DOMAIN) -> int:
        """Return the number of rows of a domain. Assert that its stored total is the same."""
        sql = f"select count(*) from {table.name} where domain_id = :d"  # noqa: S608

        def both(tx: Tx) -> tuple[int, int]:
            return tx.value(int, sql, d=domain) or 0, sum(counters.total(tx, domain, name) for name in table.counters)

        found, total = await self.store.read(both)
        assert total == found
        return found

    async def octets(self) -> int:
        """Return the estimated space of all rows."""
        return math.ceil(sum(part.octets for part in await self.store.read(repo.table_usage)))

    async def row_octets(self, table: RetainedTable) -> int:
        """Return the estimated space of one row of the domain."""
        (part,) = [each for each in await self.store.read(repo.table_usage) if each.table is table]
        return math.ceil(part.row_octets)

    def purged(self, table: str, reason: str) -> float:
        """Return the metric that counts deleted rows."""
        labels = {"table": table, "reason": reason}
        return self.registry.get_sample_value("sallyport_events_purged_total", labels) or 0.0


@pytest.fixture
async def journal(tmp_path: Path, clock: SetClock) -> AsyncIterator[Log]:
    """An empty log."""
    registry = CollectorRegistry()
    path = tmp_path / "s.db"
    async with running_engine(tmp_path) as store:
        yield Log(path, Watched(store), clock, LoginMetrics(registry), registry)


async def test_older_rows_are_deleted(journal: Log) -> None:
    """Events and accounting records of every domain, and records without a domain, are deleted when they are too old.

    The stored totals are corrected.
    """
    for domain in (DOMAIN, 99, 0):
        await journal.events([OLD, OLD, NEW], domain)
    await journal.accounting([OLD, NEW])
    await journal.retention().purge()
    assert [await journal.count(domain=domain) for domain in (DOMAIN, 99, 0)] == [1, 1, 1]
    assert await journal.count(ACCOUNTING) == 1
    assert (journal.purged("events", "age"), journal.purged("accounting_records", "age")) == (6, 1)
    assert journal.purged("events", "size") == 0


async def sessions(journal: Log, ends: list[int | None]) -> None:
    """Write one session for each end. Ends are in microseconds before now; None means that the session is live."""
    now = journal.clock()
    columns = (
        "domain_id", "device_id", "acct_session_id", "newest", "session_time", "input_octets", "output_octets",
        "input_packets", "output_packets", "started", "first_seen", "updated", "stopped", "state", "records", "recent",
        "follows",
    )  # fmt: skip
    first = now - 200 * DAY
    rows: list[tuple[Value, ...]] = [
        (DOMAIN, 1, b"%d" % number, 0, 0, 0, 0, 0, 0, first, first, now, None if end is None else now - end,
         "live" if end is None else "stopped", 1, b"", 0)
        for number, end in enumerate(ends)
    ]  # fmt: skip

    def work(tx: Tx) -> None:
        tx.insert("sessions", columns, rows)
        counters.add(tx, DOMAIN, "sessions.live", sum(end is None for end in ends))
        counters.add(tx, DOMAIN, "sessions.stopped", sum(end is not None for end in ends))

    await journal.store.inner.write(work)


async def session_totals(journal: Log) -> tuple[int, int, int]:
    """Return the number of sessions, and the stored totals of live and stopped sessions."""

    def work(tx: Tx) -> tuple[int, int, int]:
        count = tx.value(int, "select count(*) from sessions") or 0
        live, stopped = (counters.total(tx, DOMAIN, f"sessions.{state}") for state in ("live", "stopped"))
        return count, live, stopped

    return await journal.store.read(work)


async def test_past_sessions_are_deleted(journal: Log) -> None:
    """A session is deleted some time after its end. A live session is kept, however long ago it began."""
    await sessions(journal, [OLD, None, NEW, OLD, None])
    await journal.retention().purge()
    assert await session_totals(journal) == (3, 2, 1)
    assert journal.purged("sessions", "age") == 2


async def test_sessions_share_the_limit(journal: Log) -> None:
    """If the rows take too much space, the sessions with the earliest start are deleted first.

    The totals are corrected.
    """
    await sessions(journal, [None, *[NEW] * 9])
    await journal.events([NEW])
    row = await journal.row_octets(SESSIONS)
    await journal.retention(limit=await journal.octets() - 3 * row).purge()
    assert await session_totals(journal) == (7, 0, 7)
    assert (await journal.count(), journal.purged("sessions", "size")) == (1, 3)


async def test_events_are_deleted_after_the_configured_days(journal: Log, clock: SetClock) -> None:
    """An event is kept for exactly the configured number of days."""
    await journal.events([0])
    retention = journal.retention(days=7)
    clock.pass_by(7 * 86_400)
    await retention.purge()
    assert await journal.count() == 1
    clock.now += 1
    await retention.purge()
    assert await journal.count() == 0


async def test_events_written_out_of_order_are_deleted_by_their_time(journal: Log) -> None:
    """An old event is deleted even if a newer one was written before it."""
    await journal.events([NEW, OLD, NEW, OLD])
    await journal.retention().purge()
    rows, _ = await Events(journal.store).page(EventQuery(DOMAIN))
    assert [row.id for row in rows] == [3, 1]


async def test_rows_are_deleted_in_chunks_with_pauses(journal: Log) -> None:
    """A transaction deletes at most one chunk. Other writers can run between two chunks."""
    await journal.events([OLD] * (2 * CHUNK + 1))
    await journal.retention().purge()
    counts, moments = zip(*journal.store.writes, strict=True)
    assert counts == (CHUNK, CHUNK, 1)
    assert all(later - earlier >= PAUSE_S for earlier, later in pairwise(moments))


async def test_a_purge_without_due_rows_writes_nothing(journal: Log) -> None:
    """If no row is too old and the rows are below the size limit, the purge does not write."""
    await journal.events([NEW] * 3)
    await journal.accounting([NEW])
    await journal.retention().purge()
    assert journal.store.writes == []


async def test_an_interrupted_purge_is_completed_by_the_next(journal: Log) -> None:
    """If a purge fails, the chunks that were deleted before stay deleted and the totals match.

    The next purge deletes the rest.
    """
    await journal.events([OLD] * (2 * CHUNK) + [NEW])
    journal.store.fails_at = 1
    retention = journal.retention()
    with pytest.raises(StoreError):
        await retention.purge()
    assert await journal.count() == CHUNK + 1
    await retention.purge()
    assert await journal.count() == 1
    assert journal.purged("events", "age") == 2 * CHUNK


async def test_a_failing_store_does_not_end_the_task(journal: Log, clock: SetClock) -> None:
    """A failed purge is logged and tried again."""
    await journal.events([OLD, NEW])
    journal.store.fails_at = 0

    async def has(count: int) -> bool:
        return await journal.count() == count

    with capture_logs() as logged:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(journal.retention().run)
            await until(lambda: has(1))
            clock.now += 200 * DAY
            await until(lambda: has(0))
            nursery.cancel_scope.cancel()
    assert [each["event"] for each in logged] == ["event_purge_failed"]


async def test_the_oldest_rows_over_the_limit_are_deleted(journal: Log) -> None:
    """The oldest rows of all domains of a tenant are deleted until the remaining rows are below the limit.

    The totals are corrected.
    """
    await journal.tenant(1, DOMAIN, 99)
    for number in range(4):
        await journal.events([(8 - 2 * number) * DAY] * CHUNK, user=f"u{number}")
        await journal.events([(7 - 2 * number) * DAY] * CHUNK, 99, user=f"u{number}")
    limit = await journal.octets() * 3 // 8
    await journal.retention(limit=limit).purge()
    assert 0 <= limit - await journal.octets() < 1000
    assert [await journal.count(domain=domain) for domain in (DOMAIN, 99)] == [CHUNK, 2 * CHUNK]
    rows, _ = await Events(journal.store).page(EventQuery(DOMAIN, limit=2 * CHUNK))
    assert {row.user_name for row in rows} == {"u3"}
    assert journal.purged("events", "size") == 5 * CHUNK


async def test_accounting_shares_the_limit(journal: Log) -> None:
    """Events and accounting records are deleted together, in the order in which they were written."""
    await journal.accounting([5 * DAY] * 50)
    await journal.events([4 * DAY] * 50)
    await journal.accounting([3 * DAY] * 50)
    total = await journal.octets()
    await journal.retention(limit=total - 10).purge()
    assert (await journal.count(), await journal.count(ACCOUNTING)) == (50, 99)
    row = await journal.row_octets(ACCOUNTING)
    await journal.retention(limit=total - 50 * row).purge()
    assert (await journal.count(), await journal.count(ACCOUNTING)) == (50, 50)
    await journal.retention(limit=total - 50 * row - 10).purge()
    assert (await journal.count(), await journal.count(ACCOUNTING)) == (49, 50)


async def test_an_exceeded_limit_is_logged_once(journal: Log) -> None:
    """If a limit remains exceeded, this is logged once, and again after a pause."""
    await journal.events([DAY] * 100)
    limit = await journal.octets()
    retention = journal.retention(limit=limit)
    with capture_logs() as logged:
        await retention.purge()
        assert logged == []
        for _ in range(3):
            await journal.events([DAY] * 10)
            await retention.purge()
        assert [(each["event"], each["log_level"]) for each in logged] == [("event_limit_exceeded", "warning")]
        await journal.store.inner.write(lambda tx: repo.delete_first(tx, EVENTS, DOMAIN, 50))
        await retention.purge()
        await journal.events([DAY] * 60)
        await retention.purge()
    assert len(logged) == 2


async def test_a_tenant_cannot_displace_the_rows_of_another(journal: Log) -> None:
    """The tenant that takes the most space loses its oldest rows.

    A tenant below an equal share of the limit loses no rows, even if its rows are older. Logins without a domain are
    not deleted either.
    """
    await journal.tenant(1, DOMAIN)
    await journal.tenant(2, 98, 99)
    await journal.events([20 * DAY] * 100, DOMAIN)
    await journal.accounting([20 * DAY] * 10, DOMAIN)
    await journal.events([20 * DAY] * 20, 0)
    limit = 3 * await journal.octets()
    for domain in (98, 99):
        await journal.events([DAY] * 1000, domain)
    await journal.retention(limit=limit).purge()
    assert [await journal.count(domain=domain) for domain in (DOMAIN, 0)] == [100, 20]
    assert await journal.count(ACCOUNTING) == 10
    assert 0 <= limit - await journal.octets() < 1000


async def test_large_tenants_are_cut_to_the_same_size(journal: Log) -> None:
    """If two tenants exceed their shares, both lose their oldest rows until they take equal space."""
    for tenant in (1, 2, 3):
        await journal.tenant(tenant, tenant)
    await journal.events([20 * DAY] * 100, 1)
    await journal.events([20 * DAY] * 3000, 2)
    await journal.events([10 * DAY] * 5000, 3)
    limit = await journal.octets() // 4
    await journal.retention(limit=limit).purge()
    left = [await journal.count(domain=domain) for domain in (1, 2, 3)]
    assert left[0] == 100
    assert abs(left[1] - left[2]) <= CHUNK
    assert 0 <= limit - await journal.octets() < 1000


@only_sqlite
@pytest.mark.parametrize(("table", "tolerance"), [(EVENTS, 0.1), (ACCOUNTING, 0.1)], ids=["events", "accounting"])
async def test_the_estimated_space_is_near_the_actual_space(
    journal: Log, table: RetainedTable, tolerance: float
) -> None:
    """The estimated size of rows and their indexes is compared with the number of pages in the database."""
    ages = [number * SECOND for number in reversed(range(20_000))]
    await (journal.events(ages, user="a-name-of-20-letters") if table is EVENTS else journal.accounting(ages))

    def work(tx: Tx) -> tuple[float, int]:
        pages = f"select sum(pgsize) from dbstat where name in ('{table.name}', '{table.name}_order')"  # noqa: S608
        (part,) = repo.table_usage(tx)
        return part.octets, tx.value(int, pages) or 0

    estimate, truth = await journal.store.read(work)
    assert estimate == pytest.approx(truth, rel=tolerance)


@pytest.mark.parametrize("table", [EVENTS, ACCOUNTING], ids=lambda table: table.name)
async def test_events_cannot_be_changed(journal: Log, table: RetainedTable) -> None:
    """The store refuses to change recorded rows."""
    await journal.events([NEW])
    await journal.accounting([NEW])
    with pytest.raises(StoreError, match="append-only"):
        await journal.store.inner.write(lambda tx: tx.execute(f"update {table.name} set user_name = 'bob'"))  # noqa: S608


@only_sqlite
@pytest.mark.parametrize("table", [EVENTS, ACCOUNTING], ids=lambda table: table.name)
async def test_a_purge_finds_due_rows_by_an_index(journal: Log, table: RetainedTable) -> None:
    """Rows that are due are found by an index or by ID. No statement scans or sorts a table."""
    await journal.events([OLD, NEW])
    await journal.accounting([OLD, NEW])
    statements: list[str] = []
    with closing(open_connection(journal.path)) as connection:
        connection.set_trace_callback(statements.append)
        tx = SqliteTx(connection)
        assert {part.rows for part in repo.table_usage(tx)} == {2}
        assert repo.domains_with_older(tx, table, journal.clock() - NEW) == [DOMAIN]
        assert repo.delete_older(tx, table, DOMAIN, journal.clock() - NEW, CHUNK) == 1
        assert repo.delete_first(tx, table, DOMAIN, CHUNK) == 1
        connection.set_trace_callback(None)
        plans = [row[3] for each in statements for row in connection.execute(f"explain query plan {each}")]
    assert [plan for plan in plans if f"SEARCH {table.name}" in plan]
    assert not [plan for plan in plans if f"SCAN {table.name}" in plan or "TEMP B-TREE" in plan]
