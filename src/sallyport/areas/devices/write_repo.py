"""SQL that registers devices, and writes their posture, descriptions and history."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from sallyport.areas.devices import usage_repo
from sallyport.areas.devices.device import Device, Posture
from sallyport.areas.devices.repo import CHALLENGES, COUNTER, COUNTS, IDENTITY, INDEX, SELECT
from sallyport.areas.devices.rows import UNKNOWN, DeviceRow, Learned
from sallyport.base.text import fold
from sallyport.store import counters
from sallyport.store.model import LISTED, Tx, Value, listed
from sallyport.store.schema.limits import exceeds
from sallyport.store.search import IndexEntry

_TOO_MANY = exceeds("devices", ":d")
_TIMES = ("retransmit_ms", "give_up_ms", "measured_at", "gave_up_at")
_POSTURE = (*COUNTS, "last_unsigned", *_TIMES, *CHALLENGES)
_posture_of = attrgetter(*_POSTURE)
_DESCRIPTION = (
    *("device_name", "device_type", "certainty", "nas_device_type", "evidence", "nas_port_type", "client_id", "model"),
    "firmware",
)
_description_in_memory = attrgetter(*_DESCRIPTION)
_description_in_row = attrgetter(*("device_type_certainty" if name == "certainty" else name for name in _DESCRIPTION))
_HISTORY = ("domain_id", "ip_address", "client_ip", "nas_identifier", "device_id", "event", "at", "actor")


def _newer(name: str, stamp: str) -> str:
    """Return SQL that takes the new value of a column, unless the row has a newer one. stamp: the column with the time
    of the value."""
    is_new = f"excluded.{stamp} >= device_posture.{stamp}"
    return f"{name} = case when {is_new} then excluded.{name} else device_posture.{name} end"


_ADD_POSTURE = "on conflict (device_id) do update set " + ", ".join(
    [f"{name} = device_posture.{name} + excluded.{name}" for name in COUNTS]
    + ["last_unsigned = coalesce(excluded.last_unsigned, device_posture.last_unsigned)"]
    + [_newer(name, "measured_at") for name in _TIMES]
    + [_newer(name, "challenged_at") for name in CHALLENGES]
)


def _identity(device: Device | DeviceRow) -> dict[str, Value]:
    return {"d": device.domain_id, "ip": device.ip_address, "client": device.client_ip, "nas": device.nas_identifier}


@dataclass(frozen=True, slots=True)
class Inserted:
    """An inserted row of a device."""

    id: int
    registrations: int


def register(tx: Tx, device: Device) -> bool:
    """Insert the row of a device. Return False if no row was inserted; see `register_all`."""
    return bool(register_all(tx, [device]))


def register_all(tx: Tx, devices: Sequence[Device]) -> list[tuple[Device, int]]:
    """Insert the rows of devices. Return each inserted device together with the number of its registrations.

    If a row was inserted or exists already, `device.id` is set. If the tenant has reached its limit, `device.id` stays
    None. A device that was deleted gets a new row, whose `registrations` is increased by one.

    The rows are inserted in the order of their identities. All nodes use this order. Therefore two nodes that register
    the same devices cannot deadlock.
    """
    inserted: list[tuple[Device, int]] = []
    for device in sorted(devices, key=_order):
        row = _insert(tx, device)
        if row is not None:
            device.id = row.id
            inserted.append((device, row.registrations))
    if not inserted:
        return inserted
    entries, parts = [], dict[int, list[int]]()
    for device, _ in inserted:
        assert device.id is not None  # noqa: S101
        texts = _texts(device, fold(device.nas_identifier), fold(device.device_type))
        entries.append(IndexEntry(device.domain_id, device.id, texts))
        parts.setdefault(device.domain_id, []).append(device.id)
    INDEX.add_all(tx, entries)
    for domain_id, ids in parts.items():
        counters.add_rows(tx, domain_id, COUNTER, ids, 1)
    _remember(tx, [(each, each.id or 0, "registered", each.first_seen, "") for each, _ in inserted])
    return inserted


def _order(device: Device) -> tuple[int, int, str, str, str]:
    """Return the sort key for the order in which all nodes lock rows. They lock the tenant's counters first, then the
    device's row."""
    return device.tenant_id, device.domain_id, device.ip_address, device.client_ip, device.nas_identifier


