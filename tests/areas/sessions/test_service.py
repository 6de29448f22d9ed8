"""Tests of sessions in the store: they are written in the transaction of their records, listed, counted, ended, and
read after a restart."""

from collections import Counter
from pathlib import Path

import pytest
import trio
import trio.testing

from sallyport.areas.devices.sightings import write_first_sightings
from sallyport.areas.events.repo import table_usage
from sallyport.areas.sessions import parallel, repo
from sallyport.areas.sessions.report import Report, Status
from sallyport.areas.sessions.service import COUNT_S, Record, write_records
from sallyport.areas.sessions.session import NAS_REBOOT, SessionQuery, SessionRow
from sallyport.base.clock import SECOND
from sallyport.store import counters
from sallyport.store.model import Tx
from tests.areas import Areas, SetClock, only_sqlite, running_store
from tests.areas.sessions.records import NOW, interim, report, started, stopped
from tests.packets import access_request, attributes, opened
from tests.plans import plans

DAY_S = 86_400


async def write(areas: Areas, *reports: Report, device: int = 1, domain: int = 0) -> list[bool]:
    """Write records in one transaction. Return for each record whether it is stored."""
    records = [Record(domain or areas.domain, device, each) for each in reports]
    return await areas.store.write(lambda tx: write_records(tx, records))


async def listed(areas: Areas, **query: object) -> list[SessionRow]:
    """Return the matching sessions of the domain, newest first. Assert that the total equals their number."""
    rows, total = await areas.sessions.page(SessionQuery(areas.domain, **{"limit": 1000, **query}))  # type: ignore[arg-type]
    assert total == len(rows)
    return rows


async def states(areas: Areas, **query: object) -> list[str]:
    """Return the states of the sessions, oldest first."""
    return [row.state for row in reversed(await listed(areas, **query))]


async def test_a_session_has_one_row_over_several_transactions(areas: Areas) -> None:
    """The row has the counters, facts and state from all records. The stored totals match."""
    assert await write(areas, started(USER_NAME="ann", NAS_PORT=7, FRAMED_IP_ADDRESS=bytes((10, 0, 0, 1)))) == [True]
    assert await states(areas, live=True) == ["live"]
    await write(areas, interim(60, ACCT_INPUT_OCTETS=5, ACCT_INPUT_GIGAWORDS=1, CALLING_STATION_ID="02-01"))
    await write(areas, stopped(90, ACCT_TERMINATE_CAUSE=1, ACCT_INPUT_OCTETS=9, ACCT_INPUT_GIGAWORDS=1))
    assert await listed(areas, live=True) == []
    (row,) = await listed(areas, live=False)
    assert (row.user_name, row.station, row.nas_port, row.framed_ip) == ("ann", "02-01", 7, "10.0.0.1")
    assert (row.session_time, row.input_octets, row.terminate_cause) == (90, 2**32 + 9, 1)
    assert (row.started, row.updated, row.stopped) == (NOW, NOW + 90 * SECOND, NOW + 90 * SECOND)


async def test_past_sessions_share_the_limit_of_events(areas: Areas) -> None:
    """If all rows take more space than `event_limit_mib`, past sessions are deleted too."""
    await write(areas, started(USER_NAME="ann", NAS_PORT=7, NAS_PORT_TYPE=19), stopped(90))
    (usage,) = await areas.store.read(table_usage)
    assert (usage.domain_id, usage.rows, usage.first_at) == (areas.domain, 1, NOW)
    assert usage.row_octets > len("ann")
    retention = areas.app.events.retention
    retention.limit = 0
    await retention.purge()
    assert await listed(areas) == []


async def test_two_sessions_at_a_time_with_one_id(areas: Areas) -> None:
    """A NAS uses an Acct-Session-Id for two sessions at a time. The records of the first session do not change or end
    the second one. They are stored."""
    bob = {"USER_NAME": "bob", "CALLING_STATION_ID": "02-00-00-00-00-01"}
    eve = {"USER_NAME": "eve", "CALLING_STATION_ID": "02-00-00-00-00-02"}
    await write(areas, started(**bob), started(1, **eve))
    assert await write(areas, interim(60, ACCT_INPUT_OCTETS=5000, **bob)) == [True]
    await write(areas, interim(60, ACCT_INPUT_OCTETS=7, **eve), stopped(90, ACCT_INPUT_OCTETS=5000, **bob))
    (row,) = await listed(areas, live=True)
    assert (row.user_name, row.station, row.input_octets) == ("eve", "02-00-00-00-00-02", 7)
    await write(areas, stopped(100, ACCT_INPUT_OCTETS=8, **eve), interim(110, ACCT_INPUT_OCTETS=6000, **bob))
    assert [(row.user_name, row.state, row.input_octets) for row in await listed(areas)] == [
        ("bob", "live", 6000), ("eve", "stopped", 8), ("bob", "lost", 0),
    ]  # fmt: skip


