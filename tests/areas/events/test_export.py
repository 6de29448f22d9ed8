"""Tests of exports: each event that exists at the start of the export is exported once, oldest first, in pages."""

from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from sallyport.areas.domains.domain import Domain
from sallyport.areas.events import operations as event_operations
from sallyport.areas.events import repo
from sallyport.areas.events.bodies import EventEntry
from sallyport.areas.events.cli import ALL_COLUMNS, COLUMNS
from sallyport.areas.events.event import FOREVER, EventQuery, ExportQuery
from sallyport.areas.events.operations import PAGE
from sallyport.areas.events.service import Events
from sallyport.base.clock import SECOND, from_iso, iso
from sallyport.base.errors import Invalid, NotFound
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import Commands, entries
from sallyport.store.connections import SqliteTx, open_connection
from sallyport.store.model import Store, Tx, Value
from tests.areas import only_sqlite, running_engine

START = 1_767_225_600 * SECOND
DOMAIN = 7


def corp(name_or_id: str) -> Domain:
    """Return the only domain."""
    if name_or_id not in {"corp", str(DOMAIN)}:
        raise NotFound(f"no domain {name_or_id}")
    return Domain(DOMAIN, 1, "corp")


@dataclass
class Log:
    """A store of events, and the commands that read the events."""

    path: Path
    store: Store
    commands: Commands

    async def write(self, *moments: int, domain: int = DOMAIN, user: str = "", **fields: Value) -> None:
        """Write events at these times, in microseconds after the start. user: empty for u0, u1, ..."""
        same: dict[str, Value] = {
            "domain_id": domain, "ip_address": "192.0.2.1", "client_ip": "10.0.0.1", "device_id": 1,
            "device_name": "switch", "station": "02-00", "method": "pap", "factor": "local", "decision": "accept",
            "applied_decision": "accept", "would_have_been": "accept", "reason": "", "latency_us": 1234,
            "service_type": None, "machine": None, **fields,
        }  # fmt: skip
        rows = [(START + at, user or f"u{at}") for at in moments]

        def work(tx: Tx) -> None:
            tx.insert("events", ("at", "user_name"), rows, same=same)

        await self.store.write(work)

    async def page(self, **arguments: JSON) -> Row:
        """Return one page."""
        answer = await self.commands.ready("event.export", {"domain": "corp", **arguments})()
        assert isinstance(answer, dict)
        return answer

    async def users(self, **arguments: JSON) -> list[str]:
        """Return the users of all pages."""
        users: list[str] = []
        while True:
            answer = await self.page(**arguments)
            users += [str(each["user"]) for each in entries(answer["events"])]
            if not answer["cursor"]:
                return users
            arguments |= {name: answer[name] for name in ("cursor", "last_id") if name in answer}


@pytest.fixture
async def events(tmp_path: Path) -> AsyncIterator[Log]:
    """An empty log."""
    path = tmp_path / "s.db"
    async with running_engine(tmp_path) as store:
        yield Log(path, store, Commands([event_operations.local_operations(Events(store), corp)]))


