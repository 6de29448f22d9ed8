"""The package's dictionaries against FreeRADIUS's: attributes that both have must be equal.

A small parser of this test reads the files, so that it can reveal a mistake of pyrad or of the service. FreeRADIUS's
files are listed in the order in which it reads them, because the last definition of a name or a number is used.
"""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sallyport.radius.dictionary import Attribute, load

SHARE = Path("/usr/share/freeradius")
NAMES = "rfc2865 rfc2866 rfc2867 rfc2868 rfc2869 rfc3162 rfc3576 rfc3580 rfc4072 rfc4372 rfc4603 rfc4675 rfc4679 "
NAMES += "rfc4818 rfc4849 rfc5176 rfc5447 rfc5580 rfc5607 rfc5904 rfc6519 rfc6572 rfc6677 rfc6911 rfc6929 rfc6930 "
NAMES += "rfc7055 rfc7155 rfc7268 rfc7499 rfc7930 rfc8045 rfc8559 iana rfc5090 airespace aruba checkpoint cisco "
NAMES += "cisco.vpn3000 cisco.asa extreme f5 fortinet foundry freeradius hp huawei juniper meraki microsoft mikrotik "
NAMES += "netscreen paloalto ruckus sonicwall trapeze wispr"

# Types that pyrad does not have (RFC 6929, RFC 8044): the package's files omit such attributes, with their parts.
NOT_IN_PYRAD = {"vsa", "extended", "long-extended", "evs", "ipv4prefix", "combo-ip"}
EXTENDED = range(241, 247)
ALL_EXTENDED = {"rfc6929", "rfc7499", "rfc7930", "rfc8045", "rfc8559"}
# Drafts, glue and internals that the package's files omit, as they say.
LEFT_OUT = {"Digest-Attributes"}
LEFT_OUT_NUMBERS = {(3561, 255), (11344, 186)}
# Vendors that FreeRADIUS 3.2 has no file for.
OURS_ALONE = {"Inverse", "Ubiquiti", "WatchGuard"}

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(not (SHARE / "dictionary.rfc2865").is_file(), reason="freeradius-common is not installed"),
]


@dataclass(slots=True)
class Theirs:
    """An attribute in FreeRADIUS's files.

    number: (type,), or (TLV type, type of the part).
    """

    vendor: int
    number: tuple[int, ...]
    type: str
    flags: frozenset[str]
    values: dict[str, int] = field(default_factory=dict)

    @property
    def left_out(self) -> bool:
        """Return whether the package's files omit the attribute for a stated reason."""
        extended = self.vendor == 0 and self.number[0] in EXTENDED
        return self.type in NOT_IN_PYRAD or extended or (self.vendor, self.number[0]) in LEFT_OUT_NUMBERS


def lines(name: str) -> Iterator[list[str]]:
    """Yield the words of each line in one of FreeRADIUS's files."""
    for line in (SHARE / f"dictionary.{name}").read_text().splitlines():
        if words := line.partition("#")[0].split():
            yield words


def theirs(*names: str) -> tuple[dict[str, Theirs], dict[tuple[int, tuple[int, ...]], str]]:
    """Return the attributes, keyed by name, and the last name of each vendor and number."""
    vendors: dict[str, int] = {}
    known: dict[str, Theirs] = {}
    shown: dict[tuple[int, tuple[int, ...]], str] = {}
    values: list[tuple[str, str, int]] = []
    vendor = 0
    for words in (words for name in names for words in lines(name)):
        match words:
            case ["VENDOR", name, number, *_]:
                vendors[name] = int(number)
            case ["BEGIN-VENDOR", name]:
                vendor = vendors[name]
            case ["END-VENDOR", _]:
                vendor = 0
            case ["ATTRIBUTE", name, number, kind, *flags]:
                place = tuple(int(part, 0) for part in number.split("."))
                known[name] = Theirs(
                    vendor, place, kind.lower().partition("[")[0], frozenset(",".join(flags).split(","))
                )
                shown[vendor, place] = name
            case ["VALUE", name, named, number]:
                values.append((name, named, int(number, 0)))
    for attribute, value, meaning in values:
        known[attribute].values[value] = meaning
    return known, shown


@pytest.fixture(scope="module")
def slack() -> float:
    """Return the share of names that the package may lack.

    It is 0 for the FreeRADIUS version that the package follows.
    """
    program = shutil.which("freeradius", path="/usr/sbin:/usr/bin")
    version = subprocess.run([program, "-v"], capture_output=True, text=True, check=False).stdout if program else ""
    return 0.0 if "Version 3.2.1," in version else 0.2


