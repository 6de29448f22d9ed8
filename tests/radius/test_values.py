"""Tests of attribute values that are shown as text, and of text that is encoded as values."""

from ipaddress import IPv6Network

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sallyport.base.errors import DictionaryError
from sallyport.radius.dictionary import Attribute, DataType, load
from sallyport.radius.values import split_tag

KNOWN = load()
WHOLE = sorted((a for a in KNOWN.attributes.values() if not a.parent), key=lambda a: a.name)
SHOWN = [a for a in WHOLE if KNOWN.name(a.vendor, a.number) == a.name]
PLAIN = [a for a in SHOWN if not a.secret]
SIZES = {
    DataType.BYTE: 1,
    DataType.SHORT: 2,
    DataType.INTEGER: 4,
    DataType.SIGNED: 4,
    DataType.DATE: 4,
    DataType.INTEGER64: 8,
    DataType.IPADDR: 4,
    DataType.IPV6ADDR: 16,
    DataType.IFID: 8,
    DataType.ETHER: 6,
}

type_octets = st.binary(max_size=260)
printable = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=60)


def canonical(attribute: Attribute) -> st.SearchStrategy[bytes]:
    """Return the octets that a correct sender sends for the type of the attribute, without a tag."""
    if attribute.type in SIZES:
        size = 3 if attribute.has_tag else SIZES[attribute.type]
        return st.binary(min_size=size, max_size=size).map(lambda octets: octets.rjust(SIZES[attribute.type], b"\0"))
    if attribute.type is DataType.IPV6PREFIX:
        pairs = st.tuples(st.binary(min_size=16, max_size=16), st.integers(0, 128))
        networks = pairs.map(lambda pair: IPv6Network(pair, strict=False))
        return networks.map(lambda network: bytes((0, network.prefixlen)) + network.network_address.packed)
    if attribute.type is DataType.STRING:
        return printable.map(str.encode)
    return st.binary(min_size=1, max_size=240).filter(lambda octets: not attribute.has_tag or octets[0] > 0x1F)


# Octets to text


@pytest.mark.parametrize(
    ("name", "octets", "text"),
    [
        ("NAS-Port-Type", "0000000f", "Ethernet"),
        ("NAS-Port-Type", "0000ffff", "65535"),
        ("NAS-Port-Type", "0f", "0x0f"),
        ("Framed-IP-Address", "c0000201", "192.0.2.1"),
        ("Framed-IP-Address", "c000", "0xc000"),
        ("NAS-IPv6-Address", "20010db8000000000000000000000001", "2001:db8::1"),
        ("NAS-IPv6-Address", "20010db8", "0x20010db8"),
        ("Delegated-IPv6-Prefix", "003020010db80001", "2001:db8:1::/48"),
        ("Delegated-IPv6-Prefix", "00ff20010db8", "0x00ff20010db8"),
        ("Framed-Interface-Id", "021122fffe334455", "211:22ff:fe33:4455"),
        ("Event-Timestamp", "66000000", "2024-03-24T10:27:12Z"),
        ("Fortinet-WirelessController-Device-MAC", "0011223344ff", "00:11:22:33:44:ff"),
        ("PKM-SAID", "0102", "258"),
        ("MIP6-Feature-Vector", "0000000100000000", "4294967296"),
        ("User-Name", "43525c6ac3a9", "CR\\jé"),
        ("User-Name", "", ""),
        ("User-Name", "ff41", "0xff41"),
        ("Reply-Message", "610a62", "0x610a62"),
        ("Class", "616263", "0x616263"),
        ("Class", "", "0x"),
        ("Tunnel-Type", "0100000d", "VLAN"),
        ("Tunnel-Type", "2000000d", "0x2000000d"),
        ("Tunnel-Private-Group-Id", "013230", "20"),
        ("Tunnel-Private-Group-Id", "3230", "20"),
        ("IPv6-6rd-Configuration", "010600000018", "0x010600000018"),
    ],
)
def test_values_are_shown(name: str, octets: str, text: str) -> None:
    """A value is shown according to its type. If it does not fit the type, it is shown in hex."""
    attribute = KNOWN.attribute(name)
    assert KNOWN.decode(attribute.vendor, attribute.number, bytes.fromhex(octets)) == text


def test_a_tag_is_shown_with_the_name() -> None:
    """Tag 1 of Tunnel-Type is shown as Tunnel-Type:1. Tag 0 is not shown (RFC 2868 section 3.1)."""
    assert KNOWN.show(0, 64, b"\1\0\0\x0d") == ("Tunnel-Type:1", "VLAN")
    assert KNOWN.show(0, 64, b"\0\0\0\x0d") == ("Tunnel-Type", "VLAN")


