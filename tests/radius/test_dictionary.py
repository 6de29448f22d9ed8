"""The dictionaries of the package, an admin's own, and values as text."""

import logging
import tempfile
from collections.abc import Callable
from ipaddress import IPv6Network
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sallyport.base.errors import DictionaryError
from sallyport.radius.dictionary import Attribute, DataType, load, packaged

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


@pytest.fixture
def directory(tmp_path: Path) -> Callable[..., Path]:
    """Makes a directory of an admin's own: file names (a dot is written _) and their text."""

    def write(**texts: str) -> Path:
        for name, text in texts.items():
            (tmp_path / name.replace("_", ".")).write_text(text)
        return tmp_path

    return write


def canonical(attribute: Attribute) -> st.SearchStrategy[bytes]:
    """Octets, without a tag, as a correct sender would write them for the attribute's type."""
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


# What the package holds


def test_the_package_loses_nothing() -> None:
    """pyrad reads every file of the package without skipping a line."""
    assert KNOWN.notes == ()
    assert len(KNOWN.attributes) > 1000


def test_the_index_names_every_file() -> None:
    """A dictionary that lies in the folder is loaded."""
    index = (packaged() / "dictionary").read_text().splitlines()
    included = {line.split()[1] for line in index if line.startswith("$INCLUDE")}
    assert included == {path.name for path in packaged().iterdir()} - {"dictionary"}


def test_an_attribute_has_what_the_codec_needs() -> None:
    """Vendor, number, type, tag and encryption come with the name, in any case."""
    assert KNOWN.attribute("tunnel-password") == Attribute("Tunnel-Password", 0, 69, DataType.STRING, True, 2)
    assert KNOWN.attribute("MS-MPPE-Send-Key") == Attribute("MS-MPPE-Send-Key", 311, 16, DataType.OCTETS, False, 2)
    assert KNOWN.attribute("IPv6-6rd-Prefix").parent == "IPv6-6rd-Configuration"


def test_a_number_has_its_last_name() -> None:
    """Of several names for a number, the last one defined is shown; a part of a TLV has no number of its own."""
    assert KNOWN.name(311, 8) == "MS-MPPE-Encryption-Types"
    assert KNOWN.name(3076, 146) == "ASA-TunnelGroupName"
    assert KNOWN.name(3076, 1) == "CVPN3000-Access-Hours"
    assert KNOWN.name(173, 1) == "Attr-26.173.1"


def test_values_have_names() -> None:
    """NAS-Port-Type 15 is Ethernet and back; of several names the last one is shown and all are understood."""
    ports, status = KNOWN.attribute("NAS-Port-Type"), KNOWN.attribute("Acct-Status-Type")
    assert (ports.value_name(15), ports.value_number("ethernet")) == ("Ethernet", 15)
    assert (ports.value_name(4711), ports.value_number("Carrier-Pigeon")) == (None, None)
    assert status.value_name(3) == "Interim-Update"
    assert status.value_number("Alive") == 3


def test_vendors_have_names() -> None:
    """A vendor is known by its enterprise number even where it publishes no attributes."""
    assert [KNOWN.vendors[number] for number in (9, 3097, 3076)] == ["Cisco", "WatchGuard", "Cisco-ASA"]


@pytest.mark.parametrize(
    ("vendor", "numbers"),
    [
        (9, [1]),
        (11, [255]),
        (311, [9, 18, 34, 35, 47]),
        (2011, [26, 59, 60, 254, 255]),
        (2636, [1, 52]),
        (3076, [146, 150]),
        (11344, [1]),
        (12356, [3]),
        (14122, [3]),
        (14179, [1]),
        (14823, [5, 6, 10]),
        (14988, [10]),
        (25053, [3, 134, 135]),
        (25461, [7, 8, 9, 10]),
        (29464, [32, 33]),
        (29671, [1, 2, 3, 4]),
    ],
)
def test_what_tells_products_apart_has_a_name(vendor: int, numbers: list[int]) -> None:
    """The vendor attributes by which a sender's product is recognized are known, in all."""
    assert vendor in KNOWN.vendors
    assert [number for number in numbers if KNOWN.find(vendor, number) is None] == []


