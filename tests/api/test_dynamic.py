"""/network_device/DisconnectSession and ChangeSession, with a NAS that answers over the network."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from sallyport.radius import attributes as names
from sallyport.radius.packet import ACCOUNTING_REQUEST, ACCOUNTING_RESPONSE, encode_request
from tests.api.world import SECRET, Tenant, World
from tests.areas.dynamic.nas import ThreadNas, ack, nak, thread_nas
from tests.areas.sessions.records import octets
from tests.radius_client import RadiusClient

DISCONNECT, CHANGE = "/network_device/DisconnectSession", "/network_device/ChangeSession"
START = 1


@pytest.fixture
def nas(world: World, tenant: Tenant) -> Iterator[ThreadNas]:
    """Return a NAS of the tenant's domain with the sessions a (ann), b (ann@corp) and c (bob)."""
    address = world.address()
    with thread_nas(ack, address) as nas:
        tenant.ask(
            "/network_device/AddClient",
            name=address,
            address=address,
            secret=SECRET,
            domainId=tenant.domain,
            coaPort=nas.port,
        )
        with RadiusClient(world.service.ports.acct, SECRET, source=address) as client:
            for number, (session, user) in enumerate({"a": "ann", "b": "ann@corp", "c": "bob"}.items()):
                facts = {"USER_NAME": user, "CALLING_STATION_ID": f"02-00-00-00-00-0{number}"}
                body = octets(START, session.encode(), NAS_IDENTIFIER="wlc-1", **facts)
                request = encode_request(ACCOUNTING_REQUEST, number, client.secret, body)
                assert client.exchange(request)[0] == ACCOUNTING_RESPONSE
        yield nas


def sessions(tenant: Tenant) -> dict[str, int]:
    """Return the ids of the domain's sessions by their Acct-Session-Ids."""
    listed = tenant.ask("/network_device/ListSessions", domainId=tenant.domain, pageSize=100)["sessions"]
    return {each["acctSessionId"]: each["sessionId"] for each in listed}


def test_one_session(tenant: Tenant, nas: ThreadNas) -> None:
    """The answer has the acknowledgement of the NAS and its round-trip time. The audit entry names the caller."""
    session = sessions(tenant)["a"]
    token = tenant.role("operator")
    answer = tenant.ask(DISCONNECT, token=token, domainId=tenant.domain, sessionId=session)
    (result,) = answer.pop("results")
    assert answer == {"code": 200, "status": "Success", "message": "1 of 1 session done", "more": False}
    assert 0 < result.pop("latencyMs") < 60_000
    assert result == {
        "sessionId": session, "userName": "ann", "outcome": "ack", "errorCause": None, "errorText": "",
    }  # fmt: skip
    assert (nas.requests[-1][0], nas.values()[names.ACCT_SESSION_ID]) == (40, b"a")
    entry = tenant.ask("/api/v1/audit/list", domainId=tenant.domain)["entries"][0]
    assert (entry["action"], entry["target"]) == ("session.disconnect", f"session {session} ann")
    assert entry["changes"] == {"outcome": [None, "ack"]}


def test_the_sessions_of_a_user_or_a_station(tenant: Tenant, nas: ThreadNas) -> None:
    """A user name selects all sessions of the user, under each name that the NAS reports.

    For a user without a session the answer is an empty list.
    """
    found = sessions(tenant)
    cases: list[tuple[dict[str, Any], list[int]]] = [
        ({"userName": "ANN"}, [found["a"], found["b"]]),
        ({"station": "0200.0000.0002"}, [found["c"]]),
        ({"userName": "nobody"}, []),
    ]
    for fields, wanted in cases:
        results = tenant.ask(DISCONNECT, domainId=tenant.domain, **fields)["results"]
        assert [each["sessionId"] for each in results] == wanted, fields


def test_a_nak_is_reported_with_its_error_cause(tenant: Tenant, nas: ThreadNas) -> None:
    """A NAK is reported with the number and the name of its Error-Cause, and the operation succeeds."""
    nas.script = nak(503)
    answer = tenant.ask(DISCONNECT, domainId=tenant.domain, userName="bob")
    (result,) = answer["results"]
    assert (result["outcome"], result["errorCause"]) == ("nak", 503)
    assert result["errorText"] == "Session-Context-Not-Found"
    assert answer["message"] == "0 of 1 session done"


