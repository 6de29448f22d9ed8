"""Every product is found in what it sends, and the list, the files and the packets agree."""

import re
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from sallyport import vendors
from sallyport.vendors import PRODUCTS, catalog
from tests.vendors.captures import NAMES, capture, told

MACHINERY: Final = {"__init__", "catalog", "medium", "model", "sight"}
VENDOR_FILES: Final = sorted({path.stem for path in Path(vendors.__file__).parent.glob("*.py")} - MACHINERY)
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


@pytest.mark.parametrize("name", NAMES)
def test_a_packet_is_of_a_vendor(name: str) -> None:
    """A packet's file is named after the vendor's file whose product it is."""
    assert capture(name).module in VENDOR_FILES


@pytest.mark.parametrize("module", VENDOR_FILES)
def test_a_vendor_is_in_the_list(module: str) -> None:
    """A file of vendors/ that is not in the list would never be asked."""
    assert import_module(f"sallyport.vendors.{module}").VENDOR in catalog.VENDORS


@pytest.mark.parametrize("module", VENDOR_FILES)
def test_a_vendor_has_packets(module: str) -> None:
    """Each product that a vendor's file names is found in a packet of that vendor's."""
    vendor = import_module(f"sallyport.vendors.{module}").VENDOR
    products = {clue.product for clue in (*vendor.nas, *vendor.forwarder)}
    packets = [capture(name).identity() for name in NAMES if capture(name).module == module]
    assert products
    assert products <= {finding.product for one in packets for finding in (one.nas, one.forwarder) if finding}


@pytest.mark.parametrize("module", VENDOR_FILES)
def test_a_vendor_gives_its_sources(module: str) -> None:
    """A vendor's file says where each piece of evidence comes from: P, S, D or M."""
    text = import_module(f"sallyport.vendors.{module}").__doc__ or ""
    assert re.search(r"\((?:[PSDM], )*[PSDM]\)", text)


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
    assert set(PRODUCTS) == FOUND | set(catalog.NAMED_BY_REGISTRATION)
