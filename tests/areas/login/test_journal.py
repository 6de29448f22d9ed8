"""Tests of the journal: decided logins are first written and then answered."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import count as count_from
from typing import cast

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.clients.client import Client
from sallyport.areas.events.event import EventQuery, EventRow
from sallyport.areas.events.service import Events
from sallyport.areas.login.journal import PURGE_S, Journal
from sallyport.areas.login.login import AccountingRecord, Answer, Answered, Login, Waits
from sallyport.areas.login.room import LONG, MAX_ENTRIES, SHORT_S
from sallyport.areas.login.rows import KeptAnswer, pack, unpack
from sallyport.areas.policy.attempt import Arrival
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.errors import StoreError
from sallyport.radius.attributes import STATE, push_attribute
from sallyport.radius.duplicates import Entry
from sallyport.radius.packet import ACCOUNTING_RESPONSE, encode_reply
from sallyport.store.connections import SqliteTx
from sallyport.store.model import Store, T, Tx, Work
from tests.areas import Areas, only_sqlite
from tests.areas.login.conftest import SOURCE, Answers, FakeListener, unproven
from tests.packets import access_request, accounting, attributes, opened, pap

USERS = ("ann", "ann", "bob")
SWITCH = attributes(NAS_IDENTIFIER=b"switch-1", CALLING_STATION_ID=b"02-00-00-00-00-01")


async def count(areas: Areas, table: str) -> int:
    """Return the number of rows of a table."""
    return await areas.store.read(lambda tx: tx.value(int, f"select count(*) from {table}") or 0)  # noqa: S608


async def events(areas: Areas) -> list[EventRow]:
    """Return the domain's events, newest first. Assert that their number equals the stored total."""
    rows, total = await Events(areas.store).page(EventQuery(areas.domain, limit=5000))
    assert total == len(rows)
    return rows


async def written(listener: FakeListener, *entries: Answered) -> None:
    """Give entries to the journal, and wait until they are written."""
    for entry in entries:
        listener.areas.journal.add(entry)
    listener.areas.journal.flush()
    with trio.fail_after(60):
        await listener.areas.journal.drained()


async def test_a_login_is_written_with_its_event_and_answer(listener: FakeListener) -> None:
    """A login is written with its event, its device and station, and the octets of its answer.

    The event uses the terms of the API.
    """
    login = await listener.ready(pap("Ann@CORP", "hello", SWITCH))
    login.answer = login.answer._replace(latency_us=1234)
    await written(listener, login)
    (event,) = await events(listener.areas)
    assert event == EventRow(
        id=event.id,
        at=listener.areas.clock(),
        user_name="Ann",
        ip_address="192.0.2.1",
        client_ip="192.0.2.1",
        device_id=login.device.id or 0,
        device_name="switch-1",
        station="02-00-00-00-00-01",
        method="pap",
        factor="local",
        decision="reject",
        applied_decision="accept",
        would_have_been="reject",
        reason="no provider",
        latency_us=1234,
        node_id=0,
        rule_id=0,
        rule_name="",
        first_us=0,
        second_us=0,
        role=None,
        role_source=None,
        attributes=None,
        detail=None,
        ssid="",
        port="",
        authority=None,
        named_by=None,
        revocation=None,
        trace_id=None,
    )
    assert [await count(listener.areas, table) for table in ("devices", "stations", "answers")] == [1, 1, 1]
    authenticator = login.arrival.request.authenticator
    assert await listener.areas.journal.recent() == [KeptAnswer(0, SOURCE, 0, authenticator, login.reply, signed=True)]
    assert listener.answers.sent == [login]