def _insert(tx: Tx, device: Device) -> Inserted | None:
    """Insert the row of a device. Return None if the row exists already, or if the tenant has reached its limit.

    If the row exists, `device.id` is set.
    """
    row = tx.one(
        Inserted,
        "insert into devices (domain_id, ip_address, client_ip, nas_identifier, nas_identifier_key, device_name, "
        "device_type, device_type_key, device_type_certainty, nas_device_type, evidence, nas_port_type, "
        "nas_port_type_key, client_id, model, firmware, first_seen, last_seen, request_count, registrations) "
        "select :d, :ip, :client, :nas, :nas_key, :name, :type, :type_key, :certainty, :nas_type, :evidence, :medium, "
        ":medium_key, :by, :model, :firmware, :first, :last, 0, "
        f"1 + (select count(*) from device_history where {IDENTITY} and event = 'deleted') where not {_TOO_MANY} "
        "on conflict (domain_id, ip_address, client_ip, nas_identifier) do nothing returning id, registrations",
        **_identity(device),
        **_description(device),
        nas_key=fold(device.nas_identifier),
        first=device.first_seen,
        last=device.last_seen,
    )
    if row is None:
        known = tx.one(DeviceRow, f"{SELECT} where {IDENTITY}", **_identity(device))
        device.id = None
        if known is not None:
            _recall(device, known)
    return row


def _recall(device: Device, row: DeviceRow) -> None:
    """Copy values of the row to the device in memory, where the device has no value yet.

    A product in the row is not copied if it came from the configuration of the RADIUS client, because the configuration
    may have changed.
    """
    device.id = row.id
    if row.is_newer(device.posture):
        device.posture.take_newer(row)
    if device.port_type is None:
        device.nas_port_type = row.nas_port_type
    device.model, device.firmware = device.model or row.model, device.firmware or row.firmware
    if device.device_type == UNKNOWN and "registered" not in json.loads(row.evidence):
        device.device_type, device.certainty = row.device_type, row.device_type_certainty
        device.nas_device_type, device.evidence = row.nas_device_type, row.evidence
        device.device_name = row.device_name


@dataclass(frozen=True, slots=True)
class Flushed:
    """The result of a flush. deleted: the changes of the devices that another node has deleted. learned: the devices
    about which another node has learned something newer, each with its row."""

    deleted: list[tuple[Device, int, Posture]]
    learned: list[tuple[Device, Learned]]


def flush(tx: Tx, changes: Sequence[tuple[Device, int, Posture]]) -> Flushed:
    """Add the counts since the last flush to the rows of devices, and write the descriptions that have changed.

    changes: each device with its number of requests and its posture. The number of statements does not depend on the
    number of devices, unless descriptions have changed. Two devices in memory may share a row.
    """
    ids = listed({device.id for device, _, _ in changes if device.id is not None})
    rows = {
        row.id: row
        for row in tx.all(DeviceRow, f"{SELECT} where id in {LISTED} order by id{tx.lock('devices')}", ids=ids)
    }
    counts: dict[int, _Counts] = {}
    flushed = Flushed([], [])
    for device, requests, taken in changes:
        row = rows.get(device.id or 0)
        if row is None:
            flushed.deleted.append((device, requests, taken))
            continue
        if row.is_newer(taken):
            flushed.learned.append((device, row))
        if _description_in_row(row) != _description_in_memory(device):
            _describe(tx, row, device)
            row.add(device)
        own, before = _Counts(device.last_seen, requests, taken), counts.get(row.id)
        counts[row.id] = own if before is None else own.added_to(before)
    if counts:
        _add(tx, counts)
    return flushed


