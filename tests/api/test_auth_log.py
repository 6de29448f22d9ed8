"""/ad/GetAuthLog: the decisions on real logins."""

import re
import socket
from typing import Any

import pytest

from tests.api.world import PASSWORD, Tenant, World

LOG = "/ad/GetAuthLog"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def log(tenant: Tenant, **fields: Any) -> list[dict[str, Any]]:
    """Return the domain's events."""
    events: list[dict[str, Any]] = tenant.ask(LOG, domainId=tenant.domain, **fields)["events"]
    return events


def test_the_fields_of_an_event(tenant: Tenant) -> None:
    """An event has exactly the documented fields and types, and the name of the domain."""
    with tenant.nas() as nas:
        address = nas.sock.getsockname()[0]
        nas.login(
            "Ann@CORP",
            PASSWORD,
            NAS_IDENTIFIER=b"wlc-1",
            NAS_IP_ADDRESS=bytes((10, 1, 2, 3)),
            CALLING_STATION_ID=b"02-01",
        )
    answer = tenant.ask(LOG, domainId=tenant.domain)
    (event,) = answer["events"]
    assert isinstance(event.pop("eventId"), int)
    assert TIME.fullmatch(event.pop("time"))
    assert event.pop("node") == socket.gethostname()
    assert event.pop("device_id") > 0
    latency = event.pop("latencyMs")
    assert isinstance(latency, float) and 0 <= latency < 5000
    assert event == {
        "user": "Ann", "domain": "corp", "ip_address": address, "client_ip": "10.1.2.3", "device_name": "wlc-1",
        "station": "02-01", "method": "pap", "factor": "local", "decision": "reject", "appliedDecision": "accept",
        "wouldHaveBeen": "reject", "reason": "no provider", "ruleId": 0, "rule": "", "firstFactorMs": None,
        "secondFactorMs": None, "attributes": [], "detail": "", "role": "", "roleSource": "",
        "ssid": "", "port": "", "authority": "", "namedBy": "", "revocation": "", "traceId": "",
    }  # fmt: skip
    assert {name: value for name, value in answer.items() if name != "events"} == {"totalCount": 1, "cursor": ""}


def test_the_logins_of_a_device(tenant: Tenant) -> None:
    """`deviceId` selects the logins of one device. Pages, totals and the search apply to these logins."""
    with tenant.nas() as nas:
        for name, user in ((b"a", "ann"), (b"b", "ann"), (b"a", "bob"), (b"a", "ann")):
            nas.login(user, PASSWORD, NAS_IDENTIFIER=name)
    known = {each["device_name"]: each["device_id"] for each in tenant.devices()}
    answer = tenant.ask(LOG, domainId=tenant.domain, deviceId=known["a"], pageSize=2)
    assert ([each["user"] for each in answer["events"]], answer["totalCount"]) == (["ann", "bob"], 3)
    following = tenant.ask(LOG, domainId=tenant.domain, deviceId=known["a"], cursor=answer["cursor"])
    assert [each["device_name"] for each in following["events"]] == ["a"]
    assert len(log(tenant, deviceId=known["a"], search="BOB")) == len(log(tenant, deviceId=known["b"])) == 1
    assert log(tenant, deviceId=10**9) == []


def test_why_a_login_was_refused(tenant: Tenant) -> None:
    """Each refused login has its reason and method, newest first. A sender that has not proved its identity adds no
    device.
    """
    with tenant.nas() as nas:
        nas.login("ann", "wrong")
        nas.login("ann", "wrong", chap=True)
        nas.login("nobody", PASSWORD)
        nas.login("ann@nowhere", PASSWORD)
        nas.login("@corp", PASSWORD)
    events = log(tenant)
    assert [(each["user"], each["method"], each["reason"]) for each in events] == [
        ("", "pap", "no user name"),
        ("ann@nowhere", "pap", "unknown realm"),
        ("nobody", "pap", "unknown user"),
        ("ann", "chap", "wrong password"),
        ("ann", "pap", "wrong password"),
    ]
    assert {(each["decision"], each["appliedDecision"], each["wouldHaveBeen"]) for each in events} == {("reject",) * 3}


