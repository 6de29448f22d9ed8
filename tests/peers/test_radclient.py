"""Tests with radclient (FreeRADIUS) as the device. It sends the requests and verifies the answers."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.programs import needs, radclient
from tests.running_service import RunningService, running_service

SECRET = "radclient's secret"
UMLAUTS = "pässwörd, 5 €"
LONGEST = "".join(chr(ord("!") + number % 90) for number in range(128)).replace("\\", "/").replace('"', "'")
USERS = {"bob": "hello", "lena": UMLAUTS, "max": LONGEST}
SIGNED = "Message-Authenticator = 0x00"
ACCEPTED, REJECTED = "Received Access-Accept", "Received Access-Reject"

pytestmark = [pytest.mark.peer, needs("radclient")]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service with a named domain, a domain that has realms, and a client that may send unsigned requests."""
    with running_service(tmp_path_factory.mktemp("service")) as service:
        populate(service, "127.0.0.1")
        yield service


def populate(service: RunningService, address: str) -> None:
    """Add a RADIUS client and users."""
    service.add_client("radclient", address, SECRET, requireMessageAuthenticator="no", limitProxyState="no")
    service.add_domain("corp", realms=["corp.example"])
    service.add_user("carl", b"hello", "corp")
    for name, password in USERS.items():
        service.add_user(name, password)


class Device:
    """radclient, which sends to the service."""

    def __init__(self, service: RunningService, directory: Path) -> None:
        self._service = service
        self._directory = directory

    def auth(self, *attributes: str, secret: str = SECRET, options: tuple[str, ...] = (), **limits: float) -> str:
        """Send an Access-Request, and return radclient's output."""
        server = f"127.0.0.1:{self._service.ports.auth}"
        tries, wait_s = int(limits.get("tries", 1)), limits.get("wait_s", 5)
        return radclient(self._directory, "auth", server, secret, attributes, *options, tries=tries, wait_s=wait_s)

    def acct(self, *attributes: str) -> str:
        """Send an Accounting-Request, and return radclient's output."""
        return radclient(self._directory, "acct", f"127.0.0.1:{self._service.ports.acct}", SECRET, attributes)

    def status(self, port: int) -> str:
        """Send a Status-Server, and return radclient's output."""
        return radclient(self._directory, "status", f"127.0.0.1:{port}", SECRET, [SIGNED])


@pytest.fixture
def device(service: RunningService, tmp_path: Path) -> Device:
    """Return radclient with its own directory."""
    return Device(service, tmp_path)


def pap(user: str, password: str = "") -> tuple[str, str]:
    """Return the name and password for PAP. The default is the user's own password."""
    escaped = (password or USERS[user]).replace("\\", "\\\\").replace('"', '\\"')
    return f'User-Name = "{user}"', f'User-Password = "{escaped}"'


def test_pap(device: Device) -> None:
    """A signed login is accepted, and the answer begins with a Message-Authenticator."""
    output = device.auth(*pap("bob"), SIGNED)
    assert ACCEPTED in output
    assert re.search(r"Received Access-Accept[^\n]*\n\s+Message-Authenticator = 0x[0-9a-f]{32}", output)


def test_radclient_verifies_the_answers(device: Device) -> None:
    """If radclient has another secret, it refuses the answer. This proves that radclient verifies answers."""
    output = device.auth(*pap("bob"), secret="another secret", wait_s=2)
    assert "invalid Response Authenticator" in output or "Shared secret is incorrect" in output
    assert ACCEPTED not in output


def test_unsigned(device: Device) -> None:
    """If the client allows it, a login without a Message-Authenticator is accepted. The answer is signed."""
    output = device.auth(*pap("bob"))
    assert ACCEPTED in output
    assert output.count("Message-Authenticator") == 1


@pytest.mark.parametrize("user", ["lena", "max"])
def test_passwords_of_any_octets(device: Device, user: str) -> None:
    """A password in UTF-8 is right, and so is a password of 128 octets."""
    assert ACCEPTED in device.auth(*pap(user), SIGNED)


def test_windows_1252(device: Device) -> None:
    """A password that some devices send in Windows-1252 is right too."""
    escaped = "".join(f"\\{octet:03o}" for octet in UMLAUTS.encode("cp1252"))
    assert ACCEPTED in device.auth('User-Name = "lena"', f'User-Password = "{escaped}"', SIGNED)


@pytest.mark.parametrize("challenge", [(), ("CHAP-Challenge = 0x000102030405060708090a0b0c0d0e0f",)])
@pytest.mark.parametrize(("password", "answer"), [("hello", ACCEPTED), ("wrong", REJECTED)])
def test_chap(device: Device, challenge: tuple[str, ...], password: str, answer: str) -> None:
    """CHAP works with CHAP-Challenge, and with the authenticator as the challenge."""
    assert answer in device.auth('User-Name = "bob"', *challenge, f'CHAP-Password = "{password}"', SIGNED)


@pytest.mark.parametrize(("user", "password", "answer"), [
    ("bob", "hello", ACCEPTED), ("bob", "wrong", REJECTED), ("lena", UMLAUTS, ACCEPTED), ("nobody", "hello", REJECTED),
])  # fmt: skip
def test_mschap(device: Device, user: str, password: str, answer: str) -> None:
    """An Accept for MS-CHAP has the MPPE keys. A Reject has an error that allows a retry."""
    output = device.auth(f'User-Name = "{user}"', f'MS-CHAP-Password = "{password}"', SIGNED)
    assert answer in output
    received = output.partition(answer)[2]
    assert ("MS-CHAP-MPPE-Keys = 0x" in received) is (answer == ACCEPTED)
    assert (re.search(r'MS-CHAP-Error = "\007?.*E=691 R=1', received) is not None) is (answer == REJECTED)