@pytest.fixture(scope="module")
def freeradius() -> dict[str, Theirs]:
    """Return FreeRADIUS's attributes, keyed by name."""
    return theirs(*NAMES.split())[0]


@pytest.fixture(scope="module")
def ours() -> dict[str, Attribute]:
    """Return the package's attributes, keyed by name."""
    return dict(load().attributes)


@pytest.fixture(scope="module")
def both(freeradius: dict[str, Theirs], ours: dict[str, Attribute]) -> list[tuple[Attribute, Theirs]]:
    """Return the attributes that both have."""
    return [(ours[name], freeradius[name]) for name in ours.keys() & freeradius.keys()]


def test_hundreds_of_attributes_are_compared(both: list[tuple[Attribute, Theirs]]) -> None:
    """Most of the package's attributes and of their named values are compared."""
    assert len(both) > 1100
    assert sum(len(attribute.values) for attribute, _ in both) > 600


def test_vendor_and_number_are_the_same(both: list[tuple[Attribute, Theirs]], ours: dict[str, Attribute]) -> None:
    """An attribute has FreeRADIUS's vendor, number and, in a TLV, parent."""
    for attribute, other in both:
        parent = (ours[attribute.parent].number,) if attribute.parent else ()
        assert (attribute.vendor, (*parent, attribute.number)) == (other.vendor, other.number), attribute.name


def test_types_are_the_same(both: list[tuple[Attribute, Theirs]]) -> None:
    """The types are FreeRADIUS's if pyrad has them. A length such as octets[16] is not kept."""
    for attribute, other in both:
        assert attribute.type.value == other.type, attribute.name


def test_tags_and_encryption_are_the_same(both: list[tuple[Attribute, Theirs]]) -> None:
    """has_tag and encrypt=N are set as in FreeRADIUS's files."""
    for attribute, other in both:
        encrypt = {f"encrypt={n}" for n in range(1, 4)} & other.flags
        assert attribute.has_tag == ("has_tag" in other.flags), attribute.name
        assert ({f"encrypt={attribute.encrypt}"} if attribute.encrypt else set()) == encrypt, attribute.name


def test_value_names_are_the_same(both: list[tuple[Attribute, Theirs]], slack: float) -> None:
    """The named values of an attribute have FreeRADIUS's numbers. A newer FreeRADIUS may have more values."""
    missing = 0
    for attribute, other in both:
        assert dict(attribute.values).items() <= other.values.items(), attribute.name
        missing += len(other.values) - len(attribute.values)
    assert missing <= slack * sum(len(attribute.values) for attribute, _ in both)


def test_numbers_are_shown_by_the_same_name() -> None:
    """If a number has several names, the last one is shown, as in FreeRADIUS."""
    known = load()
    _, shown = theirs(*NAMES.split())
    compared = {(vendor, number[0]): name for (vendor, number), name in shown.items() if len(number) == 1}
    named = {place: known.name(*place) for place in compared if known.find(*place)}
    assert named == {place: name for place, name in compared.items() if place in named}
    assert len(named) > 1000


@pytest.mark.parametrize("name", NAMES.split())
def test_a_file_is_covered(name: str, freeradius: dict[str, Theirs], ours: dict[str, Attribute], slack: float) -> None:
    """The package has each attribute of a file, except those that pyrad cannot represent or that the file omits."""
    defined = [words[1] for words in lines(name) if words[0] == "ATTRIBUTE" and words[1] not in LEFT_OUT]
    kept = [attribute for attribute in defined if not freeradius[attribute].left_out]
    missing = [attribute for attribute in kept if attribute not in ours]
    assert len(missing) <= slack * len(kept)
    valued = [words[1] for words in lines(name) if words[0] == "VALUE" and words[1] in ours]
    assert bool(kept or valued) == (name not in ALL_EXTENDED)


def test_vendors_have_the_same_numbers() -> None:
    """Each vendor has FreeRADIUS's number, unless FreeRADIUS lacks it."""
    vendors = {words[1]: int(words[2]) for name in NAMES.split() for words in lines(name) if words[0] == "VENDOR"}
    for number, name in load().vendors.items():
        assert name in OURS_ALONE or vendors[name] == number


def test_freeradius_own_directory_is_read() -> None:
    """An admin can use the directory with all of FreeRADIUS's files: they are read, and definitions that are skipped
    have notes."""
    known = load(SHARE)
    assert len(known.attributes) > 4000
    assert known.name(0, 1) == "User-Name"
    assert known.notes
