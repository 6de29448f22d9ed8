"""The options of attribute descriptions: which values belong to an attribute."""

import pytest

from sallyport.areas.directory.entry.descriptions import Values, attribute_key, described, incomplete, interpreted


def read(*lines: tuple[str, str]) -> dict[str, Values]:
    """Return the attributes of an entry with these lines, each a description and a value."""
    found: dict[str, Values] = {}
    for description, value in lines:
        key = attribute_key(description)
        found[key] = (*found.get(key, ()), value.encode())
    return interpreted(found.items())


def test_a_value_in_another_language_is_a_further_value() -> None:
    """The values without a language come first, and a field mapping can name the language."""
    found = read(("mail;lang-de", "b"), ("Mail", "a"), ("mail;Lang-de-CH", "c"))
    assert found == {"mail": (b"a", b"b", b"c"), "mail;lang-de": (b"b",), "mail;lang-de-ch": (b"c",)}


def test_a_binary_value_belongs_to_the_attribute() -> None:
    found = read(("userCertificate;binary", "x"))
    assert found["usercertificate"] == found["usercertificate;binary"] == (b"x",)


CSN = "4d2f8c3c000000010000"


@pytest.mark.parametrize(
    "options",
    [
        f"vucsn-{CSN};vdcsn-{CSN};deleted", f"vdcsn-{CSN};deleted", f"adcsn-{CSN};vucsn-{CSN};deletedattribute;deleted",
        f"adcsn-{CSN};deletedattribute", "deleted", "DELETED", "lang-de;deleted",
    ],
)  # fmt: skip
def test_a_deleted_value_is_no_value(options: str) -> None:
    """A value that a directory keeps only for replication belongs to no attribute, not even to one with options."""
    assert read((f"mail;{options}", "old@corp.example"), ("sn", "Lee")) == {"sn": (b"Lee",)}


@pytest.mark.parametrize(
    "options", [f"vucsn-{CSN}", f"adcsn-{CSN};mdcsn-{CSN};vucsn-{CSN}", f"vdcsn-{CSN};vucsn-{CSN}"]
)
def test_replication_data_does_not_change_a_value(options: str) -> None:
    assert read((f"mail;{options}", "ann@corp.example")) == {"mail": (b"ann@corp.example",)}
    assert read((f"cn;lang-de;{options}", "Anna"))["cn;lang-de"] == (b"Anna",)


@pytest.mark.parametrize("option", ["x-old", "phase-2", "csn-1", "range=x", "bin", "deleted-1"])
def test_an_unknown_option_makes_another_attribute(option: str) -> None:
    """An attribute with an option that is not known is another attribute (RFC 4512 section 2.5)."""
    assert read((f"uid;{option}", "ann"), ("uid", "ben")) == {"uid": (b"ben",), f"uid;{option}": (b"ann",)}


@pytest.mark.parametrize(
    "ranges", [["0-*"], ["0-1", "2-*"], ["2-3", "4-*", "0-1"], ["0-1", "10-*", "2-9"]], ids=" ".join
)
def test_all_parts_of_an_attribute_are_the_attribute(ranges: list[str]) -> None:
    found = read(*((f"member;range={each}", f"cn={each}") for each in ranges))
    assert set(found) == {"member"} and len(found["member"]) == len(ranges)
    assert incomplete(found) == set()


def test_a_part_may_have_further_options() -> None:
    found = read(("member;range=0-*;binary", "cn=a"))
    assert (found, incomplete(found)) == ({"member": (b"cn=a",)}, set())


@pytest.mark.parametrize(
    "ranges",
    [["0-1499"], ["1500-*"], ["0-1", "3-*"], ["0-1", "1-*"], ["0-0"], ["5-2", "0-1"], ["0-1", "2-3"]],
    ids=" ".join,
)
def test_a_missing_part_is_noticed(ranges: list[str]) -> None:
    """If a part of the values is missing, the attribute is incomplete."""
    found = read(*((f"MEMBER;Range={each}", "cn=a") for each in ranges), ("memberOf", "cn=b"))
    assert incomplete(found) == {"member"}


def test_the_options_of_a_description_are_sorted() -> None:
    assert attribute_key("CN;lang-de;Binary") == "cn;binary;lang-de"
    assert described("cn;binary;lang-de").attribute == "cn"
