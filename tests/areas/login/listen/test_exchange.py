"""Tests of the way from a datagram to its answer: dropped packets, duplicates, delays and limits."""

import time

import pytest
import trio
import trio.testing
from prometheus_client import CollectorRegistry

from sallyport.areas.domains.domain import UnknownStations
from sallyport.areas.domains.repo import Update
from sallyport.areas.events.event import EventQuery, EventRow
from sallyport.areas.events.service import Events
from sallyport.areas.login.decision import refuse
from sallyport.areas.login.listen import causes
from sallyport.areas.login.listen.exchange import Counts, RadiusService
from sallyport.areas.login.listen.pending import BEGIN_AT_ONCE
from sallyport.areas.login.listen.senders import cause
from sallyport.areas.login.login import Decision, Login, Reason
from sallyport.areas.login.pipeline import Pipeline
from sallyport.base.clock import SECOND
from sallyport.base.errors import StoreError
from sallyport.metrics import RadiusMetrics
from sallyport.radius.attributes import push_attribute
from sallyport.radius.duplicates import Source
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT, ACCOUNTING_RESPONSE, SharedSecret, decode_reply
from tests.areas import SECRET, Areas
from tests.areas.login.listen.conftest import NAS, WINDOW_S, Wire
from tests.packets import access_request, accounting, attributes, chap, pap, status_server
from tests.waiting import until

STARTED = attributes(ACCT_STATUS_TYPE=(1).to_bytes(4), ACCT_SESSION_ID=b"s1", NAS_IDENTIFIER=b"switch-1")


async def events(areas: Areas) -> list[EventRow]:
    """Return the domain's events, newest first."""
    return (await Events(areas.store).page(EventQuery(areas.domain, limit=1000)))[0]


# --- answers ------------------------------------------------------------------------------------------------------


async def test_right_and_wrong_passwords(wire: Wire) -> None:
    """Accept and Reject are signed and are sent to the source of the request. Each is recorded as an event."""
    assert await wire.ask(pap("ann", "hello")) == ACCESS_ACCEPT
    assert await wire.ask(pap("ann", "wrong", identifier=1)) == ACCESS_REJECT
    assert await wire.ask(chap("ann", "hello"), source=("192.0.2.1", 50000)) == ACCESS_ACCEPT
    assert [(each.user_name, each.applied_decision, each.method) for each in await events(wire.areas)] == [
        ("ann", "accept", "chap"), ("ann", "reject", "pap"), ("ann", "accept", "pap"),
    ]  # fmt: skip
    assert wire.auth.in_flight == 0


async def test_a_clock_that_is_set_back_changes_no_duration(wire: Wire) -> None:
    """A login is decided after the clock was set back by an hour. Its latency is that of the monotonic clock, and its
    duration in the metric is not below zero."""
    at, began = wire.areas.clock() + 3600 * SECOND, time.monotonic()
    wire.auth.receive([(pap("ann", "hello"), NAS, at, began)])
    wire.areas.journal.flush()
    await wire.take()
    (event,) = await events(wire.areas)
    assert 0 <= event.latency_us <= (time.monotonic() - began) * SECOND
    assert wire.areas.sample("sallyport_radius_request_duration_seconds_sum", type="Access-Accept") == 0


async def test_an_answer_brings_proxy_states_back(wire: Wire) -> None:
    """Accepts, rejects and accounting responses contain all Proxy-State attributes unchanged and in order."""
    states = push_attribute(33, b"first") + push_attribute(33, b"") + push_attribute(33, b"\0last")
    for datagram, acct in ((pap("ann", "hello", states), False), (accounting(STARTED + states), True)):
        wire.put(datagram, acct=acct)
        reply, _ = await wire.take()
        assert reply.endswith(states)


