"""The inventory: lists, searches, deletion, registration after a deletion, and history."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial

import pytest
from prometheus_client import CollectorRegistry

from sallyport.areas.devices import repo, write_repo
from sallyport.areas.devices.operations import filter_column
from sallyport.areas.devices.repo import HistoryRow
from sallyport.areas.devices.rows import MAX_SELECTED, DeviceQuery
from sallyport.areas.devices.service import Devices
from sallyport.areas.devices.sightings import Sightings, write_first_sightings
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, Invalid, NotFound
from sallyport.metrics import InventoryMetrics
from sallyport.store.connections import SqliteTx, open_connection
from sallyport.store.model import Store, Tx, Value
from sallyport.store.slices import SLICE
from tests.areas import Areas, only_sqlite
from tests.areas.devices.conftest import Seen
from tests.slices import OneSlice, Stopped

WIRELESS, ETHERNET = (number.to_bytes(4) for number in (19, 15))


# --- lists ------------------------------------------------------------------------------------------------------


async def test_pages_are_in_order_of_id(areas: Areas, seen: Seen) -> None:
    """Pages of a list have each device once; the total is that of the list."""
    for number in range(25):
        await seen.device(f"d{number}")
    listed = []
    for offset in range(0, 40, 10):
        rows, total, _ = await areas.devices.page(DeviceQuery(areas.domain, offset=offset, limit=10))
        assert total == 25
        listed += [each.id for each in rows]
    assert len(listed) == 25
    assert listed == sorted(set(listed))


class CountedStatements:
    """A connection that counts the statements of a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.count = 0

    def execute(self, sql: str, parameters: Mapping[str, Value] | Sequence[Value], /) -> sqlite3.Cursor:
        self.count += 1
        return self._connection.execute(sql, parameters)


@only_sqlite
async def test_a_page_takes_as_many_statements_as_one_device(areas: Areas, seen: Seen) -> None:
    """The posture of each device is read with its row."""
    for number in range(20):
        await seen.device(f"d{number}")
    statements = []
    with closing(open_connection(areas.store.path, read_only=True)) as connection:
        for limit in (1, 20):
            counted = CountedStatements(connection)
            rows, _ = repo.page(SqliteTx(counted), DeviceQuery(areas.domain, limit=limit))
            assert len(rows) == limit
            statements.append(counted.count)
    assert statements[0] == statements[1] <= 2


async def test_a_domain_sees_only_its_own_devices(areas: Areas, seen: Seen) -> None:
    """Lists, searches, filters, stations and history never have those of another domain."""
    other = await areas.domains.add(areas.tenant, "branch")
    own = await seen.device("switch")
    foreign = seen.note("192.0.2.1", NAS_IDENTIFIER=b"switch", domain=other)
    await seen.write(foreign, station=seen.station(foreign, "02-01"))
    for asked in ((), ("switch",), ("sw",), ("", "device_name", "switch")):
        assert [row.id for row in await seen.rows(*asked)] == [own.id]
    assert (await areas.devices.stations(areas.domain, 0, "", offset=0, limit=9))[1] == 0
    history, _ = await areas.devices.history(areas.domain, 0, offset=0, limit=9)
    assert [row.device_id for row in history] == [own.id]
    with pytest.raises(NotFound):
        await areas.devices.one(areas.domain, foreign.id or 0)


NAMES = (
    "core-switch",
    "Core-Router",
    'a"b',
    "100%",
    "a_b",
    "Zürich-1",
    "上海-1",
    "x",
    "NEAR",
    "domain : x",
    "a'b",
    "ÉTÉ",
)


SEARCHES = {
    "x": ["x", "domain : x"],
    "X": ["x", "domain : x"],
    "co": ["core-switch", "Core-Router"],
    "core": ["core-switch", "Core-Router"],
    "CORE-S": ["core-switch"],
    '"': ['a"b'],
    'a"b': ['a"b'],
    "'": ["a'b"],
    "a'b": ["a'b"],
    "%": ["100%"],
    "00%": ["100%"],
    "a_b": ["a_b"],
    "_": ["a_b"],
    "ü": ["Zürich-1"],
    "Ü": ["Zürich-1"],
    "zürich": ["Zürich-1"],
    "ZÜRICH": ["Zürich-1"],
    "é": ["ÉTÉ"],
    "éT": ["ÉTÉ"],
    "été": ["ÉTÉ"],
    "上海": ["上海-1"],
    "上海-1": ["上海-1"],
    "near": ["NEAR"],
    "NEAR(": [],
    "domain : x": ["domain : x"],
    "AND": [],
    "*": [],
    "-core": [],
    "   ": [],
    "xyz" * 80: [],
}