@dataclass(slots=True)
class _Counts:
    """The changes of one row. last: the time of the last request."""

    last: int
    requests: int
    posture: Posture

    def added_to(self, before: "_Counts") -> "_Counts":
        """Return the sum of the changes by two devices in memory that share the row. Neither of the two changes."""
        posture = Posture()
        posture.merge(before.posture)
        posture.merge(self.posture)
        return _Counts(max(before.last, self.last), before.requests + self.requests, posture)


def _add(tx: Tx, counts: dict[int, _Counts]) -> None:
    """Add counts to rows. counts: by the id of the row."""
    given, parameters = tx.table(
        {
            "id": [*counts],
            "last": [each.last for each in counts.values()],
            "requests": [each.requests for each in counts.values()],
        }
    )
    tx.execute(
        "update devices set last_seen = case when last_seen < given.last then given.last else last_seen end, "
        f"request_count = request_count + given.requests from {given} where devices.id = given.id",
        **parameters,
    )
    tx.insert(
        "device_posture",
        ("device_id", *_POSTURE),
        [(id, *_posture_of(each.posture)) for id, each in sorted(counts.items())],
        on_conflict=_ADD_POSTURE,
    )


def _describe(tx: Tx, row: DeviceRow, device: Device) -> None:
    """Write the descriptive columns of a device.

    `flush` writes the counts separately, because the counts have no index and change more often.
    """
    if row.device_type != device.device_type:
        INDEX.remove(tx, row.domain_id, [row.id])
        INDEX.add(tx, row.domain_id, row.id, _texts(row, fold(row.nas_identifier), fold(device.device_type)))
    tx.execute(
        "update devices set device_name = :name, device_type = :type, device_type_key = :type_key, "
        "device_type_certainty = :certainty, nas_device_type = :nas_type, evidence = :evidence, "
        "nas_port_type = :medium, nas_port_type_key = :medium_key, client_id = :by, model = :model, "
        "firmware = :firmware where id = :id",
        id=row.id,
        **_description(device),
    )


def _description(device: Device) -> dict[str, Value]:
    return {
        "name": device.device_name,
        "type": device.device_type,
        "type_key": fold(device.device_type),
        "certainty": device.certainty,
        "nas_type": device.nas_device_type,
        "evidence": device.evidence,
        "medium": device.nas_port_type,
        "medium_key": fold(device.nas_port_type),
        "by": device.client_id,
        "model": device.model,
        "firmware": device.firmware,
    }


def delete(tx: Tx, row: DeviceRow, actor: str, at: int) -> None:
    """Delete a device. Its stations must be deleted already. Its history stays."""
    INDEX.remove(tx, row.domain_id, [row.id])
    tx.execute("delete from devices where id = :id", id=row.id)
    counters.add_row(tx, row.domain_id, COUNTER, row.id, -1)
    _remember(tx, [(row, row.id, "deleted", at, actor)])


def reset(tx: Tx, row: DeviceRow, at: int) -> None:
    """Forget the learned values of a device, and its counts of signed logins and of challenges. at: the time in
    microseconds."""
    tx.execute("delete from device_posture where device_id = :id", id=row.id)
    usage_repo.forget(tx, row.id)
    fresh = Posture(measured_at=at, challenged_at=at)
    tx.insert("device_posture", ("device_id", *_POSTURE), [(row.id, *_posture_of(fresh))])


def _texts(device: Device | DeviceRow, *keys: str) -> tuple[str, ...]:
    """Return the texts of a device for the search index. keys: the case-folded NAS-Identifier and product."""
    return *keys, fold(device.ip_address), fold(device.client_ip)


def _remember(tx: Tx, entries: Sequence[tuple[Device | DeviceRow, int, str, int, str]]) -> None:
    tx.insert("device_history", _HISTORY, [(*_identity(entry[0]).values(), *entry[1:]) for entry in entries])