async def test_a_record_changes_only_the_facts_of_its_own_session(areas: Areas) -> None:
    """One transaction can change the facts of a session, and only the counters of another one."""
    facts = {"USER_NAME": "ann", "NAS_PORT": 7}
    await write(areas, started(**facts), report(1, 0, b"s2", **facts))
    moved = report(3, 60, b"s2", USER_NAME="bob", ACCT_SESSION_TIME=60)
    assert await write(areas, interim(60, ACCT_INPUT_OCTETS=5), moved) == [True, True]
    assert [(row.user_name, row.nas_port, row.input_octets, row.session_time) for row in await listed(areas)] == [
        ("bob", 7, 0, 60), ("ann", 7, 5, 60),
    ]  # fmt: skip
    assert [row.acct_session_id for row in await listed(areas, user_name="bob")] == [b"s2"]


async def test_a_record_counts_once(areas: Areas) -> None:
    """A retransmission with another identifier is not stored, whether it comes in the same transaction or in a later
    one."""
    assert await write(areas, started(), started(0, ACCT_DELAY_TIME=0), interim(60)) == [True, False, True]
    assert await write(areas, report(3, 65, ACCT_DELAY_TIME=5, ACCT_SESSION_TIME=60)) == [False]
    assert await write(areas, stopped(90), stopped(90)) == [True, False]
    (row,) = await listed(areas)
    assert (row.session_time, row.updated) == (90, NOW + 90 * SECOND)


async def test_a_session_id_is_unique_for_each_device(areas: Areas) -> None:
    """Two devices may use the same Acct-Session-Id at the same time."""
    await write(areas, started(USER_NAME="ann"), device=1)
    await write(areas, started(USER_NAME="bob"), stopped(5), device=2)
    assert [(row.device_id, row.user_name, row.state) for row in await listed(areas)] == [
        (2, "bob", "stopped"), (1, "ann", "live"),
    ]  # fmt: skip


async def test_a_session_id_that_is_used_again_adds_a_row(areas: Areas) -> None:
    """If an ID is reused, a new row is added, within one transaction or over several.

    Late records of the old session do not end the new one.
    """
    await write(areas, started(), stopped(10), started(20, USER_NAME="bob"))
    await write(areas, report(2, 25, ACCT_SESSION_TIME=11, ACCT_DELAY_TIME=14))
    assert await states(areas) == ["stopped", "live"]
    await write(areas, started(30, USER_NAME="cid"))
    await write(areas, report(2, 40, ACCT_SESSION_TIME=10))
    assert await states(areas) == ["stopped", "lost", "stopped"]
    assert await states(areas, live=False) == ["stopped", "lost", "stopped"]


@pytest.mark.parametrize("status", [Status.ON, Status.OFF])
async def test_a_restart_of_a_device_ends_its_sessions(areas: Areas, status: Status) -> None:
    """If a device restarts, all its sessions without a later record end, in the order of the transaction.

    Sessions of other devices do not end.
    """
    await write(areas, *(report(1, 0, session=b"%d" % number) for number in range(3)))
    await write(areas, started(), device=2)
    restart = report(status, 100, session=b"")
    assert all(await write(areas, stopped(50, ACCT_DELAY_TIME=0), restart, report(1, 101, session=b"new")))
    rows = {row.acct_session_id: row for row in await listed(areas, device_id=1)}
    lost = [rows[b"%d" % number] for number in range(3)]
    assert {(row.state, row.terminate_cause, row.stopped) for row in lost} == {
        ("lost", NAS_REBOOT, NOW + 100 * SECOND)
    }  # fmt: skip
    assert (rows[b"s1"].state, rows[b"new"].state) == ("stopped", "live")
    assert await states(areas, device_id=2) == ["live"]
    await write(areas, report(3, 90, session=b"0"))
    assert await states(areas, live=True, device_id=1) == ["live"]


