"""Logins over the limit of parallel sessions of their rule: the answer, the event and the copies agree."""

import pytest

from sallyport.areas.clients.client import CHECK
from sallyport.areas.domains.domain import Mode
from sallyport.areas.events.event import EventQuery
from sallyport.areas.login.limit import NOT_APPLIED, REASON
from sallyport.areas.login.listen.exchange import RadiusService
from sallyport.areas.sessions import parallel
from sallyport.areas.sessions.parallel import MAX_DEVICES, MIN_INTERVAL_US, interval_us
from sallyport.areas.sessions.report import Status
from sallyport.areas.sessions.session import SessionQuery
from sallyport.base.clock import SECOND
from sallyport.radius.attributes import pull_attributes
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from sallyport.store.model import Tx
from tests.areas import Areas, allow, refuse
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.limits import (
    INTERVAL_S,
    NAS_NAME,
    last_event,
    limit,
    login,
    record,
    sends_interims,
)
from tests.packets import attributes, mschap2, pap


async def codes(wire: Wire, *datagrams: bytes) -> list[int]:
    """Send logins that arrive in one wake-up, and return the codes of their answers."""
    wire.put(*datagrams)
    return [(await wire.take())[0][0] for _ in datagrams]


async def test_concurrent_logins_of_one_transaction(wire: Wire, areas: Areas) -> None:
    """Of ten logins in one transaction, exactly as many as the limit are accepted. The others are not failures."""
    await sends_interims(wire)
    await limit(areas, 3)
    found = await codes(wire, *(login(number) for number in range(10)))
    assert (found.count(ACCESS_ACCEPT), found.count(ACCESS_REJECT)) == (3, 7)
    rows, _ = await areas.events.page(EventQuery(areas.domain, limit=100))
    refused = [each for each in rows if each.applied_decision == "reject"]
    assert {(each.decision, each.reason, each.rule_name) for each in refused} == {
        ("reject", "too many sessions", "limited")
    }
    assert refused[0].detail == "the user has 3 parallel sessions, and the limit is 3"
    labels = {"domain": str(areas.domain), "mode": "enforce"}
    counts = [
        areas.sample("sallyport_mfa_decisions_total", **labels, decision=outcome) for outcome in ("allow", "deny")
    ]
    assert counts == [3, 7]
    assert not areas.lockouts.has_failures


async def test_the_metric_by_tag_has_the_final_decisions(wire: Wire, areas: Areas) -> None:
    """A login that the transaction refuses is not counted as allowed."""
    areas.login_metrics.tag_key = "site"
    wire.auth = wire.exchange(RadiusService.AUTHENTICATION, 0)
    await sends_interims(wire)
    await limit(areas, 1)
    assert sorted(await codes(wire, login(1), login(2))) == [ACCESS_ACCEPT, ACCESS_REJECT]
    counts = [
        areas.sample("sallyport_tagged_decisions_total", tag="none", decision=outcome) for outcome in ("allow", "deny")
    ]
    assert counts == [1, 1]


async def test_a_retransmission_gets_the_same_refusal(wire: Wire, areas: Areas) -> None:
    """The stored answer of a refused login is the Access-Reject, also after a restart."""
    await sends_interims(wire)
    await limit(areas, 1)
    assert await codes(wire, login(1)) == [ACCESS_ACCEPT]
    again = login(2)
    wire.put(again)
    reply, _ = await wire.take()
    wire.put(again)
    assert (reply[0], (await wire.take())[0]) == (ACCESS_REJECT, reply)
    kept = await areas.journal.recent()
    assert [each.reply for each in kept if each.identifier == 2] == [reply]


async def test_a_session_is_counted_once(wire: Wire, areas: Areas) -> None:
    """A login counts until its session begins, then the session counts until it ends."""
    await sends_interims(wire)
    await limit(areas, 1)
    assert await codes(wire, login(1)) == [ACCESS_ACCEPT]
    assert await codes(wire, login(2)) == [ACCESS_REJECT]
    await record(wire, Status.START, 1)
    areas.clock.pass_by(90)
    assert await codes(wire, login(2)) == [ACCESS_REJECT]
    await record(wire, Status.STOP, 1)
    assert await codes(wire, login(2)) == [ACCESS_ACCEPT]
    await record(wire, Status.START, 2)
    areas.clock.pass_by(1)
    await record(wire, Status.STOP, 2)  # within the time for which its login would count
    assert await codes(wire, login(3)) == [ACCESS_ACCEPT]


