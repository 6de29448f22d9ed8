"""MAC authentication bypass: the stations that are admitted by their MAC address."""

from typing import Final

import trio

from sallyport.areas.policy.bypass.bodies import MAX_STATIONS
from sallyport.areas.policy.bypass.files import FILE_COLUMNS, message_with_line, split_tags, stations_of
from sallyport.areas.policy.bypass.station import StationRow
from sallyport.areas.policy.bypass.unknown import UnknownRow
from sallyport.base.errors import Invalid, NotFound, invalid_field
from sallyport.base.text import counted
from sallyport.base.wire import Row
from sallyport.console.columns import row_columns
from sallyport.console.pages.reading import lines, of, rights, tag_changes
from sallyport.console.table import Filter, RowAction, listed
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.shell.files import rows_of
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import ADMINS, READERS

pages = Pages()
CHOSEN: Final = ("station", "name", "vlan", "role", "tags", "until", "lastSeen", "addedAt")
UNKNOWN: Final = ("station", "vendor", "randomised", "ssid", "port", "deviceName", "outcome", "requests", "lastSeen")
NONE_UNKNOWN: Final = "No unknown station has asked for admission by its MAC address yet."
FIELDS: Final = ("name", "vlan", "role", "until")
"""The fields of an entry in the forms."""
FILTERS: Final = (Filter("search", "Address or name"),)
EMPTY: Final = (
    "No station yet. Add the MAC addresses of printers, phones and cameras that cannot log in; a switch with MAC "
    "authentication then admits them without a password."
)


@pages.show("/bypass", "MAC bypass", roles=READERS, template="bypass.html", menu="Sign-in policy")
async def bypass(visit: Visit) -> Context:
    """List the stations of a domain."""
    domain = visit.domain()
    body = {"search": visit.query.get("search", "")}
    links = {"station": lambda row: of(f"/bypass/{row['station']}", domain)} if visit.may(ADMINS) else {}
    columns = row_columns(StationRow, *CHOSEN, links=links)
    table = await listed(
        visit, columns, "/ad/ListBypassStations", "stations", body, domain=domain.id, filters=FILTERS, empty=EMPTY,
        most=1000,
    )  # fmt: skip
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/bypass/add", "Add bypass stations", roles=ADMINS, template="bypass_add.html")
async def new(visit: Visit) -> Context:
    """Show the form of new stations."""
    return {"domain": visit.domain()}


@pages.submit("/bypass/add", roles=ADMINS, template="bypass_keys.html")
async def add(visit: Visit) -> Redirect | Context:
    """Admit stations. Show new pre-shared keys once."""
    domain = visit.domain()
    given = {field: text for field in FIELDS if (text := visit.fields.get(field, ""))}
    body: Row = {"station": lines(visit.fields.get("station", "")), **given, **_key(visit)}
    if tags := lines(visit.fields.get("tags", "")):
        body["tags"] = tags
    if visit.fields.get("new_psk"):
        body["generatePsk"] = True
    added = await visit.call("/ad/AddBypassStation", body, domain=domain.id)
    if keys := entries(added["keys"]):
        return {"title": "Pre-shared keys", "domain": domain, "keys": keys}
    return Redirect(of("/bypass", domain), f"{added['message']} to {domain.name}.")


@pages.show("/bypass/import", "Import bypass stations", roles=ADMINS, template="bypass_import.html")
async def new_import(visit: Visit) -> Context:
    """Show the form for the text of a file."""
    return {"domain": visit.domain(), "columns": FILE_COLUMNS}


@pages.submit("/bypass/import", roles=ADMINS, is_slow=True)
async def import_file(visit: Visit) -> Redirect:
    """Import stations from the text of a file in the format of an export."""
    domain, text = visit.domain(), visit.fields.get("file", "")
    try:
        rows = await trio.to_thread.run_sync(_rows, text)
    except ValueError as error:
        raise invalid_field("file", str(error)) from None
    if len(rows) > MAX_STATIONS:
        problem = f"must have at most {MAX_STATIONS:,} stations; for more, use sallyport bypass import"
        raise invalid_field("file", problem)
    try:
        await visit.call("/ad/ImportBypassStations", {"stations": stations_of(rows)}, domain=domain.id)
    except Invalid as error:
        raise invalid_field("file", message_with_line(error, rows)) from None
    return Redirect(of("/bypass", domain), f"{counted(len(rows), 'station')} imported to {domain.name}.")


