"""Tests of evidence that several products share, that a product imitates, that is contradictory, or that is
insufficient."""

import pytest

from sallyport.radius.vendors import Certainty
from tests.radius.vendors.captures import capture, described, packet

NOTHING = "none"


def test_without_evidence_there_is_no_product() -> None:
    """A request that any RADIUS client could have sent identifies no product."""
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
    """MS-CHAP indicates no product.

    MS-RAS-Vendor indicates RRAS only if its value is 311 and RRAS's other attributes are present.
    """
    assert described(packet(*lines).identity().nas) == NOTHING


def test_softether_is_not_rras() -> None:
    """SoftEther imitates all attributes of RRAS, but the client name that it sends is a version."""
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
    assert described(imitation.identity().nas) == NOTHING
    named = imitation.less("MS-RAS-Client-Name", "MS-RAS-Client-Version").plus("NAS-Identifier = SoftEther VPN Server")
    assert described(named.identity().nas) == NOTHING


def test_vendor_attributes_take_precedence_over_rras() -> None:
    """A vendor's own attribute takes precedence over Microsoft's values."""
    identity = capture("microsoft-rras").less("Proxy-State").plus("Fortinet-Vdom-Name = root").identity()
    assert described(identity.nas) == "Fortinet FortiGate, certain: Vendor-Specific 12356/3"


@pytest.mark.parametrize("name", ["meraki-mr", "ruckus-smartzone", "aruba-instant-on", "cisco-asa", "cisco-wlc"])
def test_a_shared_cisco_pair_is_no_evidence(name: str) -> None:
    """If audit-session-id is present with another product's attributes, it does not indicate IOS and does not
    contradict the product."""
    itself = capture(name).identity().nas
    assert capture(name).plus("Cisco-AVPair = audit-session-id=0A0A0A0A00000001").identity().nas == itself


def test_contradicting_vendors_are_probable() -> None:
    """If a request has attributes of two vendors, the first vendor in the list is probable, and the evidence of both is
    shown."""
    identity = capture("fortinet-vpn").plus("Aruba-Essid-Name = corp").identity()
    assert described(identity.nas) == (
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
def test_attributes_that_servers_add_are_no_evidence(line: str) -> None:
    """A server that forwards a request may add attributes, such as the roles of ClearPass."""
    assert described(packet(line).identity().nas) == NOTHING


def test_an_unknown_vendor_invalidates_formats() -> None:
    """If a request has attributes of an unknown vendor, the format of a value does not indicate UniFi or hostapd."""
    for name in ("ubiquiti-unifi", "hostapd-ap", "cisco-ios-old", "pam_radius-sshd"):
        assert described(capture(name).plus('Attr-26.26928.5 = "AH-01"').identity().nas) == NOTHING


def test_an_unknown_vendor_does_not_invalidate_names() -> None:
    """A NAS-Identifier with a literal value is evidence, whatever vendor attributes are present."""
    named = capture("strongswan-eap").plus("Attr-26.26928.5 = 0x01").identity().nas
    assert named is not None
    assert named.product == "strongSwan"


def test_connect_info_takes_precedence_over_the_name() -> None:
    """An exact Connect-Info is stronger evidence than a name that the admin chose."""
    identity = packet("Connect-Info = vpn-ikev2", "NAS-Identifier = strongSwan").identity()
    assert described(identity.nas) == "Fortinet FortiGate, certain: Connect-Info vpn-ikev2"


@pytest.mark.parametrize("info", ["test", "VPN-SSL", "vpn-ssl ", "vpn", "CONNECT 54Mbps 802.11a"])
def test_connect_info_must_be_exact(info: str) -> None:
    """A Connect-Info that only resembles that of FortiGate is no evidence."""
    assert described(packet(f"Connect-Info = {info}").identity().nas) == NOTHING


@pytest.mark.parametrize("name", ["openvpn", "OpenVPN", "OPENVPN", "webConfigurator", "mikrotik", "strongswan", "sshd"])
def test_names_must_be_exact(name: str) -> None:
    """A name with another spelling is no evidence, because the admin chose it."""
    assert described(packet(f"NAS-Identifier = {name}").identity().nas) == NOTHING


@pytest.mark.parametrize("name", ["pfsense-openvpn", "mikrotik-default-name", "openvpn-plugin", "cisco-ios-old"])
def test_a_name_or_a_format_alone_is_probable(name: str) -> None:
    """A name or a format alone never makes a product certain, because an admin can set it."""
    nas = capture(name).identity().nas
    assert nas is not None
    assert nas.certainty is Certainty.PROBABLE


@pytest.mark.parametrize("user", ["meraki_8021x_test", "MikroTik", "openVPN"])
def test_a_user_name_is_no_evidence(user: str) -> None:
    """A user name is no evidence, because a user can enter any name."""
    assert described(packet(f"User-Name = {user}").identity().nas) == NOTHING


def test_airespace_wlan_id_indicates_a_wlc_or_a_9800() -> None:
    """WLC and Catalyst 9800 both send Airespace-Wlan-Id. The AV pairs or the port name of a 9800 distinguish them."""
    bare = packet("Airespace-Wlan-Id = 2")
    assert described(bare.identity().nas) == "Cisco WLC, certain: Vendor-Specific 14179/1"
    port = bare.plus("NAS-Port-Id = capwap_90000004").identity().nas
    assert described(port) == "Cisco Catalyst 9800, certain: Vendor-Specific 14179/1; NAS-Port-Id capwap_90000004"


def test_a_product_that_contains_hostapd_is_named() -> None:
    """A product that contains hostapd is identified by its own evidence.

    Without such evidence it is identified as hostapd.
    """
    unifi = capture("ubiquiti-unifi")
    assert described(unifi.identity().nas).startswith("Ubiquiti UniFi, probable")
    renamed = unifi.less("NAS-Identifier").plus("NAS-Identifier = lobby")
    assert described(renamed.identity().nas).startswith("hostapd, probable")
    assert described(capture("meraki-mr").identity().nas).startswith("Cisco Meraki, certain")


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
def test_an_incomplete_format_is_no_evidence(name: str, without: list[str]) -> None:
    assert described(capture(name).less(*without).identity().nas) == NOTHING


@pytest.mark.parametrize(
    "line",
    ["Acct-Session-Id = 00000001", "Called-Station-Id = 192.0.2.1", "NAS-Port-Id = tty1", "NAS-Port = 4194305"],
)
def test_pam_radius_never_sends_these(line: str) -> None:
    """A request with Service-Type 8 is not from PAM if it has a session, a called station, a port name, or a port
    number above any process ID."""
    sshd = capture("pam_radius-sshd").less(line.partition(" = ")[0]).plus(line)
    assert described(sshd.identity().nas) == NOTHING


def test_evidence_contains_no_user_data() -> None:
    """Evidence is printable. It contains no user name, no address of a user, and no text after a known prefix."""
    nas = capture("cisco-asa").identity().nas
    assert nas is not None
    assert not any("203.0.113.7" in line or "AnyConnect" in line for line in nas.evidence)