async def test_a_search_finds_parts_of_any_length(seen: Seen) -> None:
    """Substrings of one, two or more characters are found in upper or lower case; operators of the search language are
    plain text."""
    for name in NAMES:
        await seen.device(name)
    assert {search: await seen.names(search) for search in SEARCHES} == SEARCHES


@pytest.mark.parametrize(
    ("part", "found"),
    [("gate", True), ("cisco", True), ("51.100", True), ("10.9.8", True), ("7", True), ("Wireless", False)],
    ids=["name", "product", "ip_address", "client_ip", "one digit", "medium"],
)
async def test_a_search_looks_at_names_products_and_addresses(areas: Areas, seen: Seen, part: str, found: bool) -> None:
    """A search compares device name, product, ip_address and client_ip, not the medium."""
    client = await areas.client("198.51.100.7/32", product="Cisco ISE")
    device = seen.note(
        "198.51.100.7", client, NAS_IDENTIFIER=b"gate", NAS_IP_ADDRESS=bytes((10, 9, 8, 7)), NAS_PORT_TYPE=WIRELESS
    )
    await seen.write(device)
    await seen.device("other")
    assert await seen.names(part) == (["gate"] if found else [])


@pytest.mark.parametrize(
    ("search", "column", "value", "total"),
    [
        ("even", "", "", 15),
        ("ev", "", "", 15),
        ("even", "nas_port_type", "wireless", 5),
        ("", "nas_port_type", "WIRELESS", 10),
    ],
    ids=["search", "two letters", "search and filter", "filter"],
)
async def test_the_total_of_a_search_is_that_of_all_pages(
    areas: Areas, seen: Seen, search: str, column: str, value: str, total: int
) -> None:
    """The total of a search is the number of devices on all its pages, with and without a filter."""
    for number in range(30):
        await seen.device(
            f"{'even' if number % 2 == 0 else 'odd'}-{number}", NAS_PORT_TYPE=WIRELESS if number < 10 else ETHERNET
        )
    query = partial(DeviceQuery, areas.domain, search, column, value)
    pages = [await areas.devices.page(query(offset=offset, limit=4)) for offset in range(0, total, 4)]
    assert {counted for _, counted, _ in pages} == {total}
    ids = [each.id for found, *_ in pages for each in found]
    assert len(ids) == total
    assert ids == sorted(set(ids))


FILTERS = {
    ("device_name", "SWITCH-1"): ["switch-1"],
    ("device_name", "cisco ise"): ["ise"],
    ("device_name", "Zürich"): ["ZÜRICH"],
    ("device_name", "ZÜRICH"): ["ZÜRICH"],
    ("device_name", "switch"): [],
    ("device_type", "Cisco ISE"): ["ise"],
    ("device_type", "unknown"): ["switch-1", "ZÜRICH"],
    ("ip_address", "192.0.2.5"): ["switch-1"],
    ("client_ip", "10.0.0.5"): ["switch-1"],
    ("nas_port_type", "wireless"): ["switch-1"],
    ("nas_port_type", "Unknown"): ["ise", "ZÜRICH"],
    ("nas_identifier", "ise"): ["ise"],
    ("nas_identifier", "' or 1=1 --"): [],
}


async def test_a_filter_is_equality_without_case(areas: Areas, seen: Seen) -> None:
    """Each column can be filtered by; DEVICE_NAME compares the name or the product."""
    await seen.device("switch-1", "192.0.2.5", NAS_IP_ADDRESS=bytes((10, 0, 0, 5)), NAS_PORT_TYPE=WIRELESS)
    client = await areas.client("198.51.100.7/32", product="Cisco ISE")
    await seen.write(seen.note("198.51.100.7", client, NAS_IDENTIFIER=b"ise"))
    await seen.device("ZÜRICH")
    assert {each: await seen.names("", *each) for each in FILTERS} == FILTERS


@pytest.mark.parametrize(
    "name", ["", "DEVICE_NAME", "DEVICE_TYPE", "IP_ADDRESS", "CLIENT_IP", "NAS_PORT_TYPE", "NAS_IDENTIFIER"]
)
def test_a_filter_names_a_column(name: str) -> None:
    """Six columns are accepted in upper or lower case; an empty name means no filter."""
    assert filter_column(name) == filter_column(name.lower()) == name.lower()


