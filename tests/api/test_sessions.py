"""/network_device/ListSessions: the connected users, from the accounting of real devices."""

import re
from ipaddress import ip_address
from typing import Any

import pytest

from sallyport.radius.packet import ACCOUNTING_REQUEST, ACCOUNTING_RESPONSE, encode_request
from tests.api.world import SECRET, Tenant, World
from tests.areas.sessions.records import octets
from tests.radius_client import RadiusClient

SESSIONS = "/network_device/ListSessions"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
START, STOP, INTERIM = 1, 2, 3


class Nas:
    """A device that sends accounting records of its sessions."""

    def __init__(self, world: World, tenant: Tenant) -> None:
        self._port = world.service.ports.acct
        self.address = world.address()
        tenant.ask(
            "/network_device/AddClient",
            name=self.address,
            address=self.address,
            secret=SECRET,
            domainId=tenant.domain,
        )
        self._sent = 0

    def account(self, status: int, session: str = "s1", **values: bytes | int | str) -> None:
        """Send one record, and assert that it is answered."""
        with RadiusClient(self._port, SECRET, source=self.address) as client:
            body = octets(status, session.encode(), NAS_IDENTIFIER="wlc-1", **values)
            self._sent += 1
            request = encode_request(ACCOUNTING_REQUEST, self._sent & 0xFF, client.secret, body)
            assert client.exchange(request)[0] == ACCOUNTING_RESPONSE


@pytest.fixture
def nas(world: World, tenant: Tenant) -> Nas:
    """Return a device of the tenant's domain."""
    return Nas(world, tenant)


def sessions(tenant: Tenant, **fields: Any) -> list[dict[str, Any]]:
    """Return the matching sessions of the domain, and assert that the total is their number."""
    answer = tenant.ask(SESSIONS, domainId=tenant.domain, **{"pageSize": 100, **fields})
    assert answer["totalCount"] == len(answer["sessions"])
    found: list[dict[str, Any]] = answer["sessions"]
    return found


def test_the_fields_of_a_session(tenant: Tenant, nas: Nas) -> None:
    """A session has exactly the documented fields. Known numbers are shown as names."""
    facts = {
        "USER_NAME": "ann@corp", "CALLING_STATION_ID": "02-01", "CALLED_STATION_ID": "AA:corp", "NAS_PORT": 7,
        "NAS_PORT_ID": "ge-1", "NAS_PORT_TYPE": 19, "FRAMED_IP_ADDRESS": bytes((10, 0, 0, 9)),
        "FRAMED_IPV6_ADDRESS": bytes.fromhex("20010db8000000000000000000000009"),
        "NAS_IP_ADDRESS": bytes((10, 1, 2, 3)),
        "FRAMED_IPV6_PREFIX": bytes.fromhex("004020010db800000001"),
        "DELEGATED_IPV6_PREFIX": bytes.fromhex("003020010db80002"),
    }  # fmt: skip
    nas.account(START, **facts)
    counts = {"ACCT_INPUT_OCTETS": 5, "ACCT_INPUT_GIGAWORDS": 1, "ACCT_OUTPUT_OCTETS": 6, "ACCT_INPUT_PACKETS": 7}
    nas.account(STOP, ACCT_SESSION_TIME=0, ACCT_TERMINATE_CAUSE=4, ACCT_OUTPUT_PACKETS=8, **counts, **facts)
    (session,) = sessions(tenant)
    (device,) = tenant.devices()
    assert isinstance(session.pop("sessionId"), int)
    for name in ("startedAt", "updatedAt", "stoppedAt"):
        assert TIME.fullmatch(session.pop(name))
    assert session == {
        "acctSessionId": "s1", "userName": "ann@corp", "ip_address": nas.address, "client_ip": "10.1.2.3",
        "device_id": device["device_id"], "device_name": "wlc-1", "station": "02-01", "calledStation": "AA:corp",
        "framedIp": "10.0.0.9", "framedIpv6": "2001:db8::9", "framedIpv6Prefix": "2001:db8:0:1::/64",
        "delegatedIpv6Prefix": "2001:db8:2::/48", "nasPort": 7, "nasPortId": "ge-1",
        "nasPortType": "Wireless-802.11", "state": "stopped", "sessionTime": 0, "inputOctets": 2**32 + 5,
        "outputOctets": 6, "inputPackets": 7,
        "outputPackets": 8, "terminateCause": "Idle-Timeout",
    }  # fmt: skip


