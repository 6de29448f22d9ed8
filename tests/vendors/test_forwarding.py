"""A forwarder and the NAS behind it are identified separately."""

from typing import Final

import pytest

from sallyport.vendors import Certainty
from tests.vendors.captures import capture, packet, told

NPS: Final = "Proxy-State = 0xfe80000000000000b5f9a2c7d01e334600000009"
FREERADIUS: Final = "Proxy-State = 0x3734"
NAMELESS: Final = "Proxy-State = 0x0badcafe"
PROXY: Final = "192.0.2.254"
NASES: Final = ("cisco-asa", "cisco-ios", "fortinet-vpn", "hp-procurve", "mikrotik-hotspot", "pam_radius-sshd")


@pytest.mark.parametrize("name", NASES)
@pytest.mark.parametrize(("state", "forwarder"), [(NPS, "Microsoft NPS"), (FREERADIUS, "FreeRADIUS")])
def test_a_forwarder_does_not_hide_the_nas(name: str, state: str, forwarder: str) -> None:
    """Behind a proxy the NAS is the same as without; the product at the source is the proxy."""
    direct = capture(name).identity()
    identity = capture(name).plus(state, source=PROXY).identity()
    assert identity.forwarded
    assert identity.nas == direct.nas
    assert identity.product is not None
    assert identity.product.product == forwarder
    assert direct.product == direct.nas


def test_the_last_proxy_state_is_the_one_that_counts() -> None:
    """Of several proxies, the one that sent to us is named."""
    through_both = capture("cisco-ios").plus(FREERADIUS, NPS, source=PROXY)
    assert told(through_both.identity().product) == "Microsoft NPS, certain: Proxy-State fe80:: and a counter"
    other_way = capture("cisco-ios").plus(NPS, FREERADIUS, source=PROXY)
    assert told(other_way.identity().product) == "FreeRADIUS, probable: Proxy-State of digits"


@pytest.mark.parametrize(
    "state",
    [
        "0x0badcafe",  # nobody's
        "0x323536",  # 256 is no identifier
        "0x31383131",  # four digits
        "0x4142434445464748",  # 8 octets of text
        "0x20010db8000000000000000000000001" + "00000007",  # no link-local address
        "0xfe80000000000000b5f9a2c7d01e3346",  # no counter
    ],
)
def test_a_forwarder_that_cannot_be_named_is_not_guessed(state: str) -> None:
    """A request with an unknown Proxy-State is forwarded by an unnamed proxy, which does not take the NAS's place."""
    identity = capture("cisco-ios").plus(f"Proxy-State = {state}", source=PROXY).identity()
    assert identity.forwarded
    assert identity.forwarder is None
    assert identity.product is None
    assert identity.nas is not None


def test_an_empty_proxy_state_is_one() -> None:
    """An empty Proxy-State counts as one."""
    identity = packet("User-Name = bob", "Attr-33 = 0x").identity()
    assert identity.forwarded
    assert identity.product is None


# Products that send a Proxy-State of their own


def test_ruckus_keeps_its_own_proxy_state() -> None:
    """A Ruckus controller is the NAS itself, certain where the source is the address that it gives as its own."""
    controller = capture("ruckus-smartzone")
    assert controller.identity().product == controller.identity().nas
    itself = controller.plus(source="192.0.2.32").identity()
    assert told(itself.product) == "Ruckus, certain: Vendor-Specific 25053/3"
    mapped = controller.plus(source="::ffff:192.0.2.32").identity()
    assert mapped == itself


def test_ruckus_without_proxy_state_is_certain() -> None:
    """A Ruckus access point that asks by itself sends no Proxy-State, and the source does not matter."""
    identity = capture("ruckus-smartzone").less("Proxy-State").identity()
    assert told(identity.product) == "Ruckus, certain: Vendor-Specific 25053/3"


@pytest.mark.parametrize(("state", "forwarder"), [(NPS, "Microsoft NPS"), (FREERADIUS, "FreeRADIUS")])
def test_a_proxy_in_front_of_ruckus_adds_a_second(state: str, forwarder: str) -> None:
    """With a second Proxy-State a Ruckus is forwarded, by the owner of the last one."""
    identity = capture("ruckus-smartzone").plus(state, source=PROXY).identity()
    assert identity.forwarded
    assert identity.forwarder is not None
    assert identity.forwarder.product == forwarder
    assert told(identity.nas) == "Ruckus, certain: Vendor-Specific 25053/3"


def test_nps_in_front_of_a_ruckus_access_point() -> None:
    """A single Proxy-State of another form than Ruckus's own is a proxy's."""
    identity = capture("ruckus-smartzone").less("Proxy-State").plus(NPS, source=PROXY).identity()
    assert told(identity.product) == "Microsoft NPS, certain: Proxy-State fe80:: and a counter"


def test_nps_in_front_of_rras() -> None:
    """RRAS's own Proxy-State and NPS's: forwarded. A single one is NPS's where the source is not the RRAS."""
    both = capture("microsoft-rras").plus(NPS, source=PROXY).identity()
    single = capture("microsoft-rras").plus(source=PROXY).identity()
    for identity in (both, single):
        assert identity.forwarded
        assert told(identity.product) == "Microsoft NPS, certain: Proxy-State fe80:: and a counter"
        assert identity.nas is not None
        assert identity.nas.product == "Microsoft RRAS"


def test_freeradius_in_front_of_rras() -> None:
    """A last Proxy-State that is not of RRAS's form is a proxy's."""
    identity = capture("microsoft-rras").plus(FREERADIUS, source=PROXY).identity()
    assert told(identity.product) == "FreeRADIUS, probable: Proxy-State of digits"


def test_a_source_that_is_no_address_is_no_proof() -> None:
    """A source that cannot be compared makes nothing certain, and does no harm."""
    product = capture("ruckus-smartzone").plus(source="not an address").identity().product
    assert product is not None
    assert product.certainty is Certainty.PROBABLE


# PacketFence


def test_packetfence_behind_nps_is_not_the_one_that_sent() -> None:
    """PacketFence's attributes survive further proxies, its Proxy-State is not the last then."""
    identity = capture("packetfence-switch").plus(NPS, source=PROXY).identity()
    assert told(identity.product) == "Microsoft NPS, certain: Proxy-State fe80:: and a counter"


def test_packetfence_does_not_hide_a_switch() -> None:
    """PacketFence's attributes are no vendor attributes of the NAS, formats still tell it."""
    identity = (
        packet(
            "NAS-Port-Type = Ethernet",
            "NAS-Port-Id = FastEthernet0/2",
            "PacketFence-Radius-Ip = 192.0.2.110",
            "Proxy-State = 0x3131",
        )
    ).identity()
    assert told(identity.nas) == "Cisco IOS, probable: NAS-Port-Id FastEthernet0/2"
    assert told(identity.forwarder) == "PacketFence, certain: Vendor-Specific 29464/33"
