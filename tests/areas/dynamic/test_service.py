"""Dynamic authorization: which sessions are selected, which NAS gets the requests, and what their results are."""

import json
from functools import partial

import pytest
import trio

from sallyport.areas.dynamic import repo
from sallyport.areas.dynamic.repo import Target
from sallyport.areas.dynamic.sender import RequestOutcome, Sender
from sallyport.areas.dynamic.service import MAX_SESSIONS, DynamicAuthorization, Results
from sallyport.areas.policy.rules.rule import Reply
from sallyport.areas.sessions.session import SessionQuery
from sallyport.base.errors import Conflict, Invalid, NotFound
from sallyport.metrics import DynamicMetrics
from sallyport.radius import attributes as names
from sallyport.radius.attributes import push_attribute
from sallyport.radius.retransmission import Timers
from tests.areas import Areas, dictionary, only_sqlite
from tests.areas.dynamic.nas import FakeNas, Script, ack, nak, running_nas, silent
from tests.areas.dynamic.world import INTERIM, STOP, device, session, trail
from tests.areas.sessions.test_service import plans
from tests.waiting import until

LOCAL = "127.0.0.1"
AP = {"NAS_IDENTIFIER": b"ap-1"}
ANN = {"USER_NAME": "ann", "CALLING_STATION_ID": "02-00-00-00-00-01"}


def outcomes(asked: Results) -> list[str]:
    """Return the outcome of each session."""
    return [each.answer.outcome.value for each in asked.results]


async def test_a_session_is_identified_by_common_attributes(areas: Areas) -> None:
    """A request identifies the session by the user, Acct-Session-Id, station and name of the NAS. It has no attribute
    that a NAS might not know.
    """
    async with running_nas(ack) as nas:
        client = await areas.client(LOCAL, coa_port=nas.port)
        found = await session(areas, await device(areas, client, LOCAL, **AP), "s1", NAS_PORT=7, **ANN)
        assert outcomes(await areas.dynamic.disconnect(found, areas.domain)) == ["ack"]
        assert nas.requests[0][0] == 40
        sent = nas.values()
        del sent[names.MESSAGE_AUTHENTICATOR], sent[names.EVENT_TIMESTAMP]
        assert sent == {
            names.NAS_IDENTIFIER: b"ap-1",
            names.USER_NAME: b"ann",
            names.ACCT_SESSION_ID: b"s1",
            names.CALLING_STATION_ID: b"02-00-00-00-00-01",
        }


async def test_a_session_without_a_station_is_identified_by_port(areas: Areas) -> None:
    """If a session has no station, the request has the port and the framed address. A NAS without a name is identified
    by its address.
    """
    facts = {"NAS_PORT": 7, "FRAMED_IP_ADDRESS": bytes((10, 0, 0, 9))}
    async with running_nas(ack) as nas:
        client = await areas.client(LOCAL, coa_port=nas.port)
        place = await device(areas, client, LOCAL, NAS_IP_ADDRESS=bytes((10, 1, 2, 3)), **AP)
        await areas.dynamic.disconnect(await session(areas, place, "s1", **facts))
        sent = nas.values()
        assert sent[names.NAS_PORT] == (7).to_bytes(4)
        assert sent[names.FRAMED_IP_ADDRESS] == bytes((10, 0, 0, 9))
        assert (sent[names.NAS_IP_ADDRESS], sent[names.NAS_IDENTIFIER]) == (bytes((10, 1, 2, 3)), b"ap-1")
        assert names.USER_NAME not in sent
        bare = await device(areas, client, LOCAL, NAS_IPV6_ADDRESS=bytes(15) + b"\1")
        await areas.dynamic.disconnect(await session(areas, bare, "s2"))
        assert nas.values()[names.NAS_IPV6_ADDRESS] == bytes(15) + b"\1"
        assert names.NAS_IDENTIFIER not in nas.values()


async def test_the_result_is_reported(areas: Areas) -> None:
    """The result of a request is reported in the answer, the metrics and the audit trail."""
    async with running_nas(nak(503)) as nas:
        client = await areas.client(LOCAL, coa_port=nas.port)
        found = await session(areas, await device(areas, client, LOCAL, **AP), "s1", **ANN)
        (result,) = (await areas.dynamic.disconnect(found)).results
    assert (result.answer.outcome, result.answer.error_cause) == (RequestOutcome.NAK, 503)
    assert result.error == "Session-Context-Not-Found"
    assert areas.sample("sallyport_dynamic_requests_total", kind="disconnect", outcome="nak") == 1
    ((action, target, changes),) = await trail(areas)
    assert (action, target) == ("session.disconnect", f"session {found} ann")
    assert json.loads(changes) == {"outcome": [None, "nak"], "error": [None, "Session-Context-Not-Found"]}


