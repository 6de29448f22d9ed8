"""Devices and stations in memory, and how they are written to the store."""

import copy
import ipaddress

import pytest
import trio
import trio.testing
from prometheus_client import CollectorRegistry

from sallyport.areas.devices.rows import UNKNOWN
from sallyport.areas.devices.service import Devices
from sallyport.areas.devices.sightings import STATIONS, Sightings
from sallyport.base.clock import SECOND, iso
from sallyport.base.errors import StoreError
from sallyport.metrics import InventoryMetrics
from sallyport.radius.attributes import push_vendor_attribute
from sallyport.store.model import Tx
from tests.areas import Areas, allow, refuse
from tests.areas.devices.conftest import Seen
from tests.packets import access_request, opened

WIRELESS, ETHERNET, VIRTUAL = (number.to_bytes(4) for number in (19, 15, 5))


async def test_the_first_request_of_a_device_adds_a_row(seen: Seen) -> None:
    """The row has what the request shows: addresses, name, medium and times; the history has a first registration."""
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
async def test_the_address_of_a_device(seen: Seen, values: dict[str, bytes], client_ip: str) -> None:
    """The address is NAS-IP-Address, else NAS-IPv6-Address, else the packet's source; a malformed attribute is
    ignored."""
    assert seen.note(**values).client_ip == client_ip


async def test_the_identity_of_a_device(seen: Seen) -> None:
    """A device is identified by domain, source, client address and NAS-Identifier only."""
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


async def test_two_spellings_of_a_device_share_a_row(seen: Seen) -> None:
    """A device with and without its own address in NAS-IP-Address has one row, with the counts of both."""
    plain, spelled = seen.note(), seen.note(NAS_IP_ADDRESS=bytes((192, 0, 2, 1)), NAS_IDENTIFIER=b"")
    registered = await seen.write(plain, spelled)
    assert (len(registered), plain.id) == (1, spelled.id)
    (row,) = await seen.rows()
    assert row.request_count == 2


async def test_the_last_medium_is_stored(seen: Seen) -> None:
    """A request without a medium changes nothing; one with another medium replaces it."""
    device = await seen.device("a", NAS_PORT_TYPE=ETHERNET)
    for value, medium in ((b"", "Ethernet"), (VIRTUAL, "Virtual"), (b"", "Virtual")):
        seen.note(NAS_IDENTIFIER=b"a", **({"NAS_PORT_TYPE": value} if value else {}))
        (row,) = await seen.rows()
        assert row.nas_port_type == device.nas_port_type == medium


async def test_the_product_of_the_client_is_certain(seen: Seen) -> None:
    """The product with which a RADIUS client is registered takes precedence over its packets; it is the name of a
    device without one."""
    cisco = push_vendor_attribute(9, 1, b"audit-session-id=1")
    client = await seen.areas.client("192.0.2.9/32", product="Aruba ClearPass")
    request = opened(access_request(cisco))
    device = seen.areas.devices.sightings.device(request, "192.0.2.9", client, seen.areas.domain, seen.areas.clock())
    assert (device.device_type, device.certainty, device.device_name) == (
        "Aruba ClearPass",
        "certain",
        "Aruba ClearPass",
    )


async def test_a_changed_product_applies_with_the_next_request(seen: Seen) -> None:
    """The change is seen in memory, in the row and in the search."""
    client = await seen.areas.client("192.0.2.9/32", product="Cisco ISE")
    await seen.write(seen.note("192.0.2.9", client))
    assert await seen.names("cisco") == ["Cisco ISE"]
    await seen.areas.clients.update(seen.areas.tenant, client.id, {"product": "FreeRADIUS"})
    changed = seen.areas.clients.table.by_id[client.id]
    seen.note("192.0.2.9", changed)
    assert await seen.names("freeradius") == await seen.names("", "device_type", "freeradius") == ["FreeRADIUS"]
    assert await seen.names("cisco") == []