def _rows(text: str) -> list[Row]:
    """Return the rows of the text of a file. Raises ValueError."""
    rows = rows_of(text, FILE_COLUMNS)
    if not rows:
        raise ValueError("must have a line with titles, and a line for each station")
    split_tags(rows)
    return rows


@pages.show("/bypass/unknown", "Unknown stations", roles=READERS, template="bypass_unknown.html")
async def unknown(visit: Visit) -> Context:
    """List the stations that have asked for admission and are not on the list."""
    domain = visit.domain()
    body = {"search": visit.query.get("search", "")}
    table = await listed(
        visit, row_columns(UnknownRow, *UNKNOWN), "/ad/ListUnknownStations", "stations", body, domain=domain.id,
        filters=(Filter("search", "Address, SSID or port"),), empty=NONE_UNKNOWN, most=1000,
    )  # fmt: skip
    if visit.may(ADMINS):
        table.action = RowAction(of("/bypass/unknown", domain), "station", "station", "To the list", "Add")
    return {"domain": domain, "table": table, **rights(visit)}


@pages.submit("/bypass/unknown", roles=ADMINS)
async def admit(visit: Visit) -> Redirect:
    """Add an unknown station to the list. An entry that has ended gets no end."""
    domain, station = visit.domain(), visit.fields.get("station", "")
    await visit.call("/ad/AddBypassStation", {"station": station, "until": ""}, domain=domain.id)
    return Redirect(of("/bypass/unknown", domain), f"The station {station} is on the list of {domain.name}.")


@pages.show("/bypass/{station}", "Bypass station", roles=ADMINS, template="bypass_station.html")
async def station(visit: Visit) -> Context:
    """Show the entry of a station, and the form that changes it."""
    return {"domain": visit.domain(), "station": await _entry(visit)}


@pages.submit("/bypass/{station}", roles=ADMINS)
async def change(visit: Visit) -> Redirect:
    """Change the entry of a station."""
    domain = visit.domain()
    kept = await _entry(visit)
    given: Row = {field: visit.fields.get(field, "") for field in FIELDS}
    if given["until"] == str(kept["until"])[:10]:
        del given["until"]  # the form shows only the day
    tags = tag_changes(visit, kept["tags"]).get("tags", kept["tags"])
    given |= {**_key(visit), "tags": tags}
    await visit.call("/ad/AddBypassStation", {"station": visit.at["station"], **given}, domain=domain.id)
    return Redirect(of("/bypass", domain), f"The station {visit.at['station']} is changed.")


@pages.show("/bypass/{station}/remove", "Remove a bypass station", roles=ADMINS, template="bypass_remove.html")
async def confirm(visit: Visit) -> Context:
    """Show the station that would be removed."""
    return {"domain": visit.domain(), "station": await _entry(visit)}


@pages.submit("/bypass/{station}/remove", roles=ADMINS)
async def remove(visit: Visit) -> Redirect:
    """Remove the station."""
    domain = visit.domain()
    await visit.call("/ad/DeleteBypassStation", {"station": visit.at["station"]}, domain=domain.id)
    return Redirect(of("/bypass", domain), f"The station {visit.at['station']} is removed.")


def _key(visit: Visit) -> Row:
    """Return the field with the pre-shared key in the form. There is none if the key does not change."""
    key = "" if visit.fields.get("no_psk") else visit.fields.get("psk", "")
    return {"psk": key} if key or visit.fields.get("no_psk") else {}


async def _entry(visit: Visit) -> Row:
    """Return the entry of the station in the address. Raises NotFound."""
    body: Row = {"search": visit.at["station"], "pageSize": 100}  # the name of another station may have the address too
    found = entries((await visit.call("/ad/ListBypassStations", body, domain=visit.domain().id))["stations"])
    entry = next((each for each in found if each["station"] == visit.at["station"]), None)
    if entry is None:
        raise NotFound("station not found")
    return entry