@given(st.sampled_from(WHOLE), type_octets)
def test_known_attributes_never_fail_to_show(attribute: Attribute, octets: bytes) -> None:
    """Any octets of a known attribute are shown as one line of printable text."""
    assert KNOWN.decode(attribute.vendor, attribute.number, octets).isprintable()


@given(st.integers(0, 0xFFFFFFFF), st.integers(0, 255), type_octets)
def test_any_attribute_is_shown(vendor: int, number: int, octets: bytes) -> None:
    """Any vendor and number have a name, and are shown as one line of printable text."""
    name, text = KNOWN.show(vendor, number, octets)
    assert name
    assert text.isprintable()


@given(st.sampled_from([a for a in SHOWN if a.secret]), type_octets)
def test_secrets_are_not_shown(attribute: Attribute, octets: bytes) -> None:
    """A password, a key, or a response that was made from one is never shown.

    Its length and its tag are not shown either.
    """
    assert KNOWN.show(attribute.vendor, attribute.number, octets) == (attribute.name, "***")


@pytest.mark.parametrize(
    "name",
    [
        "User-Password",
        "CHAP-Password",
        "Tunnel-Password",
        "Digest-HA1",
        "MS-CHAP2-Response",
        "MS-CHAP-CPW-2",
        "MS-CHAP-NT-Enc-PW",
        "MS-MPPE-Recv-Key",
        "Mikrotik-Wireless-PSK",
        "Ruckus-Dpsk",
        "Aruba-MPSK-Passphrase",
    ],
)
def test_these_are_secrets(name: str) -> None:
    """Passwords, keys and responses are recognised as secret by a flag in the dictionary or by their name."""
    attribute = KNOWN.attribute(name)
    assert KNOWN.decode(attribute.vendor, attribute.number, b"hello123") == "***"


@pytest.mark.parametrize("name", ["Password-Retry", "CVPN3000-Min-Password-Length", "EAP-Key-Name", "Class", "State"])
def test_these_are_no_secrets(name: str) -> None:
    """An attribute that is only about passwords is not secret."""
    assert not KNOWN.attribute(name).secret


# Text to octets


@pytest.mark.parametrize(
    ("name", "text", "octets"),
    [
        ("Service-Type", "Framed-User", b"\0\0\0\2"),
        ("Service-Type", "framed-user", b"\0\0\0\2"),
        ("Service-Type", "2", b"\0\0\0\2"),
        ("Service-Type", "0x02", b"\0\0\0\2"),
        ("Session-Timeout", "4294967295", b"\xff\xff\xff\xff"),
        ("Framed-IP-Address", "192.0.2.1", b"\xc0\0\2\1"),
        ("Event-Timestamp", "2024-03-24T10:27:12Z", b"\x66\0\0\0"),
        ("Event-Timestamp", "1711276032", b"\x66\0\0\0"),
        ("Tunnel-Type:1", "VLAN", b"\1\0\0\x0d"),
        ("Tunnel-Type", "VLAN", b"\0\0\0\x0d"),
        ("tunnel-private-group-id:31", "20", b"\x1f20"),
        ("Tunnel-Private-Group-Id", "20", b"20"),
        ("Tunnel-Private-Group-Id:0", "20", b"20"),
        ("Tunnel-Private-Group-Id", "\x05x", b"\0\x05x"),
        ("Tunnel-Password", "hello", b"\0hello"),
        ("Cisco-AVPair", "shell:priv-lvl=15", b"shell:priv-lvl=15"),
        ("Reply-Message", "wähle\r\n1", b"w\xc3\xa4hle\r\n1"),
        ("Class", "0x00ff", b"\0\xff"),
        ("IPv6-6rd-Configuration", "0x0106", b"\1\6"),
    ],
)
def test_values_are_read(name: str, text: str, octets: bytes) -> None:
    """Value names, numbers, addresses, times, text and hex are encoded as in the RFCs."""
    assert KNOWN.encode(name, text) == octets


@pytest.mark.parametrize("text", ["65", "0x41", "0x4", "123456789", "0xzz"])
def test_text_stays_as_it_is(text: str) -> None:
    """Text that looks like a number or like hex is encoded as text. pyrad would convert it."""
    assert KNOWN.encode("User-Password", text) == text.encode()
    assert KNOWN.encode("Filter-Id", text) == text.encode()
    assert KNOWN.decode(0, 11, text.encode()) == text


