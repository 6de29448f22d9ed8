"""The operations of re-authorizations, with a NAS that answers over the network."""

from collections.abc import Iterator
from typing import Any

import pytest

from sallyport.radius.packet import ACCOUNTING_REQUEST, ACCOUNTING_RESPONSE, encode_request
from tests.api.world import PASSWORD, SECRET, Tenant, World
from tests.areas.dynamic.nas import ThreadNas, ack, thread_nas
from tests.areas.sessions.records import octets
from tests.radius_client import RadiusClient
from tests.waiting import eventually

PREVIEW, START, STOP = "/ad/PreviewReauthorization", "/ad/StartReauthorization", "/ad/StopReauthorization"
RUNS, SESSIONS = "/ad/ListReauthorizations", "/ad/ListReauthorizedSessions"
STATION = "02-00-00-00-00-0A"
DISCONNECT_REQUEST = 40


@pytest.fixture
def nas(world: World, tenant: Tenant) -> Iterator[ThreadNas]:
    """Return a NAS at which ann is logged in and has a session."""
    address = world.address()
    with thread_nas(ack, address) as nas, tenant.nas(address=address, coaPort=nas.port) as radius:
        assert radius.login("ann", PASSWORD, NAS_IDENTIFIER=b"wlc-1", CALLING_STATION_ID=STATION.encode()) == 2
        with RadiusClient(world.service.ports.acct, SECRET, source=address) as client:
            body = octets(1, b"s1", NAS_IDENTIFIER="wlc-1", USER_NAME="ann", CALLING_STATION_ID=STATION)
            request = encode_request(ACCOUNTING_REQUEST, 1, client.secret, body)
            assert client.exchange(request)[0] == ACCOUNTING_RESPONSE
        yield nas


def test_a_blocked_user_loses_the_session(tenant: Tenant, nas: ThreadNas) -> None:
    """The preview sends nothing. A run asks the NAS to end the session, and lists the answer."""
    fields: dict[str, Any] = {"domainId": tenant.domain}
    assert tenant.ask(PREVIEW, **fields) == {
        "sessions": [], "examined": 1, "disconnects": 0, "changes": 0, "undecided": 0,
    }  # fmt: skip
    tenant.ask("/ad/updateDomainEnforcement", enforcementMode="enforce", fallbackAction="allow", confirm=True, **fields)
    tenant.ask("/ad/AddLoginRule", name="gone", action="block", users=["ann"], **fields)
    found = tenant.ask(PREVIEW, **fields)
    assert (found["examined"], found["disconnects"]) == (1, 1)
    (change,) = found["sessions"]
    assert (change["userName"], change["effect"], change["outcome"]) == ("ann", "disconnect", "")
    assert not nas.requests
    run = tenant.ask(START, **fields)["reauthorizationId"]
    eventually(lambda: tenant.ask(RUNS, **fields)["reauthorizations"][0]["state"] == "done")
    assert nas.requests[-1][0] == DISCONNECT_REQUEST
    answer = tenant.ask(SESSIONS, reauthorizationId=run, **fields)
    assert (answer["totalCount"], answer["sessions"][0]["outcome"]) == (1, "ack")
    assert tenant.ask(STOP, reauthorizationId=run, **fields)["message"] == "re-authorization stopped"
    assert tenant.ask(RUNS, **fields)["reauthorizations"][0]["state"] == "done"


@pytest.mark.parametrize("path", [PREVIEW, START, STOP, RUNS, SESSIONS])
def test_another_tenants_sessions(tenant: Tenant, path: str) -> None:
    """A tenant can neither see nor end the sessions of another tenant."""
    other = tenant.world.tenant()
    fields = {"reauthorizationId": 1} if path in (STOP, SESSIONS) else {}
    assert other.refused(path, domainId=tenant.domain, **fields) == (403, "domain not in tenant")


@pytest.mark.parametrize("path", [STOP, SESSIONS])
def test_a_run_of_another_domain(tenant: Tenant, path: str) -> None:
    """The id of a run counts only with its own domain."""
    other = tenant.world.tenant()
    run = other.ask(START, domainId=other.domain)["reauthorizationId"]
    refused = tenant.refused(path, domainId=tenant.domain, reauthorizationId=run)
    assert refused == (404, "re-authorization not found")
