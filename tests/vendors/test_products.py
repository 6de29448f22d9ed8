"""Every product is recognized by what it sends, and the table agrees with the packets."""

import re
from typing import Final

import pytest

from sallyport import vendors
from sallyport.vendors import PRODUCTS
from sallyport.vendors.evidence import Attributes, Fingerprint
from sallyport.vendors.forwarders import FORWARDERS
from sallyport.vendors.products import NAMED_BY_REGISTRATION, NAS
from tests.vendors.captures import NAMES, capture, told

ROWS: Final = (*NAS, *FORWARDERS)
FOUND: Final = {
    finding.product
    for name in NAMES
    for finding in (capture(name).identity().nas, capture(name).identity().forwarder)
    if finding is not None
}


@pytest.mark.parametrize("name", NAMES)
def test_a_packet_tells_its_product(name: str) -> None:
    """Product, certainty and evidence, of the forwarder and of the NAS, are those that the packet's file says."""
    packet = capture(name)
    identity = packet.identity()
    assert told(identity.nas) == packet.told["nas"]
    assert told(identity.forwarder) == packet.told["forwarder"]
    assert identity.forwarded is (packet.told["forwarded"] == "yes")


@pytest.mark.parametrize("name", NAMES)
def test_a_packet_tells_its_medium(name: str) -> None:
    """The medium is the one that the packet's file says."""
    assert vendors.medium(capture(name).request()) == capture(name).told["medium"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.product}-{row.rank.name}")
def test_a_row_has_a_packet(row: Fingerprint) -> None:
    """Each row of the table matches in a packet whose file names the row's product."""
    matching = (capture(name) for name in NAMES if row.match(Attributes(capture(name).request(), "192.0.2.10")))
    assert any(row.product in packet.told["nas"] + packet.told["forwarder"] for packet in matching)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.product}-{row.rank.name}")
def test_a_row_gives_its_source(row: Fingerprint) -> None:
    """Each row says where its evidence comes from: P, S, D or M."""
    assert re.match(r"(?:[PSDM], )*[PSDM]: \S", row.source)


def test_the_names_are_those_that_people_write() -> None:
    """Product names are an interface: device_type and the registration of clients show them."""
    assert PRODUCTS == (
        "Aruba ClearPass",
        "Aruba Wireless",
        "Check Point",
        "Cisco ASA",
        "Cisco Catalyst 9800",
        "Cisco IOS",
        "Cisco ISE",
        "Cisco Meraki",
        "Cisco WLC",
        "Citrix NetScaler",
        "F5 BIG-IP APM",
        "Fortinet FortiGate",
        "FreeRADIUS",
        "HP ProCurve",
        "Huawei",
        "Juniper EX",
        "Microsoft NPS",
        "Microsoft RD Gateway",
        "Microsoft RRAS",
        "MikroTik RouterOS",
        "OPNsense",
        "Omnissa Horizon",
        "OpenVPN",
        "OpenVPN Access Server",
        "PacketFence",
        "Palo Alto PAN-OS",
        "Ruckus",
        "SonicWall",
        "Sophos",
        "Ubiquiti UniFi",
        "WatchGuard",
        "hostapd",
        "pam_radius",
        "pfSense",
        "strongSwan",
    )
    assert set(PRODUCTS) == FOUND | set(NAMED_BY_REGISTRATION)