def test_a_wrong_password_is_rejected_late(device: Device) -> None:
    """A Reject is sent after a delay of one second."""
    began = time.monotonic()
    output = device.auth(*pap("bob", "wrong"), SIGNED)
    assert REJECTED in output
    assert time.monotonic() - began >= 1.0


def test_a_retransmit_is_one_login(device: Device, service: RunningService) -> None:
    """Retransmissions of a request whose reject is delayed are dropped. There is one answer and one event."""
    station = 'Calling-Station-Id = "02-00-00-00-00-07"'
    output = device.auth(*pap("bob", "wrong"), SIGNED, station, tries=8, wait_s=0.3)
    assert output.count("Sent Access-Request") > 1
    assert output.count(REJECTED) == 1
    assert service.rows("select count(*) from events where station = '02-00-00-00-00-07'") == [(1,)]


def test_many_at_once(device: Device, service: RunningService) -> None:
    """Two hundred logins, fifty of them at a time, are all accepted and recorded."""
    station = 'Calling-Station-Id = "02-00-00-00-00-08"'
    output = device.auth(*pap("bob"), SIGNED, station, options=("-c", "200", "-p", "50", "-s"))
    assert output.count(ACCEPTED) == 200
    assert service.rows("select count(*) from events where station = '02-00-00-00-00-08'") == [(200,)]


def test_status_server(device: Device, service: RunningService) -> None:
    """Both ports answer Status-Server, each with its own code. No login is recorded."""
    before = service.rows("select count(*) from events")
    assert ACCEPTED in device.status(service.ports.auth)
    assert "Received Accounting-Response" in device.status(service.ports.acct)
    assert service.rows("select count(*) from events") == before


def test_accounting(device: Device, service: RunningService) -> None:
    """Start, interim update and stop of a session are answered and stored in order."""
    for kind in ("Start", "Interim-Update", "Stop"):
        output = device.acct(
            f"Acct-Status-Type = {kind}", 'Acct-Session-Id = "S1"', 'User-Name = "bob"', "NAS-IP-Address = 10.9.0.1"
        )
        assert "Received Accounting-Response" in output
    kept = service.rows("select status_type, user_name from accounting_records where session_id = ? order by id", b"S1")
    assert kept == [(1, "bob"), (3, "bob"), (2, "bob")]


def test_realms(device: Device, service: RunningService) -> None:
    """A realm in upper or lower case selects its domain. An unknown realm is rejected."""
    for name in ("carl@corp", "carl@CORP.example", r"corp\carl"):
        assert ACCEPTED in device.auth(*pap(name, "hello"), SIGNED), name
    assert REJECTED in device.auth(*pap("carl@elsewhere", "hello"), SIGNED)
    kept = service.rows("select user_name, domains.name, reason from events join domains on domains.id = domain_id "
                        "order by events.id desc limit 4")  # fmt: skip
    assert kept[1:] == [("carl", "corp", "no provider")] * 3  # the reason of the reject in enforce mode
    assert kept[0][2] == "unknown realm"


def test_many_attributes(device: Device) -> None:
    """A request with 190 attributes is answered, with all its Proxy-States in order.

    A request with 210 attributes is dropped.
    """
    states = [f"Proxy-State = 0x{number:02x}" for number in range(20)]
    classes = ["Class = 0x0102030405" for _ in range(187)]
    output = device.auth(*pap("bob"), SIGNED, *states, *classes[:167])
    answer = output.partition(ACCEPTED)[2]
    assert re.findall(r"Proxy-State = 0x(..)", answer) == [f"{number:02x}" for number in range(20)]
    assert "No reply" in device.auth(*pap("bob"), SIGNED, *states, *classes, wait_s=1)


def test_the_devices(device: Device, service: RunningService) -> None:
    """Each NAS that radclient plays is a device with its own medium.

    A wrong password in an unsigned request registers no device.
    """
    nas = ("NAS-IP-Address = 10.9.0.2", 'NAS-Identifier = "wlan-1"', "NAS-Port-Type = Wireless-802.11")
    assert ACCEPTED in device.auth(*pap("bob"), SIGNED, *nas)
    assert REJECTED in device.auth(*pap("bob", "wrong"), 'NAS-Identifier = "nobody"')
    found = {row["device_name"]: row for row in service.devices()}
    assert "nobody" not in found
    row = found["wlan-1"]
    assert (row["ip_address"], row["client_ip"], row["nas_port_type"]) == ("127.0.0.1", "10.9.0.2", "Wireless")


def test_ipv6(tmp_path: Path) -> None:
    """If the machine has IPv6, the address of a device over IPv6 is ::1."""
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    with running_service(tmp_path, {"SALLYPORT_RADIUS_AUTH_BIND": "[::1]:0"}) as service:
        populate(service, "::1")
        nas = "NAS-IPv6-Address = 2001:db8::7"
        output = radclient(tmp_path, "auth", f"[::1]:{service.ports.auth}", SECRET, [*pap("bob"), SIGNED, nas], "-6")
        assert ACCEPTED in output
        (row,) = service.devices()
    assert (row["ip_address"], row["client_ip"]) == ("::1", "2001:db8::7")
