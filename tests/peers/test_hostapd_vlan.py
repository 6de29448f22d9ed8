"""Tests of 802.1X with EAP at the service. hostapd is the switch and applies the VLAN in the answer, and wpa_supplicant
is the station."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sallyport.certs.folder import CertificateFolder
from tests.certs.conftest import HOST, made
from tests.peers.freeradius import eventually
from tests.peers.namespace import Machine, may_unshare
from tests.peers.programs import find, needs
from tests.peers.test_dynamic_hostapd import DYNAMIC, PASSWORD, SECRET, SWITCH, hostapd, live, machine
from tests.running_service import RunningService

__all__ = ["machine", "made"]

VLANS = """\
dynamic_vlan=1
vlan_file={file}
vlan_naming=1
"""
STATION = """\
ap_scan=0
network={{
    key_mgmt=IEEE8021X
    eap=PEAP
    anonymous_identity="anonymous"
    identity="{user}"
    password="{password}"
    ca_cert="{ca}"
    domain_match="{host}"
    phase2="auth=MSCHAPV2"
    eapol_flags=0
}}
"""

pytestmark = [
    pytest.mark.peer,
    needs("hostapd", "wpa_supplicant", "ip"),
    pytest.mark.skipif(not may_unshare(), reason="a network of its own is not permitted"),
]


@pytest.fixture
def service(machine: Machine, made: Path, tmp_path: Path) -> Iterator[RunningService]:
    """Yield a service on the machine of the switch. Users get VLAN 20, and computers get VLAN 30."""
    (tmp_path / "service").mkdir()
    service = RunningService(tmp_path / "service", wrapper=machine.wrapper)
    service.data_dir.mkdir(mode=0o700)
    shutil.copytree(made / "certs", service.data_dir / "certs")
    service.start()
    try:
        service.add_client("switch", "127.0.0.1", SECRET, "default", coaPort=DYNAMIC)
        for name in ("ann", "host/pc1.corp.example"):
            service.add_user(name, PASSWORD)
        for kind, vlan in (("user", "20"), ("machine", "30")):
            service.add_rule("default", name=kind, action="allow", kinds=[kind], vlan=vlan)
        yield service
        service.stop()
    finally:
        service.kill()


@pytest.mark.parametrize(("user", "vlan"), [("ann", 20), ("host/pc1.corp.example", 30)])
def test_a_station_gets_its_vlan(service: RunningService, machine: Machine, made: Path, user: str, vlan: int) -> None:
    """After a complete PEAP login the switch reports the VLAN of the answer. The session is listed and can be ended."""
    vlans, file = machine.directory / "vlans", machine.directory / "station.conf"
    vlans.write_text("20 people\n30 computers\n")
    # The wired driver does not make the interfaces of VLANs.
    machine.run("ip", "link", "add", "people", "type", "veth", "peer", "name", "computers")
    ports = service.ports
    settings = SWITCH.format(auth=ports.auth, acct=ports.acct, secret=SECRET, port=DYNAMIC)
    output = hostapd(machine, "switch", settings + VLANS.format(file=vlans))
    file.write_text(STATION.format(user=user, password=PASSWORD, ca=CertificateFolder(made).ca, host=HOST))
    supplicant = (find("wpa_supplicant"), "-d", "-D", "wired", "-i", "station0", "-c", str(file))
    machine.start(machine.directory / "station", *supplicant)
    eventually(lambda: len(live(service)) == 1, output, limit_s=60)
    assert f"VLAN ID {vlan}" in output.read_text(errors="replace")
    (session,) = live(service)
    assert session["userName"] == user
    (result,) = service.disconnect(session["sessionId"])
    assert result["outcome"] == "ack"