@pytest.mark.parametrize("setting", UnknownStations)
async def test_the_session_of_an_unknown_station_adds_no_station(wire: Wire, setting: UnknownStations) -> None:
    """The accounting of stations that a rule has admitted unlisted does not get them into the inventory, because each
    may have made up its address. The sessions of listed stations and of users do."""
    areas = wire.areas
    await areas.domains.update(areas.domain, Update(settings={"unknown_stations": setting}))
    await areas.bypass.add(areas.domain, ["020000000001"])
    for number, user in enumerate(("02-00-00-00-00-01", "02-00-00-00-00-02", "ann")):
        station = attributes(USER_NAME=user.encode(), CALLING_STATION_ID=b"02-00-00-00-00-0%d" % (number + 1))
        session = attributes(ACCT_STATUS_TYPE=(1).to_bytes(4), ACCT_SESSION_ID=b"s%d" % number)
        assert await wire.ask(accounting(session + station, identifier=number), acct=True) == ACCOUNTING_RESPONSE
    found = await areas.store.read(lambda tx: tx.rows("select station from stations order by 1"))
    expected = ["1", "3"] if setting is UnknownStations.RULES else ["1", "2", "3"]
    assert [str(name)[-1] for (name,) in found] == expected


async def test_an_unknown_sender_is_dropped_and_counted(wire: Wire) -> None:
    """An address without a RADIUS client gets no answer, whatever it sends. The address is in the table of senders."""
    wire.put(pap("ann", "hello"), b"", b"\xff" * 5000, source=("198.51.100.1", 1))
    await wire.silence()
    assert wire.dropped("unknown_client") == 3
    (sender,) = wire.senders.all()
    assert (sender.host, sender.packets, sender.reason) == ("198.51.100.1", 3, "unknown_client")
    assert await events(wire.areas) == []


async def test_a_wrong_secret_is_no_login(wire: Wire) -> None:
    """A signed request with a wrong secret is dropped.

    An unsigned request with a wrong secret is recorded as an event without a device, and the reason names both possible
    causes. If the decrypted password is plain text, the reason is only a wrong password. A successful login removes the
    sender from the list of senders.
    """
    wire.put(pap("ann", "hello", secret=b"another secret"))
    await wire.silence()
    assert wire.dropped("bad_message_authenticator") == 1
    wire.put(pap("ann", "hello", secret=b"another secret", signed=False))
    assert (await wire.take())[0][0] == ACCESS_REJECT
    (event,) = await events(wire.areas)
    assert (event.reason, event.device_id) == ("wrong password or wrong shared secret", 0)
    assert [sender.reason for sender in wire.senders.all()] == ["garbled_password", "bad_message_authenticator"]
    assert await wire.ask(pap("ann", "wrong", identifier=2, signed=False)) == ACCESS_REJECT
    assert next(event.reason for event in await events(wire.areas)) == "wrong password"
    reasons = {sender.reason for sender in wire.senders.all()}
    assert reasons == {"unverified", "garbled_password", "bad_message_authenticator"}
    assert await wire.areas.store.read(lambda tx: tx.value(int, "select count(*) from devices")) == 0
    assert await wire.ask(pap("ann", "hello", identifier=3)) == ACCESS_ACCEPT
    assert wire.senders.all() == []


async def test_unknown_codes_of_a_port(wire: Wire) -> None:
    """Accounting on the authentication port, authentication on the accounting port and unknown codes are dropped."""
    wire.put(accounting(STARTED))
    wire.put(pap("ann", "hello"), acct=True)
    wire.put(bytes((40, 1)) + (20).to_bytes(2) + bytes(16))
    await wire.silence()
    assert (wire.dropped("unknown_type"), wire.dropped("unknown_type", "acct")) == (2, 1)


async def test_accounting_must_prove_itself(wire: Wire) -> None:
    """Accounting with a wrong secret is dropped. With the right secret it is answered and registers its device."""
    wire.put(accounting(STARTED, secret=b"another"), acct=True)
    await wire.silence()
    assert wire.dropped("bad_authenticator", "acct") == 1
    assert await wire.ask(accounting(STARTED), acct=True) == ACCOUNTING_RESPONSE
    kept = await wire.areas.store.read(lambda tx: tx.value(int, "select count(*) from accounting_records"))
    devices = await wire.areas.store.read(lambda tx: tx.all(lambda n: n, "select nas_identifier as n from devices"))
    assert (kept, devices) == (1, ["switch-1"])


