"""The journal: decided logins are written first, and answered after that."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.errors import StoreError
from sallyport.events.repo import EventQuery, EventRow
from sallyport.events.service import Events
from sallyport.login.journal import LONG, MOST, PURGE_S, Journal, KeptAnswer, pack, unpack
from sallyport.login.login import AccountingRecord, Answered, Login
from sallyport.radius.attributes import push_attribute
from sallyport.radius.duplicates import Entry
from sallyport.radius.packet import ACCOUNTING_RESPONSE, encode_reply
from sallyport.store.connections import SqliteTx
from sallyport.store.model import Store, T, Work
from tests.areas import Areas
from tests.login.conftest import SOURCE, Answers, Desk, unproven
from tests.packets import access_request, accounting, attributes, opened, pap

SWITCH = attributes(NAS_IDENTIFIER=b"switch-1", CALLING_STATION_ID=b"02-00-00-00-00-01")


async def count(areas: Areas, table: str) -> int:
    """Return how many rows a table has."""
    return await areas.store.read(lambda tx: tx.value(int, f"select count(*) from {table}") or 0)  # noqa: S608


async def events(areas: Areas) -> list[EventRow]:
    """Return the domain's events, the newest first; their number equals the stored total."""
    rows, total = await Events(areas.store).page(EventQuery(areas.domain, limit=5000))
    assert total == len(rows)
    return rows


async def written(desk: Desk, *entries: Answered) -> None:
    """Give entries to the journal and wait until they are written."""
    for entry in entries:
        desk.areas.journal.add(entry)
    desk.areas.journal.flush()
    with trio.fail_after(10):
        await desk.areas.journal.drained()


async def test_what_is_written_of_a_login(desk: Desk) -> None:
    """A login is written with its event in the terms of the interface, its device and station, and the octets of its
    answer.
    """
    login = await desk.ready(pap("Ann@CORP", "hello", SWITCH))
    login.latency_us = 1234
    await written(desk, login)
    (event,) = await events(desk.areas)
    assert event == EventRow(
        id=event.id,
        at=desk.areas.clock(),
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
    )
    assert [await count(desk.areas, table) for table in ("devices", "stations", "answers")] == [1, 1, 1]
    authenticator = login.request.authenticator
    assert await desk.areas.journal.recent() == [KeptAnswer(0, SOURCE, 0, authenticator, login.reply, signed=True)]
    assert desk.answers.sent == [login]


async def test_a_refused_login_is_an_event_too(desk: Desk) -> None:
    """A refused login is written with its reason and the name as sent, without a device if the sender is unproven."""
    login = await desk.ready(pap("ann@elsewhere", "hello", signed=False))
    unproven(login)
    await written(desk, login)
    (event,) = await events(desk.areas)
    assert (event.user_name, event.decision, event.reason) == ("ann@elsewhere", "reject", "unknown realm")
    assert (event.would_have_been, event.device_id, event.device_name) == ("reject", 0, "Unknown")
    assert await count(desk.areas, "devices") == 0


async def test_a_login_without_a_domain_is_kept(desk: Desk) -> None:
    """A login without a domain is written under domain 0, which no caller can read."""
    areas = desk.areas
    bare = await areas.client("192.0.2.3/32", tenant=await areas.tenancy.ensure_tenant(2, 1))
    login = desk.login(pap("ann", "hello"), bare)
    login.decision = await desk.decide(login)
    unproven(login)
    login.reply = encode_reply(3, login.request, bare.secret)
    await written(desk, login)
    kept = await areas.store.read(lambda tx: tx.all(lambda domain_id: domain_id, "select domain_id from events"))
    assert kept == [0]


