"""Tests that every product is recognized by its packet, and that the table agrees with the packets."""

import re
from typing import Final

import pytest

from sallyport.radius import vendors
from sallyport.radius.vendors import PRODUCTS
from sallyport.radius.vendors.evidence import Attributes, Fingerprint, Rank
from sallyport.radius.vendors.forwarders import FORWARDERS
from sallyport.radius.vendors.products import NAMED_BY_REGISTRATION, NAS, _is_named_by_called_mac
from tests.packets import access_request, attributes, opened
from tests.radius.vendors.captures import NAMES, capture, described

ROWS: Final = (*NAS, *FORWARDERS)
FOUND: Final = {
    finding.product
    for name in NAMES
    for finding in (capture(name).identity().nas, capture(name).identity().forwarder)
    if finding is not None
}


@pytest.mark.parametrize("name", NAMES)
def test_a_packet_identifies_its_product(name: str) -> None:
    """The products, certainties and evidence of the forwarder and of the NAS are those in the packet's file."""
    packet = capture(name)
    identity = packet.identity()
    assert described(identity.nas) == packet.expected["nas"]
    assert described(identity.forwarder) == packet.expected["forwarder"]
    assert identity.forwarded is (packet.expected["forwarded"] == "yes")


@pytest.mark.parametrize("name", NAMES)
def test_a_packet_identifies_its_medium(name: str) -> None:
    """The medium is the one in the packet's file."""
    assert vendors.medium(capture(name).request()) == capture(name).expected["medium"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.product}-{row.rank.name}")
def test_a_row_has_a_packet(row: Fingerprint) -> None:
    """Each row of the table matches a packet whose file contains the row's product."""
    matching = (capture(name) for name in NAMES if row.match(Attributes(capture(name).request(), "192.0.2.10")))
    assert any(row.product in packet.expected["nas"] + packet.expected["forwarder"] for packet in matching)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.product}-{row.rank.name}")
def test_a_row_names_its_source(row: Fingerprint) -> None:
    """The source of each evidence is P, S, D or M."""
    assert re.match(r"(?:[PSDM], )*[PSDM]: \S", row.source)


def test_product_names_are_an_interface() -> None:
    """The product names must not change, because device_type and the registration of clients show them."""
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


@pytest.mark.parametrize(
    ("name", "station", "is_own"),
    [
        (b"AABBCCDDEEFF", b"aa-bb-cc-dd-ee-ff:corp", True),
        (b"aabbccddeeff", b"AA:BB:CC:DD:EE:FF:corp", True),
        (b"aabbccddeef0", b"AA:BB:CC:DD:EE:FF:corp", False),
        (b"aabbccddeegg", b"AA:BB:CC:DD:EE:GG", False),
    ],
)
def test_a_name_that_is_the_address_of_the_called_station(name: bytes, station: bytes, is_own: bool) -> None:
    """Neither notation nor case matters."""
    request = opened(access_request(attributes(NAS_IDENTIFIER=name, CALLED_STATION_ID=station)))
    assert _is_named_by_called_mac(Attributes(request, "192.0.2.1")) is is_own


def test_each_kind_of_evidence_has_a_rank() -> None:
    """An attribute that several vendors send is stronger evidence than a value of Microsoft's attributes."""
    assert len(Rank) == len(Rank.__members__)
    assert Rank.VENDOR_ATTRIBUTE < Rank.SHARED_ATTRIBUTE < Rank.MICROSOFT_VALUE