async def test_a_client_without_a_domain(wire: Wire) -> None:
    """If a client has no domain, its logins are rejected and its accounting is dropped.

    Neither adds anything to the inventory.
    """
    await wire.areas.client("192.0.2.7/32", tenant=await wire.areas.tenancy.ensure_tenant(2, 1))
    source = ("192.0.2.7", 40000)
    assert await wire.ask(pap("ann", "hello"), source=source) == ACCESS_REJECT
    wire.put(accounting(STARTED), source=source, acct=True)
    await wire.silence()
    assert wire.acct.in_flight == 0
    assert await wire.areas.store.read(lambda tx: tx.value(int, "select count(*) from devices")) == 0


async def test_a_changed_client_holds_for_the_next_packet(wire: Wire) -> None:
    """A new secret applies to the next packet, and so does the removal of a client."""
    areas = wire.areas
    client = areas.client_named("nas")
    await areas.clients.update(areas.tenant, client.id, {}, secret=b"a new secret of theirs")
    wire.put(pap("ann", "hello"))
    await wire.silence()
    assert await wire.ask(pap("ann", "hello", secret=b"a new secret of theirs"), secret=b"a new secret of theirs") == 2
    await areas.clients.delete(areas.tenant, client.id)
    wire.put(pap("ann", "hello", secret=b"a new secret of theirs"))
    await wire.silence()
    assert wire.dropped("unknown_client") == 1


async def test_malformed_passwords_get_no_answer(wire: Wire) -> None:
    """A User-Password of 15 octets is dropped, whether or not the user is in memory.

    The request does not stay pending.
    """
    body = attributes(USER_NAME=b"ann", USER_PASSWORD=b"x" * 15)
    for number in range(3):
        wire.put(access_request(body, identifier=number))
        await wire.silence()
    assert (wire.dropped("malformed"), wire.auth.in_flight, wire.waiting.now) == (3, 0, 0)
    assert await wire.ask(pap("ann", "hello")) == ACCESS_ACCEPT


async def test_status_server_is_answered_at_once(wire: Wire) -> None:
    """Status-Server is answered with the code of the port (RFC 5997), is not recorded, and is never a duplicate."""
    datagram = status_server()
    for _ in range(2):
        assert await wire.ask(datagram) == ACCESS_ACCEPT
    assert await wire.ask(status_server(), acct=True) == ACCOUNTING_RESPONSE
    wire.put(status_server(secret=b"another"))
    await wire.silence()
    assert await events(wire.areas) == []
    assert wire.dropped("duplicate") == 0


async def test_status_server_is_not_answered_while_the_store_fails(wire: Wire) -> None:
    """While the store fails, Status-Server gets no answer, so that a proxy changes to another server."""
    wire.ready = False
    wire.put(status_server())
    await wire.silence()
    assert wire.dropped("internal_error") == 1
    wire.ready = True
    assert await wire.ask(status_server()) == ACCESS_ACCEPT


# --- duplicates ---------------------------------------------------------------------------------------------------


async def test_a_duplicate_in_flight_is_dropped(wire: Wire) -> None:
    """Retransmissions of a pending request are counted and dropped. One answer is sent."""
    datagram = pap("ann", "hello")
    wire.put(datagram, datagram, datagram)
    await wire.take()
    await wire.silence()
    assert wire.dropped("duplicate") == 2
    assert len(await events(wire.areas)) == 1