async def test_a_login_that_waited_is_written_with_its_waits_and_its_rule(listener: FakeListener) -> None:
    """In one transaction, each event has the rule and the waits of its own login. A local login has waited for nothing.

    The name of the rule is the name at the time of the login.
    """
    areas = listener.areas
    fields = {"name": "vpn", "action": "allow", "users": ["ann"]}
    rule = await areas.rules.add(areas.domain, RuleFields.model_validate(fields))
    await areas.add_user(areas.domain, "bob", b"hello")
    plain, waited, other = [await listener.ready(pap(user, "hello", identifier=n)) for n, user in enumerate(USERS)]
    waited.waits = Waits(first_us=2500, second_us=7_000_000)
    await written(listener, plain, waited, other)
    await areas.rules.update(areas.domain, rule, RuleFields.model_validate({"name": "renamed"}))
    found = [
        (each.user_name, each.rule_id, each.rule_name, each.first_us, each.second_us) for each in await events(areas)
    ]
    assert sorted(found) == [("ann", rule, "vpn", 0, 0), ("ann", rule, "vpn", 2500, 7_000_000), ("bob", 0, "", 0, 0)]


async def test_a_login_is_written_with_the_attributes_of_its_answer(listener: FakeListener) -> None:
    """The event has the attributes of the rule. Those of the authentication method, such as State, are not written."""
    areas = listener.areas
    fields = {"name": "vpn", "action": "allow", "users": ["ann"], "vlan": "20"}
    await areas.rules.add(areas.domain, RuleFields.model_validate(fields))
    await areas.add_user(areas.domain, "bob", b"hello")
    plain, asked, waited = [
        await listener.ready(pap(user, "hello", identifier=n)) for n, user in enumerate(("bob", "bob", "ann"))
    ]
    asked.answer = asked.answer._replace(attributes=push_attribute(STATE, b"12345678"))
    waited.answer = waited.answer._replace(attributes=waited.attributes)
    waited.waits = Waits(first_us=2500)
    await written(listener, plain, asked, waited)
    found = [(each.user_name, each.first_us, each.attributes) for each in await events(areas)]
    vlan = "Tunnel-Type = VLAN\nTunnel-Medium-Type = IEEE-802\nTunnel-Private-Group-Id = 20"
    assert sorted(found, key=str) == [("ann", 2500, vlan), ("bob", 0, None), ("bob", 0, None)]


async def test_a_refused_login_is_an_event_too(listener: FakeListener) -> None:
    """A refused login is written with its reason and with the user name as it was sent.

    If the sender is unproven, no device is written.
    """
    login = await listener.ready(pap("ann@elsewhere", "hello", signed=False))
    unproven(login)
    await written(listener, login)
    (event,) = await events(listener.areas)
    assert (event.user_name, event.decision, event.reason) == ("ann@elsewhere", "reject", "unknown realm")
    assert (event.would_have_been, event.device_id, event.device_name) == ("reject", 0, "Unknown")
    assert await count(listener.areas, "devices") == 0


async def test_a_login_without_a_domain_is_kept(listener: FakeListener) -> None:
    """A login without a domain is written under domain 0, which no caller can read."""
    areas = listener.areas
    bare = await areas.client("192.0.2.3/32", tenant=await areas.tenancy.ensure_tenant(2, 1))
    login = listener.login(pap("ann", "hello"), bare)
    login.answer = Answer(await listener.decide(login))
    unproven(login)
    login.reply = encode_reply(3, login.arrival.request, bare.secret)
    await written(listener, login)
    kept = await areas.store.read(lambda tx: tx.all(lambda domain_id: domain_id, "select domain_id from events"))
    assert kept == [0]


async def test_an_accounting_record_is_written_and_answered(listener: FakeListener) -> None:
    """An accounting record is written with its status, session, user and station, and with every attribute in octets.

    It is answered like a login.
    """
    body = attributes(
        ACCT_STATUS_TYPE=(2).to_bytes(4), ACCT_SESSION_ID=b"\xff session", USER_NAME=b"ann", CALLING_STATION_ID=b"02-01"
    )
    request = opened(accounting(body))
    known = Entry((SOURCE, request.identifier), request.authenticator)
    record = AccountingRecord(
        Arrival(request, listener.client, SOURCE, listener.areas.clock()), listener.answers, known
    )
    record.domain_id, record.user = listener.areas.domain, "ann"
    record.device = listener.areas.devices.sightings.device(
        request, SOURCE[0], listener.client, listener.areas.domain, record.at
    )
    record.reply = encode_reply(ACCOUNTING_RESPONSE, request, listener.client.secret)
    await written(listener, record)
    kept = await listener.areas.store.read(
        lambda tx: tx.all(
            lambda **row: row,
            "select domain_id, device_id, status_type, session_id, user_name, station, attributes "
            "from accounting_records",
        )
    )
    assert kept == [
        {
            "domain_id": listener.areas.domain, "device_id": record.device.id, "status_type": 2,
            "session_id": b"\xff session", "user_name": "ann", "station": "02-01", "attributes": body,
        }
    ]  # fmt: skip
    assert listener.answers.sent == [record]
    assert await count(listener.areas, "events") == 0


