"""Notations of MAC addresses."""

import pytest

from sallyport.base.mac import as_mac, mac_key, spellings

KEY = "0200000000ab"


@pytest.mark.parametrize(
    "text", ["02-00-00-00-00-AB", "0200.0000.00ab", "02:00:00:00:00:ab", "0200000000AB", "020000-0000ab"]
)
def test_an_address_is_shown_in_one_notation(text: str) -> None:
    """Each notation that NAS use gives the same text."""
    assert mac_key(text) == KEY
    assert as_mac(text) == "02:00:00:00:00:ab"


@pytest.mark.parametrize("text", ["", "+49 30 1234567", "192.0.2.1", "02-00-00-00-00", "02-00-00-00-00-AB:guests"])
def test_any_other_text_is_unchanged(text: str) -> None:
    """Some NAS send a phone number or an address as Calling-Station-Id."""
    assert as_mac(text) == text


def test_every_spelling_is_the_same_address() -> None:
    """A search looks for all of them."""
    assert {mac_key(each) for each in spellings(KEY)} == {KEY}