@pytest.mark.parametrize("size", [1, 2, 6, 7, 20, 21])
async def test_each_event_is_exported_once_and_the_oldest_first(events: Log, size: int) -> None:
    """Events are ordered by time and then by ID, for pages of any size."""
    await events.write(*(number // 3 for number in range(10)))
    await events.write(1, 1, 9, domain=99)
    await events.write(*(number // 3 for number in range(10)))
    whole = [f"u{number // 3}" for number in range(10) for _ in range(2)]
    assert await events.users(limit=size) == sorted(whole)
    ids = [each["eventId"] for each in entries((await events.page())["events"])]
    assert ids == [1, 2, 3, 14, 15, 16, 4, 5, 6, 17, 18, 19, 7, 8, 9, 20, 21, 22, 10, 23]


async def test_events_written_during_an_export_are_left_out(events: Log) -> None:
    await events.write(10, 20, 30)
    first = await events.page(limit=1)
    await events.write(5, 15, 25, 35)
    rest = await events.users(cursor=first["cursor"], last_id=first["last_id"], limit=1)
    assert rest == ["u20", "u30"]
    assert await events.users(limit=2) == ["u5", "u10", "u15", "u20", "u25", "u30", "u35"]


async def test_events_deleted_during_an_export_do_not_affect_others(events: Log) -> None:
    """If retention deletes events during an export, the events that remain are still exported once."""
    await events.write(*range(10))
    first = await events.page(limit=3)
    await events.store.write(lambda tx: tx.execute("delete from events where id <= 5"))
    rest = await events.users(cursor=first["cursor"], last_id=first["last_id"], limit=3)
    assert rest == ["u5", "u6", "u7", "u8", "u9"]


async def test_a_time_range_excludes_its_end(events: Log) -> None:
    """The range includes its start and excludes its end on every page. A time without a zone is in UTC."""
    await events.write(*(number * SECOND for number in range(10)))
    span: dict[str, JSON] = {"from": "2026-01-01T00:00:02", "to": "2026-01-01T01:00:07+01:00"}
    users = await events.users(limit=2, **span)
    assert sorted(users) == [f"u{number * SECOND}" for number in range(2, 7)]
    assert await events.users(**{"from": "2026-01-02"}) == []
    assert await events.users(to="0001-01-01") == []
    assert len(await events.users(limit=3, **{"from": "0001-01-01", "to": "9999-12-31"})) == 10


async def test_an_exported_event_has_the_fields_of_the_api(events: Log) -> None:
    """The column names and their order are those of GetAuthLog. The columns of the command line are among them."""
    await events.write(1_500_000, reason="wrong password", user="=ann")
    (event,) = entries((await events.page())["events"])
    assert list(event) == list(ALL_COLUMNS) == list(EventEntry.model_fields)
    assert set(COLUMNS) <= set(ALL_COLUMNS)
    assert EventEntry.model_validate(event).model_dump() == event
    assert event | {"eventId": 1, "time": "2026-01-01T00:00:01.500000Z", "user": "=ann", "latencyMs": 1.234} == event
    assert (event["domain"], event["reason"], event["wouldHaveBeen"]) == ("corp", "wrong password", "accept")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"from": "hunter2"}, "invalid from"), ({"to": "2026-13-01"}, "invalid to"), ({"to": True}, "invalid to"),
        ({"cursor": "hunter2"}, "invalid cursor"), ({"limit": 0}, "invalid limit"), ({"pages": 1}, "invalid body"),
        ({"limit": PAGE + 1}, "invalid limit"),
    ],
)  # fmt: skip
async def test_a_malformed_argument_is_refused(events: Log, arguments: dict[str, JSON], text: str) -> None:
    """The error message names a known argument, but does not contain its value.

    It does not contain the name of an unknown argument.
    """
    with pytest.raises(Invalid, match=f"^{text}$"):
        await events.page(**arguments)
    with pytest.raises(NotFound):
        await events.page(domain="nowhere")


@only_sqlite
async def test_a_late_page_is_as_fast_as_the_first(events: Log) -> None:
    """A page at any place in the log is read without reading the events before it."""
    many = 20_000
    await events.write(*range(many))

    def steps(page: EventQuery | ExportQuery) -> int:
        """Return how many hundreds of instructions the database engine runs."""
        counted: list[int] = []
        with closing(open_connection(events.path, read_only=True)) as connection:
            connection.set_progress_handler(lambda: counted.append(1), 100)
            tx = SqliteTx(connection)
            found = repo.oldest(tx, page) if isinstance(page, ExportQuery) else repo.newest(tx, page)
        assert len(found) == 10
        return len(counted)

    first, middle, last = ((START + at, at + 1) for at in (10, many // 2, many - 10))
    assert steps(ExportQuery(DOMAIN, many, after=middle, limit=10)) <= 2 * steps(
        ExportQuery(DOMAIN, many, after=first, limit=10)
    )
    assert steps(EventQuery(DOMAIN, before=middle)) <= 2 * steps(EventQuery(DOMAIN, before=last))


def test_the_time_of_an_event_is_accepted_as_an_argument() -> None:
    """`--from` accepts the time of an event with microseconds."""
    assert from_iso(iso(START + 1)) == START + 1
    assert from_iso("9999-12-31T23:59:59.999999Z") < FOREVER