async def test_an_ended_session_of_a_name_that_is_not_ascii(wire: Wire, areas: Areas) -> None:
    """A session that has begun and ended under another case of the name frees the place of its login."""
    await areas.add_user(areas.domain, "Änne", b"hello")
    await sends_interims(wire)
    await limit(areas, 1, users=["Änne"])
    assert await codes(wire, login(1, "ÄNNE")) == [ACCESS_ACCEPT]
    await record(wire, Status.START, 1, "ÄNNE")
    areas.clock.pass_by(1)
    await record(wire, Status.STOP, 1, "ÄNNE")
    assert await codes(wire, login(2, "änne")) == [ACCESS_ACCEPT]


async def test_a_login_without_a_session_expires(wire: Wire, areas: Areas) -> None:
    """A login whose session does not begin counts for a minute."""
    await sends_interims(wire)
    await limit(areas, 1)
    assert await codes(wire, login(1)) == [ACCESS_ACCEPT]
    areas.clock.pass_by(59)
    assert await codes(wire, login(2)) == [ACCESS_REJECT]
    areas.clock.pass_by(2)
    assert await codes(wire, login(2)) == [ACCESS_ACCEPT]


async def test_a_silent_session_does_not_count(wire: Wire, areas: Areas) -> None:
    """A session whose last record is older than twice the interval of its device does not count."""
    await sends_interims(wire)
    await limit(areas, 1)
    await record(wire, Status.START, 1)
    areas.clock.pass_by(2 * INTERVAL_S - 1)
    assert await codes(wire, login(2)) == [ACCESS_REJECT]
    areas.clock.pass_by(2)
    assert await codes(wire, login(2)) == [ACCESS_ACCEPT]


async def test_the_same_station(wire: Wire, areas: Areas) -> None:
    """A station that logs in again, or moves to another access point, is no parallel session."""
    await sends_interims(wire)
    await sends_interims(wire, b"ap-2")
    await limit(areas, 1)
    assert await codes(wire, login(1), login(2, station="02-00-00-00-00-01")) == [ACCESS_ACCEPT, ACCESS_ACCEPT]
    await record(wire, Status.START, 1)
    assert await codes(wire, login(3, station="0200.0000.0001", name=b"ap-2")) == [ACCESS_ACCEPT]


async def test_a_station_that_logs_in_again_counts_once(wire: Wire, areas: Areas) -> None:
    """A NAS that lets a station log in again may continue its session, without another Start. The session and the new
    login of the station count once."""
    await sends_interims(wire)
    await limit(areas, 2)
    assert await codes(wire, login(1)) == [ACCESS_ACCEPT]
    await record(wire, Status.START, 1)
    assert await codes(wire, login(2, station="02-00-00-00-00-01")) == [ACCESS_ACCEPT]
    assert await codes(wire, login(3)) == [ACCESS_ACCEPT]
    assert await codes(wire, login(4)) == [ACCESS_REJECT]


async def test_a_station_with_two_sessions_counts_once(wire: Wire, areas: Areas) -> None:
    """The Stop of the session at the access point that a station has left may be late. Both sessions count once, and
    both end if the login of another station ends the oldest."""
    await sends_interims(wire)
    await limit(areas, 2, "end_oldest")
    for number in (1, 2):
        await record(wire, Status.START, number, CALLING_STATION_ID=b"02-00-00-00-00-01")
        areas.clock.pass_by(1)
    assert await codes(wire, login(3)) == [ACCESS_ACCEPT]
    assert (await last_event(areas)).detail is None
    await record(wire, Status.START, 3)
    assert await codes(wire, login(4)) == [ACCESS_ACCEPT]
    rows = await areas.store.read(lambda tx: tx.rows("select session_id from revocations order by id"))
    found, _ = await areas.sessions.page(SessionQuery(areas.domain, user_name="ann"))
    ids = {each.acct_session_id: each.id for each in found}
    assert rows == [(ids[b"1"],), (ids[b"2"],)]