def test_a_lost_request_is_retransmitted(tenant: Tenant, nas: ThreadNas) -> None:
    """A lost request is retransmitted after two seconds with the same octets (RFC 5176)."""
    nas.script = lambda request, number: ack(request) if number else []
    (result,) = tenant.ask(DISCONNECT, domainId=tenant.domain, userName="bob")["results"]
    assert result["outcome"] == "ack"
    assert result["latencyMs"] > 1700
    assert len(nas.requests) == 2
    assert nas.requests[0] == nas.requests[1]


def test_a_change_sends_the_given_attributes(tenant: Tenant, nas: ThreadNas) -> None:
    """A change sends the given attributes, which are selected by their dictionary names.

    If one is wrong, the error names it and nothing is sent.
    """
    session = sessions(tenant)["c"]
    fields = {"domainId": tenant.domain, "sessionId": session}
    given = [{"name": "Session-Timeout", "value": 600}, {"name": "Filter-Id", "value": "guests"}]
    (result,) = tenant.ask(CHANGE, **fields, replyAttributes=given)["results"]
    assert result["outcome"] == "ack"
    assert nas.requests[-1][0] == 43
    assert nas.requests[-1].endswith(b"\x1b\x06\x00\x00\x02\x58\x0b\x08guests")
    wrong = [{"name": "Session-Timeout", "value": "soon"}]
    status, text = tenant.refused(CHANGE, **fields, replyAttributes=wrong)
    assert (status, text.partition(":")[0]) == (400, "invalid replyAttributes")
    assert tenant.refused(CHANGE, **fields, replyAttributes=[]) == (400, "invalid replyAttributes")
    assert len(nas.requests) == 1


def test_a_port_that_is_closed_to_requests(tenant: Tenant, nas: ThreadNas) -> None:
    """A client with coaPort 0 receives no request."""
    (client,) = tenant.ask("/network_device/ListClients")["clients"]
    assert client["coaPort"] == nas.port
    tenant.ask("/network_device/UpdateClient", clientId=client["clientId"], coaPort=0)
    (result,) = tenant.ask(DISCONNECT, domainId=tenant.domain, userName="bob")["results"]
    assert (result["outcome"], nas.requests) == ("unknown client", [])


def test_a_deleted_user(world: World, tenant: Tenant, nas: ThreadNas) -> None:
    """A domain with disconnect_on_revoke disconnects the sessions of a deleted user, and the audit trail has the
    reason.
    """
    world.service.run("/ad/UpdateDomain", {"disconnectOnRevoke": True}, domain=str(tenant.domain))
    world.service.remove_user("ann", str(tenant.domain))
    wanted = {"domainId": tenant.domain, "action": "session.disconnect"}
    deadline, entries = time.monotonic() + 20, list[dict[str, Any]]()
    while len(entries) < 2 and time.monotonic() < deadline:
        entries = tenant.ask("/api/v1/audit/list", **wanted)["entries"]
    assert {each["changes"]["reason"][1] for each in entries} == {"the user was deleted"}
    assert {number[names.ACCT_SESSION_ID] for number in map(nas.values, range(len(nas.requests)))} == {b"a", b"b"}


def test_another_tenants_sessions(world: World, tenant: Tenant, nas: ThreadNas) -> None:
    """Another tenant cannot end a session, whichever id it sends."""
    other = world.tenant()
    session = sessions(tenant)["a"]
    assert other.refused(DISCONNECT, domainId=other.domain, sessionId=session) == (404, "session not found")
    assert other.refused(DISCONNECT, domainId=tenant.domain, sessionId=session) == (403, "domain not in tenant")
    assert other.ask(DISCONNECT, domainId=other.domain, userName="ann")["results"] == []
    assert nas.requests == []


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "exactly one of sessionId, userName and station must be given"),
        ({"sessionId": 1, "userName": "ann"}, "exactly one of sessionId, userName and station must be given"),
        ({"sessionId": "x"}, "invalid sessionId"),
        ({"userName": "a\0"}, "invalid userName"),
    ],
)
def test_a_request_names_one_selector(tenant: Tenant, fields: dict[str, Any], text: str) -> None:
    """A request must name exactly one of a session, a user and a station."""
    assert tenant.refused(DISCONNECT, domainId=tenant.domain, **fields) == (400, text)