async def test_a_restart_of_a_device_with_many_sessions(areas: Areas) -> None:
    """The record of a restart ends the first sessions.

    The other sessions end in short transactions afterwards, except those with a later start or record. A second restart
    in between ends those too.
    """
    await write(areas, *(report(1, 0, session=b"%d" % number) for number in range(701)))
    await write(areas, report(7, 10, session=b""), report(3, 20, session=b"700"), report(1, 20, session=b"new"))
    assert Counter(await states(areas)) == {"lost": repo.AT_ONCE, "live": 702 - repo.AT_ONCE}
    await areas.sessions.end_restarted()
    assert Counter(await states(areas)) == {"lost": 700, "live": 2}
    await write(areas, *(report(1, 30, session=b"more%d" % number) for number in range(repo.AT_ONCE)))
    await write(areas, report(7, 40, session=b""))
    await write(areas, report(7, 50, session=b""))
    await areas.sessions.end_restarted()
    assert Counter(await states(areas)) == {"lost": 702 + repo.AT_ONCE}
    assert await areas.store.read(repo.live) == {areas.domain: 0}


async def test_totals_are_exact(areas: Areas) -> None:
    """The totals by state and domain are right after each kind of end."""
    other = await areas.domains.add(areas.tenant, "branch")
    await write(areas, started(), stopped(5), *(report(1, 0, session=b"%d" % each) for each in range(5)))
    await write(areas, report(2, 9, session=b"0"), report(3, 10, session=b"1"))
    await write(areas, started(), device=9, domain=other)
    await write(areas, report(7, 8, session=b""))

    def count(tx: Tx) -> dict[str, int]:
        return {state: counters.total(tx, areas.domain, repo.COUNTER + state) for state in ("live", "stopped", "lost")}

    assert await areas.store.read(count) == Counter(await states(areas)) == {"live": 1, "stopped": 2, "lost": 3}
    assert await areas.store.read(repo.live) == {areas.domain: 1, other: 1}


@pytest.mark.parametrize(
    ("interval_s", "silence_s", "state"),
    [(60, DAY_S - 1, "live"), (60, DAY_S + 1, "lost"), (50_000, 149_999, "live"), (50_000, 150_001, "lost")],
)
async def test_a_silent_session_ends(
    areas: Areas, clock: SetClock, interval_s: int, silence_s: int, state: str
) -> None:
    """A silent session ends after a day, or after three times the interval of its records if that is longer.

    Its end is the time of its last record.
    """
    await write(areas, started(), interim(interval_s), interim(2 * interval_s))
    clock.pass_by(2 * interval_s + silence_s)
    assert await areas.sessions.end_silent() == (state == "lost")
    (row,) = await listed(areas)
    assert (row.state, row.stopped) == (state, NOW + 2 * interval_s * SECOND if state == "lost" else None)
    await write(areas, interim(3 * interval_s))
    assert await states(areas) == ["live"]


async def test_many_silent_sessions_end(areas: Areas, clock: SetClock) -> None:
    """Ending many silent sessions may take more than one transaction."""
    await write(areas, *(report(1, 0, session=b"%d" % number) for number in range(1001)))
    clock.pass_by(2 * DAY_S)
    assert await areas.sessions.end_silent() == 1001
    assert await listed(areas, live=True) == []