def test_missing_values_of_a_session(tenant: Tenant, nas: Nas) -> None:
    """A value that no record contained is empty. A number that has no name is shown as a number."""
    nas.account(START, NAS_PORT_TYPE=4_000_000_000)
    (session,) = sessions(tenant, live=True)
    empty = ("userName", "station", "framedIp", "framedIpv6", "framedIpv6Prefix", "stoppedAt", "terminateCause")
    assert [session[name] for name in empty] == [""] * len(empty)
    assert (session["nasPort"], session["nasPortType"], session["state"]) == (None, "4000000000", "live")


def test_live_and_past_sessions(tenant: Tenant, nas: Nas) -> None:
    """Sessions are listed newest first.

    A flag, in any spelling, selects live or past sessions. Session, user, device, search text and time narrow the list.
    """
    nas.account(START, "a", USER_NAME="ann")
    nas.account(START, "b", USER_NAME="bob")
    nas.account(STOP, "a", ACCT_SESSION_TIME=0)
    device = tenant.devices()[0]["device_id"]
    second, first = sessions(tenant)
    assert [second["userName"], first["userName"]] == ["bob", "ann"]
    cases: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        ({"live": "yes"}, [second]), ({"live": 0}, [first]), ({"live": None}, [second, first]),
        ({"userName": "ANN"}, [first]), ({"userName": "ann", "live": True}, []),
        ({"deviceId": device}, [second, first]), ({"sessionId": first["sessionId"]}, [first]),
        ({"deviceId": device + 1000}, []), ({"search": "BO"}, [second]), ({"from": second["startedAt"]}, [second]),
        ({"to": second["startedAt"]}, [first]), ({"from": "", "to": "2001-01-01"}, []),
    ]  # fmt: skip
    for fields, found in cases:
        assert sessions(tenant, **fields) == found, fields


@pytest.mark.parametrize("form", ["2001:DB8::9", "2001:0db8:0:0:0:0:0:9"])
def test_any_form_of_an_ipv6_address_finds_a_session(tenant: Tenant, nas: Nas, form: str) -> None:
    """The search accepts any form of a Framed-IPv6-Address."""
    nas.account(START, "a", FRAMED_IPV6_ADDRESS=ip_address("2001:db8::9").packed)
    nas.account(START, "b", FRAMED_IPV6_ADDRESS=ip_address("2001:db8::a").packed)
    assert [each["acctSessionId"] for each in sessions(tenant, search=form)] == ["a"]


def test_pages(tenant: Tenant, nas: Nas) -> None:
    """Each session is on one page, and every page has the total."""
    for number in range(5):
        nas.account(START, f"s{number}")
    pages = [tenant.ask(SESSIONS, domainId=tenant.domain, pageId=page, pageSize=2) for page in (1, 2, 3, 4)]
    assert [each["totalCount"] for each in pages] == [5] * 4
    assert [each["acctSessionId"] for page in pages for each in page["sessions"]] == ["s4", "s3", "s2", "s1", "s0"]


def test_a_repeated_record_counts_once(tenant: Tenant, nas: Nas, world: World) -> None:
    """A record that is sent again with a delay and another identifier is answered. It is neither counted nor stored
    twice.
    """
    name = f"repeat-{nas.address}"
    nas.account(START, name)
    for delay in (0, 5, 10):
        nas.account(INTERIM, name, ACCT_SESSION_TIME=60, ACCT_DELAY_TIME=delay)
    kept = world.service.rows("select status_type from accounting_records where session_id = ?", name.encode())
    assert kept == [(START,), (INTERIM,)]
    assert [each["sessionTime"] for each in sessions(tenant)] == [60]


def test_another_tenants_sessions(world: World, tenant: Tenant, nas: Nas) -> None:
    """A tenant sees no session of another tenant, even if it sends the id of that tenant's device."""
    nas.account(START)
    other = world.tenant()
    device = tenant.devices()[0]["device_id"]
    assert sessions(other, deviceId=device) == []
    assert other.refused(SESSIONS, domainId=tenant.domain) == (403, "domain not in tenant")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"live": "perhaps"}, "invalid live"),
        ({"deviceId": "x"}, "invalid deviceId"),
        ({"from": "yesterday"}, "invalid from"),
        ({"to": "2026-13-01"}, "invalid to"),
        ({"userName": "a\0"}, "invalid userName"),
        ({"pageSize": 1001}, "invalid pageSize"),
    ],
)
def test_malformed_fields(tenant: Tenant, fields: dict[str, Any], text: str) -> None:
    """The error for a malformed field names it."""
    assert tenant.refused(SESSIONS, domainId=tenant.domain, **fields) == (400, text)
