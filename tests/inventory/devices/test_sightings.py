"""Devices and stations in memory, and how they come into the store."""

import copy
import ipaddress

import pytest
import trio
import trio.testing
from prometheus_client import CollectorRegistry

from sallyport.base.clock import SECOND, iso
from sallyport.base.errors import StoreError
from sallyport.inventory.devices.device import UNKNOWN
from sallyport.inventory.devices.service import Devices
from sallyport.inventory.devices.sightings import STATIONS, Sightings
from sallyport.metrics import InventoryMetrics
from sallyport.radius.attributes import push_vendor_attribute
from sallyport.store.model import Tx
from tests.areas import Areas
from tests.inventory.devices.conftest import Seen
from tests.packets import access_request, opened

WIRELESS, ETHERNET, VIRTUAL = (number.to_bytes(4) for number in (19, 15, 5))


async def test_a_first_sighting_becomes_a_row(seen: Seen) -> None:
    """With what its request has shown: addresses, name, medium, times, and a first registration."""
    nas = ipaddress.ip_address("10.1.2.3").packed
    device = seen.note("192.0.2.7", NAS_IP_ADDRESS=nas, NAS_IDENTIFIER=b"wlc-1", NAS_PORT_TYPE=WIRELESS)
    assert device.id is None
    (registered,) = await seen.write(device)
    (row,) = await seen.rows()
    assert (registered.device, registered.again, device.id) == (device, False, row.id)
    assert (row.ip_address, row.client_ip, row.nas_identifier) == ("192.0.2.7", "10.1.2.3", "wlc-1")
    assert (row.device_name, row.nas_port_type, row.device_type) == ("wlc-1", "Wireless", UNKNOWN)
    assert (row.first_seen, row.last_seen, row.request_count, row.registrations) == (
        seen.areas.clock(), seen.areas.clock(), 1, 1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "client_ip"),
    [
        ({}, "192.0.2.1"),
        ({"NAS_IP_ADDRESS": bytes((10, 0, 0, 1))}, "10.0.0.1"),
        ({"NAS_IPV6_ADDRESS": ipaddress.ip_address("2001:db8::1").packed}, "2001:db8::1"),
        ({"NAS_IP_ADDRESS": bytes((10, 0, 0, 1)), "NAS_IPV6_ADDRESS": bytes(16)}, "10.0.0.1"),
        ({"NAS_IP_ADDRESS": b"10.0.0.1"}, "192.0.2.1"),
        ({"NAS_IP_ADDRESS": b""}, "192.0.2.1"),
    ],
)
async def test_the_client_address(seen: Seen, values: dict[str, bytes], client_ip: str) -> None:
    """NAS-IP-Address, else NAS-IPv6-Address, else the packet's source; a malformed one does not count."""
    assert seen.note(**values).client_ip == client_ip


async def test_what_tells_devices_apart(seen: Seen) -> None:
    """Domain, source, client address and NAS-Identifier; nothing else."""
    other = await seen.areas.domains.add(seen.areas.tenant, "branch")
    same = [
        seen.note(NAS_IDENTIFIER=b"a"),
        seen.note(NAS_IDENTIFIER=b"a", NAS_PORT_TYPE=WIRELESS),
        seen.note(NAS_IDENTIFIER=b"a", CALLED_STATION_ID=b"x", CALLING_STATION_ID=b"y"),
    ]
    different = [
        seen.note(NAS_IDENTIFIER=b"A"),
        seen.note("192.0.2.2", NAS_IDENTIFIER=b"a"),
        seen.note(NAS_IDENTIFIER=b"a", NAS_IP_ADDRESS=bytes(4)),
        seen.note(NAS_IDENTIFIER=b"a", domain=other),
        seen.note(),
    ]
    assert len(set(same)) == 1
    await seen.write(*same, *different)
    assert len({device.id for device in (*same, *different)}) == 6


async def test_two_in_memory_can_be_one_row(seen: Seen) -> None:
    """Requests that spell the same device differently (its address left out, or sent) share a row and its counts."""
    plain, spelled = seen.note(), seen.note(NAS_IP_ADDRESS=bytes((192, 0, 2, 1)), NAS_IDENTIFIER=b"")
    registered = await seen.write(plain, spelled)
    assert (len(registered), plain.id) == (1, spelled.id)
    (row,) = await seen.rows()
    assert row.request_count == 2


async def test_the_last_medium_stands(seen: Seen) -> None:
    """A request that names none changes nothing; one that names another one counts."""
    device = await seen.device("a", NAS_PORT_TYPE=ETHERNET)
    for value, medium in ((b"", "Ethernet"), (VIRTUAL, "Virtual"), (b"", "Virtual")):
        seen.note(NAS_IDENTIFIER=b"a", **({"NAS_PORT_TYPE": value} if value else {}))
        (row,) = await seen.rows()
        assert row.nas_port_type == device.nas_port_type == medium


