"""`sallyport device` and `sallyport station`: devices and stations of the inventory."""

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click

from sallyport.areas.devices.bodies import CompareDevices, ListDevices, ListSsids, ListStations, UpdateDevice
from sallyport.areas.devices.comparison import ComparedDevice, Line
from sallyport.areas.devices.rows import DeviceRow, StationRow
from sallyport.areas.devices.usage import PortRow, SsidRow, UsageRow
from sallyport.base.answer import wire_names
from sallyport.base.errors import NotFound
from sallyport.base.text import printable
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form, domains, entries
from sallyport.shell.fields import options, pass_body
from sallyport.shell.options import Group, InputFile, any_domain, as_json, csv_form, in_domain, json_form

LIST = "/network_device/ListDevices"
STATIONS = "/network_device/ListStations"
COLUMNS = (
    "device_id",
    "domain",
    "device_name",
    "device_type",
    "ip_address",
    "client_ip",
    "nas_device_type",
    "nas_port_type",
    "last_seen",
    "request_count",
    "registrations",
    "tags",
)
CSV_COLUMNS = wire_names(
    DeviceRow,
    *("device_id", "domain_id", "domain", "device_name", "device_type", "device_type_certainty", "ip_address"),
    *("client_ip", "nas_identifier", "nas_device_type"),
)
SSIDS = "/network_device/ListSsids"
SSID_COLUMNS = wire_names(SsidRow, "domain")
STATION_COLUMNS = wire_names(StationRow, "station", "user", "domain")
SHOWN = (
    (
        "sessions",
        "/network_device/ListSessions",
        ("sessionId", "userName", "station", "framedIp", "state", "startedAt"),
    ),
    ("events", "/ad/GetAuthLog", ("time", "user", "station", "appliedDecision", "wouldHaveBeen", "reason")),
    ("stations", STATIONS, ("station", "user", "first_seen", "last_seen", "request_count")),
    ("history", "/network_device/DeviceHistory", ("time", "event", "actor")),
)
"""Each list of its own operation in `device show`: field of the answer, operation, columns of the table."""
SPARE = ("tags", "registrations", "nas_port_type", "client_ip", "nas_device_type", "request_count")
"""Columns that the table of devices leaves out at a narrow terminal, in this order, before it cuts an address."""
USES = (("uses", wire_names(UsageRow)), ("ports", wire_names(PortRow)))
"""Each list that GetDevice has, with the columns of its table."""
_LISTS = {"events": "logins"}
_LIMIT = click.IntRange(1, 1000)
_domain = click.option(
    "--domain", help="Name or domainId of the domain; required if several domains have a device of that name."
)
_NO_DEVICE = "no device has that name or id; to list the devices: sallyport device list"


@click.group(cls=Group)
def device() -> None:
    """Network devices. The service registers a device when the device forwards a login."""


@device.command("list")
@any_domain
@options(ListDevices, "search", "tag")
@json_form
@csv_form
@pass_body
def list_(line: CommandLine, body: Row, *, domain: str | None, form: Form | None) -> None:
    """List the network devices."""
    devices = (each for one in domains(line, domain) for each in _listed(line, one, LIST, "network_devices", body))
    line.print_rows(devices, CSV_COLUMNS if form == "csv" else COLUMNS, form, spare=SPARE)


@device.command()
@click.argument("name", metavar="NAME|ID")
@_domain
@click.option("--limit", type=_LIMIT, default=10, show_default=True, help="Maximum number of entries in each list.")
@as_json
@click.pass_obj
def show(line: CommandLine, *, name: str, domain: str | None, limit: int, as_json: bool) -> None:
    """Show a device: evidence for its product, posture, sessions, latest logins, stations, and history."""
    body, own_domain = _find(line, name, domain)
    found = line.run("/network_device/GetDevice", body, domain=own_domain)
    for field, path, _ in SHOWN:
        found[_LISTS.get(field, field)] = line.run(path, {**body, "pageSize": limit}, domain=own_domain)[field]
    if as_json:
        line.print_json(found)
        return
    lists = {**dict(USES), **{_LISTS.get(field, field): columns for field, _, columns in SHOWN}}
    facts = {name: value for name, value in found.items() if name not in lists}
    facts["evidence"] = _evidence(found["evidence"])
    line.print_rows([{"device": name, "value": value} for name, value in facts.items()], ("device", "value"))
    for field, columns in lists.items():
        line.print(f"\n{field}:")
        line.print_rows(entries(found[field]), columns)


@device.command()
@click.argument("file", type=InputFile())
@in_domain
@options(CompareDevices, "silentDays")
@as_json
@pass_body
def compare(line: CommandLine, body: Row, *, file: Path, domain: str, as_json: bool) -> None:
    """Compare the devices of a domain with a CSV file, such as an export of NetBox. Nothing is changed."""
    text = file.read_bytes().decode("utf-8-sig", errors="replace")
    found = line.run("/network_device/CompareDevices", {**body, "file": text}, domain=domain)
    if as_json:
        line.print_json(found)
        return
    line.print(f"in the list, and silent here: {found['silentCount']} of {found['listCount']}")
    line.print_rows(entries(found["silent"]), wire_names(Line))
    line.print(f"\nseen here, and not in the list: {found['unknownCount']}")
    line.print_rows(entries(found["unknown"]), wire_names(ComparedDevice))