async def test_what_is_written_of_accounting(desk: Desk) -> None:
    """An accounting record is written with status, session, user, station and every attribute in octets, and is
    answered like a login.
    """
    body = attributes(
        ACCT_STATUS_TYPE=(2).to_bytes(4), ACCT_SESSION_ID=b"\xff session", USER_NAME=b"ann", CALLING_STATION_ID=b"02-01"
    )
    request = opened(accounting(body))
    known = Entry((SOURCE, request.identifier), request.authenticator)
    record = AccountingRecord(request, desk.client, SOURCE, desk.areas.clock(), desk.answers, known)
    record.domain_id, record.user = desk.areas.domain, "ann"
    record.device = desk.areas.devices.sightings.device(request, SOURCE[0], desk.client, desk.areas.domain, record.at)
    record.reply = encode_reply(ACCOUNTING_RESPONSE, request, desk.client.secret)
    await written(desk, record)
    kept = await desk.areas.store.read(
        lambda tx: tx.all(
            lambda **row: row,
            "select domain_id, device_id, status_type, session_id, user_name, station, attributes "
            "from accounting_records",
        )
    )
    assert kept == [
        {
            "domain_id": desk.areas.domain, "device_id": record.device.id, "status_type": 2,
            "session_id": b"\xff session", "user_name": "ann", "station": "02-01", "attributes": body,
        }
    ]  # fmt: skip
    assert desk.answers.sent == [record]
    assert await count(desk.areas, "events") == 0


async def test_an_accounting_record_that_is_sent_again(desk: Desk) -> None:
    """A retransmitted accounting record, with another identifier and a delay, is answered, and written and counted
    once.
    """

    def record(identifier: int, delay: int) -> AccountingRecord:
        body = attributes(ACCT_STATUS_TYPE=(1).to_bytes(4), ACCT_SESSION_ID=b"s", ACCT_DELAY_TIME=delay.to_bytes(4))
        request = opened(accounting(body, identifier=identifier))
        known = Entry((SOURCE, identifier), request.authenticator)
        made = AccountingRecord(request, desk.client, SOURCE, desk.areas.clock(), desk.answers, known)
        made.domain_id = desk.areas.domain
        made.device = desk.areas.devices.sightings.device(request, SOURCE[0], desk.client, made.domain_id, made.at)
        made.reply = encode_reply(ACCOUNTING_RESPONSE, request, desk.client.secret)
        return made

    first, second, third = record(1, 0), record(2, 5), record(3, 10)
    await written(desk, first, second)
    await written(desk, third)
    assert desk.answers.sent == [first, second, third]
    assert [await count(desk.areas, table) for table in ("accounting_records", "sessions")] == [1, 1]
    assert desk.areas.sample("sallyport_accounting_records_total", status="start") == 1


async def test_nothing_is_answered_before_it_is_on_disk(desk: Desk) -> None:
    """At the moment of the answer another reader of the file sees the event, device and answer."""

    class Checking(Answers):
        """An exchange that reads the file at the moment of the answer."""

        seen: tuple[int, ...] = ()

        def committed(self, entry: Answered, now: int) -> None:
            with closing(sqlite3.connect(desk.areas.store.path)) as other:
                counted = (
                    "(select count(*) from events), (select count(*) from devices), (select count(*) from answers)"
                )
                self.seen = other.execute(f"select {counted}").fetchone()
            super().committed(entry, now)

    desk.answers = Checking()
    await written(desk, await desk.ready(pap("ann", "hello", SWITCH)))
    assert desk.answers.seen == (1, 1, 1)