def test_octets_are_hex_or_text() -> None:
    """Octets are given in hex after 0x. Any other text is encoded as text, even if it has only digits."""
    assert KNOWN.encode("Class", "65") == b"65"
    assert KNOWN.encode("Class", "0x41") == b"A"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("Service-Type", "Framed", "Service-Type: 'Framed' is not valid as integer"),
        ("Session-Timeout", "4294967296", "Session-Timeout: '4294967296' is not valid as integer"),
        ("Session-Timeout", "1_0", "Session-Timeout"),
        ("Framed-IP-Address", "2001:db8::1", "Framed-IP-Address: '2001:db8::1' is not valid as ipaddr"),
        ("Event-Timestamp", "2024-03-24T10:25:52", "Event-Timestamp"),
        ("Class", "0x4", "Class: '0x4' is not valid as octets"),
        ("Class", "0x 41", "Class"),
        ("Reply-Message", "", "Reply-Message: an empty value"),
        ("Reply-Message", "a" * 254, "Reply-Message: the value has 254 octets, but at most 253 fit"),
        ("Cisco-AVPair", "a" * 248, "Cisco-AVPair: the value has 248 octets, but at most 247 fit"),
        ("User-Password", "a" * 129, "User-Password: the value has 129 octets, but at most 128 fit"),
        ("Tunnel-Password:1", "a" * 240, "Tunnel-Password: the value has 241 octets, but at most 240 fit"),
        ("Tunnel-Preference:1", "16777216", "Tunnel-Preference: with a tag, the number"),
        ("Tunnel-Type:32", "VLAN", "Tunnel-Type: tag 32"),
        ("Filter-Id:1", "a", "Filter-Id takes no tag"),
        ("IPv6-6rd-Prefix", "2001:db8::/32", "IPv6-6rd-Prefix is a part of IPv6-6rd-Configuration"),
        ("IPv6-6rd-Configuration", "24", "IPv6-6rd-Configuration: '24' is not valid as tlv"),
        ("No-Such-Thing", "1", "no RADIUS attribute 'No-Such-Thing'"),
    ],
)
def test_values_are_refused(name: str, text: str, message: str) -> None:
    """A value that an attribute cannot have is refused. The error has the name of the attribute and the reason."""
    with pytest.raises(DictionaryError) as refused:
        KNOWN.encode(name, text)
    assert message in str(refused.value)


def test_a_refused_secret_is_not_repeated() -> None:
    """Neither the error for an invalid key nor the cause of the error contains the key."""
    with pytest.raises(DictionaryError) as refused:
        KNOWN.encode("MS-MPPE-Send-Key", "0xhunter2")
    assert "hunter2" not in str(refused.value)
    assert refused.value.__suppress_context__


@given(st.data(), st.sampled_from(PLAIN), st.integers(0, 31))
def test_shown_text_is_read_back(data: st.DataObject, attribute: Attribute, tag: int) -> None:
    """If text was made from octets, it is encoded as the same octets with the same tag."""
    value = data.draw(canonical(attribute))
    octets = value
    if attribute.has_tag:
        octets = bytes((tag,)) + (value[1:] if attribute.type is DataType.INTEGER else value)
    name, text = KNOWN.show(attribute.vendor, attribute.number, octets)
    assume(len(octets) <= attribute.room)
    again = KNOWN.encode(name, text)
    assert again == octets or (tag == 0 and again == value)
    assert KNOWN.show(attribute.vendor, attribute.number, again) == (name, text)


@given(st.sampled_from(SHOWN), st.one_of(st.text(max_size=300), st.integers().map(str)))
def test_any_text_is_read_or_refused(attribute: Attribute, text: str) -> None:
    """Any text is encoded as octets that fit the attribute, or raises DictionaryError with the name of the
    attribute."""
    try:
        octets = KNOWN.encode(attribute.name, text)
    except DictionaryError as error:
        assert attribute.name in str(error)
    else:
        assert 0 < len(octets) <= (247 if attribute.vendor else 253)


@pytest.mark.parametrize(
    ("octets", "split"),
    [
        (b"", (0, b"")),
        (b"\x00blue", (0, b"blue")),
        (b"\x1fblue", (31, b"blue")),
        (b"\x20blue", (0, b" blue")),
        (b"blue", (0, b"blue")),
    ],
)
def test_the_tag_of_a_text(octets: bytes, split: tuple[int, bytes]) -> None:
    """A first octet of at most 31 is the tag, and is no part of the text (RFC 2868 section 3.1)."""
    assert split_tag(KNOWN.attribute("Tunnel-Private-Group-Id"), octets) == split