@pytest.mark.parametrize("name", ["Ann", "ann@corp", "CORP\\ann", " ann"])
async def test_each_name_of_the_user_counts(wire: Wire, areas: Areas, name: str) -> None:
    """Sessions count under each spelling that a device sends."""
    await sends_interims(wire)
    await limit(areas, 1)
    await record(wire, Status.START, 1, name)
    assert await codes(wire, login(2)) == [ACCESS_REJECT]
    assert await codes(wire, login(3, user="ann@corp")) == [ACCESS_REJECT]


async def test_a_device_without_interim_updates(wire: Wire, areas: Areas) -> None:
    """The limit is not applied at a device that sends no interim updates, and the event says so."""
    await sends_interims(wire)
    await limit(areas, 1)
    assert await codes(wire, login(1), login(2, name=b"ap-9"), login(3, name=b"ap-9")) == [ACCESS_ACCEPT] * 3
    rows, _ = await areas.events.page(EventQuery(areas.domain, limit=10))
    assert sorted((each.device_name, each.detail) for each in rows if each.detail) == [("ap-9", NOT_APPLIED)] * 2
    await record(wire, Status.START, 2, name=b"ap-9")
    await record(wire, Status.STOP, 1)
    areas.clock.pass_by(61)
    assert await codes(wire, login(4)) == [ACCESS_ACCEPT]  # its session does not count at other devices


async def test_the_interval_that_the_rule_sends(wire: Wire, areas: Areas) -> None:
    """A device that gets Acct-Interim-Interval is expected to send interim updates, until a session lacks them."""
    await limit(areas, 1, replyAttributes=[{"name": "Acct-Interim-Interval", "value": "120"}])
    await record(wire, Status.START, 1)
    assert await codes(wire, login(2)) == [ACCESS_REJECT]
    areas.clock.pass_by(241)
    assert await codes(wire, login(2)) == [ACCESS_ACCEPT]
    assert NOT_APPLIED in str((await last_event(areas)).detail)


async def test_monitor_mode_records_the_refusal(wire: Wire, areas: Areas) -> None:
    """In monitor mode the login is accepted with the attributes of the rule. The event has the refusal."""
    await sends_interims(wire)
    await limit(areas, 1, mode=Mode.MONITOR, vlan="20")
    wire.put(login(1), login(2))
    replies = [(await wire.take())[0] for _ in range(2)]
    assert [reply[0] for reply in replies] == [ACCESS_ACCEPT, ACCESS_ACCEPT]
    kinds = [{kind for kind, _ in pull_attributes(reply, 20)} for reply in replies]
    assert kinds[0] == kinds[1]
    event = await last_event(areas)
    assert (event.decision, event.applied_decision, event.would_have_been) == ("reject", "accept", "reject")
    assert (event.reason, event.detail) == (
        "too many sessions", "the user has 1 parallel session, and the limit is 1",
    )  # fmt: skip


async def test_the_oldest_session_ends(wire: Wire, areas: Areas) -> None:
    """With end_oldest the login is accepted, and the device is asked to end the oldest session. It is asked once."""
    await sends_interims(wire)
    await limit(areas, 2, "end_oldest")
    for number in (1, 2):
        await record(wire, Status.START, number)
        areas.clock.pass_by(1)
    assert await codes(wire, login(3)) == [ACCESS_ACCEPT]
    event = await last_event(areas)
    assert event.detail == "the user has 2 parallel sessions, and the limit is 2: the login ends the oldest"
    await record(wire, Status.START, 3)
    assert await codes(wire, login(4)) == [ACCESS_ACCEPT]
    rows = await areas.store.read(lambda tx: tx.rows("select session_id, reason from revocations order by id"))
    found, _ = await areas.sessions.page(SessionQuery(areas.domain, user_name="ann"))
    ids = {each.acct_session_id: each.id for each in found}
    assert rows == [(ids[b"1"], REASON), (ids[b"2"], REASON)]


