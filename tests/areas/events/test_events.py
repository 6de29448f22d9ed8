"""Tests of reading events: pages, cursors, searches, times and the monitoring report."""

from dataclasses import replace

import pytest

from sallyport.areas.events.event import EventQuery
from sallyport.areas.events.repo import COUNTER, is_short
from sallyport.areas.events.service import Events, cursor_after, parse_cursor
from sallyport.base.clock import SECOND
from sallyport.base.errors import Invalid
from sallyport.store import counters
from sallyport.store.model import Tx, Value
from tests.areas import Areas

START = 1_767_225_600 * SECOND


def row(domain_id: int, at: int, **fields: Value) -> dict[str, Value]:
    """Return an event as the journal writes it."""
    return {
        "at": at, "domain_id": domain_id, "user_name": "ann", "ip_address": "192.0.2.1", "client_ip": "10.0.0.1",
        "device_id": 1, "device_name": "switch", "station": "", "method": "pap", "factor": "local",
        "decision": "accept", "applied_decision": "accept", "would_have_been": "", "reason": "", "latency_us": 0,
        "service_type": None, "machine": None, **fields,
    }  # fmt: skip


async def keep(areas: Areas, *rows: dict[str, Value]) -> None:
    """Write events."""

    def work(tx: Tx) -> None:
        for each in rows:
            tx.insert("events", tuple(each), [tuple(each.values())])
            counters.add(tx, int(str(each["domain_id"])), COUNTER, 1)

    await areas.store.write(work)


async def test_the_newest_event_is_first(areas: Areas) -> None:
    """Events are ordered by time and then by ID. The total counts all events of the domain."""
    await keep(areas, *(row(areas.domain, START + number // 3, user_name=f"u{number}") for number in range(25)))
    await keep(areas, row(99, START, user_name="another domain's"))
    events = Events(areas.store)
    listed = []
    for offset in range(0, 30, 10):
        rows, total = await events.page(EventQuery(areas.domain, offset=offset, limit=10))
        listed += [each.user_name for each in rows]
        assert total == 25
    assert listed == [f"u{number}" for number in reversed(range(25))]


@pytest.mark.parametrize("size", [1, 4, 5, 7, 20, 21])
async def test_cursors_visit_each_event_once(areas: Areas, size: int) -> None:
    """Pages of any size list each event once, newest first, even if events are written meanwhile.

    The last page has no cursor.
    """
    await keep(areas, *(row(areas.domain, START + number // 3, user_name=f"u{number}") for number in range(20)))
    events = Events(areas.store)
    walked: list[str] = []
    cursor, pages = "", 0
    while cursor or not pages:
        rows, cursor, _ = await events.walk(EventQuery(areas.domain, before=parse_cursor(cursor), limit=size))
        walked += [each.user_name for each in rows]
        pages += 1
        await keep(areas, row(areas.domain, START + 100 + pages, user_name="newer"))
    assert walked == [f"u{number}" for number in reversed(range(20))]
    assert pages == -(-20 // size)


@pytest.mark.parametrize(
    "cursor", ["x", "1", "1.", ".1", "1.2.3", "-1.2", "1.-2", "1 .2", "9" * 20 + ".1", "1." + "9" * 20, "1" * 50]
)
def test_a_malformed_cursor_is_refused(cursor: str) -> None:
    """A malformed cursor is refused before the store is read, even if it contains huge numbers."""
    with pytest.raises(Invalid, match=r"^invalid cursor$"):
        parse_cursor(cursor)


def test_a_cursor_has_the_position_of_the_last_event() -> None:
    """An empty cursor selects the first page."""
    assert parse_cursor("") is None
    assert parse_cursor(f"{2**63 - 1}.{2**63 - 1}") == (2**63 - 1, 2**63 - 1)
    assert cursor_after([]) == ""


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("ann", 3), ("ANN", 3), ("zoë", 1), ("ZOË", 1), ("Ë", 1), ("switch", 3), ("02-00", 1), ("192.0.2.9", 1),
        ("10.0.0", 4), ("%", 0), ("wrong password", 0), ("_", 0), ("'", 0),
    ],
)  # fmt: skip
async def test_a_search_finds_users_and_devices(areas: Areas, search: str, found: int) -> None:
    """A case-insensitive search compares user, device, station and both addresses, but not reasons.

    The total counts the matching events.
    """
    await keep(
        areas,
        row(areas.domain, START),
        row(areas.domain, START, user_name="Ann", reason="wrong password"),
        row(areas.domain, START, device_name="gate", station="02-00", ip_address="192.0.2.9"),
        row(areas.domain, START, user_name="ZOË"),
    )
    rows, total = await Events(areas.store).page(EventQuery(areas.domain, search=search, limit=2))
    assert (len(rows), total) == (min(found, 2), found)


async def test_a_time_range_excludes_its_end(areas: Areas) -> None:
    """The range includes its start and excludes its end. A search can be combined with it."""
    await keep(areas, *(row(areas.domain, START + number * SECOND, user_name=f"u{number % 2}") for number in range(10)))
    events = Events(areas.store)
    query = EventQuery(areas.domain, since=START + 2 * SECOND, until=START + 5 * SECOND)
    rows, total = await events.page(query)
    assert [(each.at - START) // SECOND for each in rows] == [4, 3, 2]
    assert total == 3
    assert (await events.page(replace(query, search="u1")))[1] == 1
    assert (await events.page(EventQuery(areas.domain, since=START + 5, until=START)))[1] == 0


@pytest.mark.parametrize(
    ("query", "short"),
    [
        (EventQuery(1, limit=101), True),
        (EventQuery(1, limit=101, before=(5, 5)), True),
        (EventQuery(1, limit=101, offset=100), False),
        (EventQuery(1, limit=1001), False),
        (EventQuery(1, user="ann"), False),
        (EventQuery(1, since=5), False),
    ],
    ids=["first page", "after a cursor", "second page", "long page", "one user", "time range"],
)
def test_only_a_short_page_is_read_on_the_event_loop(query: EventQuery, short: bool) -> None:
    """A query that reads at most 101 rows is short. A filter can make the store read many rows for one match."""
    assert is_short(query) is short