async def test_a_busy_journal_shares_transactions(desk: Desk) -> None:
    """Entries that arrive during a transaction share the next one, at most 1000, in order. Every entry is answered."""
    logins = [await desk.ready(pap("ann", "hello", SWITCH)) for _ in range(2500)]
    await written(desk, *logins)
    assert desk.answers.sent == logins
    assert await count(desk.areas, "answers") == -(-2500 // MOST)
    assert [event.id for event in reversed(await events(desk.areas))] == list(range(1, 2501))


async def test_tenants_take_turns(desk: Desk) -> None:
    """A login of another tenant is part of the next transaction, however many logins wait before it."""
    other = await desk.areas.client("192.0.2.9/32", tenant=await desk.areas.tenancy.ensure_tenant(2, 1))
    flood = [await desk.ready(pap("ann", "hello", SWITCH)) for _ in range(2 * MOST)]
    login = await desk.ready(pap("ann", "hello", SWITCH))
    login.client = other
    await written(desk, *flood, login)
    assert desk.answers.sent.index(login) < MOST


async def test_first_sightings_make_a_transaction_short(desk: Desk) -> None:
    """A login with a new device counts as many logins, so that few of them share a transaction."""
    names = [b"switch-%d" % number for number in range(2 * MOST // LONG)]
    logins = [await desk.ready(pap("ann", "hello", attributes(NAS_IDENTIFIER=name))) for name in names]
    await written(desk, *logins)
    assert desk.answers.sent == logins
    assert await count(desk.areas, "answers") > 2


async def test_an_answer_is_kept_from_when_it_was_decided(desk: Desk) -> None:
    """A login that has waited a minute for its second factor gets the same answer after a restart as any other."""
    login = await desk.ready(pap("ann", "hello", SWITCH))
    desk.areas.clock.pass_by(60)
    await written(desk, login)
    assert [kept.reply for kept in await desk.areas.journal.recent()] == [login.reply]


async def test_unlike_logins_share_a_transaction(desk: Desk) -> None:
    """Each event has its own method, outcome and Service-Type, whatever else shares its transaction."""
    asked = attributes(SERVICE_TYPE=bytes((0, 0, 0, 1)))
    users = [("ann", "hello", b""), ("ann", "wrong", b""), ("ann", "hello", asked), ("nobody", "hello", asked)]
    logins = [await desk.ready(pap(user, password, SWITCH + more)) for user, password, more in users]
    await written(desk, *logins, *logins[:2])
    found = await desk.areas.store.read(
        lambda tx: tx.rows("select user_name, applied_decision, reason, service_type from events order by 1, 2, 3, 4")
    )
    assert found == [
        ("ann", "accept", "no provider", None),
        ("ann", "accept", "no provider", None),
        ("ann", "accept", "no provider", 1),
        ("ann", "reject", "wrong password", None),
        ("ann", "reject", "wrong password", None),
        ("nobody", "reject", "unknown user", 1),
    ]
    assert len(await events(desk.areas)) == len(found)


async def test_one_registration_for_many_logins(desk: Desk) -> None:
    """A new device in several logins of one transaction is one row, one count in the metrics and one log event."""
    logins = [await desk.ready(pap("ann", "hello", SWITCH)) for _ in range(10)]
    await written(desk, *logins)
    await written(desk, await desk.ready(pap("ann", "hello", SWITCH)))
    assert [await count(desk.areas, table) for table in ("devices", "stations")] == [1, 1]
    assert desk.areas.sample("sallyport_devices_registered_total", domain=str(desk.areas.domain)) == 1


async def test_a_store_that_fails_answers_nobody(desk: Desk) -> None:
    """An error in the middle of a transaction undoes all of it: no event, no device and no answer. The same device is
    new again, and is written with the next login.
    """
    await desk.areas.store.write(lambda tx: tx.execute("alter table answers rename to gone"))
    login = await desk.ready(pap("ann", "hello", SWITCH))
    await written(desk, login)
    assert (desk.answers.sent, desk.answers.dropped) == ([], [login])
    assert (login.device.id, login.behind and login.behind.stored) == (None, False)
    assert [await count(desk.areas, table) for table in ("events", "devices", "stations", "device_history")] == [0] * 4
    await desk.areas.store.write(lambda tx: tx.execute("alter table gone rename to answers"))
    again = await desk.ready(pap("ann", "hello", SWITCH))
    assert again.device is login.device
    await written(desk, again)
    assert desk.answers.sent == [again]
    assert [await count(desk.areas, table) for table in ("events", "devices", "stations")] == [1, 1, 1]


class StepStore:
    """A store that runs submitted work when the test asks for it, on a connection of its own, and can fail to
    commit.
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
        """Run the waiting work, and from now on all work at once."""
        self.at_once = True
        for run in self._waiting:
            run()


async def test_a_failed_transaction_is_undone_before_the_next(desk: Desk) -> None:
    """A login that was gathered behind a failed transaction registers the device itself, so that its event names a
    stored device.
    """
    with closing(sqlite3.connect(desk.areas.store.path, isolation_level=None)) as connection:
        stepping = StepStore(desk.areas.store, connection)
        areas = desk.areas
        told = areas.devices.count_written, areas.sessions.count_records
        journal = Journal(stepping, *told, keep_answers_s=30, clock=areas.clock)
        lost, kept = [await desk.ready(pap("ann", "hello", SWITCH)) for _ in range(2)]
        journal.add(lost)
        journal.flush()
        journal.add(kept)
        journal.flush()
        stepping.fails = True
        stepping.step()
    assert (desk.answers.dropped, desk.answers.sent) == ([lost], [kept])
    (event,) = await events(desk.areas)
    row = await desk.areas.devices.one(desk.areas.domain, event.device_id)
    assert (row.nas_identifier, kept.device.id) == ("switch-1", row.id)
    assert await count(desk.areas, "stations") == 1


async def test_a_device_beyond_the_limit_of_its_tenant(desk: Desk) -> None:
    """Beyond the tenant's limit of devices, logins and accounting records are answered and written without a device and
    a session.
    """
    areas = desk.areas
    await areas.store.write(lambda tx: tx.execute("update limits set most = 0 where name = 'devices'"))
    login = await desk.ready(pap("ann", "hello", SWITCH))
    entries: list[Answered] = [login]
    for status in (1, 7):
        body = attributes(ACCT_STATUS_TYPE=status.to_bytes(4), ACCT_SESSION_ID=b"s", NAS_IDENTIFIER=b"switch-1")
        request = opened(accounting(body, identifier=status))
        known = Entry((SOURCE, status), request.authenticator)
        record = AccountingRecord(request, desk.client, SOURCE, areas.clock(), desk.answers, known)
        record.domain_id, record.device = areas.domain, login.device
        record.reply = encode_reply(ACCOUNTING_RESPONSE, request, desk.client.secret)
        entries.append(record)
    await written(desk, *entries)
    assert (desk.answers.sent, login.device.id) == (entries, None)
    assert [event.device_id for event in await events(areas)] == [0]
    kept = await areas.store.read(lambda tx: tx.rows("select device_id from accounting_records"))
    assert kept == [(0,), (0,)]
    tables = ("devices", "stations", "sessions", "device_restarts")
    assert [await count(areas, table) for table in tables] == [0, 0, 0, 0]


async def test_an_answer_that_fails_stops_no_other(desk: Desk) -> None:
    """An exception in one exchange does not stop the other answers."""

    class Broken(Answers):
        """An exchange that cannot send."""

        def committed(self, entry: Answered, now: int) -> None:
            raise RuntimeError("of the exchange")

    first, second = [await desk.ready(pap("ann", "hello", SWITCH)) for _ in range(2)]
    first.exchange = Broken()
    await written(desk, first, second)
    assert desk.answers.sent == [second]
    assert len(await events(desk.areas)) == 2


# --- answers that outlive a restart -------------------------------------------------------------------------------


@dataclass
class Packed:
    """The fields of an entry that `pack` reads."""

    exchange: Answers
    source: tuple[str, int]
    request: object
    reply: bytes
    known: Entry


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
    """Listener, address, port, identifier, authenticator, octets and signedness are unpacked in order."""
    packed, kept = b"", []
    for listener, host, port, identifier, authenticator, body, signed in answers:
        reply = bytes((2, identifier)) + (20 + len(body)).to_bytes(2) + bytes(16) + body
        request = opened(access_request(identifier=identifier, authenticator=authenticator))
        known = Entry(((host, port), identifier), authenticator, signed=signed)
        entry = Packed(Answers(listener), (host, port), request, reply, known)
        packed += pack(entry)  # type: ignore[arg-type]
        kept.append(KeptAnswer(listener, (host, port), identifier, authenticator, reply, signed))
    assert unpack(packed) == kept


async def test_answers_are_kept_for_their_time(desk: Desk, mock_clock: trio.testing.MockClock) -> None:
    """Answers are kept as long as a retransmission may arrive, the oldest first. They are deleted after that, and their
    events stay.
    """
    mock_clock.rate = 1
    first = await desk.ready(pap("ann", "hello"))
    await written(desk, first)
    desk.areas.clock.pass_by(20)
    second = await desk.ready(pap("ann", "wrong"))
    await written(desk, second)
    assert [kept.reply for kept in await desk.areas.journal.recent()] == [first.reply, second.reply]
    desk.areas.clock.pass_by(11)
    assert [kept.reply for kept in await desk.areas.journal.recent()] == [second.reply]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.areas.journal.purge)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(PURGE_S)
        while await count(desk.areas, "answers") != 1:
            await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert len(await events(desk.areas)) == 2


async def test_long_answers_fit(desk: Desk) -> None:
    """An answer with all the Proxy-State that a request can carry is stored unchanged."""
    login = await desk.ready(pap("ann", "hello", push_attribute(33, b"p" * 253) * 15))
    await written(desk, login)
    assert [kept.reply for kept in await desk.areas.journal.recent()] == [login.reply]
    assert isinstance(login, Login)
