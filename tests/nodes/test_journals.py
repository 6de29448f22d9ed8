"""Journals of two nodes that write at the same time."""

from collections.abc import Callable
from pathlib import Path
from threading import Barrier

import trio

from sallyport.areas.devices.device import Device, Station
from sallyport.areas.devices.sightings import Registered, Sighting, write_first_sightings
from sallyport.store import counters
from sallyport.store.model import Tx
from sallyport.store.postgres.engine import PostgresStore
from tests.areas import Areas, SetClock, keep_files_in
from tests.peers.postgres import needs_postgres

pytestmark = needs_postgres
Sightings = list[Sighting]


async def submitted(store: PostgresStore, work: Callable[[Tx], Sightings], found: list[Sightings]) -> None:
    """Write over the journal's connection."""
    finished = trio.Event()

    def done(result: Sightings | None, error: BaseException | None) -> None:
        assert error is None
        assert result is not None
        found.append(result)
        finished.set()

    store.submit(work, done)
    await finished.wait()


def seen(domain: int, count: int) -> list[tuple[Device, Station]]:
    """Return new devices with a station each."""
    devices = [Device(domain, f"192.0.2.{number}", "192.0.2.1", f"switch-{number}", 1) for number in range(count)]
    return [(each, Station(each, "02-00", "ann", 1)) for each in devices]


async def test_two_nodes_register_the_same_devices(store: PostgresStore, other: PostgresStore, tmp_path: Path) -> None:
    """Each device gets one row, whose id both nodes have, one registration and one entry in its history, whatever the
    order in which the nodes have seen the devices."""
    keep_files_in(store, tmp_path)
    areas = Areas(store, SetClock())
    await areas.configuration.reload()
    domain = await areas.domains.add(await areas.tenancy.ensure_tenant(1, 1), "corp")
    for turn in range(5):
        count, barrier = 4 + turn, Barrier(2)
        ours, theirs = seen(domain, count), seen(domain, count)[::-1]
        for device, _ in (*ours, *theirs):
            device.nas_identifier = f"{turn}-{device.nas_identifier}"
        found: list[Sightings] = []

        def work(tx: Tx, mine: list[tuple[Device, Station]], barrier: Barrier = barrier) -> Sightings:
            barrier.wait(10)
            return write_first_sightings(tx, mine)

        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                for each, mine in ((store, ours), (other, theirs)):
                    nursery.start_soon(submitted, each, lambda tx, mine=mine: work(tx, mine), found)
        registered = [each for sightings in found for each in sightings]
        assert all(isinstance(each, Registered) and not each.again for each in registered)
        assert len(registered) == count
        assert [device.id for device, _ in ours] == [device.id for device, _ in theirs[::-1]]
    rows = 4 + 5 + 6 + 7 + 8

    def check(tx: Tx) -> list[tuple[object, ...]]:
        sql = (
            "select (select count(*) from devices), (select sum(registrations) from devices), "
            "(select count(*) from device_history where event = 'registered'), (select count(*) from stations), "
            "(select count(*) from devices_search), (select sum(value) from tenant_rows where name = 'devices')"
        )
        assert counters.total(tx, domain, "devices") == rows
        return list(tx.rows(sql))

    assert await store.read(check) == [(rows,) * 6]


async def test_totals_of_two_nodes_are_added(store: PostgresStore, other: PostgresStore) -> None:
    """A journal does not wait for another node's transaction that counts in the same domain, and the total has both."""
    found: list[Sightings] = []
    counted = trio.Event()

    def first(tx: Tx) -> Sightings:
        counters.add_share(tx, {(1, "events"): 2})
        trio.from_thread.run_sync(counted.set, trio_token=token)
        assert trio.from_thread.run(wait, trio_token=token)
        return []

    async def wait() -> bool:
        with trio.move_on_after(10):
            await over.wait()
            return True
        return False

    def second(tx: Tx) -> Sightings:
        counters.add_share(tx, {(1, "events"): 3, (2, "events"): 1})
        return []

    token, over = trio.lowlevel.current_trio_token(), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(submitted, store, first, found)
        await counted.wait()
        await submitted(other, second, found)
        over.set()
    assert await store.read(lambda tx: (counters.total(tx, 1, "events"), counters.totals(tx, "events"))) == (
        5,
        {1: 5, 2: 1},
    )
