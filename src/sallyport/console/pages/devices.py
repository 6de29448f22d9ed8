"""Network devices and the stations behind them."""

from typing import Final

from sallyport.areas.devices.bodies import FILTERS as COLUMN_OF
from sallyport.areas.devices.comparison import ComparedDevice, Line
from sallyport.areas.devices.rows import DeviceRow, HistoryRow, StationRow
from sallyport.areas.devices.usage import PortRow, SsidRow, UsageRow
from sallyport.base.errors import Invalid
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column, row_columns
from sallyport.console.pages.enforcement import person_url
from sallyport.console.pages.logins import as_listed, newest_since
from sallyport.console.pages.people import login_columns
from sallyport.console.pages.reading import number, number_at, rights, tag_changes
from sallyport.console.pages.sessions import session_columns
from sallyport.console.table import SEARCHED, Filter, RowSelection, has_slow_filter, listed
from sallyport.console.visit import Pages, Visit, address
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
TITLES: Final = {
    "DEVICE_NAME": "Name",
    "DEVICE_TYPE": "Product",
    "IP_ADDRESS": "Source address",
    "CLIENT_IP": "Device address",
    "NAS_PORT_TYPE": "Medium",
    "NAS_IDENTIFIER": "NAS-Identifier",
}
FILTERS: Final = (
    Filter("search", "Search"),
    Filter("by", "Field", [(name, TITLES[name]) for name in COLUMN_OF]),
    Filter("is", "Value of the field"),
    Filter("tag", "Tag (key=value)"),
)
STATION_FILTERS: Final = (Filter("search", "Station or user"), Filter("deviceId", "Device id"))
HISTORY_COLUMNS: Final = row_columns(HistoryRow, "time", "event", "actor", "client_ip", "ip_address")[:5]
USE_COLUMNS: Final = row_columns(UsageRow, "ssid", "method", "transport", "logins", "first_seen", "last_seen")
PORT_COLUMNS: Final = row_columns(PortRow, "port", "stations", "last_seen")
ON_A_PAGE: Final = 10
MAX_CHOSEN: Final = 100
"""Maximum number of devices that are deleted at once."""
CHOICE: Final = RowSelection("/devices/delete", "device", "device_id", "device_name", "Delete the chosen devices")


def device_columns(domain_id: int) -> tuple[Column, ...]:
    """Return the columns of devices."""
    return row_columns(
        DeviceRow,
        *("device_name", "device_type", "client_ip", "ip_address", "nas_port_type", "last_seen", "request_count"),
        *("safe_to_require", "tags"),
        links={"device_name": lambda row: f"/devices/{row['device_id']}?domain={domain_id}"},
    )


def station_columns(domain_id: int) -> tuple[Column, ...]:
    """Return the columns of stations."""
    return row_columns(
        StationRow,
        *("station", "user", "device_name", "device_type", "ssid", "port", "last_seen", "request_count"),
        links={
            "station": lambda row: _log(domain_id, station=row["station"]),
            "user": lambda row: person_url(domain_id, str(row["user"])),
            "device_name": lambda row: f"/devices/{row['device_id']}?domain={domain_id}",
        },
    )


@pages.show("/devices", "Devices", roles=READERS, template="devices.html", menu="Network")
async def devices(visit: Visit) -> Context:
    """List the network devices of a domain."""
    domain, query = visit.domain(), visit.query
    chosen: dict[str, JSON] = {"filterBy": query.get("by", ""), "value": query.get("is", "")}
    table = await listed(
        visit,
        device_columns(domain.id),
        "/network_device/ListDevices",
        "network_devices",
        {"search": query.get("search", ""), "filter": chosen, "tag": query.get("tag", "")},
        domain=domain.id,
        filters=FILTERS,
        empty="No device yet. Add a RADIUS client, and point the device to this service: it registers itself.",
    )
    table.choice = CHOICE if visit.may(OPERATORS) else None
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/devices/compare", "Compare with a list", roles=READERS, template="devices_compare.html")
async def new_comparison(visit: Visit) -> Context:
    """Show the form for a list from another source."""
    return {"domain": visit.domain(), "found": None}


@pages.submit("/devices/compare", roles=READERS, template="devices_compare.html", is_slow=True)
async def compare(visit: Visit) -> Context:
    """Show the devices that only the list has or that are silent, and those that only the inventory has."""
    domain, fields = visit.domain(), visit.fields
    body: dict[str, JSON] = {"file": fields.get("file", ""), "silentDays": fields.get("days", "") or 30}
    found = await visit.call("/network_device/CompareDevices", body, domain=domain.id)
    return {
        "domain": domain,
        "found": found,
        "silent": entries(found["silent"]),
        "silent_columns": row_columns(Line, "name", "addresses", "last_seen"),
        "unknown": entries(found["unknown"]),
        "unknown_columns": row_columns(
            ComparedDevice,
            *("device_name", "device_type", "client_ip", "ip_address", "last_seen"),
            links={"device_name": lambda row: f"/devices/{row['device_id']}?domain={domain.id}"},
        )[:5],
    }