async def test_an_accounting_record_that_is_sent_again(listener: FakeListener) -> None:
    """A retransmitted accounting record, which has another identifier and a delay, is also answered.

    It is written and counted only once.
    """

    def record(identifier: int, delay: int) -> AccountingRecord:
        body = attributes(ACCT_STATUS_TYPE=(1).to_bytes(4), ACCT_SESSION_ID=b"s", ACCT_DELAY_TIME=delay.to_bytes(4))
        request = opened(accounting(body, identifier=identifier))
        known = Entry((SOURCE, identifier), request.authenticator)
        made = AccountingRecord(
            Arrival(request, listener.client, SOURCE, listener.areas.clock()), listener.answers, known
        )
        made.domain_id = listener.areas.domain
        made.device = listener.areas.devices.sightings.device(
            request, SOURCE[0], listener.client, made.domain_id, made.at
        )
        made.reply = encode_reply(ACCOUNTING_RESPONSE, request, listener.client.secret)
        return made

    first, second, third = record(1, 0), record(2, 5), record(3, 10)
    await written(listener, first, second)
    await written(listener, third)
    assert listener.answers.sent == [first, second, third]
    assert [await count(listener.areas, table) for table in ("accounting_records", "sessions")] == [1, 1]
    assert listener.areas.sample("sallyport_accounting_records_total", status="start") == 1


@only_sqlite
async def test_nothing_is_answered_before_it_is_on_disk(listener: FakeListener) -> None:
    """When the answer is sent, another reader of the file already sees the event, the device and the answer."""

    class Checking(Answers):
        """An exchange that reads the file when the answer is sent."""

        seen: tuple[int, ...] = ()

        def committed(self, entry: Answered, now: int) -> None:
            with closing(sqlite3.connect(listener.areas.store.path)) as other:
                counted = (
                    "(select count(*) from events), (select count(*) from devices), (select count(*) from answers)"
                )
                self.seen = other.execute(f"select {counted}").fetchone()
            super().committed(entry, now)

    listener.answers = Checking()
    await written(listener, await listener.ready(pap("ann", "hello", SWITCH)))
    assert listener.answers.seen == (1, 1, 1)