async def test_an_answered_duplicate_gets_the_same_octets(wire: Wire) -> None:
    """During the whole window after the answer a duplicate gets the same octets, and no event is recorded.

    After the window it is a new login.
    """
    datagram = pap("ann", "hello")
    wire.put(datagram)
    first, _ = await wire.take()
    for seconds in (0, 5, WINDOW_S - 5.1):
        wire.areas.clock.pass_by(seconds)
        wire.put(datagram)
        assert (await wire.take())[0] == first
    assert len(await events(wire.areas)) == 1
    wire.areas.clock.pass_by(3 * WINDOW_S)
    wire.put(datagram)
    await wire.take()
    assert len(await events(wire.areas)) == 2


async def test_a_new_request_replaces_an_old_one(wire: Wire) -> None:
    """If a request has the port and identifier of a pending request but another authenticator, it replaces that
    request. The old request is recorded and not answered. The new one is answered."""
    old, new = pap("ann", "wrong"), pap("ann", "hello")
    wire.put(old, new)
    reply, _ = await wire.take()
    assert decode_reply(reply, new, SharedSecret(SECRET))[0] == ACCESS_ACCEPT
    await wire.silence()
    assert len(await events(wire.areas)) == 2
    assert wire.auth.in_flight == 0
    wire.put(new)
    assert (await wire.take())[0] == reply


async def test_requests_are_distinguished_by_socket(wire: Wire) -> None:
    """A request with another port, another identifier or on another socket of the service is a new request."""
    datagram = pap("ann", "hello")
    second = wire.exchange(RadiusService.AUTHENTICATION, 2)
    wire.put(datagram)
    wire.put(datagram, source=("192.0.2.1", 40001))
    wire.put(datagram, exchange=second)
    for _ in range(3):
        await wire.take()
    assert (wire.dropped("duplicate"), len(await events(wire.areas))) == (0, 3)


@pytest.mark.parametrize("signed", [True, False], ids=["signed", "unsigned"])
async def test_kept_answers_are_known_after_a_restart(wire: Wire, signed: bool) -> None:
    """After a restart a retransmission gets the octets of the first answer. On another socket it is a new request."""
    passwords = ("hello", "wrong")
    datagrams = [pap("ann", password, identifier=n, signed=signed) for n, password in enumerate(passwords)]
    replies = []
    for datagram in datagrams:
        wire.put(datagram)
        replies.append((await wire.take())[0])
    kept = await wire.areas.journal.recent()
    same, other = wire.exchange(RadiusService.AUTHENTICATION, 0), wire.exchange(RadiusService.AUTHENTICATION, 5)
    for exchange in (same, other):
        exchange.restore(kept)
    for datagram, reply in zip(datagrams, replies, strict=True):
        wire.put(datagram, exchange=same)
        assert (await wire.take())[0] == reply
    assert len(await events(wire.areas)) == 2
    wire.put(datagrams[0], exchange=other)
    await wire.take()
    assert len(await events(wire.areas)) == 3


# --- the store, limits, delays ------------------------------------------------------------------------------------


async def test_a_login_that_cannot_be_written(wire: Wire) -> None:
    """A login that cannot be written gets no answer. Its retransmission is decided again."""
    datagram = pap("ann", "hello")
    await wire.areas.store.write(lambda tx: tx.execute("alter table events rename to gone"))
    wire.put(datagram)
    await wire.silence()
    assert (wire.dropped("internal_error"), wire.auth.in_flight) == (1, 0)
    assert [cause(each, each.client).verdict for each in wire.senders.all()] == [causes.INTERNAL]
    await wire.areas.store.write(lambda tx: tx.execute("alter table gone rename to events"))
    assert await wire.ask(datagram) == ACCESS_ACCEPT
    assert wire.senders.all() == []
    assert len(await events(wire.areas)) == 1


