"""Background work of the inventory: counts are flushed, also after failures of the store."""

from collections.abc import Callable

import trio
import trio.testing
from prometheus_client import CollectorRegistry

from sallyport.areas.devices.service import FLUSH_S, Devices
from sallyport.areas.devices.sightings import Sightings
from sallyport.base.errors import StoreError
from sallyport.metrics import InventoryMetrics
from sallyport.store.model import Store, T, Work
from tests.areas import Areas
from tests.areas.devices.conftest import Seen


class FailingStore:
    """A store whose reads or writes fail on demand."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.fails = False
        self.failed = 0
        self.reads = 0

    @property
    def changes(self) -> int:
        return self.store.changes

    def _check(self) -> None:
        if self.fails:
            self.failed += 1
            raise StoreError("disk")

    async def read(self, work: Work[T]) -> T:
        self._check()
        self.reads += 1
        return await self.store.read(work)

    async def read_now(self, work: Work[T]) -> T:
        return await self.store.read_now(work)

    async def search(self, work: Work[T]) -> T:
        return await self.store.search(work)

    async def write(self, work: Work[T]) -> T:
        self._check()
        return await self.store.write(work)

    def submit(self, work: Work[T], done: Callable[[T | None, BaseException | None], None]) -> None:
        self.store.submit(work, done)


async def test_counts_are_flushed_every_second_and_at_the_end(
    areas: Areas, seen: Seen, mock_clock: trio.testing.MockClock
) -> None:
    """Counts are flushed every second, and once more when the service stops."""
    mock_clock.rate = 1
    await seen.device("a")
    count = "select request_count from devices"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.devices.run)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(FLUSH_S)
        with trio.fail_after(30):
            while areas.sample("sallyport_devices", domain=str(areas.domain)) != 1:
                await trio.sleep(0.001)
        assert await areas.store.read(lambda tx: tx.value(int, count)) == 1
        seen.note(NAS_IDENTIFIER=b"a")
        nursery.cancel_scope.cancel()
    assert await areas.store.read(lambda tx: tx.value(int, count)) == 2


async def test_an_idle_service_does_not_read_the_store(areas: Areas, mock_clock: trio.testing.MockClock) -> None:
    """The devices of a transaction are counted with the next flush."""
    watched = FailingStore(areas.store)
    areas.devices = Devices(
        watched, Sightings(), InventoryMetrics(CollectorRegistry()), areas.devices.tags, areas.clock
    )

    async def look(reads: int) -> None:
        mock_clock.jump(FLUSH_S)
        with trio.fail_after(60):
            while watched.reads < reads:
                await trio.sleep(0.001)

    mock_clock.rate = 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.devices.run)
        await trio.testing.wait_all_tasks_blocked()
        await look(1)
        for _ in range(5):
            await trio.testing.wait_all_tasks_blocked()
            await look(1)
        assert watched.reads == 1
        await areas.store.write(lambda tx: None)
        await trio.testing.wait_all_tasks_blocked()
        await look(2)
        nursery.cancel_scope.cancel()


async def test_a_failing_store_does_not_end_the_flushes(
    areas: Areas, seen: Seen, autojump_clock: trio.testing.MockClock
) -> None:
    """While the store can neither be read nor written, the inventory waits; then it continues."""
    failing = FailingStore(areas.store)
    areas.devices = Devices(
        failing, Sightings(), InventoryMetrics(CollectorRegistry()), areas.devices.tags, areas.clock
    )
    await seen.device("a")
    async with trio.open_nursery() as nursery:
        failing.fails = True
        nursery.start_soon(areas.devices.run)
        while failing.failed < 6:
            await trio.sleep(0.1)
        failing.fails = False
        nursery.cancel_scope.cancel()
    (row,) = await seen.rows()
    assert row.request_count == 1


async def test_the_inventory_is_listed_while_writes_fail(areas: Areas, seen: Seen) -> None:
    """A list on a full disk has the stored counts plus those in memory."""

    class NoWrites(FailingStore):
        async def read(self, work: Work[T]) -> T:
            return await self.store.read(work)

    failing = NoWrites(areas.store)
    areas.devices = Devices(
        failing, Sightings(), InventoryMetrics(CollectorRegistry()), areas.devices.tags, areas.clock
    )
    device = await seen.device("a")
    failing.fails = True
    (row,) = await seen.rows()
    assert (row.id, row.request_count) == (device.id, 1)
    failing.fails = False
    assert (await areas.devices.one(areas.domain, row.id)).request_count == 1


class HeldWrites(FailingStore):
    """A store whose next write commits, but returns only when the test allows it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.written, self.let = trio.Event(), trio.Event()

    async def write(self, work: Work[T]) -> T:
        result = await self.store.write(work)
        self.written.set()
        await self.let.wait()
        return result


async def test_a_list_writes_nothing(areas: Areas, seen: Seen) -> None:
    """A page and a single device have the stored counts plus those in memory, and write nothing."""
    device = await seen.device("a")
    await areas.devices.flush()
    before = areas.store.changes
    areas.clock.pass_by(5)
    for _ in range(3):
        seen.note(NAS_IDENTIFIER=b"a")
    device.posture.unsigned, device.posture.last_unsigned = 2, areas.clock()
    device.posture.count_answer(areas.clock())
    device.posture.give_up_ms, device.posture.measured_at = 9000, areas.clock()
    (row,) = await seen.rows()
    assert row == await areas.devices.one(areas.domain, row.id)
    assert (row.request_count, row.last_seen, row.unsigned, row.last_unsigned) == (4, areas.clock(), 2, areas.clock())
    assert (row.challenge_support(areas.clock()), row.give_up_ms, row.retransmit_ms) == ("yes", 9000, None)
    assert areas.store.changes == before
    await areas.devices.flush()
    assert await seen.rows() == [row]


async def test_no_request_is_counted_twice_in_a_list(areas: Areas, seen: Seen) -> None:
    """A list that is read while the counts of its devices are being written waits for that."""
    held = HeldWrites(areas.store)
    areas.devices = Devices(held, Sightings(), InventoryMetrics(CollectorRegistry()), areas.devices.tags, areas.clock)
    await seen.device("a")
    listed: list[int] = []

    async def look() -> None:
        listed.extend(row.request_count for row in await seen.rows())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.devices.flush)
        await held.written.wait()
        nursery.start_soon(look)
        await trio.testing.wait_all_tasks_blocked()
        assert listed == []
        held.let.set()
    assert listed == [1]


async def test_two_devices_in_memory_may_share_a_row(areas: Areas, seen: Seen) -> None:
    """A flush adds the counts of both devices to the row, and keeps the description of the later one."""
    first = seen.note("192.0.2.1", NAS_IDENTIFIER=b"a")
    second = seen.note("192.0.2.1", NAS_IDENTIFIER=b"a", NAS_IP_ADDRESS=bytes((192, 0, 2, 1)))
    await seen.write(first, second)
    assert first.id == second.id
    first.posture.signed, first.posture.retransmit_ms, second.posture.signed = 2, 3000, 1
    first.posture.measured_at = areas.clock()
    first.device_type, second.device_type = "an earlier product", "a later product"
    await areas.devices.flush()
    (row,) = await seen.rows(search="later")
    assert (row.request_count, row.signed, row.retransmit_ms, row.device_type) == (2, 3, 3000, "a later product")
    assert await seen.rows(search="earlier") == []