async def test_the_product_is_that_of_the_client(seen: Seen) -> None:
    """What a RADIUS client was registered with is the product, whatever its packets look like, and for certain; the
    device is called after it where it has no name."""
    cisco = push_vendor_attribute(9, 1, b"audit-session-id=1")
    client = await seen.areas.client("192.0.2.9/32", product="Aruba ClearPass")
    request = opened(access_request(cisco))
    device = seen.areas.devices.sightings.device(request, "192.0.2.9", client, seen.areas.domain, seen.areas.clock())
    assert (device.device_type, device.certainty, device.device_name) == (
        "Aruba ClearPass",
        "certain",
        "Aruba ClearPass",
    )


async def test_another_product_of_the_client_holds_with_the_next_request(seen: Seen) -> None:
    """A changed registration is seen at once, in memory, in the row, and in the search."""
    client = await seen.areas.client("192.0.2.9/32", product="Cisco ISE")
    await seen.write(seen.note("192.0.2.9", client))
    assert await seen.names("cisco") == ["Cisco ISE"]
    await seen.areas.clients.update(seen.areas.tenant, client.id, {"product": "FreeRADIUS"})
    changed = seen.areas.clients.table.by_id[client.id]
    seen.note("192.0.2.9", changed)
    assert await seen.names("freeradius") == await seen.names("", "device_type", "freeradius") == ["FreeRADIUS"]
    assert await seen.names("cisco") == []


async def test_requests_are_counted(seen: Seen) -> None:
    """request_count and last_seen follow with each flush, also those noted while a flush ran."""
    start = seen.areas.clock()
    await seen.device("a")
    for number in range(1, 6):
        seen.areas.clock.pass_by(1)
        for _ in range(number):
            seen.note(NAS_IDENTIFIER=b"a")
        await seen.areas.devices.flush()
    (row,) = await seen.rows()
    assert (row.request_count, row.first_seen, row.last_seen) == (16, start, start + 5 * SECOND)


async def test_a_count_waits_for_its_row(seen: Seen) -> None:
    """A flush between a request and the transaction that registers its device loses no count, of the device or of its
    station."""
    device = seen.note(NAS_IDENTIFIER=b"a")
    station = seen.station(device, "02:00:00:00:00:01")
    await seen.areas.devices.flush()
    assert await seen.rows() == []
    await seen.write(device, station=station)
    (row,) = await seen.rows()
    stations, _ = await seen.areas.devices.stations(seen.areas.domain, 0, "", offset=0, limit=10)
    assert (row.request_count, [each.request_count for each in stations]) == (1, [1])


async def test_a_count_survives_a_failing_store(areas: Areas, seen: Seen) -> None:
    """What could not be flushed is counted again with what came meanwhile."""
    device = await seen.device("a")
    station = seen.station(device, "s")
    parts = list(areas.devices.sightings.take_changes())
    seen.note(NAS_IDENTIFIER=b"a")
    for changes in parts:
        areas.devices.sightings.put_back(changes)
    assert (device.requests, station.requests) == (2, 1)
    (row,) = await seen.rows()
    assert row.request_count == 2


def _stations(tx: Tx) -> int:
    return tx.value(int, "select count(*) from stations") or 0


async def test_others_write_while_many_are_flushed(areas: Areas, seen: Seen) -> None:
    """Who wants to write does not wait for a thousand stations, but for a few."""
    device = await seen.device("a")
    for number in range(10 * STATIONS):
        seen.station(device, f"s{number}")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.devices.flush)
        await trio.testing.wait_all_tasks_blocked()
        meanwhile = await areas.store.write(_stations)
    assert meanwhile < await areas.store.read(_stations) == 10 * STATIONS


async def test_stations_are_told_by_their_device(areas: Areas, seen: Seen) -> None:
    """Many are written together: one that two of them in memory are, and none of a device that is gone."""
    device, gone, same = await seen.device("a"), await seen.device("b"), seen.note(NAS_IDENTIFIER=b"c")
    same.id = device.id
    await areas.devices.flush()
    for each in (device, gone, same):
        seen.station(each, "s", "ann")
    await areas.store.write(lambda tx: tx.execute("delete from devices where id = :id", id=gone.id))
    await areas.devices.flush()
    rows, total = await areas.devices.stations(areas.domain, 0, "", offset=0, limit=10)
    assert [(row.device_id, row.user_name, row.request_count) for row in rows] == [(device.id, "ann", 2)]
    assert total == 1


async def test_a_flush_that_breaks_off_loses_nothing(areas: Areas, seen: Seen) -> None:
    """Counts that were written before the store failed are not counted twice; the others are counted again."""
    device = await seen.device("a")
    for number in range(3 * STATIONS):
        seen.station(device, f"s{number}")
    fail = "create trigger fail before insert on stations when new.station = :name begin select raise(abort, ''); end"
    await areas.store.write(lambda tx: tx.execute(fail.replace(":name", f"'s{STATIONS + 1}'")))
    with pytest.raises(StoreError):
        await areas.devices.flush()
    await areas.store.write(lambda tx: tx.execute("drop trigger fail"))
    await areas.devices.flush()
    rows, total = await areas.devices.stations(areas.domain, 0, "", offset=0, limit=1000)
    assert total == 3 * STATIONS
    assert {row.request_count for row in rows} == {1}


