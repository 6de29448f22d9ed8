"""Tests of hostapd's RADIUS server as the home server. It supports only EAP, and does not answer Status-Server.

It listens on all addresses. Therefore it runs in a network of its own, together with the service and the station.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.areas.mfa.certificates import self_signed
from tests.peers.eapol import KEYS, SUCCESS, eapol_test
from tests.peers.freeradius import eventually
from tests.peers.namespace import Machine, may_unshare
from tests.peers.programs import find, needs
from tests.running_service import RunningService

SECRET, HOME_SECRET, PASSWORD = "between-nas-and-service", "between-service-and-home", "hello"
PORT = 1645

HOSTAPD = """\
interface=lo
driver=none
logger_stdout=-1
logger_stdout_level=0
eap_server=1
eap_user_file={directory}/users
radius_server_clients={directory}/clients
radius_server_auth_port={port}
ca_cert={directory}/home.pem
server_cert={directory}/home.pem
private_key={directory}/home.key
"""

pytestmark = [
    pytest.mark.peer,
    needs("hostapd", "eapol_test"),
    pytest.mark.skipif(not may_unshare(), reason="a network of its own is not permitted"),
]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Return a machine on which hostapd is running."""
    directory = tmp_path_factory.mktemp("hostapd")
    self_signed(directory, "home")
    inner = f'"ann" MSCHAPV2,TTLS-PAP,TTLS-MSCHAPV2 "{PASSWORD}" [2]\n'
    (directory / "users").write_text(f'"ann" PEAP,TTLS\n"@"* PEAP,TTLS\n{inner}')
    (directory / "clients").write_text(f"127.0.0.1/32 {HOME_SECRET}\n")
    (directory / "hostapd.conf").write_text(HOSTAPD.format(directory=directory, port=PORT))
    with Machine(directory, {}, resolver="127.0.0.1") as machine:
        output = directory / "output"
        machine.start(output, find("hostapd"), "-d", str(directory / "hostapd.conf"))
        eventually(lambda: "AP-ENABLED" in output.read_text(errors="replace"), output)
        yield machine


@pytest.fixture(scope="module")
def service(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service in the same network that passes its logins on to hostapd."""
    service = RunningService(tmp_path_factory.mktemp("service"), wrapper=machine.wrapper)
    service.start()
    try:
        service.add_client("devices", "127.0.0.1", SECRET)
        server = {"host": "127.0.0.1", "port": PORT, "secret": HOME_SECRET}
        fields = {"radius": {"servers": [server]}}
        service.run("/ad/SetFirstFactor", {"firstFactor": "radius", **fields}, domain="default")
        yield service
        service.stop()
    finally:
        service.kill()


@pytest.mark.parametrize("hidden", ["", 'anonymous_identity="@default"\n'], ids=["", "hidden"])
@pytest.mark.parametrize("method", ['eap=PEAP\nphase2="auth=MSCHAPV2"', 'eap=TTLS\nphase2="auth=PAP"'])
def test_eap_with_keys(tmp_path: Path, machine: Machine, service: RunningService, method: str, hidden: str) -> None:
    """The complete conversation is passed on, and the station has the keys. The outer identity may hide the user."""
    network = f'{method}\n{hidden}identity="ann"\npassword="{PASSWORD}"\nca_cert="{machine.directory}/home.pem"'
    with machine.inside():
        output = eapol_test(tmp_path, service.ports.auth, SECRET, network)
    assert SUCCESS in output
    assert KEYS in output


def test_a_wrong_password(tmp_path: Path, machine: Machine, service: RunningService) -> None:
    """The station receives the Reject of hostapd."""
    network = f'eap=PEAP\nphase2="auth=MSCHAPV2"\nidentity="ann"\npassword="no"\nca_cert="{machine.directory}/home.pem"'
    with machine.inside():
        output = eapol_test(tmp_path, service.ports.auth, SECRET, network)
    assert SUCCESS not in output
    assert service.rows("select reason from events order by id desc limit 1") == [("refused by the upstream server",)]