async def test_a_check_takes_no_place(wire: Wire, areas: Areas) -> None:
    """A login of `sallyport check` is answered as the user's login would be, but it takes no place, and ends no
    session."""
    await sends_interims(wire)
    await limit(areas, 2, "end_oldest")
    check = attributes(NAS_IDENTIFIER=NAS_NAME, CONNECT_INFO=CHECK)
    assert await codes(wire, *(pap("ann", "hello", check, identifier=number) for number in (50, 51, 52))) == [2, 2, 2]
    for number in (1, 2):
        await record(wire, Status.START, number)
    assert await codes(wire, pap("ann", "hello", check, identifier=53)) == [ACCESS_ACCEPT]
    assert await areas.store.read(lambda tx: tx.rows("select session_id from revocations")) == []


async def test_no_session_can_end_yet(wire: Wire, areas: Areas) -> None:
    """With end_oldest a login is refused if the sessions of the logins before it have not begun."""
    await sends_interims(wire)
    await limit(areas, 1, "end_oldest")
    assert await codes(wire, login(1), login(2)) == [ACCESS_ACCEPT, ACCESS_REJECT]


async def test_a_refused_login_by_mschap(wire: Wire, areas: Areas) -> None:
    """A refused login by MS-CHAPv2 gets MS-CHAP-Error instead of the proof and the keys."""
    await sends_interims(wire)
    await limit(areas, 1)
    assert await codes(wire, login(1)) == [ACCESS_ACCEPT]
    wire.put(mschap2("ann", "hello", body=attributes(NAS_IDENTIFIER=NAS_NAME)))
    reply, _ = await wire.take()
    assert (reply[0], b"E=649 R=0" in reply) == (ACCESS_REJECT, True)


async def test_a_failed_transaction_is_counted_again(wire: Wire, areas: Areas) -> None:
    """If a transaction fails and its logins are written one by one, the limit is still exact."""
    await sends_interims(wire)
    await limit(areas, 2)
    await refuse(areas.store, "before insert on events", "new.station = '02-00-00-00-00-00'")
    wire.put(*(login(number) for number in range(4)))
    assert [(await wire.take())[0][0] for _ in range(3)] == [ACCESS_ACCEPT, ACCESS_ACCEPT, ACCESS_REJECT]
    await allow(areas.store, "events")


async def test_sessions_at_many_devices(wire: Wire, areas: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval of only a few devices is learned for a login. Without this bound, a user with sessions at many
    devices would delay the logins of all tenants."""
    asked = list[int]()

    def spied(tx: Tx, device_id: int, sent_us: int, at: int) -> int | None:
        asked.append(device_id)
        return interval_us(tx, device_id, sent_us, at)

    monkeypatch.setattr(parallel, "interval_us", spied)
    await sends_interims(wire)
    await limit(areas, 3)
    for number in range(1, 14):
        await record(wire, Status.START, number, name=b"far-%d" % number)
    assert await codes(wire, login(20)) == [ACCESS_REJECT]
    assert (await last_event(areas)).detail == "the user has 5 parallel sessions, and the limit is 3"
    assert len(asked) == MAX_DEVICES + 1
    areas.clock.pass_by(2 * MIN_INTERVAL_US // SECOND + 1)
    assert await codes(wire, login(20)) == [ACCESS_ACCEPT]


async def test_rows_of_old_logins_are_deleted(wire: Wire, areas: Areas) -> None:
    """The row of a user is deleted some time after the last login."""
    await sends_interims(wire)
    await limit(areas, 2)
    await codes(wire, login(1))

    async def rows() -> list[tuple[object, ...]]:
        await areas.login.limits.delete_old()
        return list(await areas.store.read(lambda tx: tx.rows("select user_key from session_limits")))

    assert await rows() == [("ann",)]
    areas.clock.pass_by(121)
    assert await rows() == []
