"""Limits of devices and stations: those beyond a limit get no row, and all else works."""

from structlog.testing import capture_logs

from sallyport.areas.devices.service import WARN_AGAIN_US
from sallyport.base.clock import SECOND
from sallyport.store.model import Tx
from tests.areas import Areas
from tests.areas.devices.conftest import Seen


async def limit(areas: Areas, **limits: int) -> None:
    """Change limits."""

    def work(tx: Tx) -> None:
        for name, most in limits.items():
            tx.execute("update limits set most = :most where name = :name", name=name, most=most)

    await areas.store.write(work)


async def stations(seen: Seen) -> list[tuple[str, int]]:
    """Return the names of the domain's stations, with their counted requests."""
    rows, _ = await seen.areas.devices.stations(seen.areas.domain, 0, "", offset=0, limit=100)
    return [(row.station, row.request_count) for row in rows]


async def test_a_device_beyond_the_limit_gets_no_row(seen: Seen) -> None:
    """Devices that have a row are still found, and those of another tenant are registered."""
    await seen.device("a")
    await limit(seen.areas, devices=1)
    beyond = seen.note(NAS_IDENTIFIER=b"b")
    assert await seen.write(beyond, station=seen.station(beyond, "02-01")) == []
    seen.areas.devices.sightings.forget_all()
    known = seen.note(NAS_IDENTIFIER=b"a")
    await seen.write(known)
    assert (beyond.id, await seen.names(), await stations(seen)) == (None, ["a"], [])
    assert known.id is not None
    other = await seen.areas.tenancy.ensure_tenant(2, 1)
    domain = await seen.areas.domains.add(other, "theirs")
    client = await seen.areas.client("198.51.100.0/24", tenant=other)
    await seen.write(seen.note("198.51.100.1", client, domain, NAS_IDENTIFIER=b"c"))
    assert [row.device_name for row in await seen.rows(domain=domain)] == ["c"]


async def test_a_limit_of_zero_devices(seen: Seen) -> None:
    """A tenant without a device is limited too."""
    await limit(seen.areas, devices=0)
    assert await seen.write(seen.note(NAS_IDENTIFIER=b"a")) == []
    assert await seen.names() == []


async def test_a_deleted_device_makes_room(seen: Seen) -> None:
    """The next request of a device beyond the limit registers it, and is the first one counted."""
    first = await seen.device("a")
    await limit(seen.areas, devices=1)
    beyond = seen.note(NAS_IDENTIFIER=b"b")
    await seen.write(beyond)
    assert first.id is not None
    await seen.areas.devices.delete(seen.areas.domain, device_ids=[first.id], addresses=None, actor="n")
    assert seen.note(NAS_IDENTIFIER=b"b") is beyond
    await seen.write(beyond)
    (row,) = await seen.rows()
    assert (row.device_name, row.request_count) == ("b", 1)


async def test_a_flush_does_not_restore_a_device_beyond_the_limit(seen: Seen) -> None:
    """A device that another node deleted gets no new row by the flush of its counts."""
    device = await seen.device("a")
    await seen.areas.devices.flush()
    await seen.areas.store.write(lambda tx: tx.execute("delete from devices"))
    await limit(seen.areas, devices=0)
    seen.note(NAS_IDENTIFIER=b"a")
    await seen.areas.devices.flush()
    rows = await seen.areas.store.read(lambda tx: tx.rows("select id from devices"))
    assert (device.id, rows) == (None, [])
    assert seen.areas.sample("sallyport_inventory_refused_total", limit="devices") == 1


async def test_a_station_beyond_the_limit_gets_no_row(seen: Seen) -> None:
    """Neither its login nor a flush adds it; requests of known stations are counted."""
    device = await seen.device("a")
    await seen.write(device, station=seen.station(device, "02-01"))
    await limit(seen.areas, stations=1)
    await seen.write(device, station=seen.station(device, "02-02"))
    seen.station(device, "02-01")
    seen.station(device, "02-03")
    await seen.areas.devices.flush()
    assert await stations(seen) == [("02-01", 2)]
    await limit(seen.areas, stations=2)
    seen.station(device, "02-03")
    await seen.areas.devices.flush()
    assert await stations(seen) == [("02-01", 2), ("02-03", 1)]


async def test_devices_and_stations_beyond_a_limit_are_reported(seen: Seen) -> None:
    """The metric counts each request; the log has one line for each tenant, limit and hour."""
    device = await seen.device("a")
    await limit(seen.areas, devices=1, stations=0)

    async def turned_away(number: int) -> list[str]:
        with capture_logs() as logged:
            for name in (b"b", b"c"):
                await seen.write(seen.note(NAS_IDENTIFIER=name + b"%d" % number))
            await seen.write(device, station=seen.station(device, f"02-{number}"))
        return [line["setting"] for line in logged if line["event"] == "inventory_limit_reached"]

    refused = [await turned_away(1), await turned_away(2)]
    seen.areas.clock.pass_by(WARN_AGAIN_US / SECOND)
    assert [*refused, await turned_away(3)] == [
        ["limits.devices", "limits.stations"],
        [],
        ["limits.devices", "limits.stations"],
    ]
    counted = [seen.areas.sample("sallyport_inventory_refused_total", limit=name) for name in ("devices", "stations")]
    assert counted == [6, 3]


async def test_a_device_without_a_row_is_not_flushed(seen: Seen) -> None:
    """Otherwise the flushes of a device that stays refused would take longer and longer."""
    await limit(seen.areas, devices=0)
    device = seen.note(NAS_IDENTIFIER=b"a")
    await seen.write(device, station=seen.station(device, "02-01"))
    sightings = seen.areas.devices.sightings
    assert (sightings.changed_devices, sightings._changed_stations) == ({}, {})