def test_cursors_do_not_shift_under_traffic(tenant: Tenant) -> None:
    """Pages by cursor contain each event once, newest first, even while new events arrive.

    The last page has an empty cursor. Without new events, pages by number contain the same events.
    """
    with tenant.nas() as nas:
        for number in range(7):
            nas.login(f"user{number}", "x")
        by_number = [each["user"] for page in (1, 2, 3) for each in log(tenant, pageId=page, pageSize=3)]
        walked, cursor = [], None
        while cursor != "":
            answer = tenant.ask(LOG, domainId=tenant.domain, pageSize=3, cursor=cursor or "")
            walked += [each["user"] for each in answer["events"]]
            cursor = answer["cursor"]
            nas.login("newer", "x")
    assert walked == by_number == [f"user{number}" for number in reversed(range(7))]
    exact = tenant.ask(LOG, domainId=tenant.domain, pageSize=5, pageId=2)
    assert (len(exact["events"]), exact["cursor"], exact["totalCount"]) == (5, "", 10)


def test_searches_and_ranges_of_time(tenant: Tenant) -> None:
    """A case-insensitive search finds a part of the user, device, station or address.

    A range of time includes its start and excludes its end. The totals count the matching events.
    """
    with tenant.nas() as nas:
        address = nas.sock.getsockname()[0]
        nas.login("Zoë", "x", NAS_IDENTIFIER=b"gate", CALLING_STATION_ID=b"02-aa")
        nas.login("bob", "x", NAS_IDENTIFIER=b"switch")
    second, first = log(tenant)
    for search, users in (
        ("ZOË", ["Zoë"]), ("o", ["bob", "Zoë"]), ("GATE", ["Zoë"]), ("02-AA", ["Zoë"]), (address, ["bob", "Zoë"]),
        ("%", []), ("wrong", []), ("", ["bob", "Zoë"]),
    ):  # fmt: skip
        answer = tenant.ask(LOG, domainId=tenant.domain, search=search)
        assert ([each["user"] for each in answer["events"]], answer["totalCount"]) == (users, len(users)), search
    spans: list[tuple[dict[str, str], int]] = [
        ({"from": second["time"]}, 1),
        ({"to": second["time"]}, 1),
        ({"from": first["time"], "to": second["time"]}, 1),
        ({"from": "2001-01-01", "to": "2001-01-02T00:00:00+02:00"}, 0),
        ({"from": "", "to": ""}, 2),
    ]
    for span, total in spans:
        assert tenant.ask(LOG, domainId=tenant.domain, **span)["totalCount"] == total, span


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"cursor": "hunter2"}, "invalid cursor"),
        ({"cursor": "1"}, "invalid cursor"),
        ({"cursor": "9" * 30 + ".1"}, "invalid cursor"),
        ({"cursor": ["1.1"]}, "invalid cursor"),
        ({"from": "hunter2"}, "invalid from"),
        ({"to": "2026-13-01"}, "invalid to"),
        ({"from": "9999-12-31T23:59:59-23:59"}, ""),
        ({"to": "0001-01-01"}, ""),
        ({"search": {}}, "invalid search"),
    ],
)
def test_malformed_requests(tenant: Tenant, fields: dict[str, Any], text: str) -> None:
    """The error for a malformed field names it. A time in the far past or future is valid."""
    if text:
        assert tenant.refused(LOG, domainId=tenant.domain, **fields) == (400, text)
    else:
        assert log(tenant, **fields) == []


def test_other_tenants_see_no_logins(world: World, tenant: Tenant) -> None:
    """Another tenant, and another domain of the same tenant, do not see the logins. The domain that the realm selects
    sees them.
    """
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    tenant.user("bob", domain=branch)
    with tenant.nas(domainIds=[tenant.domain, branch]) as nas:
        nas.login("ann", PASSWORD)
        nas.login("BRANCH\\bob", PASSWORD)
    assert [each["user"] for each in log(tenant)] == ["ann"]
    (event,) = tenant.ask(LOG, domainId=branch)["events"]
    assert (event["user"], event["domain"]) == ("bob", "branch")
    other = world.tenant()
    assert log(other) == log(other, search="ann") == []
