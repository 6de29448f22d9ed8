"""The SSID of a request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.radius.attributes import CALLED_STATION_ID, VENDOR_SPECIFIC, push_attribute, push_vendor_attribute
from sallyport.radius.vendors.ssid import MAX_OCTETS, ssid, ssid_of_called_station
from tests.packets import access_request, opened
from tests.radius.vendors.captures import NAMES, capture, packet

WIRELESS = "NAS-Port-Type = Wireless-802.11"
CISCO = 'Cisco-AVPair = "cisco-wlan-ssid='
MERAKI = 'Meraki-Ap-Name = "AP:1"'

FORMS = {
    "aa-bb-cc-dd-ee-ff:corp": "corp",
    "AA:BB:CC:DD:EE:FF:corp": "corp",
    "aabbccddeeff:corp": "corp",
    "aabb.ccdd.eeff:corp": "corp",
    "aabb-ccdd-eeff:corp": "corp",
    "aabb:ccdd:eeff:corp": "corp",
    "aabbcc-ddeeff:corp": "corp",
    "aa.bb.cc.dd.ee.ff:corp": "corp",
    "aa bb cc dd ee ff:corp": "corp",
    "aa-bb-cc-dd-ee-ff#corp": "corp",
    "aa-bb-cc-dd-ee-ff:a:b": "a:b",
    "aa:bb:cc:dd:ee:ff::": ":",
    "aa-bb-cc-dd-ee-ff:00:11:22": "00:11:22",
    "aa-bb-cc-dd-ee-ff: two words ": " two words ",
    "aa-bb-cc-dd-ee-ff:Büro": "Büro",
    "AP-12:corp": "corp",
    "AP 12 Berlin:a:b": "a:b",
    "aa-bb-cc-dd-ee-ff-lobby:corp": "corp",
    "aabbccddeeff0:corp": "corp",
    "aa-bb-cc-dd-ee-ff": "",
    "AA:BB:CC:DD:EE:FF": "",
    "aabbccddeeff": "",
    "aabb.ccdd.eeff": "",
    "aabbcc-ddeeff": "",
    "aa-bb-cc-dd-ee-ff:": "",
    "AP-12": "",
    "AP-12:": "",
    "192.0.2.1": "",
    "192.0.2.1:443": "",
    "192.0.2.1[4500]": "",
    "2001:db8::1": "",
    "2001:db8::1[4500]": "",
    "[2001:db8::1]:443": "",
    "aa-bb-cc-dd-ee-ff:" + "x" * 33: "",
    "aa-bb-cc-dd-ee-ff:" + "x" * 32: "x" * 32,
}


@pytest.mark.parametrize("called", FORMS)
@pytest.mark.parametrize("more", [(), (WIRELESS,)], ids=["no port type", "wireless"])
def test_called_station_id_has_the_ssid_behind_an_address_or_a_name(called: str, more: tuple[str, ...]) -> None:
    """A MAC address in any notation, and the name of an access point, are removed. An address alone is no SSID."""
    assert ssid(packet(f'Called-Station-Id = "{called}"', *more).request()) == FORMS[called]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([f'{CISCO}corp"'], "corp"),
        (['Cisco-AVPair = "audit-session-id=1"', 'Cisco-AVPair = "Cisco-WLAN-SSID=a=b"'], "a=b"),
        (['Aruba-Essid-Name = "corp"'], "corp"),
        (['Ruckus-SSID = "corp"'], "corp"),
        (['Trapeze-SSID = "corp"'], "corp"),
        (['Fortinet-SSID = "corp"'], "corp"),
        (['PacketFence-SSID = "corp"'], "corp"),
        (['Ruckus-SSID = "corp"', "NAS-Port-Type = Ethernet"], "corp"),
        (['Called-Station-Id = "aa-bb-cc-dd-ee-ff:other"', 'Aruba-Essid-Name = "corp"'], "corp"),
        (['Called-Station-Id = "aa-bb-cc-dd-ee-ff:corp"', 'Cisco-AVPair = "wlan-profile-name=x"'], "corp"),
        (['Called-Station-Id = "aa-bb-cc-dd-ee-ff:corp"', f'{CISCO}"'], "corp"),
        (['Called-Station-Id = "AP:1:corp"', MERAKI], "corp"),
        (['Called-Station-Id = "aa-bb-cc-dd-ee-ff:corp"', MERAKI], "corp"),
        (['Meraki-Network-Name = "Berlin"'], ""),
        (["Attr-26.14823.5 = 0x636f727000"], "corp"),
        (["Attr-26.25053.3 = 0x"], ""),
        ([], ""),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value).replace('"', "") or "nothing",
)
def test_vendor_attributes_come_first(lines: list[str], found: str) -> None:
    assert ssid(packet(*lines).request()) == found


@pytest.mark.parametrize("kind", ["Ethernet", "Virtual", "Cable"])
@pytest.mark.parametrize("called", ["aa-bb-cc-dd-ee-ff:fw", "vpn:corp"])
def test_a_port_without_radio_has_no_ssid_in_called_station_id(called: str, kind: str) -> None:
    """Firewalls send their own name behind a MAC address."""
    assert ssid(packet(f'Called-Station-Id = "{called}"', f"NAS-Port-Type = {kind}").request()) == ""


WITH_SSID = {
    "aruba-instant-on": "corp",
    "cisco-catalyst-9800": "corp",
    "cisco-wlc": "corp",
    "hostapd-ap": "corp",
    "meraki-cloud": "guests",
    "meraki-mr": "corp",
    "ruckus-smartzone": "corp",
    "ubiquiti-unifi": "corp",
}


def test_the_captured_packets_have_the_ssids_of_their_networks() -> None:
    """No captured packet of a switch, a firewall or a VPN gateway has an SSID."""
    found = {name: ssid(capture(name).request()) for name in NAMES}
    assert {name: text for name, text in found.items() if text} == WITH_SSID


hostile = st.one_of(
    st.binary(max_size=253),
    st.from_regex(rb"\A(?:[0-9a-f]{2}[-:.]?){6}[^a]{0,40}\Z"),
    st.sampled_from([b"a:" * 126, b"-" * 253, b"[" * 253, b"0" * 253, b":" * 253, b"1." * 126, b"\xff:\xfe\0"]),
)


@given(hostile, st.integers(0, 255), hostile)
def test_any_octets_give_a_short_text(called: bytes, kind: int, value: bytes) -> None:
    """Random octets raise no error. The text fits into the store, which accepts no NUL."""
    body = push_attribute(CALLED_STATION_ID, called) + push_attribute(VENDOR_SPECIFIC, value)
    for vendor in (9, 14823, 25053, 29671):
        body += push_vendor_attribute(vendor, kind, value[:200])
    found = ssid(opened(access_request(body)))
    assert len(found) <= MAX_OCTETS
    assert "\0" not in found


def test_an_access_point_without_a_name() -> None:
    """An empty name is no prefix. A name with a colon is removed as a whole."""
    assert ssid_of_called_station(b":corp", None, (b"",)) == ssid_of_called_station(b":corp", None)
    assert ssid_of_called_station(b"AP:1:corp", None, (b"", b"AP:1")) == "corp"


def test_an_empty_port_type() -> None:
    """Some access points send NAS-Port-Type without a value."""
    assert ssid_of_called_station(b"aa-bb-cc-dd-ee-ff:corp", b"") == "corp"
    assert ssid_of_called_station(b"aa-bb-cc-dd-ee-ff:corp", (15).to_bytes(4)) == ""