async def test_a_login_whose_user_cannot_be_read(wire: Wire) -> None:
    """A login whose user cannot be read is dropped. Its retransmission is decided again."""
    await wire.areas.store.write(lambda tx: tx.execute("alter table endpoint_users rename to gone"))
    datagram = pap("ann", "hello")
    wire.put(datagram)
    await until(lambda: wire.dropped("internal_error") == 1)
    await wire.silence()
    assert (wire.auth.in_flight, wire.waiting.now) == (0, 0)
    assert [cause(each, each.client).verdict for each in wire.senders.all()] == [causes.INTERNAL]
    await wire.areas.store.write(lambda tx: tx.execute("alter table gone rename to endpoint_users"))
    assert await wire.ask(datagram) == ACCESS_ACCEPT
    with pytest.raises(StoreError):
        await wire.areas.store.read(lambda tx: tx.value(int, "select 1 from gone"))


async def test_too_many_wait(areas: Areas) -> None:
    """Requests beyond the share of a client are dropped and counted, and do not stay pending.

    A retransmission is accepted when there is room.
    """
    await areas.client(name="nas")
    for number in range(4):
        await areas.add_user(areas.domain, f"user{number}", b"hello")
    async with trio.open_nursery() as nursery:
        wire = Wire(areas, nursery, limit=6)
        datagrams = [pap(f"user{number}", "hello", identifier=number) for number in range(4)]
        wire.put(*datagrams)
        assert (wire.waiting.now, wire.dropped("overload"), wire.auth.in_flight) == (3, 1, 3)
        assert {(await wire.take())[0][1] for _ in range(3)} == {0, 1, 2}
        await wire.silence()
        assert await wire.ask(datagrams[3]) == ACCESS_ACCEPT
        nursery.cancel_scope.cancel()


async def test_a_flood_of_unsigned_requests_leaves_room(areas: Areas) -> None:
    """Unsigned requests, including delayed rejects, have a quarter of the places, and one client has at most half of
    these. Signed requests have the other places."""
    await areas.client(name="nas", require_message_authenticator="no")
    await areas.add_user(areas.domain, "ann", b"hello")
    async with trio.open_nursery() as nursery:
        wire = Wire(areas, nursery, limit=40, reject_delay_s=100)
        wire.put(*[pap("ann@nowhere", "x", identifier=number, signed=False) for number in range(50)])
        await wire.silence()
        assert (len(wire.auth.delayed), wire.dropped("overload")) == (5, 45)
        assert await wire.ask(pap("ann", "hello", identifier=99)) == ACCESS_ACCEPT
        nursery.cancel_scope.cancel()