def test_what_has_no_name_gets_one_that_is_understood() -> None:
    """Attr-N and Attr-26.VENDOR.N are shown for unknown attributes and taken as octets."""
    assert KNOWN.show(0, 250, b"\1") == ("Attr-250", "0x01")
    assert KNOWN.show(9, 222, b"ab") == ("Attr-26.9.222", "0x6162")
    assert KNOWN.find(9, 222) is None
    assert KNOWN.attribute("Attr-26.9.222") == Attribute("Attr-26.9.222", 9, 222, DataType.OCTETS)
    assert KNOWN.encode("attr-250", "0x01") == b"\1"


@pytest.mark.parametrize("name", ["Attr-256", "Attr-26.0.1", "Attr-26.4294967296.1", "Attr-", "", ":1"])
def test_what_cannot_be_is_no_attribute(name: str) -> None:
    """Numbers that no packet can carry, and no name at all, are refused."""
    with pytest.raises(DictionaryError, match="no RADIUS attribute"):
        KNOWN.attribute(name)


def test_a_mistyped_name_gets_a_suggestion() -> None:
    """The error names the nearest attribute."""
    with pytest.raises(DictionaryError, match=r"no RADIUS attribute 'NAS-Port-Typ'; NAS-Port-Type[?]"):
        KNOWN.attribute("NAS-Port-Typ")


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
    """A value is shown by its type, and in hex where it does not fit."""
    attribute = KNOWN.attribute(name)
    assert KNOWN.decode(attribute.vendor, attribute.number, bytes.fromhex(octets)) == text


def test_a_tag_is_shown_with_the_name() -> None:
    """Tag 1 of Tunnel-Type is Tunnel-Type:1; tag 0 is none (RFC 2868 section 3.1)."""
    assert KNOWN.show(0, 64, b"\1\0\0\x0d") == ("Tunnel-Type:1", "VLAN")
    assert KNOWN.show(0, 64, b"\0\0\0\x0d") == ("Tunnel-Type", "VLAN")


@given(st.sampled_from(WHOLE), type_octets)
def test_known_attributes_never_fail_to_show(attribute: Attribute, octets: bytes) -> None:
    """Whatever octets an attribute holds, there is one line of printable text."""
    assert KNOWN.decode(attribute.vendor, attribute.number, octets).isprintable()


@given(st.integers(0, 0xFFFFFFFF), st.integers(0, 255), type_octets)
def test_any_attribute_is_shown(vendor: int, number: int, octets: bytes) -> None:
    """Whatever vendor and number a packet holds, there is a name and one line of printable text."""
    name, text = KNOWN.show(vendor, number, octets)
    assert name
    assert text.isprintable()


@given(st.sampled_from([a for a in SHOWN if a.secret]), type_octets)
def test_secrets_are_not_shown(attribute: Attribute, octets: bytes) -> None:
    """Nothing of a password, a key or a response made from one appears, not even its length or its tag."""
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
    """Passwords, keys and responses are known as such by flag or by name."""
    attribute = KNOWN.attribute(name)
    assert KNOWN.decode(attribute.vendor, attribute.number, b"hello123") == "***"


@pytest.mark.parametrize("name", ["Password-Retry", "CVPN3000-Min-Password-Length", "EAP-Key-Name", "Class", "State"])
def test_these_are_no_secrets(name: str) -> None:
    """An attribute about passwords is no password."""
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
    """A value's name, a number, an address, a time, text and hex become the octets of the RFCs."""
    assert KNOWN.encode(name, text) == octets


@pytest.mark.parametrize("text", ["65", "0x41", "0x4", "123456789", "0xzz"])
def test_text_stays_as_it_is(text: str) -> None:
    """Text that looks like a number or like hex is text: pyrad would make other octets of it."""
    assert KNOWN.encode("User-Password", text) == text.encode()
    assert KNOWN.encode("Filter-Id", text) == text.encode()
    assert KNOWN.decode(0, 11, text.encode()) == text