@pytest.mark.parametrize(
    ("script", "state"), [(nak(503), "lost"), (nak(404), "live"), (ack, "live")], ids=["unknown", "other", "ack"]
)
async def test_a_session_that_the_nas_does_not_know_has_ended(areas: Areas, script: Script, state: str) -> None:
    """If the NAS answers that it has no such session, the session has ended, and the totals match. The end of a session
    is otherwise reported by accounting. A later record shows that the session is live.
    """
    async with running_nas(script) as nas:
        client = await areas.client(LOCAL, coa_port=nas.port)
        place = await device(areas, client, LOCAL, **AP)
        found = await session(areas, place, "s1", **ANN)
        await session(areas, place, "s2", **ANN)
        areas.clock.pass_by(60)
        for ask in (areas.dynamic.disconnect, partial(areas.dynamic.change, attributes=[Reply("Filter-Id", "guests")])):
            await ask(found, domain_id=areas.domain)
            rows, total = await areas.sessions.page(SessionQuery(areas.domain, live=state == "live"))
            assert {row.state for row in rows if row.id == found} == {state}
            assert total == len(rows) == (2 if state == "live" else 1)
    await session(areas, place, "s1", INTERIM, after_s=120, **ANN)
    assert (await areas.sessions.page(SessionQuery(areas.domain, live=True)))[1] == 2


async def test_an_unknown_error_cause_is_returned_as_its_number(areas: Areas) -> None:
    async with running_nas(nak(777)) as nas:
        client = await areas.client(LOCAL, coa_port=nas.port)
        found = await session(areas, await device(areas, client, LOCAL, **AP), "s1")
        (result,) = (await areas.dynamic.disconnect(found)).results
    assert result.error == "777"


def impatient(areas: Areas) -> DynamicAuthorization:
    """Return a dynamic authorization service with a short timeout."""
    timers = Timers(initial=0.01, most=0.02, duration=0.05)
    return DynamicAuthorization(
        areas.store,
        Sender(areas.http.egress, timers=timers, clock=areas.clock),
        areas.rules.translation,
        DynamicMetrics(type(areas.registry)()),
        areas.clock,
        domains=lambda: areas.domains.table,
        find_client=areas.clients.table.find,
        error_name=dictionary().attribute("Error-Cause").value_name,
    )


async def test_a_silent_nas_is_reported(areas: Areas) -> None:
    """If one NAS is silent, this is reported beside the answer of another NAS."""
    async with running_nas(silent) as dead, running_nas(ack, "127.0.0.2") as living:
        for nas in (dead, living):
            client = await areas.client(nas.address, coa_port=nas.port)
            await session(areas, await device(areas, client, nas.address, **AP), "s1", **ANN)
        asked = await impatient(areas).disconnect_user(areas.domain, "ann")
        assert outcomes(asked)[0] == "timeout"
        assert outcomes(asked)[1] in {"ack", "timeout"}  # on a busy machine the answer may miss the short timeout
    assert [action for action, _, _ in await trail(areas)] == ["session.disconnect"] * 2


async def test_a_request_goes_to_the_source_of_the_accounting(areas: Areas) -> None:
    """The request goes to the client that has sent the accounting. If that client accepts no requests, it goes to the
    NAS's own address, if that address is a client.
    """
    async with running_nas(ack) as forwarder, running_nas(ack, "127.0.0.2") as own:
        client = await areas.client(LOCAL, coa_port=forwarder.port)
        place = await device(areas, client, LOCAL, NAS_IP_ADDRESS=bytes((127, 0, 0, 2)))
        found = await session(areas, place, "s1", **ANN)
        assert outcomes(await areas.dynamic.disconnect(found)) == ["ack"]
        assert (len(forwarder.requests), len(own.requests)) == (1, 0)
        await areas.clients.update(areas.tenant, client.id, {"coa_port": 0})
        assert outcomes(await areas.dynamic.disconnect(found)) == ["unknown client"]
        await areas.client("127.0.0.2", coa_port=own.port)
        assert outcomes(await areas.dynamic.disconnect(found)) == ["ack"]
        assert (len(forwarder.requests), len(own.requests)) == (1, 1)


