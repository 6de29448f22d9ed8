"""Tests of MAC authentication bypass with radclient (FreeRADIUS) as the access point or switch.

The attributes are those of hostapd's query for its RADIUS ACL (`macaddr_acl=2`, src/ap/ieee802_11_auth.c of hostapd
2.10), which needs an access point with a radio. radclient decrypts Tunnel-Password and Aruba-MPSK-Passphrase by its own
dictionaries.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.programs import needs, radclient
from tests.running_service import RunningService, running_service

SECRET = "radclient's secret"
KEY = "correct horse battery"
STATION, GUEST = "00a0c9000001", "da0000000002"

pytestmark = [pytest.mark.peer, needs("radclient")]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service with a listed station that has a role, and with a rule for guests."""
    with running_service(tmp_path_factory.mktemp("service"), {"SALLYPORT_REJECT_DELAY_S": "0"}) as service:
        service.add_client("ap", "127.0.0.1", SECRET)
        role = ("role", "set", "staff", "--domain", "default")
        service.ok(*role, "--vlan", "20")
        service.ok(*role, "--product", "Aruba Wireless", "--reply", "Aruba-User-Role=staff")
        service.ok(*role, "--product", "Cisco WLC", "--reply", "Filter-Id=staff")
        entry = ("bypass", "add", STATION, "--domain", "default", "--role", "staff", "--psk", "-")
        service.ok(*entry, input=f"{KEY}\n")
        service.ok("domain", "set", "default", "--unknown-stations", "rules")
        service.add_rule("default", name="guests", action="allow", kinds=["unknown"], media=["Wireless"], vlan="99")
        yield service


def ask(
    service: RunningService, directory: Path, station: str, port_type: str = "Wireless-802.11", ssid: str = "staff"
) -> str:
    """Send the query of hostapd about a station. Return radclient's output."""
    text = "-".join(station[at : at + 2] for at in range(0, 12, 2)).upper()
    attributes = (
        f'User-Name = "{station}"',
        f'User-Password = "{station}"',
        'NAS-Identifier = "ap-7"',
        f'Called-Station-Id = "00-11-22-33-44-55:{ssid}"',
        f'Calling-Station-Id = "{text}"',
        f"NAS-Port-Type = {port_type}",
        'Connect-Info = "CONNECT 11Mbps 802.11b"',
        "Message-Authenticator = 0x00",
    )
    server = f"127.0.0.1:{service.ports.auth}"
    return radclient(directory, "auth", server, SECRET, attributes, "-x", tries=1, wait_s=5)


PRODUCTS = {
    "hostapd": (f'Tunnel-Password:0 = "{KEY}"', 'Tunnel-Private-Group-Id:0 = "20"'),
    "Aruba Wireless": (f"Aruba-MPSK-Passphrase = 0x{KEY.encode().hex()}", 'Aruba-User-Role = "staff"'),
    "Cisco WLC": ('Cisco-AVPair = "psk-mode=ascii"', f'Cisco-AVPair = "psk={KEY}"', 'Filter-Id = "staff"'),
}


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_station_gets_its_key_and_its_network(service: RunningService, tmp_path: Path, product: str) -> None:
    """Each product gets the key and the role in its own attributes, and radclient reads them. No event and no log has
    the key."""
    service.ok("client", "set", "ap", "--product", product)
    output = ask(service, tmp_path, STATION)
    assert "Received Access-Accept" in output
    for expected in PRODUCTS[product]:
        assert expected in output, output
    events = service.ok("event", "list", "--domain", "default", "--json")
    audit = service.ok("audit", "list", "--json")
    assert KEY not in service.log() + events + audit
    assert KEY.encode() not in service.stored()


def test_an_unknown_station_gets_the_guest_network(service: RunningService, tmp_path: Path) -> None:
    """An unknown station gets the VLAN of guests and no key. On a switch, no rule admits it."""
    service.ok("client", "set", "ap", "--product", "hostapd")
    output = ask(service, tmp_path, GUEST)
    assert "Received Access-Accept" in output and 'Tunnel-Private-Group-Id:0 = "99"' in output
    assert "Tunnel-Password" not in output
    assert "Received Access-Reject" in ask(service, tmp_path, GUEST, "Ethernet")


def test_an_ssid_decides_about_an_unknown_station(service: RunningService, tmp_path: Path) -> None:
    """The SSID in Called-Station-Id selects the rule, whatever colons and case it has. The event has it."""
    service.add_rule("default", name="lobby", action="allow", kinds=["unknown"], ssids=["Lobby: 1"], vlan="98")
    service.run("/ad/UpdateLoginRule", {"ruleId": newest_rule(service), "before": 1}, domain="default")
    for ssid, vlan in (("lobby: 1", 98), ("lobby", 99)):
        output = ask(service, tmp_path, GUEST, ssid=ssid)
        assert f'Tunnel-Private-Group-Id:0 = "{vlan}"' in output
        assert service.rows("select ssid from events order by id desc limit 1") == [(ssid,)]


def newest_rule(service: RunningService) -> int:
    """Return the id of the newest login rule."""
    rules = service.run("/ad/ListLoginRules", {}, domain="default")["rules"]
    return max(int(each["ruleId"]) for each in rules)