def test_octets_are_hex_or_text() -> None:
    """Octets are hex after 0x, otherwise the text itself, digits too."""
    assert KNOWN.encode("Class", "65") == b"65"
    assert KNOWN.encode("Class", "0x41") == b"A"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("Service-Type", "Framed", "Service-Type: 'Framed' is no integer"),
        ("Session-Timeout", "4294967296", "Session-Timeout: '4294967296' is no integer"),
        ("Session-Timeout", "1_0", "Session-Timeout"),
        ("Framed-IP-Address", "2001:db8::1", "Framed-IP-Address: '2001:db8::1' is no ipaddr"),
        ("Event-Timestamp", "2024-03-24T10:25:52", "Event-Timestamp"),
        ("Class", "0x4", "Class: '0x4' is no octets"),
        ("Class", "0x 41", "Class"),
        ("Reply-Message", "", "Reply-Message: an empty value"),
        ("Reply-Message", "a" * 254, "Reply-Message: 254 octets, and it has room for 253"),
        ("Cisco-AVPair", "a" * 248, "Cisco-AVPair: 248 octets, and it has room for 247"),
        ("User-Password", "a" * 129, "User-Password: 129 octets, and it has room for 128"),
        ("Tunnel-Password:1", "a" * 240, "Tunnel-Password: 241 octets, and it has room for 240"),
        ("Tunnel-Preference:1", "16777216", "Tunnel-Preference: a tagged number"),
        ("Tunnel-Type:32", "VLAN", "Tunnel-Type: tag 32"),
        ("Filter-Id:1", "a", "Filter-Id takes no tag"),
        ("IPv6-6rd-Prefix", "2001:db8::/32", "IPv6-6rd-Prefix is a part of IPv6-6rd-Configuration"),
        ("IPv6-6rd-Configuration", "24", "IPv6-6rd-Configuration: '24' is no tlv"),
        ("No-Such-Thing", "1", "no RADIUS attribute 'No-Such-Thing'"),
    ],
)
def test_values_are_refused(name: str, text: str, message: str) -> None:
    """What an attribute cannot carry is refused with the attribute's name and the reason."""
    with pytest.raises(DictionaryError) as refused:
        KNOWN.encode(name, text)
    assert message in str(refused.value)


def test_a_refused_secret_is_not_repeated() -> None:
    """The error about a key holds nothing of it, and neither does the error's cause."""
    with pytest.raises(DictionaryError) as refused:
        KNOWN.encode("MS-MPPE-Send-Key", "0xhunter2")
    assert "hunter2" not in str(refused.value)
    assert refused.value.__suppress_context__


@given(st.data(), st.sampled_from(PLAIN), st.integers(0, 31))
def test_what_is_shown_is_read_back(data: st.DataObject, attribute: Attribute, tag: int) -> None:
    """Text that was made from octets makes the same octets, with the same tag."""
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
    """Whatever a person writes becomes octets that fit an attribute, or a DictionaryError."""
    try:
        octets = KNOWN.encode(attribute.name, text)
    except DictionaryError as error:
        assert attribute.name in str(error)
    else:
        assert 0 < len(octets) <= (247 if attribute.vendor else 253)


# An admin's own directory


def test_an_admin_adds_a_vendor_and_values(directory: Callable[..., Path]) -> None:
    """A directory adds a vendor, names for values of what is known, and attributes to a vendor that is known."""
    own = directory(
        dictionary_acme="VENDOR Acme 64999\nBEGIN-VENDOR Acme\nATTRIBUTE Acme-Room 1 string\nEND-VENDOR Acme\n",
        dictionary_more="VALUE NAS-Port-Type Carrier-Pigeon 1149\nATTRIBUTE Cisco-New-Thing 222 integer Cisco\n",
    )
    known = load(own)
    assert known.notes == ()
    assert known.show(64999, 1, b"attic") == ("Acme-Room", "attic")
    assert known.encode("NAS-Port-Type", "carrier-pigeon") == (1149).to_bytes(4)
    assert known.decode(0, 61, b"\0\0\0\x0f") == "Ethernet"
    assert known.show(9, 222, b"\0\0\0\1") == ("Cisco-New-Thing", "1")