async def test_a_client_of_another_tenant_gets_no_request(areas: Areas) -> None:
    """A NAS may claim any address. So no request is sent to a client of another tenant, and the secret of that client
    is not used.
    """
    other = await areas.tenancy.ensure_tenant(2, 1)
    async with running_nas(ack, "127.0.0.2") as foreign:
        client = await areas.client(LOCAL, coa_port=0)
        place = await device(areas, client, LOCAL, NAS_IP_ADDRESS=bytes((127, 0, 0, 2)))
        await areas.client("127.0.0.2", tenant=other, coa_port=foreign.port)
        assert outcomes(await areas.dynamic.disconnect(await session(areas, place, "s1"))) == ["unknown client"]
        assert foreign.requests == []


async def test_a_session_that_cannot_be_ended_is_refused(areas: Areas) -> None:
    """A session of another domain is not found. A session that is over, or whose ID is used again, is a conflict."""
    branch = await areas.domains.add(areas.tenant, "branch")
    async with running_nas(ack) as nas:
        client = await areas.client(LOCAL, coa_port=nas.port)
        place = await device(areas, client, LOCAL, **AP)
        found = await session(areas, place, "s1", **ANN)
        for wrong, domain in ((found, branch), (found + 1000, areas.domain)):
            with pytest.raises(NotFound):
                await areas.dynamic.disconnect(wrong, domain)
        again = await session(areas, place, "s1", after_s=10, USER_NAME="bob")
        assert again != found
        with pytest.raises(Conflict):
            await areas.dynamic.disconnect(found, areas.domain)
        await session(areas, place, "s1", STOP, after_s=20)
        with pytest.raises(Conflict):
            await areas.dynamic.disconnect(again, areas.domain)
        assert nas.requests == []


async def test_all_live_sessions_of_a_user_are_found(areas: Areas) -> None:
    """Sessions are found under each spelling of the user's name, but only in this domain."""
    async with running_nas(ack) as nas:
        client = await areas.client(LOCAL, coa_port=nas.port)
        place = await device(areas, client, LOCAL, **AP)
        branch = await areas.domains.add(areas.tenant, "branch")
        wanted = [
            await session(areas, place, f"s{number}", USER_NAME=name)
            for number, name in enumerate(("ann", "ANN@corp", "corp\\Ann"))
        ]
        for number, name in enumerate(("anna", "ann@branch", "bob", "an_", "%")):
            await session(areas, place, f"x{number}", USER_NAME=name)
        await session(areas, place, "past", USER_NAME="ann")
        await session(areas, place, "past", STOP, USER_NAME="ann")
        await session(areas, await device(areas, client, LOCAL, domain=branch, **AP), "s0", USER_NAME="ann")
        asked = await areas.dynamic.disconnect_user(areas.domain, "Ann")
    assert [each.target.id for each in asked.results] == wanted
    assert not asked.more


async def test_a_user_beyond_ascii_is_found_in_any_case(areas: Areas) -> None:
    """A user name beyond ASCII is found in any letter case. The request has the name in UTF-8."""
    async with running_nas(ack) as nas:
        client = await areas.client(LOCAL, coa_port=nas.port)
        await session(areas, await device(areas, client, LOCAL, **AP), "s1", USER_NAME="Jörg@corp")
        assert outcomes(await areas.dynamic.disconnect_user(areas.domain, "jÖRG")) == ["ack"]
        assert nas.values()[names.USER_NAME] == "Jörg@corp".encode()


@pytest.mark.parametrize(
    ("station", "found"),
    [
        pytest.param("0200.0000.0001", ["mac"], id="MAC address with dots"),
        pytest.param("02:00:00:00:00:01", ["mac"], id="MAC address with colons"),
        pytest.param("desk-7", ["named"], id="name in another case"),
        pytest.param("desk7", [], id="another name"),
    ],
)
async def test_the_sessions_of_a_station_are_found(areas: Areas, station: str, found: list[str]) -> None:
    """A station is found by its MAC address in any notation, or by another name in any letter case."""
    async with running_nas(ack) as nas:
        client = await areas.client(LOCAL, coa_port=nas.port)
        place = await device(areas, client, LOCAL, **AP)
        ids = {
            await session(areas, place, "s1", **ANN): "mac",
            await session(areas, place, "s2", CALLING_STATION_ID="Desk-7"): "named",
        }
        asked = await areas.dynamic.disconnect_station(areas.domain, station)
    assert [ids[each.target.id] for each in asked.results] == found


async def test_a_call_ends_at_most_100_sessions(areas: Areas) -> None:
    """A call ends at most 100 sessions, and the answer shows that there are more."""
    async with running_nas(ack) as nas:
        client = await areas.client(LOCAL, coa_port=nas.port)
        place = await device(areas, client, LOCAL, **AP)
        for number in range(MAX_SESSIONS + 5):
            await session(areas, place, f"s{number}", **ANN)
        asked = await areas.dynamic.disconnect_user(areas.domain, "ann")
        assert (len(asked.results), asked.more) == (MAX_SESSIONS, True)
        assert set(outcomes(asked)) == {"ack"}
    assert len(await trail(areas)) == MAX_SESSIONS