async def test_sessions_are_searched(areas: Areas) -> None:
    """A search works on live or on past sessions.

    It compares the user (case-insensitive), the device, the start time, and parts of names and addresses.
    """
    await write(areas, report(1, 0, b"a", USER_NAME="Ann", CALLING_STATION_ID="02-AB"), device=1)
    await write(areas, report(1, 10, b"b", USER_NAME="bob", FRAMED_IP_ADDRESS=bytes((10, 0, 0, 7))), device=1)
    await write(areas, report(1, 20, b"c", USER_NAME="Zoë", CALLED_STATION_ID="AA:guest"), device=2)
    await write(areas, report(2, 30, b"b"), device=1)
    cases: list[tuple[dict[str, object], list[bytes]]] = [
        ({"user_name": " ANN"}, [b"a"]),
        ({"user_name": "ZOË"}, [b"c"]),
        ({"user_name": "an"}, []),
        ({"device_id": 1}, [b"b", b"a"]),
        ({"device_id": 1, "live": True}, [b"a"]),
        ({"user_name": "bob", "live": True}, []),
        ({"user_name": "bob", "live": False, "device_id": 1}, [b"b"]),
        ({"since": NOW + 10 * SECOND}, [b"c", b"b"]),
        ({"until": NOW + 10 * SECOND}, [b"a"]),
        ({"since": NOW + 1, "until": NOW + 20 * SECOND, "live": False}, [b"b"]),
        ({"search": "02-ab"}, [b"a"]),
        ({"search": "10.0.0.7"}, [b"b"]),
        ({"search": "GUEST", "live": True}, [b"c"]),
        ({"search": "%"}, []),
        ({"live": False}, [b"b"]),
        ({}, [b"c", b"b", b"a"]),
    ]
    for query, found in cases:
        assert [row.acct_session_id for row in await listed(areas, **query)] == found, query


@pytest.mark.parametrize(
    ("search", "found"),
    [("zoë", [b"s"]), ("ä", ["Ä".encode()]), ("ö", []), ("abc", [b"\xff\x00ABC"])],
    ids=["user", "session id", "nothing", "octets"],
)
async def test_a_search_finds_text_beyond_ascii(areas: Areas, search: str, found: list[bytes]) -> None:
    """A search also finds a match in a field that follows a missing field or octets that are not text."""
    await write(areas, report(1, 0, b"\xff\x00ABC"), report(1, 10, b"s", USER_NAME="ZOË"), report(1, 20, "Ä".encode()))
    assert [row.acct_session_id for row in await listed(areas, search=search)] == found


async def test_pages_of_sessions(areas: Areas) -> None:
    """Live and past sessions are listed once each, newest first. The total counts all of them."""
    for number in range(25):
        last = [report(2, 5, b"%d" % number)] if number % 3 else []
        await write(areas, report(1, 0, b"%d" % number), *last)
    walked: list[int] = []
    for offset in range(0, 30, 10):
        rows, total = await areas.sessions.page(SessionQuery(areas.domain, offset=offset))
        assert total == 25
        walked += [row.id for row in rows]
    assert walked == sorted(walked, reverse=True)
    assert len(set(walked)) == 25


HOSTILE = [
    b"", b"\0" * 253, b"\xff" * 253, b"' or 1=1 --", "\u202e".encode(),
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE)
async def test_a_record_with_any_octets_is_written(areas: Areas, value: bytes) -> None:
    """Any octets in any field produce one session, or no session if Acct-Session-Id is missing.

    A repeated record changes nothing.
    """
    names = (
        "USER_NAME", "CALLING_STATION_ID", "CLASS", "NAS_PORT_ID", "FRAMED_IP_ADDRESS", "NAS_PORT",
        "ACCT_INPUT_OCTETS", "ACCT_DELAY_TIME", "EVENT_TIMESTAMP", "FRAMED_IPV6_PREFIX",
    )  # fmt: skip
    fields = dict.fromkeys(names, value)
    assert await write(areas, report(1, 0, value, **fields)) == [True]
    assert await write(areas, report(1, 1, value, **fields)) == [not value]
    assert [row.acct_session_id for row in await listed(areas)] == ([value] if value else [])


async def test_the_largest_numbers_are_stored(areas: Areas) -> None:
    """The largest counters with gigawords can be stored, and do not make the transaction fail for other records."""
    most = {"ACCT_INPUT_OCTETS": 2**32 - 1, "ACCT_INPUT_GIGAWORDS": 2**32 - 1, "ACCT_SESSION_TIME": 2**32 - 1}
    assert await write(areas, started(), report(2, 0, b"most", **most)) == [True, True]
    assert (await listed(areas))[0].input_octets == 2**63 - 1


async def test_a_session_continues_after_a_restart(tmp_path: Path, clock: SetClock) -> None:
    """After a restart, a repeated record still counts once, and the Stop ends its session."""
    async with running_store(tmp_path / "s.db") as store:
        await store.write(lambda tx: write_records(tx, [Record(1, 1, started()), Record(1, 1, interim(60))]))
    async with running_store(tmp_path / "s.db") as store:
        fresh = await store.write(lambda tx: write_records(tx, [Record(1, 1, interim(60)), Record(1, 1, stopped(70))]))
        assert fresh == [False, True]
        from_store = await store.read(lambda tx: repo.page(tx, SessionQuery(1)))
    rows, total = from_store
    assert (total, rows[0].state, rows[0].session_time) == (1, "stopped", 70)


