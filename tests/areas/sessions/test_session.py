"""Tests of the session that records describe: it is the same whatever the order and repetition of the records."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.sessions.report import Report
from sallyport.areas.sessions.session import NAS_REBOOT, REMEMBERED, REPEATS_US, Session, SessionState
from sallyport.base.clock import SECOND
from tests.areas.sessions.records import NOW, interim, report, started, stopped

WRAPPED = 2**32
REPEATS_S = REPEATS_US // SECOND


def session(*reports: Report) -> Session:
    """Return the session that these records give in this order."""
    made = Session(1, 2, b"s1", started=reports[0].begun)
    for each in reports:
        made.take_in(each)
    return made


def final(made: Session) -> dict[str, object]:
    """Return all fields except the digests of the records that were already seen."""
    return {name: getattr(made, name) for name in Session.__slots__ if name != "recent"}


def test_a_session_from_start_to_stop() -> None:
    """Each record adds its facts. The Stop ends the session and gives the cause."""
    made = session(
        started(USER_NAME="ann", CLASS=b"c"),
        interim(60, FRAMED_IP_ADDRESS=bytes((10, 0, 0, 1)), ACCT_INPUT_OCTETS=100),
        stopped(90, ACCT_INPUT_OCTETS=150, ACCT_TERMINATE_CAUSE=1),
    )
    assert (made.state, made.cause, made.records) == (SessionState.STOPPED, 1, 3)
    assert (made.started, made.updated, made.stopped) == (NOW, NOW + 90 * SECOND, NOW + 90 * SECOND)
    assert made.counts == (90, 150, 0, 0, 0)
    assert {"ann", b"c", "10.0.0.1"} <= set(made.facts)


RECORDS = st.lists(
    st.tuples(st.integers(1, 10_000), st.integers(0, 2**32 - 1), st.integers(0, 3)), min_size=1, max_size=REMEMBERED - 2
)


@given(RECORDS, st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(
    ticks: list[tuple[int, int, int]], starts: bool, stops: bool, chance: random.Random
) -> None:
    """With Acct-Delay-Time, the records give the same session in any order and with any repetition.

    A session that has ended does not become live again.
    """
    last = max(second for second, _, _ in ticks) + 1
    made: dict[float, tuple[int, dict[str, int | str]]] = {
        second: (3, {"ACCT_SESSION_TIME": second, "ACCT_INPUT_OCTETS": octets, "ACCT_INPUT_GIGAWORDS": giga})
        for second, octets, giga in ticks
    }
    if starts:
        made[0] = (1, {})
    if stops:
        made[last] = (2, {"ACCT_SESSION_TIME": last, "ACCT_TERMINATE_CAUSE": 4})

    def arrival(second: float, late_s: int) -> Report:
        status, values = made[second]
        return report(status, second + late_s, USER_NAME="ann", ACCT_DELAY_TIME=late_s, **values)

    in_order = session(*[arrival(second, 0) for second in sorted(made)])
    arrivals = [*made, *chance.choices(list(made), k=len(made))]
    chance.shuffle(arrivals)
    shuffled = [arrival(second, chance.randrange(1000)) for second in arrivals]
    jumbled = session(*shuffled)
    assert final(jumbled) == final(in_order)
    assert (jumbled.state is SessionState.STOPPED) is stops
    assert not any(jumbled.is_over_for(each) for each in shuffled)


def test_a_repeated_record_is_recognized() -> None:
    """A repeated record is recognized by its contents and not by its time. It is recognized only for a limited time."""
    made = session(started(), interim(60))
    assert not made.take_in(interim(61, ACCT_SESSION_TIME=60))
    assert made.take_in(interim(62, ACCT_SESSION_TIME=61))
    assert made.records == 3
    for second in range(100, 100 + REMEMBERED):
        made.take_in(interim(second))
    assert made.take_in(interim(60))


def test_an_idle_session_stays_alive() -> None:
    """A record without changes confirms that the session is live."""
    made = session(report(3, 0), report(3, 600))
    assert (made.updated, made.records) == (NOW + 600 * SECOND, 1)


def test_a_wrapped_counter_does_not_reduce_the_total() -> None:
    """If a device does not send gigawords, its counter restarts at 0 after 4 GiB. The highest count is kept."""
    made = session(started(), interim(60, ACCT_OUTPUT_OCTETS=WRAPPED - 1), interim(120, ACCT_OUTPUT_OCTETS=5))
    assert made.counts == (120, 0, WRAPPED - 1, 0, 0)


def test_a_stop_without_a_start_is_a_past_session() -> None:
    """The start of the session is the time of the Stop minus Acct-Session-Time."""
    made = session(stopped(600, USER_NAME="ann"))
    assert (made.state, made.started, made.stopped) == (SessionState.STOPPED, NOW, NOW + 600 * SECOND)


def test_newer_facts_replace_older_ones() -> None:
    """The newest address is kept. A late record only adds facts that are missing."""
    made = session(
        interim(60, FRAMED_IP_ADDRESS=bytes((10, 0, 0, 1))),
        interim(180, FRAMED_IP_ADDRESS=bytes((10, 0, 0, 3))),
        interim(120, FRAMED_IP_ADDRESS=bytes((10, 0, 0, 2)), USER_NAME="ann"),
    )
    assert "10.0.0.3" in made.facts
    assert "ann" in made.facts


def test_a_late_interim_record_does_not_reopen_a_session() -> None:
    """A late interim record does not reopen a session that a Stop or a later restart of its device has ended."""
    over = session(started(), stopped(100), interim(50))
    assert over.state is SessionState.STOPPED
    lost = session(started())
    lost.state, lost.stopped, lost.cause = SessionState.LOST, NOW + 60 * SECOND, NAS_REBOOT
    lost.take_in(interim(30))
    assert (lost.state, lost.cause) == (SessionState.LOST, NAS_REBOOT)


def test_a_lost_session_with_a_new_record_is_live_again() -> None:
    """If a session was ended because it was silent, a Stop replaces that end."""
    lost = session(started())
    lost.state, lost.stopped = SessionState.LOST, NOW
    lost.take_in(interim(60))
    assert (lost.state, lost.stopped) == (SessionState.LIVE, None)
    lost.state, lost.stopped = SessionState.LOST, NOW + 200 * SECOND
    lost.take_in(stopped(120, ACCT_TERMINATE_CAUSE=5))
    assert (lost.state, lost.stopped, lost.cause) == (SessionState.STOPPED, NOW + 120 * SECOND, 5)


def test_a_session_keeps_an_address_that_the_nas_takes_back() -> None:
    """A record without an address (0.0.0.0) does not remove the address from the session."""
    for none in (bytes(4), b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe"):
        made = session(
            started(FRAMED_IP_ADDRESS=none),
            interim(60, FRAMED_IP_ADDRESS=bytes((10, 0, 0, 1)), FRAMED_IPV6_ADDRESS=bytes((32, 1, *bytes(14)))),
            stopped(90, FRAMED_IP_ADDRESS=none, FRAMED_IPV6_ADDRESS=bytes(16)),
        )
        assert {"10.0.0.1", "2001::"} <= set(made.facts)
    assert not {"0.0.0.0", "255.255.255.255", "255.255.255.254"} & set(session(started(FRAMED_IP_ADDRESS=none)).facts)


PAST = (started(USER_NAME="ann", ACCT_MULTI_SESSION_ID=b"m"), stopped(100))
LIVE = PAST[:1]


@pytest.mark.parametrize(
    ("before", "record", "another"),
    [
        (PAST, started(101, USER_NAME="bob"), True),
        (PAST, started(99, USER_NAME="ann"), False),
        (PAST, started(0, USER_NAME="ann", ACCT_MULTI_SESSION_ID=b"other"), True),
        (PAST, report(1, 100 + REPEATS_S, USER_NAME="ann", ACCT_MULTI_SESSION_ID=b"m"), False),
        (PAST, report(1, 101 + REPEATS_S, USER_NAME="ann", ACCT_MULTI_SESSION_ID=b"m"), True),
        (PAST, interim(150), False),
        (PAST, report(3, 1000, ACCT_SESSION_TIME=60), True),
        (PAST, report(3, 1000), False),
        (PAST, report(2, 1000, ACCT_SESSION_TIME=60), True),
        (PAST, stopped(100), False),
        (LIVE, started(500, USER_NAME="bob"), True),
        (LIVE, started(500, USER_NAME="ann", FRAMED_IP_ADDRESS=bytes(4)), False),
        (LIVE, started(0, USER_NAME="ann", ACCT_MULTI_SESSION_ID=b"other"), True),
        (LIVE, interim(500, USER_NAME="bob"), False),
    ],
)  # fmt: skip
def test_a_later_start_with_the_same_id_is_another_session(
    before: Iterable[Report], record: Report, another: bool
) -> None:
    """A record whose event is after the end of the session belongs to another session.

    A late or repeated record belongs to the ended session.
    """
    assert session(*before).is_over_for(record) is another


OURS = {"USER_NAME": "ann", "CALLING_STATION_ID": "02-00-00-00-00-01"}


@pytest.mark.parametrize(
    ("other", "foreign"),
    [
        ({"USER_NAME": "bob", "CALLING_STATION_ID": "02-00-00-00-00-02"}, True),
        ({"USER_NAME": "bob", "CALLING_STATION_ID": "0200.0000.0001"}, False),
        ({"USER_NAME": "ann", "CALLING_STATION_ID": "192.0.2.7"}, False),
        ({"USER_NAME": "bob"}, False),
        ({"CALLING_STATION_ID": "02-00-00-00-00-02"}, False),
    ],
    ids=["user and station", "user", "station", "no station", "no user"],
)
def test_a_record_of_another_user_and_station(other: dict[str, str], foreign: bool) -> None:
    """A record of another user at another station does not belong to a live session. If the session has ended, the
    record belongs to a new session."""
    live, over = session(started(**OURS)), session(started(**OURS), stopped(100, **OURS))
    assert live.is_foreign(interim(60, **other)) is foreign and not live.is_over_for(interim(60, **other))
    assert over.is_over_for(interim(60, **other)) is foreign and not over.is_foreign(interim(60, **other))


def test_a_late_record_of_the_former_session_is_ignored() -> None:
    """A late record of a former session does not change the session that has the ID now."""
    made = Session(1, 2, b"s1", started=NOW + 500 * SECOND, follows=True)
    made.take_in(started(500))
    made.take_in(stopped(100))
    assert (made.state, made.records, made.started) == (SessionState.LIVE, 1, NOW + 500 * SECOND)
