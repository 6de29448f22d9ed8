"""The names of NAS-Port-Type."""

import pytest

from sallyport.radius.vendors import UNKNOWN, medium, medium_of
from tests.radius.vendors.captures import dictionary, packet


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (0, "Async"),
        (1, "Sync"),
        (2, "ISDN"),
        (3, "ISDN V.120"),
        (4, "ISDN V.110"),
        (5, "Virtual"),
        (6, "PIAFS"),
        (8, "X.25"),
        (15, "Ethernet"),
        (17, "Cable"),
        (18, "Wireless"),
        (19, "Wireless"),
        (25, "IAPP"),
        (34, "PPPoEoQinQ"),
        (35, "xPON"),
        (38, "WiMAX Wi-Fi IWK"),
        (41, "WiMAX DHCP"),
        (44, "Unknown"),
        (4294967295, "Unknown"),
        (-1, "Unknown"),
    ],
)
def test_common_numbers_have_common_names(number: int, name: str) -> None:
    """Other numbers are Unknown."""
    assert medium_of(number) == name


def test_every_number_of_the_dictionary_has_a_name() -> None:
    """The inventory has a name for each value of the RFCs. Only the two kinds of Wi-Fi share a name."""
    numbers = set(dictionary().attribute("NAS-Port-Type").values.values())
    assert {*range(37)} <= numbers
    names = [medium_of(number) for number in numbers]
    assert UNKNOWN not in names
    assert len(set(names)) == len(names) - 1


def test_a_missing_nas_port_type_is_unknown() -> None:
    assert medium(packet("User-Name = bob").request()) == UNKNOWN


@pytest.mark.parametrize("octets", ["0x", "0x0f", "0x00000f", "0x000000000f"])
def test_a_wrong_length_is_unknown(octets: str) -> None:
    """A NAS-Port-Type that does not have 4 octets is not read as a number."""
    assert medium(packet(f"Attr-61 = {octets}").request()) == UNKNOWN


def test_the_first_value_counts() -> None:
    """If there are several values, the first one is used."""
    assert medium(packet("NAS-Port-Type = Ethernet", "NAS-Port-Type = Virtual").request()) == "Ethernet"