def test_files_are_read_in_the_order_of_their_names(directory: Callable[..., Path]) -> None:
    """A later file may build on an earlier one; other names, and what editors leave, are passed over."""
    own = directory(
        dictionary_2="BEGIN-VENDOR Acme\nATTRIBUTE Acme-Room 1 string\nEND-VENDOR Acme\n",
        dictionary_1="VENDOR Acme 64999\n",
        dictionary_3_bak="nonsense\n",
        README="nonsense\n",
    )
    (own / "dictionary.3~").write_text("nonsense\n")
    assert load(own).vendors[64999] == "Acme"


def test_an_index_and_its_files_are_read_once(directory: Callable[..., Path]) -> None:
    """A directory may have an index; a file that it includes, even itself, is read once, in its place."""
    own = directory(
        dictionary="VENDOR Acme 64999\nBEGIN-VENDOR Acme\n$INCLUDE dictionary.a\n$INCLUDE- no.such\nEND-VENDOR Acme\n",
        dictionary_a="$INCLUDE dictionary\nATTRIBUTE Acme-Room 1 string # a room\n",
    )
    assert load(own, own).attribute("Acme-Room").vendor == 64999


def test_the_same_attribute_again_keeps_its_values(directory: Callable[..., Path]) -> None:
    """An admin who copies a definition does not lose the names of its values."""
    known = load(directory(dictionary="ATTRIBUTE NAS-Port-Type 61 integer\nVALUE NAS-Port-Type Wire 15\n"))
    assert known.notes == ()
    assert known.decode(0, 61, b"\0\0\0\x13") == "Wireless-802.11"
    assert known.decode(0, 61, b"\0\0\0\x0f") == "Wire"


def test_a_value_named_by_digits_is_shown_as_its_number(directory: Callable[..., Path]) -> None:
    """Digits are always the number itself, so that what is shown is read back as the same octets."""
    known = load(directory(dictionary="VALUE Prompt 7 1\n"))
    assert known.decode(0, 76, b"\0\0\0\1") == "1"
    assert known.encode("Prompt", "7") == b"\0\0\0\7"


def test_a_changed_attribute_is_told(directory: Callable[..., Path]) -> None:
    """An admin's definition wins over ours, and a note says so."""
    known = load(directory(dictionary="ATTRIBUTE Filter-Id 11 octets\n"))
    assert known.decode(0, 11, b"a") == "0x61"
    assert [note.partition(": ")[2] for note in known.notes] == ["Filter-Id is defined anew, as something else"]


def test_an_older_name_defined_again_is_the_one_shown(directory: Callable[..., Path]) -> None:
    """The last definition of a number is the one shown, also when the name was known."""
    own = directory(dictionary="ATTRIBUTE CVPN3000-Member-Of 145 string Cisco-VPN3000\n")
    assert load(own).name(3076, 145) == "CVPN3000-Member-Of"


def test_what_is_skipped_is_told_with_its_line(directory: Callable[..., Path]) -> None:
    """What pyrad or a packet cannot represent becomes a note with file and line; the rest is kept."""
    own = directory(
        dictionary="# a comment\n"
        "ATTRIBUTE Extended-Attribute-1 241 extended\n"
        "ATTRIBUTE My-Local-Thing 3000 String\n"
        "VALUE My-Local-Thing One 1\n"
        "VALUE My-Local-Thing Two 2\n"
        "BEGIN-TLV Some-TLV\nATTRIBUTE Part 1 string\nEND-TLV Some-TLV\n"
        "ATTRIBUTE My-Thing 249 String\n"
    )
    known = load(own)
    assert set(known.notes) == {
        f"{own}/dictionary, line 2: skipping attribute Extended-Attribute-1: data type extended",
        f"{own}/dictionary, line 3: skipping attribute My-Local-Thing: number 3000 is never on the wire",
        f"{own}/dictionary, line 4: ignoring value defined for unknown attribute My-Local-Thing",
        f"{own}/dictionary, line 6: skipping the parts of TLV Some-TLV",
    }
    assert known.name(0, 249) == "My-Thing"
    assert known.name(0, 1) == "User-Name"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("\n# x\nATTRIBUTE Foo\n", 3, "number of tokens"),
        ("ATTRIBUTE Foo 1 colour\n", 1, "colour"),
        ("ATTRIBUTE Foo one string\n", 1, "one"),
        ("ATTRIBUTE Foo 1 string Nobody\n", 1, "Nobody"),
        ("\nVALUE Service-Type Foo bar\n", 2, "bar"),
        ("VALUE Filter-Id\n", 1, "number of tokens"),
        ("VENDOR Acme 64999 format\n", 1, "unknown option format"),
        ("VENDOR Acme 64999 format=9,9\n", 1, "format"),
        ("BEGIN-VENDOR Acme\n", 1, "Acme"),
        ("END-VENDOR Cisco\n", 1, "Cisco"),
        ("\n\nATRIBUTE Foo 1 string\n", 3, "unknown keyword ATRIBUTE"),
        ("END-TLV Foo\n", 1, "unknown keyword END-TLV"),
        ("\n$INCLUDE no.such\n", 2, "cannot read"),
        ("$INCLUDE .\n", 1, "cannot read"),
    ],
)
def test_a_bad_line_is_named(directory: Callable[..., Path], text: str, line: int, message: str) -> None:
    """A file that cannot be parsed is refused with its path, the line and the reason."""
    own = directory(dictionary_acme=text)
    with pytest.raises(DictionaryError) as refused:
        load(own)
    assert str(refused.value).startswith(f"{own}/dictionary.acme, line {line}: ")
    assert message in str(refused.value)