async def test_the_metrics_of_sessions(areas: Areas, mock_clock: trio.testing.MockClock) -> None:
    """The metrics count the live sessions of each domain, and count records by a fixed set of kinds."""
    mock_clock.rate = 1
    await write(areas, started(), report(1, 0, b"s2"))
    areas.sessions.count_records({1: 2, 3: 1, 7: 1, 4_000_000_000: 5, 0: 1})
    for status, count in {"start": 2, "interim": 1, "on": 1, "other": 6, "stop": 0}.items():
        assert areas.sample("sallyport_accounting_records_total", status=status) == count
    async with trio.open_nursery() as nursery:
        nursery.start_soon(areas.sessions.run)
        with trio.fail_after(60):
            while areas.sample("sallyport_sessions_live", domain=str(areas.domain)) != 2:
                await trio.sleep(0.01)
        await write(areas, stopped(9))
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(COUNT_S)
        with trio.fail_after(60):
            while areas.sample("sallyport_sessions_live", domain=str(areas.domain)) != 1:
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()


async def test_sessions_of_a_deleted_device_are_kept(areas: Areas) -> None:
    """After a device is deleted, its past sessions still have its name and addresses."""
    client = await areas.client()
    request = opened(access_request(attributes(NAS_IDENTIFIER=b"switch-1")))
    device = areas.devices.sightings.device(request, "192.0.2.1", client, areas.domain, areas.clock())
    await areas.store.write(lambda tx: write_first_sightings(tx, [(device, None)]))
    assert device.id is not None
    await write(areas, started(), device=device.id)
    (before,) = await listed(areas)
    assert (before.device_name, before.ip_address, before.client_ip) == ("switch-1", "192.0.2.1", "192.0.2.1")
    await areas.devices.delete(areas.domain, device_ids=[device.id], addresses=None, actor="root")
    assert await listed(areas) == [before]


@only_sqlite
async def test_a_record_finds_its_session_by_an_index(areas: Areas) -> None:
    """A session is found by its key. The sessions of a restarted device are found by an index."""
    await write(areas, started(), domain=1)
    reports = [started(), interim(5), report(7, 9, session=b""), stopped(3), started(80)]
    found = plans(areas.store.path, lambda tx: write_records(tx, [Record(1, 1, each) for each in reports]))
    assert any("sessions_identity" in plan for plan in found)
    assert any("sessions_device" in plan for plan in found)
    assert not [plan for plan in found if "SCAN sessions" in plan]


@only_sqlite
@pytest.mark.parametrize("live", [None, True, False])
async def test_a_page_of_sessions_uses_an_index(areas: Areas, live: bool | None) -> None:
    """Live and past sessions of a domain or device are read from an index in order of ID, and totals are stored.

    Therefore a page takes no longer with a million sessions.
    """
    for query in (SessionQuery(areas.domain, live=live), SessionQuery(areas.domain, live=live, device_id=3)):
        found = plans(areas.store.path, lambda tx, query=query: repo.page(tx, query))  # type: ignore[misc]
        assert any("COVERING INDEX sessions_" in plan for plan in found)
        assert not [plan for plan in found if plan.startswith("SCAN sessions")]
    users = plans(areas.store.path, lambda tx: repo.page(tx, SessionQuery(areas.domain, live=live, user_name="Ann")))
    assert any("sessions_user_key" in plan for plan in users)


@only_sqlite
async def test_a_count_of_parallel_sessions_reads_no_other_users(areas: Areas) -> None:
    """The live sessions of a user, and those that are over, are found by their indexes."""
    places = [(areas.domain, "ann")]
    live = plans(areas.store.path, lambda tx: parallel._live(tx, places))
    over = plans(areas.store.path, lambda tx: parallel._over(tx, places, 3))
    assert any("USING INDEX sessions_live (domain_id=? AND user_key=?)" in plan for plan in live)
    assert any("USING INDEX sessions_user_key (domain_id=? AND user_key=? AND id>?)" in plan for plan in over)