async def test_a_burst_of_one_source_does_not_hold_up_another(areas: Areas, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that cannot be decided at once begin in turns: a request that arrives after many requests of another
    source does not wait for all of them."""
    order, check = list[Source](), Pipeline.check

    async def noted(pipeline: Pipeline, login: Login) -> Decision | None:
        order.append(login.arrival.source)
        return await check(pipeline, login)

    monkeypatch.setattr(Pipeline, "check", noted)
    await areas.client(name="nas")
    async with trio.open_nursery() as nursery:
        wire, other = Wire(areas, nursery, limit=1000), ("192.0.2.1", 50000)
        wire.put(*(pap(f"user{number}", "x", identifier=number) for number in range(10 * BEGIN_AT_ONCE)))
        wire.put(pap("ann", "x"), source=other)
        await until(lambda: len(order) == 10 * BEGIN_AT_ONCE + 1)
        nursery.cancel_scope.cancel()
    assert order.index(other) <= BEGIN_AT_ONCE


async def test_a_reject_waits_for_its_delay(areas: Areas, mock_clock: trio.testing.MockClock) -> None:
    """A reject is recorded at once and sent after its delay.

    A retransmission during the delay is a duplicate. An accept is not delayed. When the service stops, it sends delayed
    rejects at once.
    """
    mock_clock.rate = 1
    await areas.client(name="nas")
    await areas.add_user(areas.domain, "ann", b"hello")
    wrong = [pap("ann", "wrong", identifier=number) for number in range(3)]
    async with trio.open_nursery() as nursery:
        wire = Wire(areas, nursery, reject_delay_s=100)
        async with trio.open_nursery() as delayed:
            delayed.start_soon(wire.auth.delayed.run)
            wire.put(wrong[0])
            await wire.silence()
            assert (await events(areas))[0].decision == "reject"
            wire.put(wrong[0])
            await wire.silence()
            assert wire.dropped("duplicate") == 1
            assert await wire.ask(pap("ann", "hello", identifier=9)) == ACCESS_ACCEPT
            mock_clock.jump(60)
            wire.put(wrong[1])
            await wire.silence()
            mock_clock.jump(41)
            assert (await wire.take())[0][:2] == bytes((ACCESS_REJECT, 0))
            wire.put(wrong[2])
            await wire.silence()
            assert wire.auth.in_flight == 2
            delayed.cancel_scope.cancel()
        assert [(await wire.take())[0][1] for _ in range(2)] == [1, 2]
        assert (wire.auth.in_flight, wire.waiting.now) == (0, 0)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("reason", "label"),
    [
        (Reason.FIRST_FACTOR_UNREACHABLE, "unreachable"),
        (Reason.FIRST_FACTOR_UNREADABLE, "unreadable"),
        (Reason.FIRST_FACTOR_UNAVAILABLE, "unavailable"),
    ],
)
async def test_an_outage_of_the_first_factor_is_counted(wire: Wire, reason: Reason, label: str) -> None:
    """A login that the first factor could not check is counted apart from wrong passwords, in both modes."""
    areas = wire.areas
    counts = Counts(RadiusService.AUTHENTICATION, "", RadiusMetrics(CollectorRegistry()), areas.login_metrics)
    domain = areas.domains.table.by_id[areas.domain]
    for each in (reason, Reason.WRONG_PASSWORD):
        counts.decided(domain.id, refuse(each, domain))
    assert areas.sample("sallyport_first_factor_failures_total", domain=str(domain.id), reason=label) == 1


async def test_what_is_counted(wire: Wire) -> None:
    """The metrics count requests and responses by type, client requests by outcome, and decisions by domain
    and mode."""
    await wire.ask(pap("ann", "hello"))
    await wire.ask(pap("ann", "wrong", identifier=1))
    await wire.ask(status_server(identifier=2))
    sample, domain = wire.areas.sample, str(wire.areas.domain)
    assert sample("sallyport_radius_requests_total", listener="auth", type="Access-Request") == 2
    assert sample("sallyport_radius_requests_total", listener="auth", type="Status-Server") == 1
    assert sample("sallyport_radius_responses_total", listener="auth", type="Access-Accept") == 2
    assert sample("sallyport_radius_responses_total", listener="auth", type="Access-Reject") == 1
    assert sample("sallyport_client_requests_total", client="nas", outcome="Access-Reject") == 1
    assert sample("sallyport_mfa_decisions_total", domain=domain, mode="monitor", decision="would_deny") == 1
    assert sample("sallyport_mfa_decisions_total", domain=domain, mode="monitor", decision="deny") == 1
    assert sample("sallyport_radius_request_duration_seconds_count", type="Access-Accept") == 1


async def test_decisions_are_counted_by_the_tag_that_the_setting_names(wire: Wire) -> None:
    """The value of the client's tag is the label. Without the tag, the label is `none`."""
    metrics = wire.areas.login_metrics
    assert await wire.ask(pap("ann", "hello")) == ACCESS_ACCEPT
    metrics.tag_key = "site"
    wire.auth = wire.exchange(RadiusService.AUTHENTICATION, 0)
    assert await wire.ask(pap("ann", "hello", identifier=1)) == ACCESS_ACCEPT
    (client,) = wire.areas.clients.of_tenant(wire.areas.tenant)
    await wire.areas.clients.update(wire.areas.tenant, client.id, {}, tags=["site=Berlin/Floor 2", "owner=net"])
    assert await wire.ask(pap("ann", "hello", identifier=2)) == ACCESS_ACCEPT
    (family,) = metrics.tagged.collect()
    samples = {sample.labels["tag"]: sample.value for sample in family.samples}
    assert samples == {"none": 1, "Berlin/Floor 2": 1}