@pages.show("/devices/delete", "Delete devices", roles=OPERATORS, template="devices_delete.html")
async def removals(visit: Visit) -> Context:
    """List the chosen devices, the rows that are deleted with them, and the rows that stay."""
    domain, found = visit.domain(), [await _device(visit, number) for number in _chosen(visit)]
    live = 0
    for each in found:
        live += await _live_sessions(visit, each)
    title = f"Delete {counted(len(found), 'device')}"
    return {"title": title, "domain": domain, "devices": found, "sessions": live}


@pages.submit("/devices/delete", roles=OPERATORS, is_slow=True)
async def delete_chosen(visit: Visit) -> Redirect:
    """Delete the chosen devices. If one of them does not exist any more, none is deleted."""
    domain = visit.domain()
    body: dict[str, JSON] = {"deviceId": list[JSON](_chosen(visit))}
    return await _deleted(visit, body, domain.id)


@pages.show("/devices/{device}", "Device", roles=READERS, template="device.html")
async def device(visit: Visit) -> Context:
    """Show a device: product with evidence, posture, sessions, stations, logins and history."""
    domain, found = visit.domain(), await _device(visit, number_at(visit, "device"))
    one: dict[str, JSON] = {"deviceId": found["device_id"], "pageSize": ON_A_PAGE}
    sessions = await visit.call("/network_device/ListSessions", {**one, "live": True}, domain=domain.id)
    stations = await visit.call("/network_device/ListStations", one, domain=domain.id)
    history = await visit.call("/network_device/DeviceHistory", one, domain=domain.id)
    newer = await newest_since(visit, domain)
    logins = await visit.call("/ad/GetAuthLog", {**one, **newer, "withTotal": False}, domain=domain.id)
    evidence = found["evidence"] if isinstance(found["evidence"], dict) else {}
    return {
        "title": f"Device {found['device_name']}",
        "domain": domain,
        "device": found,
        "evidence": [(name, each) for name, each in evidence.items() if isinstance(each, dict)],
        "sessions": entries(sessions["sessions"]),
        "session_total": sessions["totalCount"],
        "session_columns": session_columns(domain.id),
        "stations": entries(stations["stations"]),
        "station_columns": station_columns(domain.id),
        "uses": entries(found["uses"]),
        "use_columns": USE_COLUMNS,
        "ports": entries(found["ports"]),
        "port_columns": PORT_COLUMNS,
        "history": entries(history["history"]),
        "history_columns": HISTORY_COLUMNS,
        "logins": [as_listed(row) for row in entries(logins["events"])],
        "login_columns": [column for column in login_columns(domain) if column.key != "device_name"],
        "log_url": _log(domain.id, device=found["device_name"]),
        **rights(visit),
    }


@pages.show("/devices/{device}/tags", "Tags and note", roles=OPERATORS, template="tags.html")
async def own_tags(visit: Visit) -> Context:
    """Show the form of the tags and the note of a device."""
    domain, found = visit.domain(), await _device(visit, number_at(visit, "device"))
    own, every = (each if isinstance(each, dict) else {} for each in (found["own_tags"], found["tags"]))
    name = found["device_name"]
    return {
        "title": f"Tags and note of {name}",
        "name": name,
        "tags": own,
        "inherited": {key: value for key, value in every.items() if key not in own},
        "note": found["note"],
        "back": f"/devices/{found['device_id']}?domain={domain.id}",
        **rights(visit),
    }


@pages.submit("/devices/{device}/tags", roles=OPERATORS)
async def change_tags(visit: Visit) -> Redirect:
    """Change the tags and the note of the device."""
    domain, found = visit.domain(), await _device(visit, number_at(visit, "device"))
    body = {"deviceId": found["device_id"], **tag_changes(visit, found["own_tags"])}
    await visit.call("/network_device/UpdateDevice", body, domain=domain.id)
    return Redirect(f"/devices/{found['device_id']}?domain={domain.id}", "Tags and note are changed.")


@pages.show("/devices/{device}/reset", "Forget what was learned", roles=OPERATORS, template="device_reset.html")
async def learned(visit: Visit) -> Context:
    """List the learned values of a device that would be forgotten."""
    domain, found = visit.domain(), await _device(visit, number_at(visit, "device"))
    title = f"Forget what {found['device_name']} has taught"
    return {"title": title, "domain": domain, "device": found}


