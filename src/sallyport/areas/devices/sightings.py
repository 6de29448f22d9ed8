"""Active devices and stations in memory, and the functions that write their rows.

A known device is found with one dictionary access. The product of a device is determined when the device is new, when
its RADIUS client changes, and once a minute. The next flush writes the counts to the store. The number of devices in
memory is limited, and each tenant has a share of this number. If a device was removed from memory, its next request
reads its row from the store.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import chain

from sallyport.areas.clients.client import RADSEC, Client
from sallyport.areas.devices import station_repo, usage_repo, write_repo
from sallyport.areas.devices.device import Device, Identity, Posture, Station, no_claim, no_tags
from sallyport.areas.devices.rows import UNKNOWN, Learned
from sallyport.areas.devices.usage import RADSEC_TRANSPORT, UDP, Uses, add
from sallyport.base.addresses import canonical
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND
from sallyport.base.tags import Tags
from sallyport.radius.attributes import NAS_IDENTIFIER, NAS_IP_ADDRESS, NAS_IPV6_ADDRESS, NAS_PORT_TYPE
from sallyport.radius.packet import Request
from sallyport.radius.vendors import Finding, identify, medium
from sallyport.store.model import Tx

LOOK_AGAIN_US = 60 * SECOND
MAX_DEVICES = 65_536
MAX_STATIONS = 131_072
DEVICES, STATIONS = 128, 64
"""Maximum number of rows in one transaction. Between two transactions, decisions can use the store."""
TOGETHER = 3
"""Minimum number of new stations for which shared statements are used. Fewer stations are written faster one by one."""

DeviceKey = tuple[int, str, bytes | None, bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class Changes:
    """Counts that are not in the store yet.

    devices: each device with its number of requests and its posture. stations: each station with its number of
    requests. uses: the logins of devices by SSID, method and transport.
    """

    devices: list[tuple[Device, int, Posture]]
    stations: list[tuple[Station, int]]
    uses: list[tuple[Device, Uses]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Registered:
    """A device that got a row in the store. again: whether the device had been deleted before."""

    device: Device
    again: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """A device or station without a row, because the tenant has reached a limit. limit: the name of the limit
    (`settings/limits.py`)."""

    limit: str
    device: Device
    station: Station | None


@dataclass(frozen=True, slots=True)
class LearnedElsewhere:
    """A device about which another node has learned something newer. row: the row of the device."""

    device: Device
    row: Learned


Sighting = Registered | Refused | LearnedElsewhere
"""The result of writing a device or station."""


class Sightings:
    """The devices and stations in memory. find_own_tags, has_claimed_tags: the functions of `Device`."""

    def __init__(
        self,
        find_own_tags: Callable[[Device], Tags] = no_tags,
        has_claimed_tags: Callable[[Device], bool] = no_claim,
        *,
        max_devices: int = MAX_DEVICES,
        max_stations: int = MAX_STATIONS,
    ) -> None:
        self._find_own_tags, self.has_claimed_tags = find_own_tags, has_claimed_tags
        self._devices = BoundedMap[DeviceKey, Device](max_devices)
        self._stations = BoundedMap[tuple[Device, str], Station](max_stations)
        self.changed_devices: dict[Identity, list[Device]] = {}
        """The devices in memory that have unwritten changes, by the keys of their rows."""
        self._changed_stations: dict[Station, None] = {}

    def device(self, request: Request, source: str, client: Client, domain_id: int, at: int) -> Device:
        """Count an authentic request, and return the device that sent it. A new device has no id yet.

        at: the time of the request in microseconds.
        """
        first = request.first
        key = (domain_id, source, first.get(NAS_IP_ADDRESS), first.get(NAS_IPV6_ADDRESS), first.get(NAS_IDENTIFIER))
        device = self._devices.get(key)
        if device is None:
            device = new_device(request, source, domain_id, at)
            device.find_own_tags, device.has_claimed_tags = self._find_own_tags, self.has_claimed_tags
            dropped = self._devices.put(key, device, client.tenant_id)
            if dropped is not None and dropped.id is None:
                self._drop(dropped)
        if at > device.look_again_at or device.client is not client:
            find_product(device, request, client, at)
        port_type = first.get(NAS_PORT_TYPE)
        if port_type is not None and port_type != device.port_type:
            device.port_type = port_type
            device.nas_port_type = medium(request)
        if not device.requests:
            self._note(device)
        device.requests += 1
        device.last_seen = at
        return device

    def station(self, device: Device, name: str, user: str, at: int) -> Station:
        """Count a login of a station, and return the station. at: the time of the login in microseconds."""
        station = self._stations.get((device, name))
        if station is None:
            station = Station(device, name, user, at)
            dropped = self._stations.put((device, name), station, device.tenant_id)
            if dropped is not None and dropped.device.id is None:
                self._changed_stations.pop(dropped, None)
        if not station.requests:
            self._changed_stations[station] = None
        station.requests += 1
        station.last_seen = at
        station.user = user
        return station

    def use(
        self, device: Device, station: Station | None, network: tuple[str, str], client: Client, method: str
    ) -> None:
        """Count a decided login by its SSID, method and transport, and note the SSID and the port of its station.
        network: the SSID and the port."""
        if station is not None:
            station.ssid, station.port = network
        uses, use = device.uses, (network[0], method, RADSEC_TRANSPORT if client.secret is RADSEC else UDP)
        count = uses.get(use)
        if count is not None:
            uses[use] = count + 1
            return
        if not uses:
            self.touch(device)  # a flush may have written the device since its request
        add(uses, use, 1)

    def touch(self, device: Device) -> None:
        """Note that the posture of a device has changed, so that the next flush writes it. A deleted device is
        ignored."""
        if not device.gone:
            self._note(device)

    def take_changes(self) -> Iterator[Changes]:
        """Yield, in parts, the changes that exist when the function is called. Each part takes about the same time to
        write.

        When a part is yielded, its counts in memory are reset. A device without a row is not part of the changes, and
        neither are the stations behind it. They keep their counts until the device has a row.
        """
        devices = [each for same in self.changed_devices.values() for each in same if each.id is not None]
        stations = [each for each in self._changed_stations if each.device.id is not None]
        for at in range(0, len(devices), DEVICES):
            due = [device for device in devices[at : at + DEVICES] if not device.gone]
            uses = [(device, device.uses) for device in due if device.uses]
            for device, _ in uses:
                device.uses = {}
            yield Changes([self._take(device) for device in due], [], uses)
        for at in range(0, len(stations), STATIONS):
            changes = Changes([], [])
            for station in stations[at : at + STATIONS]:
                if station in self._changed_stations:  # otherwise `forget` has removed it meanwhile
                    del self._changed_stations[station]
                    changes.stations.append((station, station.requests))
                    station.requests = 0
            yield changes

    def _take(self, device: Device) -> tuple[Device, int, Posture]:
        self._drop(device)
        requests, device.requests = device.requests, 0
        return device, requests, device.posture.take()

    def _note(self, device: Device) -> None:
        same = self.changed_devices.setdefault(_identity(device), [])
        if device not in same:
            same.append(device)

    def _drop(self, device: Device) -> None:
        identity = _identity(device)
        same = self.changed_devices.get(identity, [])
        if device in same:
            same.remove(device)
            if not same:
                del self.changed_devices[identity]

    def put_back(self, changes: Changes) -> None:
        """Restore the counts of changes that the store has failed to write. The next flush tries again."""
        for device, requests, taken in changes.devices:
            self._note(device)
            device.requests += requests
            device.posture.put_back(taken)
        for device, uses in changes.uses:
            for use, logins in uses.items():
                add(device.uses, use, logins)
        for station, requests in changes.stations:
            self._changed_stations[station] = None
            station.requests += requests

    def set_aside(self, device: Device, station: Station | None) -> None:
        """Reset the counts of a device that got no row in the store, and the counts of the station behind it."""
        self._drop(device)
        device.requests, device.uses = 0, {}
        if station is not None:
            self._changed_stations.pop(station, None)
            station.requests = 0

    def reset(self, domain_id: int, device_ids: set[int], at: int) -> None:
        """Forget the learned values of devices, and their unwritten counts of logins and challenges. at: the time in
        microseconds."""
        for device in chain(self._devices.values(), *self.changed_devices.values()):
            if device.domain_id == domain_id and device.id in device_ids:
                device.posture = Posture(measured_at=at, challenged_at=at)
                device.uses = {}

    def forget(self, domain_id: int, device_ids: set[int]) -> None:
        """Drop deleted devices and their counts. The next request of a device registers it again."""

        def is_deleted(device: Device) -> bool:
            return device.domain_id == domain_id and device.id in device_ids

        for key, device in self._devices.items():
            if is_deleted(device):
                device.gone = True
                self._devices.pop(key)
        for device in [each for same in self.changed_devices.values() for each in same if is_deleted(each)]:
            device.gone = True
            self._drop(device)
        for station in [each for each in self._changed_stations if is_deleted(each.device)]:
            del self._changed_stations[station]
        for station_key, _ in self._stations.items():
            if is_deleted(station_key[0]):
                self._stations.pop(station_key)

    def forget_all(self) -> None:
        """Drop all devices and stations after the store was replaced."""
        for device in self._devices.values():
            device.gone = True
        self._devices.clear()
        self._stations.clear()
        self.changed_devices.clear()
        self._changed_stations.clear()


def _identity(device: Device) -> Identity:
    return device.domain_id, device.ip_address, device.client_ip, device.nas_identifier


def new_device(request: Request, source: str, domain_id: int, at: int) -> Device:
    """Return a new device with the values of its first request. at: the time of the request in microseconds.

    If the request is not authentic, the device is not added to the inventory. It appears only in the event of the
    request.
    """
    nas = request.first.get(NAS_IP_ADDRESS, b"") or request.first.get(NAS_IPV6_ADDRESS, b"")
    client_ip = canonical(str(ip_address(nas))) if len(nas) in {4, 16} else source
    return Device(domain_id, source, client_ip, request.text(NAS_IDENTIFIER), at)


def find_product(device: Device, request: Request, client: Client, at: int) -> None:
    """Set the product of a device, and its model and firmware if the request tells them.

    If a product is configured for the RADIUS client, the device gets this product. Otherwise the device gets the
    product that the request shows. If the request shows no product, the device keeps its previous product, unless the
    previous product came from a former configuration.
    """
    device.look_again_at = at + LOOK_AGAIN_US
    device.client = client
    device.tenant_id = client.tenant_id
    identity = identify(request, source=device.ip_address)
    if client.product:
        device.device_type, device.certainty, device.registered = client.product, "certain", True
    elif identity.product is not None:
        device.device_type, device.certainty = identity.product.product, identity.product.certainty.value
        device.registered = False
    elif device.registered:
        device.device_type, device.certainty, device.registered = UNKNOWN, "", False
    if not identity.forwarded:
        device.nas_device_type = device.device_type
    elif identity.nas is not None:
        device.nas_device_type = identity.nas.product
    if identity.model or identity.firmware:
        device.model, device.firmware = identity.model or device.model, identity.firmware or device.firmware
    if not device.nas_identifier:
        device.device_name = device.device_type
    evidence = {
        "forwarder": _evidence(identity.forwarder),
        "nas": _evidence(identity.nas),
        "registered": client.product,
    }
    if any(evidence.values()):
        device.evidence = json.dumps({key: value for key, value in evidence.items() if value}, ensure_ascii=False)


def _evidence(finding: Finding | None) -> object:
    if finding is None:
        return None
    return {"product": finding.product, "certainty": finding.certainty.value, "evidence": list(finding.evidence)}


def write_counts(tx: Tx, changes: Changes) -> list[Sighting]:
    """Add counts to the rows of devices and stations.

    A device that another node deleted is registered again. Return the results for these devices, and the devices about
    which another node has learned something newer.
    """
    flushed = write_repo.flush(tx, changes.devices)
    back: list[Sighting] = [LearnedElsewhere(device, row) for device, row in flushed.learned]
    for deleted in flushed.deleted:
        device = deleted[0]
        write_repo.register(tx, device)
        is_refused = device.id is None or write_repo.flush(tx, [deleted]).deleted
        back.append(Refused("devices", device, None) if is_refused else Registered(device, again=True))
    refused = [each.device for each in back if isinstance(each, Refused)]
    usage_repo.write(tx, [(device, uses) for device, uses in changes.uses if device not in refused])
    if changes.stations:
        station_repo.note_all(tx, changes.stations)
    return back


def write_first_sightings(tx: Tx, seen: Iterable[tuple[Device, Station | None]]) -> list[Sighting]:
    """Write the missing rows of devices and of their stations, in the transaction that stores decisions.

    Return the new devices, and also the devices and stations that got no row. If a station got no row, each flush tries
    again to write it.
    """
    pairs = dict.fromkeys(seen)
    sightings: list[Sighting] = []
    if new_devices := dict.fromkeys([device for device, _ in pairs if device.id is None]):
        inserted = write_repo.register_all(tx, [*new_devices])
        sightings += [Registered(device, again=count > 1) for device, count in inserted]
        sightings += [Refused("devices", device, station) for device, station in pairs if device.id is None]
    new = [each for device, each in pairs if device.id is not None and each is not None and not each.stored]
    sightings += [Refused("stations", each.device, each) for each in _note_first(tx, new)]
    for each in new:
        each.stored = True
    return sightings


def _note_first(tx: Tx, stations: Sequence[Station]) -> Sequence[Station]:
    """Write new stations. Return the stations that got no row because of the tenant's limit."""
    if len(stations) >= TOGETHER:
        return station_repo.note_all(tx, [(each, 0) for each in stations])
    refused = [each for each in stations if not station_repo.note(tx, each, 0)]
    return [each for each in refused if station_repo.has_too_many(tx, each.device.domain_id)]