@pytest.mark.parametrize("name", ["id", "EVIDENCE", "DEVICE_NAME ", "1=1", "device_name; drop table devices"])
def test_an_unknown_filter_column_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match=r"^invalid filterBy$"):
        filter_column(name)


# --- deletion ---------------------------------------------------------------------------------------------------


async def test_a_deleted_device_is_registered_again_by_its_next_request(areas: Areas, seen: Seen) -> None:
    """Row, stations and search entries of a deleted device are removed; its next request adds a new row and another
    registration."""
    device = await seen.device("switch")
    await seen.write(device, station=seen.station(device, "02-01"))
    assert await areas.devices.delete(areas.domain, device_ids=[device.id or 0], addresses=None, actor="ann") == 1
    assert await seen.rows() == await seen.rows("switch") == await seen.rows("sw") == []
    assert (await areas.devices.stations(areas.domain, 0, "", offset=0, limit=9))[1] == 0
    areas.clock.pass_by(5)
    again = seen.note(NAS_IDENTIFIER=b"switch")
    (registered,) = await seen.write(again)
    (row,) = await seen.rows("switch")
    assert registered.again
    assert row.id == again.id and row.id > (device.id or 0)
    assert (row.registrations, row.request_count, row.first_seen) == (2, 1, areas.clock())
    assert areas.sample("sallyport_devices_registered_total", domain=str(areas.domain)) == 1
    assert areas.sample("sallyport_devices_reregistered_total", domain=str(areas.domain)) == 1
    assert areas.sample("sallyport_devices_deleted_total", domain=str(areas.domain)) == 1


async def test_a_device_with_many_stations_is_deleted_in_slices(areas: Areas, seen: Seen) -> None:
    """Stations are deleted in slices, then their device; another call completes an interrupted deletion."""
    device = await seen.device("switch")
    rows = [(areas.domain, device.id, str(number), "ann", 1, 1, 1) for number in range(2 * SLICE + 1)]
    columns = ("domain_id", "device_id", "station", "user_name", "first_seen", "last_seen", "request_count")
    await areas.store.write(lambda tx: tx.insert("stations", columns, rows))

    async def delete(store: Store) -> None:
        devices = Devices(store, Sightings(), InventoryMetrics(CollectorRegistry()), areas.devices.tags, areas.clock)
        assert len(await seen.rows()) == 1
        await devices.delete(areas.domain, device_ids=[device.id or 0], addresses=None, actor="ann")

    with pytest.raises(Stopped):
        await delete(OneSlice(areas.store))
    await delete(OneSlice(areas.store, 4))
    assert await seen.rows() == []
    assert (await areas.devices.stations(areas.domain, 0, "", offset=0, limit=9))[1] == 0


