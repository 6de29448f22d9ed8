"""How stations log in through devices: SSIDs, methods, transports and ports."""

import pytest

from sallyport.areas.devices import repo, usage, usage_repo
from sallyport.areas.devices.device import Device, Station
from sallyport.areas.devices.sightings import Refused
from sallyport.areas.devices.usage import UsageRow
from tests.areas import Areas
from tests.areas.devices.conftest import Seen


def use(seen: Seen, device: Device, ssid: str = "", method: str = "pap", station: Station | None = None) -> None:
    """Count a login of a device, as the listeners do after the decision."""
    seen.areas.devices.sightings.use(device, station, (ssid, "ge-0/0/1"), seen.client, method)


async def rows(areas: Areas, device: Device) -> list[UsageRow]:
    """Return the stored uses of a device."""
    await areas.devices.flush()
    return (await areas.store.read(lambda tx: repo.usage(tx, [device.id or 0]))).get(device.id or 0, [])


async def test_uses_are_counted_by_ssid_method_and_transport(areas: Areas, seen: Seen) -> None:
    """Counts add up over flushes."""
    device = await seen.device("ap")
    use(seen, device, "corp", "eap-tls")
    use(seen, device, "corp", "eap-tls")
    assert [(row.ssid, row.logins) for row in await rows(areas, device)] == [("corp", 2)]
    use(seen, device, "corp", "eap-tls")
    use(seen, device)
    row = await areas.devices.one(areas.domain, device.id or 0)
    shown = (await areas.devices.usage([row]))[row.id]
    found = {(row.ssid, row.method, row.transport): row.logins for row in await rows(areas, device)}
    assert found == {("corp", "eap-tls", "udp"): 3, ("", "pap", "udp"): 1}
    assert {(row.ssid, row.method, row.transport): row.logins for row in shown} == found


async def test_a_failed_flush_loses_no_use(areas: Areas, seen: Seen) -> None:
    """The counts are put back, and added to those that came meanwhile."""
    device = await seen.device("ap")
    use(seen, device, "corp")
    for changes in areas.devices.sightings.take_changes():
        areas.devices.sightings.put_back(changes)
    use(seen, device, "corp")
    assert [row.logins for row in await rows(areas, device)] == [2]


async def test_a_clock_that_is_set_back_does_not_change_the_last_login(areas: Areas, seen: Seen) -> None:
    """The last login of a use is not before its first one, in the store and before a flush."""
    device = await seen.device("ap")
    use(seen, device, "corp")
    first = device.last_seen
    assert [(row.logins, row.first_seen, row.last_seen) for row in await rows(areas, device)] == [(1, first, first)]
    device.last_seen -= 1000
    use(seen, device, "corp")
    row = await areas.devices.one(areas.domain, device.id or 0)
    shown = (await areas.devices.usage([row]))[row.id]
    assert [(row.logins, row.first_seen, row.last_seen) for row in shown] == [(2, first, first)]
    assert [(row.logins, row.first_seen, row.last_seen) for row in await rows(areas, device)] == [(2, first, first)]


async def test_a_device_without_a_row_keeps_no_uses(seen: Seen) -> None:
    """If the tenant has reached its limit of devices, the device is not written, and its uses would stay in memory."""
    device = seen.note(NAS_IDENTIFIER=b"ap")
    use(seen, device, "corp")
    seen.areas.devices.count_written([Refused("devices", device, None)])
    assert device.uses == {}


async def test_the_ssids_of_a_device_are_limited(areas: Areas, seen: Seen) -> None:
    """Further SSIDs, in memory and in the store, count as logins without an SSID; known ones still count."""
    device = await seen.device("ap")
    for number in range(usage.MAX_OF_DEVICE + 5):
        use(seen, device, f"ssid {number}")
    assert len(await rows(areas, device)) == usage.MAX_OF_DEVICE + 1
    for name in ("another", "ssid 0"):
        use(seen, device, name)
    found = {row.ssid: row.logins for row in await rows(areas, device)}
    assert len(found) == usage.MAX_OF_DEVICE + 1
    assert (found[""], found["ssid 0"]) == (6, 2)


