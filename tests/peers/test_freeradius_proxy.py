"""Tests of FreeRADIUS as a proxy in front of the service. The two NAS behind it are two devices.

FreeRADIUS runs in debug mode with all its files in the test's directory, and logs every packet that it receives.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.peers.freeradius import NAS_AND_HOME, running_freeradius
from tests.peers.programs import needs, radclient
from tests.ports import free_port
from tests.running_service import RunningService, running_service

NAS_SECRET, HOME_SECRET = "between-nas-and-proxy", "between-proxy-and-service"
PROXY = "127.0.0.9"
PASSWORD = "hello"
DOMAIN = 1
ACCEPTED, REJECTED, ACCOUNTED = "Received Access-Accept", "Received Access-Reject", "Received Accounting-Response"

# The service sees the proxy's own source address, not the NAS's.
RADIUSD = """\
prefix = {directory}
logdir = {directory}
run_dir = {directory}
pidfile = {directory}/pid
max_request_time = 30
cleanup_delay = 5
proxy_requests = yes
log {{
    destination = stdout
}}
modules {{
}}
server proxy {{
    listen {{
        type = auth
        ipaddr = 127.0.0.1
        port = {port}
    }}
    listen {{
        type = acct
        ipaddr = 127.0.0.1
        port = {acct_port}
    }}
    authorize {{
        update control {{
            &Proxy-To-Realm := sallyport
        }}
    }}
    preacct {{
        update control {{
            &Proxy-To-Realm := sallyport
        }}
    }}
}}
"""

pytestmark = [pytest.mark.peer, needs("freeradius", "radclient")]


@dataclass(frozen=True)
class Nas:
    """A NAS behind the proxy, with its identity and its attributes."""

    identifier: str
    address: str
    attributes: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """Return the attributes of the NAS, including its identity."""
        return f'NAS-Identifier = "{self.identifier}"', f"NAS-IP-Address = {self.address}", *self.attributes


MIKROTIK = Nas("hotspot-1", "10.1.0.1", ('Mikrotik-Realm = "hotspot"', "NAS-Port-Type = Wireless-802.11"))
CISCO = Nas("switch-1", "10.1.0.2", ('Cisco-AVPair = "audit-session-id=0A0B"', "NAS-Port-Type = Ethernet"))


class Proxy:
    """The running FreeRADIUS."""

    def __init__(self, directory: Path, port: int, acct_port: int) -> None:
        self._directory = directory
        self._port = port
        self._acct_port = acct_port

    def login(self, nas: Nas, password: str = PASSWORD, *more: str) -> str:
        """Log bob in at a NAS, and return radclient's output."""
        credentials = ('User-Name = "bob"', f'User-Password = "{password}"', "Message-Authenticator = 0x00")
        return self._send("auth", self._port, (*credentials, *nas.all, *more))

    def account(self, nas: Nas) -> str:
        """Start a session at a NAS, and return radclient's output."""
        session = ('User-Name = "bob"', "Acct-Status-Type = Start", 'Acct-Session-Id = "S1"')
        return self._send("acct", self._acct_port, (*session, *nas.all))

    def received(self) -> str:
        """Return the packets that the proxy has received from the service so far."""
        text = (self._directory / "output").read_text(errors="replace")
        return "\n".join(re.findall(r"Received Access-\w+ Id \d+ from 127\.0\.0\.1:\d+ to .*(?:\n\(\d+\)   .*)*", text))

    def _send(self, kind: str, port: int, attributes: tuple[str, ...]) -> str:
        return radclient(self._directory, kind, f"127.0.0.1:{port}", NAS_SECRET, attributes)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service that has the proxy as its only RADIUS client."""
    with running_service(tmp_path_factory.mktemp("service")) as service:
        service.add_client("proxy", PROXY, HOME_SECRET)
        service.add_user("bob", PASSWORD)
        yield service


@pytest.fixture(scope="module")
def proxy(service: RunningService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """FreeRADIUS, ready."""
    with freeradius(tmp_path_factory.mktemp("raddb"), service) as proxy:
        yield proxy


@contextmanager
def freeradius(directory: Path, service: RunningService) -> Iterator[Proxy]:
    """Yield FreeRADIUS as a proxy that has the service as its home server."""
    port, acct_port = free_port(), free_port()
    configuration = (NAS_AND_HOME + RADIUSD).format(
        directory=directory, port=port, acct_port=acct_port, auth=service.ports.auth, acct=service.ports.acct,
        source=PROXY, nas_secret=NAS_SECRET, home_secret=HOME_SECRET,
    )  # fmt: skip
    with running_freeradius(directory, configuration):
        yield Proxy(directory, port, acct_port)


def devices(service: RunningService) -> dict[str, dict[str, Any]]:
    """Return the devices of the inventory from the API, keyed by NAS-Identifier."""
    body = {"orgId": 1, "tenantId": 1, "domainId": DOMAIN, "pageId": 1, "pageSize": 100}
    return {row["nas_identifier"]: row for row in service.post("/network_device/ListDevices", body)["network_devices"]}


def test_each_nas_behind_the_proxy_is_a_device(service: RunningService, proxy: Proxy) -> None:
    """The field ip_address is the address of the proxy, and client_ip is that of the NAS.

    The field device_type is the product of the proxy, and nas_device_type is that of the NAS.
    """
    assert ACCEPTED in proxy.login(MIKROTIK)
    assert ACCEPTED in proxy.login(CISCO)
    found = devices(service)
    assert set(found) == {"hotspot-1", "switch-1"}
    for nas, product, medium in ((MIKROTIK, "MikroTik RouterOS", "Wireless"), (CISCO, "Cisco IOS", "Ethernet")):
        device = found[nas.identifier]
        assert (device["ip_address"], device["client_ip"]) == (PROXY, nas.address)
        assert (device["device_type"], device["device_type_certainty"]) == ("FreeRADIUS", "probable")
        assert (device["nas_device_type"], device["nas_port_type"]) == (product, medium)


def test_answers_carry_the_proxy_states_back(proxy: Proxy) -> None:
    """The proxy gets its own Proxy-State and that of the NAS, unchanged and in order.

    The NAS gets its own Proxy-State.
    """
    output = proxy.login(CISCO, PASSWORD, "Proxy-State = 0x6e6173")
    assert "Proxy-State = 0x6e6173" in output.partition(ACCEPTED)[2]
    states = re.findall(r"Proxy-State = 0x([0-9a-f]+)", proxy.received().rpartition(ACCEPTED)[2])
    assert states[0] == "6e6173"
    assert re.fullmatch(r"(3[0-9]){1,3}", states[1]), "FreeRADIUS sends its packet's number in digits"
    assert len(states) == 2


def test_a_wrong_password_is_rejected_through_the_proxy(service: RunningService, proxy: Proxy) -> None:
    """The reject reaches the NAS, and the event names the NAS."""
    assert REJECTED in proxy.login(MIKROTIK, "wrong")
    (event,) = service.rows("select user_name, ip_address, client_ip, reason from events order by id desc limit 1")
    assert event == ("bob", PROXY, MIKROTIK.address, "wrong password")


def test_accounting_through_the_proxy(service: RunningService, proxy: Proxy) -> None:
    """An accounting record belongs to the device of the NAS."""
    assert ACCEPTED in proxy.login(CISCO)
    assert ACCOUNTED in proxy.account(CISCO)
    sql = "select nas_identifier from accounting_records join devices on devices.id = device_id"
    assert service.rows(sql) == [("switch-1",)]


def test_a_deleted_device_registers_again(service: RunningService, proxy: Proxy) -> None:
    """After DeleteDevice the next request through the proxy registers a new device.

    The history then has two registrations.
    """
    assert ACCEPTED in proxy.login(CISCO)
    assert ACCEPTED in proxy.login(MIKROTIK)
    before = devices(service)
    body = {"orgId": 1, "tenantId": 1, "domainId": DOMAIN, "deviceId": before["switch-1"]["device_id"]}
    assert service.post("/network_device/DeleteDevice", body)["code"] == 200
    assert set(devices(service)) == {"hotspot-1"}
    assert ACCEPTED in proxy.login(CISCO)
    after = devices(service)
    assert after["switch-1"]["device_id"] > before["switch-1"]["device_id"]
    assert after["switch-1"]["registrations"] == 2
    assert after["switch-1"]["request_count"] == 1
    assert after["hotspot-1"]["registrations"] == 1