async def test_the_history_is_kept(areas: Areas, seen: Seen) -> None:
    """Registrations and deletions with their actors are listed newest first, for one device or all, also for deleted
    devices."""
    device = await seen.device("a")
    await seen.device("b")
    areas.clock.pass_by(1)
    await areas.devices.delete(areas.domain, device_ids=[device.id or 0], addresses=None, actor="ann's token")
    areas.clock.pass_by(1)
    again = await seen.device("a")
    rows, total = await areas.devices.history(areas.domain, 0, offset=0, limit=10)
    start = areas.clock() - 2 * SECOND
    assert [(row.device_id, row.nas_identifier, row.event, row.actor, (row.at - start) // SECOND) for row in rows] == [
        (again.id, "a", "registered", "", 2),
        (device.id, "a", "deleted", "ann's token", 1),
        ((device.id or 0) + 1, "b", "registered", "", 0),
        (device.id, "a", "registered", "", 0),
    ]
    assert total == 4
    own, of_one = await areas.devices.history(areas.domain, device.id or 0, offset=1, limit=1)
    assert (of_one, own) == (2, [HistoryRow(device.id or 0, "192.0.2.1", "192.0.2.1", "a", "registered", start, "")])


async def test_deletion_is_all_or_nothing(areas: Areas, seen: Seen) -> None:
    """One unknown ID, or one of another domain, refuses the deletion of all; a repeated ID is one device."""
    other = await areas.domains.add(areas.tenant, "branch")
    first, second = await seen.device("a"), await seen.device("b")
    foreign = seen.note(NAS_IDENTIFIER=b"c", domain=other)
    await seen.write(foreign)
    delete = partial(areas.devices.delete, areas.domain, addresses=None, actor="n")
    for ids in ([first.id, 99], [first.id, foreign.id], [foreign.id], [0], [-(2**63)], []):
        with pytest.raises(NotFound, match=r"^device not found$"):
            await delete(device_ids=[each or 0 for each in ids])
    assert len(await seen.rows()) == 2
    assert await delete(device_ids=[first.id or 0, second.id or 0, first.id or 0]) == 2
    assert await seen.rows() == []
    assert [row.id for row in await seen.rows(domain=other)] == [foreign.id]


@pytest.mark.parametrize("addresses", [("192.0.2.1", "192.0.2.2"), ("192.0.2.9", "192.0.2.9"), ("", "")])
async def test_deletion_by_addresses_needs_both(areas: Areas, seen: Seen, addresses: tuple[str, str]) -> None:
    """Both addresses must be those of a device."""
    await seen.device("a")
    with pytest.raises(NotFound):
        await areas.devices.delete(areas.domain, device_ids=[], addresses=addresses, actor="n")
    assert await seen.names() == ["a"]


async def test_deletion_by_addresses_deletes_all_matches(areas: Areas, seen: Seen) -> None:
    """Every device with that pair of addresses is deleted, and no other."""
    for name in "abc":
        await seen.device(name)
    await seen.device("d", "192.0.2.2")
    delete = partial(areas.devices.delete, areas.domain, device_ids=[], actor="n")
    assert await delete(addresses=("192.0.2.1", "192.0.2.1")) == 3
    assert await seen.names() == ["d"]


async def test_deletion_by_addresses_is_bounded(areas: Areas, seen: Seen) -> None:
    """More than MAX_SELECTED devices with a pair of addresses must be deleted by their IDs."""
    for number in range(MAX_SELECTED + 1):
        last = await seen.device(f"n{number}")
    delete = partial(areas.devices.delete, areas.domain, actor="n")
    both = ("192.0.2.1", "192.0.2.1")
    with pytest.raises(Conflict, match="over 200 devices have these addresses"):
        await delete(device_ids=[], addresses=both)
    assert await delete(device_ids=[last.id or 0], addresses=None) == 1
    assert await delete(device_ids=[], addresses=both) == MAX_SELECTED


async def test_an_earlier_request_does_not_restore_a_deleted_device(areas: Areas, seen: Seen) -> None:
    """A request that was recorded before the deletion and is written after it adds no device and no station."""
    device = await seen.device("a")
    station = seen.station(device, "02-01")
    await areas.devices.delete(areas.domain, device_ids=[device.id or 0], addresses=None, actor="n")
    assert await seen.write(device, station=station) == []
    await areas.devices.flush()
    assert await seen.rows() == []
    assert await areas.devices.stations(areas.domain, 0, "", offset=0, limit=9) == ([], 0)


async def test_a_device_deleted_by_another_node_is_registered_again(areas: Areas, seen: Seen) -> None:
    """While it sends requests, the next flush registers it again, and its next request adds its stations."""
    device = await seen.device("a")
    await areas.devices.flush()

    def delete(tx: Tx) -> None:
        for row in repo.by_ids(tx, areas.domain, [device.id or 0]):
            write_repo.delete(tx, row, "another node", areas.clock())

    await areas.store.write(delete)
    seen.note(NAS_IDENTIFIER=b"a")
    await areas.devices.flush()
    (row,) = await seen.rows()
    assert (row.id, row.registrations, row.request_count) == (device.id, 2, 1)


async def test_the_stored_total_is_exact(areas: Areas, seen: Seen) -> None:
    """The stored total of a domain is the number of its rows after any mixture of requests and deletions."""
    for step in range(60):
        await seen.device(f"d{step * 7 % 20}")
        if step % 3 == 0:
            rows = await seen.rows()
            await areas.devices.delete(areas.domain, device_ids=[rows[step % len(rows)].id], addresses=None, actor="n")
    await seen.rows()


async def test_a_registration_is_undone_with_its_transaction(areas: Areas, seen: Seen) -> None:
    """A failed transaction leaves no device in the inventory, its total, history or search."""
    device = seen.note(NAS_IDENTIFIER=b"switch")

    def fails(tx: Tx) -> None:
        write_first_sightings(tx, [(device, None)])
        raise NotFound("x")

    with pytest.raises(NotFound):
        await areas.store.write(fails)
    device.id = None
    assert await seen.rows() == await seen.rows("switch") == []
    assert (await areas.devices.history(areas.domain, 0, offset=0, limit=9))[1] == 0
    (registered,) = await seen.write(device)
    assert not registered.again