def statements_take(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let the statements of each transaction take a time."""
    monkeypatch.setattr("sallyport.areas.login.journal.perf_counter", partial(next, count_from(0.0, seconds)))


async def test_a_busy_journal_shares_transactions(listener: FakeListener, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that arrive during a transaction are written together in the next one, in order and at most 1000 at once.

    Every entry is answered.
    """
    statements_take(monkeypatch, 0.0)
    logins = [await listener.ready(pap("ann", "hello", SWITCH)) for _ in range(2500)]
    await written(listener, *logins)
    assert listener.answers.sent == logins
    assert await count(listener.areas, "answers") == -(-2500 // MAX_ENTRIES)
    assert [event.id for event in reversed(await events(listener.areas))] == list(range(1, 2501))


async def test_slow_transactions_become_small(listener: FakeListener, monkeypatch: pytest.MonkeyPatch) -> None:
    """If 1000 entries take ten times as long as a transaction may, the next transactions have 100 entries."""
    statements_take(monkeypatch, 10 * SHORT_S)
    logins = [await listener.ready(pap("ann", "hello", SWITCH)) for _ in range(1500)]
    await written(listener, *logins)
    assert listener.answers.sent == logins
    sql = "select length(packed) from answers order by id"
    sizes = await listener.areas.store.read(lambda tx: [int(str(row[0])) for row in tx.rows(sql)])
    first = MAX_ENTRIES - LONG  # the device is new
    assert [1500 * size // sum(sizes) for size in sizes] == [first, 100, 100, 100, 100, 100, LONG]


async def test_tenants_take_turns(listener: FakeListener) -> None:
    """A login of another tenant is in the next transaction, however many logins of the first tenant wait."""
    other = await listener.areas.client("192.0.2.9/32", tenant=await listener.areas.tenancy.ensure_tenant(2, 1))
    flood = [await listener.ready(pap("ann", "hello", SWITCH)) for _ in range(2 * MAX_ENTRIES)]
    login = await listener.ready(pap("ann", "hello", SWITCH))
    login.arrival = login.arrival._replace(client=other)
    await written(listener, *flood, login)
    assert listener.answers.sent.index(login) < MAX_ENTRIES


async def test_first_sightings_make_a_transaction_short(listener: FakeListener) -> None:
    """A login with a new device counts as many logins, so that only a few of them are in one transaction."""
    names = [b"switch-%d" % number for number in range(2 * MAX_ENTRIES // LONG)]
    logins = [await listener.ready(pap("ann", "hello", attributes(NAS_IDENTIFIER=name))) for name in names]
    await written(listener, *logins)
    assert listener.answers.sent == logins
    assert await count(listener.areas, "answers") > 2


async def test_an_answer_is_kept_from_when_it_was_decided(listener: FakeListener) -> None:
    """A login that waited a minute for its second factor is answered after a restart with the same answer as before."""
    login = await listener.ready(pap("ann", "hello", SWITCH))
    listener.areas.clock.pass_by(60)
    await written(listener, login)
    assert [kept.reply for kept in await listener.areas.journal.recent()] == [login.reply]


async def test_unlike_logins_share_a_transaction(listener: FakeListener) -> None:
    """Each event has its own method, outcome and Service-Type, whatever other events are in its transaction."""
    asked = attributes(SERVICE_TYPE=bytes((0, 0, 0, 1)))
    users = [("ann", "hello", b""), ("ann", "wrong", b""), ("ann", "hello", asked), ("nobody", "hello", asked)]
    logins = [await listener.ready(pap(user, password, SWITCH + more)) for user, password, more in users]
    await written(listener, *logins, *logins[:2])
    found = await listener.areas.store.read(
        lambda tx: tx.rows(
            "select user_name, applied_decision, reason, service_type from events "
            "order by user_name, applied_decision, reason, coalesce(service_type, 0)"
        )
    )
    assert found == [
        ("ann", "accept", "no provider", None),
        ("ann", "accept", "no provider", None),
        ("ann", "accept", "no provider", 1),
        ("ann", "reject", "wrong password", None),
        ("ann", "reject", "wrong password", None),
        ("nobody", "reject", "unknown user", 1),
    ]
    assert len(await events(listener.areas)) == len(found)


async def test_one_registration_for_many_logins(listener: FakeListener) -> None:
    """If several logins of one transaction have the same new device, it is one row, one count in the metrics and one
    log event."""
    logins = [await listener.ready(pap("ann", "hello", SWITCH)) for _ in range(10)]
    await written(listener, *logins)
    await written(listener, await listener.ready(pap("ann", "hello", SWITCH)))
    assert [await count(listener.areas, table) for table in ("devices", "stations")] == [1, 1]
    assert listener.areas.sample("sallyport_devices_registered_total", domain=str(listener.areas.domain)) == 1


async def test_a_login_that_another_node_answers(listener: FakeListener) -> None:
    """A login whose second factor another node has used gets no event and no answer; the others are
    written."""
    lost, kept = [await listener.ready(pap("ann", "hello", SWITCH)) for _ in range(2)]
    lost.keep = lambda _tx: False
    kept.keep = lambda _tx: None
    await written(listener, lost, kept)
    assert (listener.answers.dropped, listener.answers.sent) == ([lost], [kept])
    assert len(await events(listener.areas)) == 1
    assert [each.reply for each in await listener.areas.journal.recent()] == [kept.reply]


async def test_a_failing_store_sends_no_answers(listener: FakeListener) -> None:
    """An error within a transaction undoes all of it: there is no event, no device and no answer.

    The device is then new again, and is written with the next login.
    """
    await listener.areas.store.write(lambda tx: tx.execute("alter table answers rename to gone"))
    login = await listener.ready(pap("ann", "hello", SWITCH))
    await written(listener, login)
    assert (listener.answers.sent, listener.answers.dropped) == ([], [login])
    assert (login.device.id, login.behind and login.behind.stored) == (None, False)
    assert [await count(listener.areas, table) for table in ("events", "devices", "stations", "device_history")] == [
        0
    ] * 4
    await listener.areas.store.write(lambda tx: tx.execute("alter table gone rename to answers"))
    again = await listener.ready(pap("ann", "hello", SWITCH))
    assert again.device is login.device
    await written(listener, again)
    assert listener.answers.sent == [again]
    assert [await count(listener.areas, table) for table in ("events", "devices", "stations")] == [1, 1, 1]


class StepStore:
    """A store that runs submitted work only when the test asks for it.

    It uses its own connection, and can fail to commit.
    """

    def __init__(self, store: Store, connection: sqlite3.Connection) -> None:
        self._store = store
        self._connection = connection
        self._waiting: list[Callable[[], None]] = []
        self.at_once = False
        self.fails = False

    async def read(self, work: Work[T]) -> T:
        return await self._store.read(work)

    async def read_now(self, work: Work[T]) -> T:
        return await self._store.read_now(work)

    async def search(self, work: Work[T]) -> T:
        return await self._store.search(work)

    async def write(self, work: Work[T]) -> T:
        return await self._store.write(work)

    def submit(self, work: Work[T], done: Callable[[T | None, BaseException | None], None]) -> None:
        def run() -> None:
            self._connection.execute("begin")
            result = work(SqliteTx(self._connection))
            failed, self.fails = self.fails, False
            self._connection.execute("rollback" if failed else "commit")
            done(None if failed else result, StoreError("disk") if failed else None)

        if self.at_once:
            run()
        else:
            self._waiting.append(run)

    def step(self) -> None:
        """Run the work that is waiting. From then on, run all work at once."""
        self.at_once = True
        for run in self._waiting:
            run()


@only_sqlite
async def test_a_failed_transaction_is_undone_before_the_next(listener: FakeListener) -> None:
    """If a transaction fails, a login that was waiting for the next one registers the device itself.

    Therefore its event refers to a stored device.
    """
    with closing(sqlite3.connect(listener.areas.store.path, isolation_level=None)) as connection:
        stepping = StepStore(listener.areas.store, connection)
        areas = listener.areas
        counters = areas.devices.count_written, areas.sessions.count_records
        journal = Journal(stepping, *counters, keep_answers_s=30, clock=areas.clock, as_text=bytes.hex)
        lost, kept = [await listener.ready(pap("ann", "hello", SWITCH)) for _ in range(2)]
        journal.add(lost)
        journal.flush()
        journal.add(kept)
        journal.flush()
        stepping.fails = True
        stepping.step()
    assert (listener.answers.dropped, listener.answers.sent) == ([lost], [kept])
    (event,) = await events(listener.areas)
    row = await listener.areas.devices.one(listener.areas.domain, event.device_id)
    assert (row.nas_identifier, kept.device.id) == ("switch-1", row.id)
    assert await count(listener.areas, "stations") == 1


async def test_a_device_beyond_the_limit_of_its_tenant(listener: FakeListener) -> None:
    """Beyond the tenant's limit of devices, logins and accounting records are still answered and written, but without a
    device and a session."""
    areas = listener.areas
    await areas.store.write(lambda tx: tx.execute("update limits set most = 0 where name = 'devices'"))
    login = await listener.ready(pap("ann", "hello", SWITCH))
    entries: list[Answered] = [login]
    for status in (1, 7):
        body = attributes(ACCT_STATUS_TYPE=status.to_bytes(4), ACCT_SESSION_ID=b"s", NAS_IDENTIFIER=b"switch-1")
        request = opened(accounting(body, identifier=status))
        known = Entry((SOURCE, status), request.authenticator)
        record = AccountingRecord(Arrival(request, listener.client, SOURCE, areas.clock()), listener.answers, known)
        record.domain_id, record.device = areas.domain, login.device
        record.reply = encode_reply(ACCOUNTING_RESPONSE, request, listener.client.secret)
        entries.append(record)
    await written(listener, *entries)
    assert (listener.answers.sent, login.device.id) == (entries, None)
    assert [event.device_id for event in await events(areas)] == [0]
    kept = await areas.store.read(lambda tx: tx.rows("select device_id from accounting_records"))
    assert kept == [(0,), (0,)]
    tables = ("devices", "stations", "sessions", "device_restarts")
    assert [await count(areas, table) for table in tables] == [0, 0, 0, 0]


async def test_an_answer_that_fails_stops_no_other(listener: FakeListener) -> None:
    """An exception in one exchange does not prevent the other answers."""

    class Broken(Answers):
        """An exchange that cannot send."""

        def committed(self, entry: Answered, now: int) -> None:
            raise RuntimeError("of the exchange")

    first, second = [await listener.ready(pap("ann", "hello", SWITCH)) for _ in range(2)]
    first.exchange = Broken()
    await written(listener, first, second)
    assert listener.answers.sent == [second]
    assert len(await events(listener.areas)) == 2


async def test_an_exporter_that_fails_stops_no_answer(listener: FakeListener) -> None:
    """The logins that were added during the transaction are written in the next one."""

    def fail(_entries: object, _now: int) -> None:
        raise RuntimeError("of the exporter")

    class Busy(Answers):
        """An exchange that decides another login before the transaction ends."""

        def committed(self, entry: Answered, now: int) -> None:
            journal.add(second)

    journal = listener.areas.journal
    journal._on_answered = fail
    first, second = [await listener.ready(pap("ann", "hello", SWITCH)) for _ in range(2)]
    first.exchange = Busy()
    await written(listener, first)
    assert listener.answers.sent == [second]
    assert len(await events(listener.areas)) == 2


# --- answers that outlive a restart -------------------------------------------------------------------------------


HOSTS = st.one_of(st.ip_addresses().map(str), st.just("fe80::1%eth0"))
ANSWERS = st.lists(
    st.tuples(
        st.integers(0, 127), HOSTS, st.integers(0, 65535), st.integers(0, 255),
        st.binary(min_size=16, max_size=16), st.binary(max_size=4076), st.booleans(),
    ),
    max_size=20,
)  # fmt: skip


@given(answers=ANSWERS)
def test_answers_are_packed_and_unpacked(answers: list[tuple[int, str, int, int, bytes, bytes, bool]]) -> None:
    """Unpacking returns the listener, address, port, identifier, authenticator, octets and whether the request was
    signed, in order."""
    packed, kept = b"", []
    for listener, host, port, identifier, authenticator, body, signed in answers:
        reply = bytes((2, identifier)) + (20 + len(body)).to_bytes(2) + bytes(16) + body
        request = opened(access_request(identifier=identifier, authenticator=authenticator))
        known = Entry(((host, port), identifier), authenticator)
        known.signed = signed
        arrival = Arrival(request, cast("Client", None), (host, port), 0)  # pack does not read the client
        packed += pack(Answered(arrival, Answers(listener), known, reply=reply))
        kept.append(KeptAnswer(listener, (host, port), identifier, authenticator, reply, signed))
    assert unpack(packed) == kept


async def test_answers_are_kept_for_their_time(listener: FakeListener, mock_clock: trio.testing.MockClock) -> None:
    """Answers are kept as long as a retransmission may arrive, and are returned oldest first. After that they are
    deleted, and their events stay. This also holds for answers that arrive when the table is empty."""
    mock_clock.rate = 1
    journal = listener.areas.journal
    for number in range(2):
        first, second = [await listener.ready(pap("ann", password)) for password in ("hello", "wrong")]
        await written(listener, first)
        await journal.purge()
        mock_clock.jump(20)
        await written(listener, second)
        await journal.purge()
        assert [kept.reply for kept in await journal.recent()] == [first.reply, second.reply]
        mock_clock.jump(11)
        await journal.purge()
        assert [kept.reply for kept in await journal.recent()] == [second.reply]
        mock_clock.jump(20)
        await journal.purge()
        assert await journal.recent() == []
        assert len(await events(listener.areas)) == 2 * number + 2


@pytest.mark.parametrize("step", [3600, 31, -2, -45, -3600])
async def test_answers_are_kept_when_the_clock_is_set(
    listener: FakeListener, mock_clock: trio.testing.MockClock, step: int
) -> None:
    """Answers are kept for their time if the clock of the day is set in the meantime, and set right again. A service
    that is started again then finds them."""
    mock_clock.rate = 1
    areas = listener.areas
    before, meanwhile = [await listener.ready(pap("ann", "hello", identifier=n)) for n in range(2)]
    await written(listener, before)
    areas.clock.pass_by(step)
    await areas.journal.purge()
    assert [kept.reply for kept in await areas.journal.recent()] == [before.reply]
    await written(listener, meanwhile)
    areas.clock.pass_by(1 - step)
    mock_clock.jump(PURGE_S)
    await areas.journal.purge()
    assert [kept.reply for kept in await areas.journal.recent()] == [before.reply, meanwhile.reply]
    mock_clock.jump(31)
    await areas.journal.purge()
    assert await areas.journal.recent() == []


async def test_answers_of_a_restored_backup_are_deleted(
    listener: FakeListener, mock_clock: trio.testing.MockClock
) -> None:
    """A restore deletes the answers of the backup. Answers that are stored after it are kept for their time, although
    their ids begin anew."""
    mock_clock.rate = 1
    areas = listener.areas
    first, second = [await listener.ready(pap("ann", "hello", identifier=n)) for n in range(2)]
    await written(listener, first)
    await areas.journal.purge()
    await areas.store.write(lambda tx: areas.app.areas.void(tx, revoke_tokens=False))
    assert await areas.journal.recent() == []
    areas.login.forget_all()
    await written(listener, second)
    mock_clock.jump(31)
    await areas.journal.purge()
    assert [kept.reply for kept in await areas.journal.recent()] == [second.reply]


async def test_long_answers_fit(listener: FakeListener) -> None:
    """An answer is stored unchanged even if it contains as much Proxy-State as a request can have."""
    login = await listener.ready(pap("ann", "hello", push_attribute(33, b"p" * 253) * 15))
    await written(listener, login)
    assert [kept.reply for kept in await listener.areas.journal.recent()] == [login.reply]
    assert isinstance(login, Login)


async def test_an_entry_at_fault_costs_only_itself(listener: FakeListener) -> None:
    """If the store refuses one of several entries, the others are written, each with its device, and answered."""
    logins = []
    for number in range(70):
        packet = pap("ann", "hello", attributes(NAS_IDENTIFIER=b"switch-%d" % (number // 2)))
        logins.append(await listener.ready(packet))

    def fault(tx: Tx) -> None:
        tx.execute("insert into counters (domain_id, name, value) values (0, 'kept', 1), (0, 'kept', 2)")

    bad = [logins[4], logins[69]]  # the first one of its device, and the last one
    for login in bad:
        login.keep = fault
    await written(listener, *logins)
    assert listener.answers.dropped == bad
    assert set(listener.answers.sent) == {*logins} - {*bad}
    found = await events(listener.areas)
    assert len(found) == 68
    known = await listener.areas.store.read(lambda tx: tx.all(lambda id: id, "select id from devices"))
    assert {event.device_id for event in found} <= set(known)
    assert len(known) == 35
