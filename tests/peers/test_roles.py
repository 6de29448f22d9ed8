"""A rule with a role gives each product its own attributes. radclient sends as the products do, and FreeRADIUS's
dictionaries name the attributes of the answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.programs import needs, radclient
from tests.running_service import RunningService, running_service

SECRET = "radclient's secret"
PASSWORD = "hello world"
ARUBA = 'Aruba-Essid-Name = "corp"'
MIKROTIK = "Mikrotik-Host-IP = 192.0.2.9"
SWITCH = 'Cisco-AVPair = "audit-session-id=1"'
FORTIGATE = 'Connect-Info = "vpn-ssl"'

pytestmark = [pytest.mark.peer, needs("radclient")]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service whose only rule gives everybody the role staff."""
    with running_service(tmp_path_factory.mktemp("service")) as service:
        service.add_client("radclient", "127.0.0.1", SECRET)
        service.add_user("bob", PASSWORD)

        def role(**fields: object) -> None:
            service.run("/ad/SetRole", {"role": "staff", **fields}, domain="default")

        role(vlan="20", replyAttributes=[{"name": "Session-Timeout", "value": "28800"}])
        role(product="Aruba Wireless", template=True)
        role(product="Fortinet FortiGate", template=True)
        limits = [{"name": "Mikrotik-Rate-Limit", "value": "10M/50M"}, {"name": "Idle-Timeout", "value": "600"}]
        role(product="MikroTik RouterOS", template=True, replyAttributes=limits)
        acl = ("ip:inacl#10=permit ip any any", "url-redirect=https://guest.example/")
        pairs = [{"name": "Cisco-AVPair", "value": value} for value in acl]
        role(product="Cisco IOS", template=True, vlan="30", replyAttributes=pairs)
        service.add_rule("default", name="all", action="allow", everyone=True, role="staff")
        yield service


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        pytest.param(ARUBA, ['Aruba-User-Role = "staff"'], id="Aruba"),
        pytest.param(FORTIGATE, ['Fortinet-Group-Name = "staff"'], id="FortiGate"),
        pytest.param(
            MIKROTIK,
            ['Mikrotik-Group = "staff"', 'Mikrotik-Rate-Limit = "10M/50M"', "Idle-Timeout = 600"],
            id="MikroTik",
        ),
        pytest.param(
            SWITCH,
            [
                "Tunnel-Type:0 = VLAN", "Tunnel-Medium-Type:0 = IEEE-802", 'Tunnel-Private-Group-Id:0 = "30"',
                'Filter-Id = "staff.in"', 'Cisco-AVPair = "ip:inacl#10=permit ip any any"',
                'Cisco-AVPair = "url-redirect=https://guest.example/"',
            ],
            id="Cisco switch",
        ),
        pytest.param(
            'NAS-Identifier = "pam"',
            ["Tunnel-Type:0 = VLAN", 'Tunnel-Private-Group-Id:0 = "20"', "Session-Timeout = 28800"],
            id="another product",
        ),
    ],
)  # fmt: skip
def test_each_product_gets_its_attributes(
    service: RunningService, tmp_path: Path, evidence: str, expected: list[str]
) -> None:
    """The answer has all attributes of the product's set, and no attribute of the default set."""
    name = evidence if evidence.startswith("NAS-Identifier") else f'NAS-Identifier = "{len(evidence)}"'
    request = ['User-Name = "bob"', f'User-Password = "{PASSWORD}"', "Message-Authenticator = 0x00", name]
    output = radclient(tmp_path, "auth", f"127.0.0.1:{service.ports.auth}", SECRET, [*request, evidence])
    assert "Received Access-Accept" in output
    for line in expected:
        assert line in output
    assert ("Session-Timeout" in output) is ("Session-Timeout = 28800" in expected)