def test_a_bad_line_of_an_included_file_is_named(directory: Callable[..., Path]) -> None:
    """The line is counted in the file that holds it."""
    own = directory(dictionary="# 1\n# 2\n$INCLUDE more\n", more="# 1\nATTRIBUTE Foo\n")
    with pytest.raises(DictionaryError, match=f"^{own}/more, line 2: "):
        load(own)


def test_comments_may_be_in_any_encoding(directory: Callable[..., Path]) -> None:
    """Latin-1 in a comment, a byte order mark and the line ends of Windows do no harm; Latin-1 in a name does."""
    own = directory()
    (own / "dictionary").write_bytes(b"\xef\xbb\xbfVALUE Prompt Maybe 2 # m\xf6glich\r\n")
    assert load(own).attribute("Prompt").value_number("Maybe") == 2
    (own / "dictionary").write_bytes(b"# \xf6\nVALUE Prompt M\xf6glich 2\n")
    with pytest.raises(DictionaryError, match=r"dictionary, line 2: not UTF-8"):
        load(own)


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A configured directory has to exist; an empty one is fine."""
    assert len(load(tmp_path).attributes) == len(KNOWN.attributes)
    with pytest.raises(DictionaryError, match="no/such: No such file"):
        load(tmp_path / "no" / "such")


def test_pyrad_does_not_write_to_the_log(directory: Callable[..., Path], caplog: pytest.LogCaptureFixture) -> None:
    """What pyrad logs while a file is read goes into the notes; its logger is left as it was."""
    logger = logging.getLogger("pyrad")
    before = logger.level, logger.propagate, list(logger.handlers)
    load(directory(dictionary="ATTRIBUTE Extended-Attribute-1 241 extended\n"))
    assert caplog.records == []
    assert (logger.level, logger.propagate, logger.handlers) == before


WORDS = [
    "ATTRIBUTE",
    "VALUE",
    "VENDOR",
    "BEGIN-VENDOR",
    "END-VENDOR",
    "$INCLUDE-",
    "BEGIN-TLV",
    "END-TLV",
    "Foo",
    "Acme",
]
MORE = [
    "1",
    "1.2",
    "0x",
    "-1",
    "9999",
    "string",
    "integer",
    "tlv",
    "abinary",
    "ifid",
    "has_tag",
    "encrypt=9",
    "format=1",
]
LINES = st.lists(st.one_of(st.sampled_from(WORDS + MORE), st.text(max_size=5)), max_size=6).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(LINES, max_size=8).map("\n".join))
def test_any_file_is_read_or_refused(text: str) -> None:
    """Whatever lies in a directory, there is a dictionary or a DictionaryError."""
    with tempfile.TemporaryDirectory() as own:
        (Path(own) / "dictionary").write_text(text, encoding="utf-8", errors="replace")
        try:
            load(Path(own))
        except DictionaryError as error:
            assert own in str(error)