@pages.submit("/devices/{device}/reset", roles=OPERATORS)
async def reset(visit: Visit) -> Redirect:
    """Forget the learned values of the device."""
    domain, number_ = visit.domain(), number_at(visit, "device")
    await visit.call("/network_device/ResetDevice", {"deviceId": number_}, domain=domain.id)
    to = f"/devices/{number_}?domain={domain.id}"
    return Redirect(to, "What was learned is forgotten. The next logins teach it again.")


@pages.show("/devices/{device}/delete", "Delete a device", roles=OPERATORS, template="device_delete.html")
async def removal(visit: Visit) -> Context:
    """List the rows that are deleted with a device, and the rows that stay."""
    domain, found = visit.domain(), await _device(visit, number_at(visit, "device"))
    title = f"Delete {found['device_name']}"
    return {"title": title, "domain": domain, "device": found, "sessions": await _live_sessions(visit, found)}


@pages.submit("/devices/{device}/delete", roles=OPERATORS)
async def delete(visit: Visit) -> Redirect:
    """Delete the device."""
    return await _deleted(visit, {"deviceId": number_at(visit, "device")}, visit.domain().id)


@pages.show("/stations", "Stations", roles=READERS, template="stations.html", menu="Network")
async def stations(visit: Visit) -> Context:
    """List the stations behind the devices of a domain."""
    domain = visit.domain()
    body: dict[str, JSON] = {"search": visit.query.get("search", ""), "deviceId": visit.query.get("deviceId") or 0}
    is_bounded = not body["deviceId"] and await _has_many_stations(visit, domain.id)
    if is_bounded:
        body["newest"] = SEARCHED
    table = await listed(
        visit,
        station_columns(domain.id),
        "/network_device/ListStations",
        "stations",
        body,
        domain=domain.id,
        filters=STATION_FILTERS,
        empty="No station yet. A station appears with the first login that names it (Calling-Station-Id).",
        most=1000,
    )
    table.searched = f"the newest {SEARCHED:,} stations" if is_bounded else ""
    return {"domain": domain, "table": table}


@pages.show("/ssids", "SSIDs seen", roles=READERS, template="ssids.html", menu="Network")
async def ssids(visit: Visit) -> Context:
    """List the SSIDs that logins of a domain have named."""
    domain = visit.domain()
    table = await listed(
        visit,
        row_columns(SsidRow, "ssid", "logins", "devices", "methods", "first_seen", "last_seen"),
        "/network_device/ListSsids",
        "ssids",
        {"search": visit.query.get("search", "")},
        domain=domain.id,
        filters=(Filter("search", "SSID"),),
        empty="No SSID yet. Access points name it in Called-Station-Id, or in an attribute of their vendor.",
        most=1000,
    )
    return {"domain": domain, "table": table}


async def _has_many_stations(visit: Visit, domain_id: int) -> bool:
    """Return whether a search examines only the newest stations of a domain, because the domain has more than SEARCHED
    stations. The other conditions are those of `has_slow_filter`."""
    if not has_slow_filter(visit, ("search",)):
        return False
    next_one: dict[str, JSON] = {"pageId": SEARCHED + 1, "pageSize": 1}
    found = await visit.call("/network_device/ListStations", next_one, domain=domain_id)
    return bool(entries(found["stations"]))


async def _device(visit: Visit, number_: int) -> Row:
    return await visit.call("/network_device/GetDevice", {"deviceId": number_}, domain=visit.domain().id)


async def _live_sessions(visit: Visit, found: Row) -> int:
    """Return the number of live sessions of a device."""
    body: dict[str, JSON] = {"deviceId": found["device_id"], "live": True, "pageSize": 1}
    answer = await visit.call("/network_device/ListSessions", body, domain=visit.domain().id)
    return int(str(answer["totalCount"]))


async def _deleted(visit: Visit, body: Row, domain_id: int) -> Redirect:
    """Delete devices, and return to the list."""
    answer = await visit.call("/network_device/DeleteDevice", body, domain=domain_id)
    return Redirect(f"/devices?domain={domain_id}", f"{answer['message']}. The next request registers a device again.")


def _chosen(visit: Visit) -> list[int]:
    """Return the ids of the devices in the address, each once. Raises Invalid, NotFound."""
    found = sorted({number(each, "device") for each in visit.query.getlist("device")})
    if not found:
        raise Invalid("no device is chosen: choose devices in the list first")
    if len(found) > MAX_CHOSEN:
        raise Invalid(f"{len(found)} devices are chosen: choose at most {MAX_CHOSEN}")
    return found


def _log(domain_id: int, **filters: JSON) -> str:
    """Return the address of the login log, with filters."""
    return address("/logins", [("domain", str(domain_id)), *((name, str(value)) for name, value in filters.items())])
