"""Tests of files with stations, as the command line and the console import them, and of `sallyport apply`."""

import json

import pytest

from sallyport.areas.configuration.item import Prune
from sallyport.areas.policy.bypass.bodies import MAX_STATIONS
from sallyport.areas.policy.bypass.files import MAX_ROWS_SIZE, message_with_line, parts_of, split_tags, stations_of
from sallyport.areas.policy.bypass.station import StationChange
from sallyport.areas.policy.roles.role import ReplySet
from sallyport.base.clock import from_iso
from sallyport.base.errors import FieldError, Invalid
from sallyport.base.wire import Row
from sallyport.store.audit import HIDDEN
from tests.areas import Areas
from tests.areas.configuration.test_apply import engine_of, items
from tests.areas.policy.bypass.test_entries import entry
from tests.areas.policy.bypass.test_service import MAC

ROWS: list[Row] = [{"line": 2, "station": MAC}, {"line": 5, "station": "020000000001"}]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("stations.0.vlan", "line 2: vlan must be a number"),
        ("stations.1.vlan", "line 5: vlan must be a number"),
        ("stations.1", "line 5:  must be a number"),
        ("stations.2.vlan", "invalid vlan"),
        ("stations", "invalid vlan"),
        ("domainId", "invalid vlan"),
    ],
)
def test_the_message_has_the_line_of_the_file(field: str, expected: str) -> None:
    """An error that is not about a row has its own message."""
    assert message_with_line(Invalid("invalid vlan", (FieldError(field, "must be a number"),)), ROWS) == expected


def test_the_tags_of_a_row_are_in_one_cell() -> None:
    """A tag with a comma has quotation marks."""
    rows: list[Row] = [{"line": 2, "tags": 'site=Berlin, "owner=net, cables"'}, {"line": 3, "tags": ["a=b"]}]
    split_tags(rows)
    assert [row["tags"] for row in rows] == [["site=Berlin", "owner=net, cables"], ["a=b"]]
    with pytest.raises(ValueError, match=r"line 7: .*quotation marks"):
        split_tags([{"line": 7, "tags": '"a'}])


def test_a_long_file_has_several_requests() -> None:
    """A request has at most so many stations, and so many characters, as the service accepts. It has no lines."""
    short: list[Row] = [{"line": number, "station": MAC} for number in range(MAX_STATIONS + 1)]
    assert [len(part) for part in parts_of(short)] == [MAX_STATIONS, 1]
    long: list[Row] = [{"line": 2, "name": "x" * (MAX_ROWS_SIZE // 2)} for _ in range(3)]
    parts = [stations_of(part) for part in parts_of(long)]
    assert parts == [[{"name": "x" * (MAX_ROWS_SIZE // 2)}]] * 3
    assert list(parts_of([])) == []


async def test_a_station_has_the_values_of_its_file(areas: Areas) -> None:
    """A file has all values of a station: those that it does not have are empty. The key stays if the file keeps it.
    Other stations of the domain stay, because files have not added them."""
    await areas.roles.set(areas.domain, "Staff", ReplySet(vlan="9"))
    file = {"domain": "corp", "station": "AA-BB-CC-DD-EE-FF", "psk": {"hex": b"12345678".hex()}}
    values = {"name": "printer", "vlan": "30", "until": "2030-01-01T00:00:00Z", "role": "STAFF", "tags": ["a=b"]}
    await engine_of(areas).run(areas.tenant, items([("bypass", {**file, **values})]))
    row = await entry(areas)
    assert (row.station, row.name, row.vlan, row.role) == (MAC, "printer", "30", "Staff")
    assert (row.until_at, row.tags) == (from_iso("2030-01-01T00:00:00Z"), "a=b")
    assert await key(areas) == b"12345678"
    await engine_of(areas).run(areas.tenant, items([("bypass", file)]))
    row = await entry(areas)
    assert (row.name, row.vlan, row.role, row.until_at, row.tags) == ("", "", "", 0, "")
    assert await key(areas) == b"12345678"
    await areas.bypass.add(areas.domain, ["020000000001"])
    await engine_of(areas).run(areas.tenant, [], prune=Prune.ALL)
    assert (await entry(areas)).station == "020000000001"


async def key(areas: Areas) -> bytes:
    """Return the pre-shared key of the station."""
    (change,) = await areas.store.read(lambda tx: areas.bypass.read(tx, areas.domain))
    return change.psk or b""


async def test_the_trail_says_that_a_key_has_changed(areas: Areas) -> None:
    """It does not have the key."""
    sql = "select changes from audit_trail where action = 'bypass.add' order by id desc limit 1"
    for keys, shown in (
        ([b"12345678"], [None, HIDDEN]),
        ([b""], [None, ""]),
        ([b"12345678", b""], [None, "several values"]),
        ([None], None),
    ):
        changes = [StationChange(f"02000000000{number}", psk=key) for number, key in enumerate(keys)]
        await areas.bypass.put(areas.domain, changes)
        trail = json.loads(await areas.store.read(lambda tx: tx.value(str, sql)) or "")
        assert trail.get("psk") == shown