async def test_a_station_has_its_last_user(seen: Seen) -> None:
    """A station is one of its device: first and last seen, how often, and who came last."""
    device, other = await seen.device("a"), await seen.device("b")
    start = seen.areas.clock()
    for user in ("ann", "bob"):
        await seen.write(device, station=seen.station(device, "02-01", user))
        seen.areas.clock.pass_by(1)
    await seen.write(other, station=seen.station(other, "02-01", "cid"))
    rows, total = await seen.areas.devices.stations(seen.areas.domain, 0, "", offset=0, limit=10)
    assert total == 2
    assert [(row.device_id, row.station, row.user_name, row.request_count) for row in rows] == [
        (device.id, "02-01", "bob", 2),
        (other.id, "02-01", "cid", 1),
    ]
    assert [iso(at) for at in (rows[0].first_seen, rows[0].last_seen)] == [iso(start), iso(start + SECOND)]


async def test_the_memory_is_bounded(areas: Areas, seen: Seen) -> None:
    """Past the limits everything that is flushed is forgotten, found again in the store, and no count is lost."""
    small = Sightings(max_devices=3, max_stations=5)
    areas.devices = Devices(areas.store, small, InventoryMetrics(CollectorRegistry()), areas.clock)
    for _ in range(3):
        for number in range(10):
            device = seen.note(NAS_IDENTIFIER=b"%d" % number)
            await seen.write(device, station=seen.station(device, "s"))
        await areas.devices.flush()
    assert [row.request_count for row in await seen.rows()] == [3] * 10
    stations, total = await areas.devices.stations(areas.domain, 0, "", offset=0, limit=100)
    assert total == 10
    assert [row.request_count for row in stations] == [3] * 10


async def test_what_a_forgotten_device_was_known_for_stays(areas: Areas, seen: Seen) -> None:
    """After a restart of the memory, a request that shows less does not take product and medium away."""
    first = seen.note("192.0.2.5", NAS_PORT_TYPE=WIRELESS, CALLED_STATION_ID=b"x")
    first.device_type, first.certainty, first.device_name = "Cisco ISE", "certain", "Cisco ISE"
    await seen.write(first)
    areas.devices.sightings.forget_all()
    again = seen.note("192.0.2.5")
    await seen.write(again)
    (row,) = await seen.rows()
    assert (row.id, row.device_type, row.device_name, row.nas_port_type) == (
        first.id, "Cisco ISE", "Cisco ISE", "Wireless",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("octets", "name"),
    [
        (b"Z\xc3\xbcrich", "Zürich"),
        (b"Z\xfcrich", "Zürich"),
        (b"a\0b", "a\ufffdb"),
        (b"x" * 253, "x" * 253),
        (b"", "Unknown"),
    ],
    ids=["UTF-8", "Latin-1", "NUL", "longest", "empty"],
)
async def test_attributes_do_not_have_to_be_text(seen: Seen, octets: bytes, name: str) -> None:
    """A NAS-Identifier of any octets is a name: UTF-8 if it is valid, otherwise Latin-1, without NUL."""
    device = seen.note(NAS_IDENTIFIER=octets)
    await seen.write(device)
    assert device.device_name == name


async def test_a_store_that_fails_is_told_to_who_flushes(areas: Areas, seen: Seen) -> None:
    """A flush raises StoreError, and counts again."""
    device = await seen.device("a")
    await areas.devices.flush()
    seen.note(NAS_IDENTIFIER=b"a")
    await areas.store.write(lambda tx: tx.execute("drop table device_history"))
    await areas.store.write(lambda tx: tx.execute("alter table devices rename to gone"))
    with pytest.raises(StoreError):
        await areas.devices.flush()
    await areas.store.write(lambda tx: tx.execute("alter table gone rename to devices"))
    assert device.requests == 1


async def test_each_tenant_has_a_share_of_the_memory(areas: Areas, seen: Seen) -> None:
    """A tenant's device and station stay in memory, however many another tenant has."""
    areas.devices.sightings = Sightings(max_devices=10, max_stations=10)
    device = seen.note(NAS_IDENTIFIER=b"ours")
    station = seen.station(device, "s")
    other = copy.copy(seen.client)
    other.tenant_id += 1
    for number in range(100):
        seen.station(seen.note(client=other, NAS_IDENTIFIER=b"%d" % number), "s")
    assert seen.note(NAS_IDENTIFIER=b"ours") is device
    assert seen.station(device, "s") is station


async def test_a_device_that_made_room_and_was_deleted_stays_deleted(areas: Areas, seen: Seen) -> None:
    """The counts of a forgotten device are not written."""
    areas.devices = Devices(areas.store, Sightings(max_devices=1), InventoryMetrics(CollectorRegistry()), areas.clock)
    device = await seen.device("a")
    seen.note(NAS_IDENTIFIER=b"a")
    await seen.device("b")
    assert device.id is not None
    await areas.devices.delete(areas.domain, device_ids=[device.id], addresses=None, actor="admin")
    await areas.devices.flush()
    assert [row.nas_identifier for row in await seen.rows()] == ["b"]
