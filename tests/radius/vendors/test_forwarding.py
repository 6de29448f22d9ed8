"""Tests that a forwarder and the NAS behind it are identified separately."""

from typing import Final

import pytest

from sallyport.radius.vendors import Certainty
from tests.radius.vendors.captures import capture, described, packet

NPS: Final = "Proxy-State = 0xfe80000000000000b5f9a2c7d01e334600000009"
FREERADIUS: Final = "Proxy-State = 0x3734"
NAMELESS: Final = "Proxy-State = 0x0badcafe"
PROXY: Final = "192.0.2.254"
NASES: Final = ("cisco-asa", "cisco-ios", "fortinet-vpn", "hp-procurve", "mikrotik-hotspot", "pam_radius-sshd")


@pytest.mark.parametrize("name", NASES)
@pytest.mark.parametrize(("state", "forwarder"), [(NPS, "Microsoft NPS"), (FREERADIUS, "FreeRADIUS")])
def test_a_forwarder_does_not_hide_the_nas(name: str, state: str, forwarder: str) -> None:
    """Behind a proxy the same NAS is found as without a proxy. The product at the source address is the proxy."""
    direct = capture(name).identity()
    identity = capture(name).plus(state, source=PROXY).identity()
    assert identity.forwarded
    assert identity.nas == direct.nas
    assert identity.product is not None
    assert identity.product.product == forwarder
    assert direct.product == direct.nas


def test_the_last_proxy_state_identifies_the_forwarder() -> None:
    """If there are several proxies, the one that sent the request to the service is identified."""
    through_both = capture("cisco-ios").plus(FREERADIUS, NPS, source=PROXY)
    assert described(through_both.identity().product) == "Microsoft NPS, certain: Proxy-State fe80:: and a counter"
    other_way = capture("cisco-ios").plus(NPS, FREERADIUS, source=PROXY)
    assert described(other_way.identity().product) == "FreeRADIUS, probable: Proxy-State of digits"


@pytest.mark.parametrize(
    "state",
    [
        "0x0badcafe",  # of no known product
        "0x323536",  # 256 is not an identifier
        "0x31383131",  # four digits
        "0x4142434445464748",  # 8 octets of text
        "0x20010db8000000000000000000000001" + "00000007",  # not a link-local address
        "0xfe80000000000000b5f9a2c7d01e3346",  # no counter
    ],
)
def test_an_unknown_forwarder_is_not_named(state: str) -> None:
    """A request with an unknown Proxy-State has a forwarder without a name.

    The forwarder is not confused with the NAS.
    """
    identity = capture("cisco-ios").plus(f"Proxy-State = {state}", source=PROXY).identity()
    assert identity.forwarded
    assert identity.forwarder is None
    assert identity.product is None
    assert identity.nas is not None


def test_an_empty_proxy_state_indicates_a_forwarder() -> None:
    identity = packet("User-Name = bob", "Attr-33 = 0x").identity()
    assert identity.forwarded
    assert identity.product is None


# Products that send a Proxy-State of their own


def test_ruckus_sends_its_own_proxy_state() -> None:
    """A Ruckus controller is itself the NAS. It is certain if the source address is the controller's own."""
    controller = capture("ruckus-smartzone")
    assert controller.identity().product == controller.identity().nas
    itself = controller.plus(source="192.0.2.32").identity()
    assert described(itself.product) == "Ruckus, certain: Vendor-Specific 25053/3"
    mapped = controller.plus(source="::ffff:192.0.2.32").identity()
    assert mapped == itself


def test_ruckus_without_proxy_state_is_certain() -> None:
    """A Ruckus access point sends no Proxy-State, and its source address is not compared."""
    identity = capture("ruckus-smartzone").less("Proxy-State").identity()
    assert described(identity.product) == "Ruckus, certain: Vendor-Specific 25053/3"


@pytest.mark.parametrize(("state", "forwarder"), [(NPS, "Microsoft NPS"), (FREERADIUS, "FreeRADIUS")])
def test_a_proxy_before_ruckus_adds_a_second_proxy_state(state: str, forwarder: str) -> None:
    """If there is a second Proxy-State, the request was forwarded by the server that added the last one."""
    identity = capture("ruckus-smartzone").plus(state, source=PROXY).identity()
    assert identity.forwarded
    assert identity.forwarder is not None
    assert identity.forwarder.product == forwarder
    assert described(identity.nas) == "Ruckus, certain: Vendor-Specific 25053/3"


def test_nps_before_a_ruckus_access_point() -> None:
    """If the only Proxy-State does not have the form of Ruckus, it is that of a proxy."""
    identity = capture("ruckus-smartzone").less("Proxy-State").plus(NPS, source=PROXY).identity()
    assert described(identity.product) == "Microsoft NPS, certain: Proxy-State fe80:: and a counter"


def test_nps_before_rras() -> None:
    """If a request has the Proxy-State of RRAS and that of NPS, it was forwarded.

    A single Proxy-State is that of NPS if the source address is not that of the RRAS server.
    """
    both = capture("microsoft-rras").plus(NPS, source=PROXY).identity()
    single = capture("microsoft-rras").plus(source=PROXY).identity()
    from_itself = capture("microsoft-rras").plus(NPS).identity()
    for identity in (both, single, from_itself):
        assert identity.forwarded
        assert described(identity.product) == "Microsoft NPS, certain: Proxy-State fe80:: and a counter"
        assert identity.nas is not None
        assert identity.nas.product == "Microsoft RRAS"


def test_freeradius_before_rras() -> None:
    """If the last Proxy-State does not have the form of RRAS, it is that of a proxy."""
    identity = capture("microsoft-rras").plus(FREERADIUS, source=PROXY).identity()
    assert described(identity.product) == "FreeRADIUS, probable: Proxy-State of digits"


def test_a_source_that_is_not_an_address_proves_nothing() -> None:
    """If a source address cannot be compared, no product is certain and no error is raised."""
    product = capture("ruckus-smartzone").plus(source="not an address").identity().product
    assert product is not None
    assert product.certainty is Certainty.PROBABLE


# PacketFence


def test_packetfence_behind_nps_is_not_the_forwarder() -> None:
    """Further proxies pass PacketFence's attributes on. The last Proxy-State is then not that of PacketFence."""
    identity = capture("packetfence-switch").plus(NPS, source=PROXY).identity()
    assert described(identity.product) == "Microsoft NPS, certain: Proxy-State fe80:: and a counter"


def test_packetfence_does_not_hide_a_switch() -> None:
    """PacketFence's attributes do not count as vendor attributes of the NAS, so that formats still identify
    the switch."""
    identity = (
        packet(
            "NAS-Port-Type = Ethernet",
            "NAS-Port-Id = FastEthernet0/2",
            "PacketFence-Radius-Ip = 192.0.2.110",
            "Proxy-State = 0x3131",
        )
    ).identity()
    assert described(identity.nas) == "Cisco IOS, probable: NAS-Port-Id FastEthernet0/2"
    assert described(identity.forwarder) == "PacketFence, certain: Vendor-Specific 29464/33"
