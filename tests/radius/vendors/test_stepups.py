"""What products can do for a second factor on a page, in the code and in the guide."""

from pathlib import Path

import pytest

from sallyport.areas.mfa.fields import Binding
from sallyport.radius.vendors import PRODUCTS
from sallyport.radius.vendors.stepups import ADDRESS, CODE, SUPPORT, UNBOUND, Can, is_impossible, unable

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "second-factors.md"


def words(bindings: tuple[str, ...]) -> str:
    """Return bindings as the guide lists them."""
    return ", ".join(f"`{each}`" for each in bindings) or "none"


def test_the_guide_has_each_product() -> None:
    """The table of the guide says of each product what the code says."""
    rows = {}
    for line in GUIDE.read_text(encoding="utf-8").splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 6:
            rows |= {product: tuple(cells[1:]) for product in cells[0].split(", ")}
    rows.pop("product")
    assert rows == {
        name: (each.challenge.value, each.address.value, words(each.by_challenge), words(each.while_waiting), each.note)
        for name, each in SUPPORT.items()
    }


def test_each_product_exists() -> None:
    """Each row is about a product that the service detects or an admin can name, and has a source."""
    assert set(SUPPORT) <= set(PRODUCTS)
    assert all(each.source for each in SUPPORT.values())
    assert set(Binding) == {CODE, ADDRESS, UNBOUND}


def test_nothing_can_be_typed_without_a_challenge() -> None:
    """Digits need a challenge. A page by mail is never bound by digits."""
    for each in SUPPORT.values():
        assert (CODE in each.by_challenge) == (each.challenge is not Can.NO)
        assert CODE not in each.while_waiting
        assert (ADDRESS in each.while_waiting) == (each.address is not Can.NO)


@pytest.mark.parametrize("product", ["hostapd", "Cisco WLC", "Ubiquiti UniFi", "Aruba Wireless"])
def test_wifi_is_unbound_by_mail_only(product: str) -> None:
    """On Wi-Fi the station is a MAC address, and there is no prompt."""
    found = [each for each in (CODE, ADDRESS, UNBOUND) if SUPPORT[product].allows(each, has_mail=True)]
    assert found == [UNBOUND]
    assert not SUPPORT[product].allows(UNBOUND, has_mail=False)


def test_unknown_products_are_left_out() -> None:
    """Nothing is said of a product without a row, and it makes no binding impossible."""
    assert unable(["hostapd", "SonicWall", "Cisco ASA"], CODE, has_mail=False) == ["hostapd"]
    assert is_impossible(["hostapd", "strongSwan"], CODE, has_mail=True)
    assert not is_impossible(["hostapd", "SonicWall"], CODE, has_mail=True)
    assert not is_impossible([], CODE, has_mail=False)