async def test_the_ssids_of_a_domain_are_limited(areas: Areas, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device with invented SSIDs does not fill the table."""
    monkeypatch.setattr(usage_repo, "MAX_OF_DOMAIN", 2)
    first, second = await seen.device("a"), await seen.device("b")
    for name in ("x", "y", "z"):
        use(seen, first, name)
    use(seen, second, "x")
    assert sorted(row.ssid for row in await rows(areas, first)) == ["", "x", "y"]
    assert [row.ssid for row in await rows(areas, second)] == [""]


async def test_refused_uses_take_no_room(areas: Areas, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses that a device may not have do not take the room of other devices."""
    monkeypatch.setattr(usage_repo, "MAX_OF_DEVICE", 1)
    monkeypatch.setattr(usage_repo, "MAX_OF_DOMAIN", 2)
    first, second = await seen.device("a"), await seen.device("b")
    for name in ("x", "y", "z"):
        use(seen, first, name)
    use(seen, second, "x")
    assert sorted(row.ssid for row in await rows(areas, first)) == ["", "x"]
    assert [row.ssid for row in await rows(areas, second)] == ["x"]


async def test_a_deleted_device_takes_its_uses_along(areas: Areas, seen: Seen) -> None:
    """Also if its counts are not in the store yet. A reset forgets the uses."""
    device = await seen.device("ap")
    use(seen, device, "corp")
    await rows(areas, device)
    use(seen, device, "corp")
    await areas.devices.reset(areas.domain, device_ids=[device.id or 0], addresses=None)
    assert await rows(areas, device) == []
    use(seen, device, "corp")
    await areas.devices.delete(areas.domain, device_ids=[device.id or 0], addresses=None, actor="ann")
    use(seen, device, "corp")
    assert await rows(areas, device) == []


async def test_the_ssids_of_a_domain(areas: Areas, seen: Seen) -> None:
    """Each has its logins, devices and methods. Another domain has none of them."""
    first, second = await seen.device("a"), await seen.device("b")
    use(seen, first, "corp", "eap-tls")
    use(seen, second, "corp", "peap")
    use(seen, second, "Guests", "mab")
    use(seen, second)
    found, total = await areas.devices.ssids(areas.domain, "", offset=0, limit=10)
    assert [(row.ssid, row.logins, row.devices, row.methods) for row in found] == [
        ("Guests", 1, 1, ["mab"]),
        ("corp", 2, 2, ["eap-tls", "peap"]),
    ]
    assert total == 2
    assert [row.ssid for row in (await areas.devices.ssids(areas.domain, "GUEST", offset=0, limit=10))[0]] == ["Guests"]
    assert await areas.devices.ssids(areas.domain, "", offset=2, limit=10) == ([], 2)
    assert await areas.devices.ssids(areas.domain + 1, "", offset=0, limit=10) == ([], 0)


async def test_a_station_has_the_ssid_and_port_of_its_last_login(areas: Areas, seen: Seen) -> None:
    """The ports of a device are those of its stations."""
    device = await seen.device("ap")
    for name in ("02-00-00-00-00-0a", "02-00-00-00-00-0b"):
        station = seen.station(device, name)
        use(seen, device, "corp", station=station)
        await seen.write(device, station=station)
    await areas.devices.flush()
    found, _ = await areas.devices.stations(areas.domain, 0, "", offset=0, limit=10)
    assert {(row.ssid, row.port) for row in found} == {("corp", "ge-0/0/1")}
    ports = await areas.devices.ports(areas.domain, device.id or 0)
    assert [(row.port, row.stations) for row in ports] == [("ge-0/0/1", 2)]


async def test_the_stations_that_count_for_ports_are_limited(
    areas: Areas, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller may have millions of stations, and each could name a port of its own."""
    device = await seen.device("wlc")
    for number in range(4):
        station = seen.station(device, f"02-00-00-00-00-0{number}")
        use(seen, device, "corp", station=station)
        await seen.write(device, station=station)
    await areas.devices.flush()
    monkeypatch.setattr(usage_repo, "MAX_COUNTED", 3)
    assert [row.stations for row in await areas.devices.ports(areas.domain, device.id or 0)] == [3]
