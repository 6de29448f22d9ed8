"""Evidence that is shared, imitated, contradictory or too little."""

import pytest

from sallyport.vendors import Certainty
from tests.vendors.captures import capture, packet, told

NOTHING = "none"


def test_no_evidence_is_no_product() -> None:
    """A request that any RADIUS client could have sent names no product."""
    identity = packet("User-Name = bob", "User-Password = hello", "NAS-IP-Address = 192.0.2.10").identity()
    assert identity.nas is None
    assert identity.product is None
    assert not identity.forwarded


@pytest.mark.parametrize(
    "lines",
    [
        ["MS-CHAP-Challenge = 0xc3ecc897daed3f010d860fe7ae1331c3", "MS-CHAP-Domain = EXAMPLE"],
        ["MS-RAS-Vendor = 311"],
        ["MS-RAS-Vendor = 9", "MS-Network-Access-Server-Type = 2"],
        ["MS-Network-Access-Server-Type = 2"],
        ["Attr-26.311.9 = 0x0137", "MS-Network-Access-Server-Type = 2"],
    ],
)
def test_microsoft_attributes_count_by_value(lines: list[str]) -> None:
    """MS-CHAP is not specific, and MS-RAS-Vendor indicates RRAS only as 311 with RRAS's other attributes."""
    assert told(packet(*lines).identity().nas) == NOTHING


def test_softether_is_not_rras() -> None:
    """SoftEther imitates RRAS attribute by attribute; the client's name that is a version gives it away."""
    imitation = packet(
        "Service-Type = Framed-User",
        "Framed-Protocol = PPP",
        "NAS-Port-Type = Virtual",
        "Tunnel-Client-Endpoint = 203.0.113.7",
        "MS-Network-Access-Server-Type = 2",
        "MS-RAS-Vendor = 311",
        "MS-RAS-Version = MSRASV5.20",
        "MS-RAS-Client-Version = MSRASV5.20",
        "MS-RAS-Client-Name = MSRASV5.20",
    )
    assert told(imitation.identity().nas) == NOTHING
    named = imitation.less("MS-RAS-Client-Name", "MS-RAS-Client-Version").plus("NAS-Identifier = SoftEther VPN Server")
    assert told(named.identity().nas) == NOTHING


def test_an_rras_in_a_vendors_packet_is_weaker() -> None:
    """A vendor's own attribute goes before Microsoft's values."""
    identity = capture("microsoft-rras").less("Proxy-State").plus("Fortinet-Vdom-Name = root").identity()
    assert told(identity.nas) == "Fortinet FortiGate, certain: Vendor-Specific 12356/3"


@pytest.mark.parametrize("name", ["meraki-mr", "ruckus-smartzone", "aruba-instant-on", "cisco-asa", "cisco-wlc"])
def test_ciscos_pairs_are_shared(name: str) -> None:
    """audit-session-id beside another product's attributes is no sign of IOS, and no contradiction."""
    itself = capture(name).identity().nas
    assert capture(name).plus("Cisco-AVPair = audit-session-id=0A0A0A0A00000001").identity().nas == itself


def test_contradicting_vendors_are_probable() -> None:
    """Attributes of two vendors at once: the first of the list, with the evidence of both, no longer certain."""
    identity = capture("fortinet-vpn").plus("Aruba-Essid-Name = corp").identity()
    assert told(identity.nas) == (
        "Fortinet FortiGate, probable: Vendor-Specific 12356/3; Connect-Info vpn-ssl; Vendor-Specific 14823/5"
    )


@pytest.mark.parametrize(
    "line",
    [
        "Aruba-CPPM-Role = guest",
        "Aruba-User-Role = guest",
        "Fortinet-Group-Name = vpn",
        "PaloAlto-Admin-Role = superuser",
        "HP-Privilege-Level = 15",
        "Mikrotik-Group = full",
        "Airespace-QOS-Level = 0",
        "Cisco-AVPair = shell:priv-lvl=15",
    ],
)
def test_attributes_of_answers_are_no_evidence(line: str) -> None:
    """What a server puts into a request on its way, such as ClearPass its roles, names no NAS."""
    assert told(packet(line).identity().nas) == NOTHING


def test_a_stranger_silences_formats() -> None:
    """With an unknown vendor's attributes a format does not make the access point a UniFi or a hostapd."""
    for name in ("ubiquiti-unifi", "hostapd-ap", "cisco-ios-old", "pam_radius-sshd"):
        assert told(capture(name).plus('Attr-26.26928.5 = "AH-01"').identity().nas) == NOTHING


def test_a_stranger_does_not_silence_names() -> None:
    """A literal NAS-Identifier stands, whatever vendor attributes are there."""
    named = capture("strongswan-eap").plus("Attr-26.26928.5 = 0x01").identity().nas
    assert named is not None
    assert named.product == "strongSwan"


