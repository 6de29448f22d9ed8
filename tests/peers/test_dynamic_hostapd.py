"""Tests of hostapd's own dynamic authorization: a real station on a wired port is disconnected.

hostapd is the switch at one end of a cable, and wpa_supplicant is the station at the other end. The switch sends logins
and accounting to the service. The service passes EAP on to another hostapd, and asks the switch to end the session.
All of them are in a network of their own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.peers.freeradius import eventually
from tests.peers.namespace import Machine, may_unshare
from tests.peers.programs import find, needs
from tests.running_service import RunningService

SECRET, HOME_SECRET, PASSWORD = "between-switch-and-service", "between-service-and-home", "hello"
DYNAMIC, HOME = 3799, 1645

HOME_SERVER = """\
interface=lo
driver=none
eap_server=1
eap_user_file={directory}/users
radius_server_clients={directory}/clients
radius_server_auth_port={port}
"""
SWITCH = """\
interface=switch0
driver=wired
logger_stdout=-1
logger_stdout_level=0
ieee8021x=1
use_pae_group_addr=1
own_ip_addr=192.0.2.7
nas_identifier=switch-1
auth_server_addr=127.0.0.1
auth_server_port={auth}
auth_server_shared_secret={secret}
acct_server_addr=127.0.0.1
acct_server_port={acct}
acct_server_shared_secret={secret}
radius_das_port={port}
radius_das_client=127.0.0.1 {secret}
radius_das_require_event_timestamp=1
radius_das_require_message_authenticator=1
"""
STATION = """\
ap_scan=0
network={{
    key_mgmt=IEEE8021X
    eap=MD5
    identity="ann"
    password="{password}"
    eapol_flags=0
}}
"""

pytestmark = [
    pytest.mark.peer,
    needs("hostapd", "wpa_supplicant", "ip"),
    pytest.mark.skipif(not may_unshare(), reason="a network of its own is not permitted"),
]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Return a network with a cable in it."""
    (tmp_path / "machine").mkdir()
    with Machine(tmp_path / "machine", {}, resolver="127.0.0.1") as machine:
        machine.run("ip", "link", "add", "switch0", "type", "veth", "peer", "name", "station0")
        for end in ("switch0", "station0"):
            machine.run("ip", "link", "set", end, "up")
        yield machine


@pytest.fixture
def service(machine: Machine, tmp_path: Path) -> Iterator[RunningService]:
    """Yield a service with the switch as RADIUS client."""
    (tmp_path / "service").mkdir()
    with behind(machine, tmp_path / "service") as service:
        yield service


@contextmanager
def behind(machine: Machine, directory: Path) -> Iterator[RunningService]:
    """Yield a service for devices on its own machine.

    Another hostapd on that machine checks the password of ann. When ann is deleted, the service ends her sessions.
    """
    (machine.directory / "users").write_text(f'"ann" MD5 "{PASSWORD}"\n')
    (machine.directory / "clients").write_text(f"127.0.0.1/32 {HOME_SECRET}\n")
    hostapd(machine, "home", HOME_SERVER.format(directory=machine.directory, port=HOME))
    service = RunningService(directory, wrapper=machine.wrapper)
    service.start()
    try:
        service.add_client("switch", "127.0.0.1", SECRET, "default", coaPort=DYNAMIC)
        service.add_user("ann", PASSWORD)
        fields = {"radius": {"servers": [{"host": "127.0.0.1", "port": HOME, "secret": HOME_SECRET}]}}
        service.run("/ad/SetFirstFactor", {"firstFactor": "radius", **fields}, domain="default")
        service.run("/ad/UpdateDomain", {"disconnectOnRevoke": True}, domain="default")
        yield service
        service.stop()
    finally:
        service.kill()


def hostapd(machine: Machine, name: str, settings: str) -> Path:
    """Start hostapd, wait until it is ready, and return its log."""
    file, output = machine.directory / f"{name}.conf", machine.directory / name
    file.write_text(settings)
    machine.start(output, find("hostapd"), "-d", str(file))
    eventually(lambda: "AP-ENABLED" in output.read_text(errors="replace"), output)
    return output


@pytest.fixture
def station(machine: Machine, service: RunningService) -> Path:
    """Start the switch and log in a station. Return the log of the switch."""
    ports, file = service.ports, machine.directory / "station.conf"
    output = hostapd(machine, "switch", SWITCH.format(auth=ports.auth, acct=ports.acct, secret=SECRET, port=DYNAMIC))
    file.write_text(STATION.format(password=PASSWORD))
    supplicant = (find("wpa_supplicant"), "-d", "-D", "wired", "-i", "station0", "-c", str(file))
    machine.start(machine.directory / "station", *supplicant)
    eventually(lambda: len(live(service)) == 1, output, limit_s=60)
    return output


def live(service: RunningService) -> list[dict[str, Any]]:
    """Return the live sessions."""
    found: list[dict[str, Any]] = service.sessions(live=True)
    return found


def test_a_station_is_disconnected(service: RunningService, station: Path) -> None:
    """hostapd acknowledges the request, ends the session and sends accounting for its end."""
    (session,) = live(service)
    assert (session["userName"], session["device_name"], session["client_ip"]) == ("ann", "switch-1", "192.0.2.7")
    (result,) = service.disconnect(session["sessionId"])
    assert (result["outcome"], result["errorCause"]) == ("ack", None), station.read_text(errors="replace")[-4000:]
    eventually(lambda: session["sessionId"] not in [each["sessionId"] for each in live(service)], station, limit_s=60)
    past = {each["sessionId"]: each for each in service.sessions()}
    assert past[session["sessionId"]]["state"] == "stopped"


def test_a_deleted_user_is_disconnected(service: RunningService, station: Path) -> None:
    """If a user is deleted, the service disconnects the session and adds an entry to the audit trail."""
    (session,) = live(service)
    service.remove_user("ann")
    eventually(lambda: session["sessionId"] not in [each["sessionId"] for each in live(service)], station, limit_s=60)
    query = "select actor_kind, changes from audit_trail where action = 'session.disconnect'"
    eventually(lambda: len(service.rows(query)) == 1, station)
    assert service.rows(query) == [("service", '{"reason": [null, "the user was deleted"], "outcome": [null, "ack"]}')]


def test_a_coa_nak(service: RunningService, station: Path) -> None:
    """hostapd answers a CoA request with a CoA-NAK that has an Error-Cause, and the session continues."""
    (session,) = live(service)
    attributes = [{"name": "Session-Timeout", "value": "60"}]
    body = {"sessionId": session["sessionId"], "replyAttributes": attributes}
    (result,) = service.run("/network_device/ChangeSession", body, domain="default")["results"]
    assert (result["outcome"], result["errorText"]) == ("nak", "Unsupported-Attribute")
    assert [each["sessionId"] for each in live(service)] == [session["sessionId"]]