@device.command("set")
@click.argument("name", metavar="NAME|ID")
@_domain
@options(UpdateDevice, "tags", "note")
@pass_body
def set_(line: CommandLine, given: Row, *, name: str, domain: str | None) -> None:
    """Change the tags and the note of a device. Its client's tags with other keys apply too."""
    if not given:
        raise click.UsageError("nothing to change: give --tag or --note")
    body, own_domain = _find(line, name, domain)
    line.note(str(line.run("/network_device/UpdateDevice", {**body, **given}, domain=own_domain)["message"]))


@device.command()
@click.argument("name", metavar="NAME|ID")
@_domain
@click.pass_obj
def reset(line: CommandLine, *, name: str, domain: str | None) -> None:
    """Forget the learned values of a device: timeouts, challenges, signatures."""
    body, own_domain = _find(line, name, domain)
    line.note(str(line.run("/network_device/ResetDevice", body, domain=own_domain)["message"]))


@device.command()
@click.argument("name", metavar="NAME|ID")
@_domain
@click.option("--yes", is_flag=True, help="Do not ask for confirmation at a terminal.")
@click.pass_obj
def delete(line: CommandLine, *, name: str, domain: str | None, yes: bool) -> None:
    """Delete a device. Its next request registers it again."""
    body, own_domain = _find(line, name, domain)
    if not yes and sys.stdin.isatty():
        found = line.run("/network_device/GetDevice", body, domain=own_domain)
        what = f'device {found["device_id"]} "{printable(str(found["device_name"]))}"'
        click.confirm(f"Delete {what} with its stations, learned values, tags and note?", abort=True, err=True)
    line.note(str(line.run("/network_device/DeleteDevice", body, domain=own_domain)["message"]))


@click.group(cls=Group)
def ssid() -> None:
    """SSIDs that logins have named."""


@ssid.command("list")
@any_domain
@options(ListSsids, "search")
@json_form
@csv_form
@pass_body
def list_ssids(line: CommandLine, body: Row, *, domain: str | None, form: Form | None) -> None:
    """List the SSIDs of a domain, each with its logins, devices and methods."""
    found = (each for one in domains(line, domain) for each in _listed(line, one, SSIDS, "ssids", body))
    line.print_rows(found, SSID_COLUMNS, form)


@click.group(cls=Group)
def station() -> None:
    """Stations: the hosts behind network devices, by Calling-Station-Id."""


@station.command("list")
@any_domain
@options(ListStations, "search")
@click.option("--device", metavar="NAME|ID", help="Show only stations behind this device (name or id).")
@click.option(
    "--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="Maximum number of stations."
)
@json_form
@csv_form
@pass_body
def list_stations(
    line: CommandLine, body: Row, *, domain: str | None, device: str | None, limit: int, form: Form | None
) -> None:
    """List the stations that have logged in, each with its last user, in the order of their first login."""
    if device is not None:
        of, domain = _find(line, device, domain)
        body |= of
    found = (each for one in domains(line, domain) for each in _listed(line, one, STATIONS, "stations", body))
    line.print_rows(islice(found, limit), STATION_COLUMNS, form)
    if next(found, None) is not None:
        line.note(f"there are more than {limit} stations; raise --limit, or select with --search")


def _find(line: CommandLine, name: str, domain: str | None) -> tuple[Row, str]:
    if name.isdecimal() and len(name) < 19:
        return {"deviceId": int(name)}, domain or str(line.call("device.domain", device=int(name)))
    body: Row = {"filter": {"filterBy": "DEVICE_NAME", "value": name}}
    listed = [each for one in domains(line, domain) for each in _listed(line, one, LIST, "network_devices", body)]
    if len(listed) != 1:
        ids = ", ".join(f"{each['device_id']} in {each['domain']}" for each in listed[:10])
        raise NotFound(
            f"{len(listed)} devices have that name; give the id of one instead: {ids}" if ids else _NO_DEVICE
        )
    return {"deviceId": listed[0]["device_id"]}, str(listed[0]["domain_id"])


def _listed(line: CommandLine, domain: Row, path: str, field: str, body: Row) -> Iterator[Row]:
    """Call an HTTP list operation for a domain, and yield the entries of the answers. The id and the name of the domain
    are added to each entry."""
    owner = {"domain_id": domain["domainId"], "domain": domain["domainName"]}
    for each in line.listed(path, field, body, domain=str(domain["domainId"]), size=100):
        yield {**owner, **each}


def _evidence(value: JSON) -> str:
    if not isinstance(value, dict):
        return ""
    return "; ".join(
        f"{name}: {', '.join(map(str, each)) if isinstance(each, list) else each}" for name, each in value.items()
    )