def test_connect_info_goes_before_the_name() -> None:
    """Connect-Info word for word is stronger than a name that the admin chose."""
    identity = packet("Connect-Info = vpn-ikev2", "NAS-Identifier = strongSwan").identity()
    assert told(identity.nas) == "Fortinet FortiGate, certain: Connect-Info vpn-ikev2"


@pytest.mark.parametrize("info", ["test", "VPN-SSL", "vpn-ssl ", "vpn", "CONNECT 54Mbps 802.11a"])
def test_connect_info_must_be_exact(info: str) -> None:
    """A Connect-Info that only resembles FortiGate's is no evidence."""
    assert told(packet(f"Connect-Info = {info}").identity().nas) == NOTHING


@pytest.mark.parametrize("name", ["openvpn", "OpenVPN", "OPENVPN", "webConfigurator", "mikrotik", "strongswan", "sshd"])
def test_names_must_be_exact(name: str) -> None:
    """A name in another spelling is the admin's own."""
    assert told(packet(f"NAS-Identifier = {name}").identity().nas) == NOTHING


@pytest.mark.parametrize("name", ["pfsense-openvpn", "mikrotik-default-name", "openvpn-plugin", "cisco-ios-old"])
def test_what_an_admin_can_set_is_probable(name: str) -> None:
    """A name or a format alone never makes a product certain."""
    nas = capture(name).identity().nas
    assert nas is not None
    assert nas.certainty is Certainty.PROBABLE


@pytest.mark.parametrize("user", ["meraki_8021x_test", "MikroTik", "openVPN"])
def test_a_user_name_is_no_evidence(user: str) -> None:
    """What a user can type names no product."""
    assert told(packet(f"User-Name = {user}").identity().nas) == NOTHING


def test_a_wlan_number_makes_a_wlc_unless_a_9800_shows() -> None:
    """Both controllers send Airespace-Wlan-Id; the 9800's own pairs or port decide."""
    bare = packet("Airespace-Wlan-Id = 2")
    assert told(bare.identity().nas) == "Cisco WLC, certain: Vendor-Specific 14179/1"
    port = bare.plus("NAS-Port-Id = capwap_90000004").identity().nas
    assert told(port) == "Cisco Catalyst 9800, certain: Vendor-Specific 14179/1; NAS-Port-Id capwap_90000004"


def test_hostapd_inside_is_not_hostapd_outside() -> None:
    """A product that contains hostapd is named by its own evidence, and hostapd only without other evidence."""
    unifi = capture("ubiquiti-unifi")
    assert told(unifi.identity().nas).startswith("Ubiquiti UniFi, probable")
    renamed = unifi.less("NAS-Identifier").plus("NAS-Identifier = lobby")
    assert told(renamed.identity().nas).startswith("hostapd, probable")
    assert told(capture("meraki-mr").identity().nas).startswith("Cisco Meraki, certain")


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("hostapd-ap", ["Acct-Session-Id"]),
        ("hostapd-ap", ["WLAN-AKM-Suite", "Connect-Info"]),
        ("opnsense-login", ["Framed-Protocol"]),
        ("opnsense-login", ["NAS-Port"]),
        ("f5-apm", ["Tunnel-Client-Endpoint"]),
        ("pam_radius-sshd", ["NAS-Port"]),
        ("pam_radius-sshd", ["NAS-Identifier"]),
        ("strongswan-renamed", ["Called-Station-Id"]),
        ("openvpn-debian", ["Service-Type"]),
        ("mikrotik-logoff", ["NAS-Port"]),
        ("mikrotik-logoff", ["WISPr-Logoff-URL"]),
        ("cisco-ios-old", ["NAS-Port-Type"]),
    ],
)
def test_half_a_format_is_nothing(name: str, without: list[str]) -> None:
    """An incomplete format is no evidence."""
    assert told(capture(name).less(*without).identity().nas) == NOTHING


@pytest.mark.parametrize(
    "line",
    ["Acct-Session-Id = 00000001", "Called-Station-Id = 192.0.2.1", "NAS-Port-Id = tty1", "NAS-Port = 4194305"],
)
def test_pam_radius_never_sends_these(line: str) -> None:
    """Service-Type 8 with a session, a called station, a port's name or a port above any process is not PAM's."""
    sshd = capture("pam_radius-sshd").less(line.partition(" = ")[0]).plus(line)
    assert told(sshd.identity().nas) == NOTHING


def test_evidence_repeats_no_users_data() -> None:
    """Evidence is printable and holds no user, address of a user, or text behind a known prefix."""
    nas = capture("cisco-asa").identity().nas
    assert nas is not None
    assert not any("203.0.113.7" in line or "AnyConnect" in line for line in nas.evidence)
