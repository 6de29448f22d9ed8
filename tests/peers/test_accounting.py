"""Tests of accounting by radclient (FreeRADIUS): attributes from FreeRADIUS's dictionary are in the session."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.peers.programs import needs, radclient
from tests.running_service import RunningService, running_service

SECRET = "radclient's secret"
ANSWERED = "Received Accounting-Response"
SESSION = ('Acct-Session-Id = "5F2A"', 'User-Name = "bob@corp"', "NAS-IP-Address = 10.9.0.1", "NAS-Port = 12")
Account = Callable[..., str]

pytestmark = [pytest.mark.peer, needs("radclient")]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service that has radclient as a RADIUS client."""
    with running_service(tmp_path_factory.mktemp("service")) as service:
        service.add_client("radclient", "127.0.0.1", SECRET)
        yield service


@pytest.fixture
def account(service: RunningService, tmp_path: Path) -> Account:
    """Return a function that sends one Accounting-Request."""

    def send(*attributes: str) -> str:
        return radclient(tmp_path, "acct", f"127.0.0.1:{service.ports.acct}", SECRET, attributes)

    return send


def test_a_session_by_radclient(service: RunningService, account: Account) -> None:
    """The session has its addresses, counters with gigawords, port type and cause of end.

    It continues after a restart of the service. A repeated Stop counts once, and Accounting-On ends the other sessions.
    """
    assert ANSWERED in account(
        "Acct-Status-Type = Start", "NAS-Port-Type = Wireless-802.11", "Framed-IP-Address = 10.5.0.7",
        "Framed-IPv6-Prefix = 2001:db8:5::/64", "Delegated-IPv6-Prefix = 2001:db8:700::/56",
        "Framed-IPv6-Address = 2001:db8:5::7", "Class = 0x00ff", *SESSION,
    )  # fmt: skip
    service.stop()
    service.start()
    assert ANSWERED in account(
        "Acct-Status-Type = Interim-Update", "Acct-Session-Time = 60", "Acct-Input-Octets = 10", *SESSION
    )
    stop = (
        "Acct-Status-Type = Stop", "Acct-Session-Time = 90", "Acct-Input-Octets = 4000000000",
        "Acct-Input-Gigawords = 3", "Acct-Terminate-Cause = Lost-Carrier", *SESSION,
    )  # fmt: skip
    assert ANSWERED in account(*stop)
    assert ANSWERED in account("Acct-Delay-Time = 3", *stop)
    (session,) = service.sessions()
    shown = {
        "userName": "bob@corp", "client_ip": "10.9.0.1", "framedIp": "10.5.0.7", "framedIpv6": "2001:db8:5::7",
        "framedIpv6Prefix": "2001:db8:5::/64", "delegatedIpv6Prefix": "2001:db8:700::/56", "nasPort": 12,
        "nasPortType": "Wireless-802.11", "state": "stopped", "sessionTime": 90, "inputOctets": 3 * 2**32 + 4 * 10**9,
        "terminateCause": "Lost-Carrier",
    }  # fmt: skip
    assert {name: session[name] for name in shown} == shown
    kept = service.rows("select status_type from accounting_records order by id")
    assert kept == [(1,), (3,), (2,)]
    account("Acct-Status-Type = Start", 'Acct-Session-Id = "next"', *SESSION[1:])
    assert ANSWERED in account("Acct-Status-Type = Accounting-On", *SESSION[2:3])
    assert [each["terminateCause"] for each in service.sessions()] == [
        "NAS-Reboot", "Lost-Carrier",
    ]  # fmt: skip