async def test_requests_are_counted(seen: Seen) -> None:
    """request_count and last_seen change with each flush, including requests during a flush."""
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
    """A flush between a request and the transaction that registers its device loses no count of the device or of its
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
    """Counts that could not be flushed are flushed later, with newer ones."""
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


async def test_other_writers_run_during_a_flush(areas: Areas, seen: Seen) -> None:
    """Another writer waits for a batch of stations, not for all of them."""
    device = await seen.device("a")
    for number in range(10 * STATIONS):
        seen.station(device, f"s{number}")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.devices.flush)
        await trio.testing.wait_all_tasks_blocked()
        meanwhile = await areas.store.write(_stations)
    assert meanwhile < await areas.store.read(_stations) == 10 * STATIONS


async def test_stations_are_identified_by_their_device(areas: Areas, seen: Seen) -> None:
    """A flush of many stations writes one row for two objects of the same station, and none for a deleted device."""
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


async def test_an_interrupted_flush_loses_no_counts(areas: Areas, seen: Seen) -> None:
    """Counts that were written before the store failed are not counted twice; the others are written later."""
    device = await seen.device("a")
    for number in range(3 * STATIONS):
        seen.station(device, f"s{number}")
    await refuse(areas.store, "before insert on stations", f"new.station = 's{STATIONS + 1}'")
    with pytest.raises(StoreError):
        await areas.devices.flush()
    await allow(areas.store, "stations")
    await areas.devices.flush()
    rows, total = await areas.devices.stations(areas.domain, 0, "", offset=0, limit=1000)
    assert total == 3 * STATIONS
    assert {row.request_count for row in rows} == {1}


async def test_a_station_has_its_last_user(seen: Seen) -> None:
    """A station belongs to its device, and has its first and last time, its count and its last user."""
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
    """Past the limits, flushed entries are evicted from memory and found again in the store; no count is lost."""
    small = Sightings(max_devices=3, max_stations=5)
    areas.devices = Devices(areas.store, small, InventoryMetrics(CollectorRegistry()), areas.devices.tags, areas.clock)
    for _ in range(3):
        for number in range(10):
            device = seen.note(NAS_IDENTIFIER=b"%d" % number)
            await seen.write(device, station=seen.station(device, "s"))
        await areas.devices.flush()
    assert [row.request_count for row in await seen.rows()] == [3] * 10
    stations, total = await areas.devices.stations(areas.domain, 0, "", offset=0, limit=100)
    assert total == 10
    assert [row.request_count for row in stations] == [3] * 10


async def test_an_evicted_device_keeps_product_and_medium(areas: Areas, seen: Seen) -> None:
    """After the memory is cleared, a request that shows less does not delete them."""
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


async def test_the_model_and_the_firmware_are_those_that_a_request_told_last(areas: Areas, seen: Seen) -> None:
    """Requests that tell none of them delete nothing, not even after a restart. A new firmware is seen in a minute."""
    product, old, new = (
        push_vendor_attribute(2011, kind, text)[2:]
        for kind, text in ((255, b"S5735"), (254, b"V200R021"), (254, b"V200R022"))
    )
    first = seen.note(VENDOR_SPECIFIC=product)
    await seen.write(first)
    for octets, firmware in ((old, "V200R021"), (b"", "V200R021"), (new, "V200R022")):
        areas.clock.pass_by(61)
        seen.note(**({"VENDOR_SPECIFIC": octets} if octets else {}))
        (row,) = await seen.rows()
        assert (row.model, row.firmware) == ("S5735", firmware)
    await areas.devices.flush()
    areas.devices.sightings.forget_all()
    await seen.write(seen.note())
    await areas.devices.flush()
    (row,) = await seen.rows()
    assert (row.id, row.model, row.firmware) == (first.id, "S5735", "V200R022")


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
async def test_a_nas_identifier_may_have_any_octets(seen: Seen, octets: bytes, name: str) -> None:
    """A NAS-Identifier is decoded as UTF-8 if it is valid, otherwise as Latin-1, without NUL."""
    device = seen.note(NAS_IDENTIFIER=octets)
    await seen.write(device)
    assert device.device_name == name


async def test_a_failed_flush_raises_store_error(areas: Areas, seen: Seen) -> None:
    """The counts are flushed later."""
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


async def test_an_evicted_and_deleted_device_stays_deleted(areas: Areas, seen: Seen) -> None:
    """The counts of an evicted and deleted device are not written."""
    areas.devices = Devices(
        areas.store, Sightings(max_devices=1), InventoryMetrics(CollectorRegistry()), areas.devices.tags, areas.clock
    )
    device = await seen.device("a")
    seen.note(NAS_IDENTIFIER=b"a")
    await seen.device("b")
    assert device.id is not None
    await areas.devices.delete(areas.domain, device_ids=[device.id], addresses=None, actor="admin")
    await areas.devices.flush()
    assert [row.nas_identifier for row in await seen.rows()] == ["b"]
