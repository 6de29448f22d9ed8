"""Tests of a NAS that sends its NAS-Identifier only in some of its accounting records."""

import pytest

from sallyport.areas.sessions.repo import MAX_SIBLINGS
from sallyport.areas.sessions.report import Report
from sallyport.areas.sessions.service import Record, write_records
from sallyport.areas.sessions.session import SessionQuery
from sallyport.base.clock import SECOND
from tests.areas import Areas
from tests.areas.dynamic.world import Device, device
from tests.areas.sessions.records import NOW, interim, report, started, stopped

SOURCE = "192.0.2.1"
NAMED, NAMELESS = {"NAS_IDENTIFIER": b"ap-1"}, dict[str, bytes]()
ANN = {"USER_NAME": "ann", "CALLING_STATION_ID": "02-00-00-00-00-01"}


async def write(areas: Areas, *records: tuple[Device, Report]) -> list[bool]:
    """Write records of devices in one transaction. Return for each record whether it is stored."""
    wanted = [Record(*of, each) for of, each in records]
    return await areas.store.write(lambda tx: write_records(tx, wanted))


async def sessions(areas: Areas) -> list[tuple[int, str, int]]:
    """Return the device, the state and the duration of each session, oldest first."""
    rows, _ = await areas.sessions.page(SessionQuery(areas.domain, limit=1000))
    return [(row.device_id, row.state, row.session_time) for row in reversed(rows)]


@pytest.mark.parametrize(("begins", "ends"), [(NAMED, NAMELESS), (NAMELESS, NAMED)], ids=["lost", "gained"])
@pytest.mark.parametrize("is_split", [True, False], ids=["two transactions", "one transaction"])
async def test_a_stop_ends_the_session(
    areas: Areas, begins: dict[str, bytes], ends: dict[str, bytes], is_split: bool
) -> None:
    """A Stop ends the session of its Start, although only one of them has a NAS-Identifier. A retransmission of the
    Stop is not stored."""
    client = await areas.client(SOURCE)
    first, last = [await device(areas, client, SOURCE, **names) for names in (begins, ends)]
    records = (first, started(**ANN)), (last, interim(60)), (last, stopped(90, **ANN))
    if is_split:
        for each in records:
            await write(areas, each)
    else:
        await write(areas, *records)
    assert await write(areas, (last, stopped(90, **ANN))) == [False]
    assert await sessions(areas) == [(first[1], "stopped", 90)]


@pytest.mark.parametrize(
    ("source", "names", "facts"),
    [
        (SOURCE, {"NAS_IDENTIFIER": b"ap-2"}, {}),
        ("192.0.2.2", {}, {}),
        (SOURCE, {"NAS_IP_ADDRESS": bytes((10, 0, 0, 9))}, {}),
        (SOURCE, {}, {"USER_NAME": "bob"}),
        (SOURCE, {}, {"CALLING_STATION_ID": "02-00-00-00-00-02"}),
    ],
    ids=["another name", "another sender", "another address", "another user", "another station"],
)
async def test_another_session(areas: Areas, source: str, names: dict[str, bytes], facts: dict[str, str]) -> None:
    """A Stop of another NAS, user or station does not end the session."""
    client, other = await areas.client(SOURCE), await areas.client("192.0.2.2")
    first = await device(areas, client, SOURCE, **NAMED)
    last = await device(areas, client if source == SOURCE else other, source, **names)
    await write(areas, (first, started(**ANN)))
    await write(areas, (last, stopped(90, **facts)))
    assert [state for _, state, _ in await sessions(areas)] == ["live", "stopped"]


async def test_a_station_in_another_notation(areas: Areas) -> None:
    """The MAC address of the Stop may be in another notation."""
    client = await areas.client(SOURCE)
    await write(areas, (await device(areas, client, SOURCE, **NAMED), started(**ANN)))
    end = stopped(90, USER_NAME="ann", CALLING_STATION_ID="0200.0000.0001")
    await write(areas, (await device(areas, client, SOURCE), end))
    assert [state for _, state, _ in await sessions(areas)] == ["stopped"]


async def test_two_sessions_that_fit(areas: Areas) -> None:
    """If sessions of two devices fit, the Stop ends neither of them."""
    client = await areas.client(SOURCE)
    for name in (b"ap-1", b"ap-2"):
        await write(areas, (await device(areas, client, SOURCE, NAS_IDENTIFIER=name), started()))
    await write(areas, (await device(areas, client, SOURCE), stopped(90)))
    assert [state for _, state, _ in await sessions(areas)] == ["live", "live", "stopped"]


async def test_an_id_that_is_used_again(areas: Areas) -> None:
    """In one transaction, a record of a later session with the same id adds one row and changes no other."""
    client = await areas.client(SOURCE)
    first, last = [await device(areas, client, SOURCE, **names) for names in (NAMED, NAMELESS)]
    later = report(3, 5000, ACCT_SESSION_TIME=10)
    await write(areas, (first, started()), (last, stopped(90)), (last, later))
    assert [state for _, state, _ in await sessions(areas)] == ["stopped", "live"]
    await write(areas, (last, stopped(5100, ACCT_SESSION_TIME=110)))
    assert [state for _, state, _ in await sessions(areas)] == ["stopped", "stopped"]


async def test_an_address_with_many_devices(areas: Areas) -> None:
    """At an address with very many names, no search among them delays other records."""
    client = await areas.client(SOURCE)
    names = [b"ap-%d" % number for number in range(MAX_SIBLINGS + 1)]
    devices = [await device(areas, client, SOURCE, NAS_IDENTIFIER=name) for name in names]
    await write(areas, (devices[0], started()))
    await write(areas, (await device(areas, client, SOURCE), stopped(90)))
    rows, _ = await areas.sessions.page(SessionQuery(areas.domain))
    assert [(row.state, row.started) for row in rows] == [("stopped", NOW), ("live", NOW)]
    assert rows[0].stopped == NOW + 90 * SECOND
