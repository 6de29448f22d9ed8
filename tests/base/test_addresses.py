"""The canonical form of IP addresses."""

import pytest

from sallyport.base.addresses import canonical, parse_network


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("2001:DB8::7", "2001:db8::7"),
        ("2001:0db8:0:0:0:0:0:7", "2001:db8::7"),
        (" 2001:db8::7 ", "2001:db8::7"),
        ("fe80::1%eth0", "fe80::1%eth0"),
        ("FE80:0::1%eth0", "fe80::1%eth0"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::FFFF:C000:0201", "192.0.2.1"),
        ("192.0.2.1", "192.0.2.1"),
        ("2001:DB8:", "2001:DB8:"),
        ("192.0.2.0/24", "192.0.2.0/24"),
        ("192.0.2.01", "192.0.2.01"),
        (" Switch 7", " Switch 7"),
        ("", ""),
    ],
)
def test_an_address_has_one_canonical_form(text: str, form: str) -> None:
    """An IPv4-mapped address becomes an IPv4 address. Text that is not an address is unchanged."""
    assert canonical(text) == form


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("2001:DB8:0::7", "2001:db8::7/128"),
        ("192.0.2.7/24", "192.0.2.0/24"),
        ("::ffff:192.0.2.7", "192.0.2.7/32"),
        ("::ffff:192.0.2.7/120", "192.0.2.0/24"),
        ("::ffff:0:0/95", "::fffe:0:0/95"),
    ],
)
def test_a_network_has_one_canonical_form(text: str, form: str) -> None:
    """A single address becomes a network. A range of IPv4-mapped addresses becomes a range of IPv4 addresses."""
    assert str(parse_network(text)) == form


@pytest.mark.parametrize("text", ["", "corp", "192.0.2.0/33", "192.0.2.7-9"])
def test_other_text_is_not_a_network(text: str) -> None:
    """Text that is not a network raises ValueError."""
    with pytest.raises(ValueError, match="does not appear"):
        parse_network(text)