async def test_a_change_sends_its_attributes(areas: Areas) -> None:
    """The attributes of a change come after those that identify the session. The audit trail has them under their
    dictionary names.
    """
    changes = [
        Reply(name="Filter-Id", value="guests"),
        Reply(name="Cisco-AVPair", value="subscriber:command=reauthenticate"),
    ]
    async with running_nas(ack) as nas:
        client = await areas.client(LOCAL, coa_port=nas.port)
        found = await session(areas, await device(areas, client, LOCAL, **AP), "s1", **ANN)
        assert outcomes(await areas.dynamic.change(found, changes, areas.domain)) == ["ack"]
        assert nas.requests[0][0] == 43
        tail = push_attribute(11, b"guests")
        assert tail + bytes((26,)) in nas.requests[0]
        assert nas.requests[0].endswith(b"subscriber:command=reauthenticate")
        await refused(areas, nas, found)
    ((action, _, changes),) = await trail(areas)
    assert action == "session.change"
    assert json.loads(changes)["replyAttributes"] == [
        None, ["Filter-Id=guests", "Cisco-AVPair=subscriber:command=reauthenticate"]
    ]  # fmt: skip


async def refused(areas: Areas, nas: FakeNas, found: int) -> None:
    """Assert that a change with unsuitable or too many attributes is refused and that nothing is sent."""
    for name, value in (("State", "0x00"), ("No-Such", "1"), ("Session-Timeout", "soon"), ("Acct-Session-Id", "s2")):
        with pytest.raises(Invalid):
            await areas.dynamic.change(found, [Reply(name=name, value=value)])
    for name, value in (("User-Name", "bob"), ("Framed-IP-Address", "10.0.0.9"), ("Chargeable-User-Identity", "0x01")):
        both = [Reply(name="Filter-Id", value="guests"), Reply(name=name, value=value)]
        with pytest.raises(Invalid, match="entry 2 must not be an attribute that identifies"):
            await areas.dynamic.change(found, both)
    with pytest.raises(Invalid):
        await areas.dynamic.change(found, [Reply(name="Filter-Id", value="x" * 250)] * 17)
    assert len(nas.requests) == 1


async def test_a_cancelled_call_is_in_the_audit_trail(areas: Areas) -> None:
    """If a call is cancelled, the audit trail has the requests that were sent."""
    async with running_nas(silent) as nas:
        client = await areas.client(LOCAL, coa_port=nas.port)
        found = await session(areas, await device(areas, client, LOCAL, **AP), "s1", **ANN)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(areas.dynamic.disconnect, found)
            await until(lambda: bool(nas.requests), seconds=30)
            nursery.cancel_scope.cancel()
    ((_, _, changes),) = await trail(areas)
    assert json.loads(changes) == {"outcome": [None, "timeout"], "error": [None, "the service was stopped"]}


@only_sqlite
@pytest.mark.parametrize(
    ("find", "index"),
    [
        pytest.param(partial(repo.targets_of_user, names=["ann", "jörg@corp"]), "sessions_user_key", id="user"),
        pytest.param(partial(repo.of_station, station="x", mac=None), "sessions_order", id="station"),
    ],
)
async def test_past_sessions_are_not_read(areas: Areas, find: partial[list[Target]], index: str) -> None:
    """Sessions are found by the index of users or of live sessions, so past sessions are not read."""
    wanted = partial(find, domain_id=areas.domain, limit=MAX_SESSIONS)
    assert any(f"s USING INDEX {index}" in plan for plan in plans(areas.store.path, wanted))


async def test_a_nas_behind_radsec_is_asked_by_udp(areas: Areas) -> None:
    """For a NAS behind RadSec, the request goes to the NAS's own address and never over the RadSec connection. If it
    fails, the error says that the NAS is behind RadSec.
    """
    client = await areas.client(LOCAL, coa_port=9, tls_name="nas.example.com")
    found = await session(areas, await device(areas, client, LOCAL, **AP), "s1", **ANN)
    (result,) = (await impatient(areas).disconnect(found)).results
    assert result.answer.outcome is RequestOutcome.TIMEOUT
    assert "RadSec" in result.error
    await areas.clients.delete(areas.tenant, client.id)
    (result,) = (await impatient(areas).disconnect(found)).results
    assert result.answer.outcome is RequestOutcome.UNKNOWN_CLIENT
    assert "RadSec" in result.error
