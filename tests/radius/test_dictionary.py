"""Tests of the dictionaries in the package, and of an admin's own dictionaries."""

import logging
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sallyport.base.errors import DictionaryError
from sallyport.radius.dictionary import Attribute, DataType, _beyond_an_octet, load, packaged

KNOWN = load()


@pytest.fixture
def directory(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a directory of dictionaries.

    The arguments are the file names, with _ for a dot, and their text.
    """

    def write(**texts: str) -> Path:
        for name, text in texts.items():
            (tmp_path / name.replace("_", ".")).write_text(text)
        return tmp_path

    return write


# The dictionaries of the package


def test_pyrad_reads_all_of_the_package() -> None:
    """pyrad reads every file in the package without skipping a line."""
    assert KNOWN.notes == ()
    assert len(KNOWN.attributes) > 1000


def test_the_index_names_every_file() -> None:
    """Each dictionary in the directory is loaded."""
    index = (packaged() / "dictionary").read_text().splitlines()
    included = {line.split()[1] for line in index if line.startswith("$INCLUDE")}
    assert included == {path.name for path in packaged().iterdir()} - {"dictionary"}


def test_an_attribute_has_what_the_codec_needs() -> None:
    """A name, in any case, selects an attribute with its vendor, number, type, tag and encryption."""
    assert KNOWN.attribute("tunnel-password") == Attribute("Tunnel-Password", 0, 69, DataType.STRING, True, 2)
    assert KNOWN.attribute("MS-MPPE-Send-Key") == Attribute("MS-MPPE-Send-Key", 311, 16, DataType.OCTETS, False, 2)
    assert KNOWN.attribute("IPv6-6rd-Prefix").parent == "IPv6-6rd-Configuration"


def test_a_number_has_its_last_name() -> None:
    """If a number has several names, the last one is shown. A part of a TLV has no number of its own."""
    assert KNOWN.name(311, 8) == "MS-MPPE-Encryption-Types"
    assert KNOWN.name(3076, 146) == "ASA-TunnelGroupName"
    assert KNOWN.name(3076, 1) == "CVPN3000-Access-Hours"
    assert KNOWN.name(173, 1) == "Attr-26.173.1"


def test_values_have_names() -> None:
    """The value 15 of NAS-Port-Type is Ethernet, and Ethernet is 15.

    If a value has several names, the last one is shown and all are accepted.
    """
    ports, status = KNOWN.attribute("NAS-Port-Type"), KNOWN.attribute("Acct-Status-Type")
    assert (ports.value_name(15), ports.value_number("ethernet")) == ("Ethernet", 15)
    assert (ports.value_name(4711), ports.value_number("Carrier-Pigeon")) == (None, None)
    assert status.value_name(3) == "Interim-Update"
    assert status.value_number("Alive") == 3


def test_vendors_have_names() -> None:
    """A vendor that has no published attributes is known by its enterprise number."""
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
def test_attributes_that_identify_products_have_names(vendor: int, numbers: list[int]) -> None:
    """The vendor attributes that identify a product are known."""
    assert vendor in KNOWN.vendors
    assert [number for number in numbers if KNOWN.find(vendor, number) is None] == []


def test_unknown_attributes_have_names() -> None:
    """Unknown attributes are shown as Attr-N and Attr-26.VENDOR.N.

    These names are accepted with octets as the value.
    """
    assert KNOWN.show(0, 250, b"\1") == ("Attr-250", "0x01")
    assert KNOWN.show(9, 222, b"ab") == ("Attr-26.9.222", "0x6162")
    assert KNOWN.find(9, 222) is None
    assert KNOWN.attribute("Attr-26.9.222") == Attribute("Attr-26.9.222", 9, 222, DataType.OCTETS)
    assert KNOWN.encode("attr-250", "0x01") == b"\1"


@pytest.mark.parametrize("name", ["Attr-256", "Attr-26.0.1", "Attr-26.4294967296.1", "Attr-", "", ":1"])
def test_impossible_attributes_are_refused(name: str) -> None:
    """A number that no packet can carry is refused, and so is an empty name."""
    with pytest.raises(DictionaryError, match="no RADIUS attribute"):
        KNOWN.attribute(name)


def test_a_mistyped_name_gets_a_suggestion() -> None:
    """The error for an unknown name suggests the most similar name."""
    with pytest.raises(DictionaryError, match=r"no RADIUS attribute 'NAS-Port-Typ'; NAS-Port-Type[?]"):
        KNOWN.attribute("NAS-Port-Typ")


# An admin's own directory


def test_an_admin_adds_a_vendor_and_values(directory: Callable[..., Path]) -> None:
    """A directory can add a vendor, value names of a known attribute, and attributes of a known vendor."""
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
    """Files are read in alphabetical order, so that a file can use an earlier one.

    Files with other names and backups of editors are skipped.
    """
    own = directory(
        dictionary_2="BEGIN-VENDOR Acme\nATTRIBUTE Acme-Room 1 string\nEND-VENDOR Acme\n",
        dictionary_1="VENDOR Acme 64999\n",
        dictionary_3_bak="nonsense\n",
        README="nonsense\n",
    )
    (own / "dictionary.3~").write_text("nonsense\n")
    assert load(own).vendors[64999] == "Acme"


def test_an_index_and_its_files_are_read_once(directory: Callable[..., Path]) -> None:
    """A directory may have an index.

    Each included file is read once, where it is included, even if the index includes itself.
    """
    own = directory(
        dictionary="VENDOR Acme 64999\nBEGIN-VENDOR Acme\n$INCLUDE dictionary.a\n$INCLUDE- no.such\nEND-VENDOR Acme\n",
        dictionary_a="$INCLUDE dictionary\nATTRIBUTE Acme-Room 1 string # a room\n",
    )
    assert load(own, own).attribute("Acme-Room").vendor == 64999


def test_the_same_attribute_again_keeps_its_values(directory: Callable[..., Path]) -> None:
    """If the definition of an attribute is copied, the names of its values are kept."""
    known = load(directory(dictionary="ATTRIBUTE NAS-Port-Type 61 integer\nVALUE NAS-Port-Type Wire 15\n"))
    assert known.notes == ()
    assert known.decode(0, 61, b"\0\0\0\x13") == "Wireless-802.11"
    assert known.decode(0, 61, b"\0\0\0\x0f") == "Wire"


def test_a_value_named_by_digits_is_shown_as_its_number(directory: Callable[..., Path]) -> None:
    """A value whose name has only digits is shown as its number, so that the text is converted back to the
    same octets."""
    known = load(directory(dictionary="VALUE Prompt 7 1\n"))
    assert known.decode(0, 76, b"\0\0\0\1") == "1"
    assert known.encode("Prompt", "7") == b"\0\0\0\7"


def test_a_changed_attribute_has_a_note(directory: Callable[..., Path]) -> None:
    """The definition of an admin replaces that of the package, and a note reports this."""
    known = load(directory(dictionary="ATTRIBUTE Filter-Id 11 octets\n"))
    assert known.decode(0, 11, b"a") == "0x61"
    assert [note.partition(": ")[2] for note in known.notes] == ["Filter-Id is defined again, and differently"]


def test_an_older_name_defined_again_is_the_one_shown(directory: Callable[..., Path]) -> None:
    """If a number is defined several times, the last definition is shown, even if its name was known before."""
    own = directory(dictionary="ATTRIBUTE CVPN3000-Member-Of 145 string Cisco-VPN3000\n")
    assert load(own).name(3076, 145) == "CVPN3000-Member-Of"


def test_a_skipped_definition_has_a_note_with_its_line(directory: Callable[..., Path]) -> None:
    """A definition that pyrad or a packet cannot represent is reported as a note with file and line.

    All other definitions are used.
    """
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
    """A file that cannot be parsed is refused. The error has its path, the line and the reason."""
    own = directory(dictionary_acme=text)
    with pytest.raises(DictionaryError) as refused:
        load(own)
    assert str(refused.value).startswith(f"{own}/dictionary.acme, line {line}: ")
    assert message in str(refused.value)


def test_a_bad_line_of_an_included_file_is_named(directory: Callable[..., Path]) -> None:
    """The error has the line number in the included file."""
    own = directory(dictionary="# 1\n# 2\n$INCLUDE more\n", more="# 1\nATTRIBUTE Foo\n")
    with pytest.raises(DictionaryError, match=f"^{own}/more, line 2: "):
        load(own)


def test_comments_may_be_in_any_encoding(directory: Callable[..., Path]) -> None:
    """Latin-1 in a comment, a byte order mark and CR LF are accepted. Latin-1 in a name is refused."""
    own = directory()
    (own / "dictionary").write_bytes(b"\xef\xbb\xbfVALUE Prompt Maybe 2 # m\xf6glich\r\n")
    assert load(own).attribute("Prompt").value_number("Maybe") == 2
    (own / "dictionary").write_bytes(b"# \xf6\nVALUE Prompt M\xf6glich 2\n")
    with pytest.raises(DictionaryError, match=r"dictionary, line 2: not UTF-8"):
        load(own)


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A directory that is configured must exist, but may be empty."""
    assert len(load(tmp_path).attributes) == len(KNOWN.attributes)
    with pytest.raises(DictionaryError, match="no/such: No such file"):
        load(tmp_path / "no" / "such")


def test_pyrad_does_not_write_to_the_log(directory: Callable[..., Path], caplog: pytest.LogCaptureFixture) -> None:
    """The log messages of pyrad are converted to notes. The logger of pyrad is not changed."""
    logger = logging.getLogger("pyrad")
    before = logger.level, list(logger.filters)
    load(directory(dictionary="ATTRIBUTE Extended-Attribute-1 241 extended\n"))
    assert caplog.records == []
    assert (logger.level, logger.filters) == before


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
    """Any file is read as a dictionary or raises DictionaryError with its path."""
    with tempfile.TemporaryDirectory() as own:
        (Path(own) / "dictionary").write_text(text, encoding="utf-8", errors="replace")
        try:
            load(Path(own))
        except DictionaryError as error:
            assert own in str(error)


def test_numbers_beyond_an_octet_are_skipped(directory: Callable[..., Path]) -> None:
    """FreeRADIUS numbers its internal attributes from 256 on, also parts of a TLV. They are never in a packet."""
    lines = [f"ATTRIBUTE {name} {number} string" for name, number in
             {"Inside": "300", "First": "256", "Last": "255"}.items()]  # fmt: skip
    known = load(directory(dictionary_own="\n".join(["VENDOR Own 64000", "BEGIN-VENDOR Own", *lines,
                                                     "END-VENDOR Own"])))  # fmt: skip
    assert known.name(64000, 255) == "Last"
    assert [note.partition(": ")[2] for note in known.notes] == [
        "skipping attribute Inside: number 300 is never on the wire",
        "skipping attribute First: number 256 is never on the wire",
    ]


@pytest.mark.parametrize(
    ("number", "is_beyond"),
    [("0", False), ("255", False), ("256", True), ("0x100", True), ("3.255", False), ("3.256", True), ("256.3", True),
     ("x", False)],
)  # fmt: skip
def test_the_parts_of_a_number(number: str, is_beyond: bool) -> None:
    """Each part of `TLV.PART` is an octet."""
    assert _beyond_an_octet(number) is is_beyond


@pytest.mark.parametrize("end", ["~", ".bak", ".orig", ".rpmnew", ".rpmsave", ".dpkg-dist", ".dpkg-new", ".dpkg-old"])
def test_copies_of_package_managers_are_not_read(tmp_path: Path, end: str) -> None:
    """A former version of a file beside the file would name its attributes twice."""
    (tmp_path / f"dictionary.own{end}").write_text("ATTRIBUTE Twice 250 string\n")
    assert load(tmp_path).name(0, 250) != "Twice"


def test_the_name_of_a_value() -> None:
    """An attribute is named in any case. A number without a name has none."""
    assert KNOWN.value_name("service-type", 2) == "Framed-User"
    assert KNOWN.value_name("Service-Type", 250) is None


def test_a_signed_number(directory: Callable[..., Path]) -> None:
    """An attribute of the type signed shows negative numbers."""
    known = load(directory(dictionary_own="ATTRIBUTE Offset 250 signed"))
    assert known.attribute("Offset").type is DataType.SIGNED
    assert known.decode(0, 250, b"\xff\xff\xff\xfe") == "-2"
