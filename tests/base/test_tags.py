"""Tags in canonical form, changes of tags, and the hierarchy that a wanted tag selects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base import tags as tags_module
from sallyport.base.errors import Invalid
from sallyport.base.tags import (
    MAX_LEVELS,
    MAX_TAGS,
    Tags,
    as_stored,
    canonical_tag,
    canonical_tags,
    changed_tags,
    effective_tags,
    folded_tag,
    is_selected,
    of_store,
    selectors,
    value_for,
)


def selects(wanted: str, tags: Tags) -> bool:
    """Return whether a wanted tag selects an object with these tags. Rules and lists agree about it."""
    found = folded_tag(wanted) in selectors(tags)
    assert is_selected(tags, folded_tag(wanted)) == found
    return found


def test_a_tag_has_one_form() -> None:
    """The key is in lower case; the value keeps its case and loses the blanks around it."""
    assert canonical_tag(" Site = Berlin Mitte ") == "site=Berlin Mitte"
    assert canonical_tag("formula=a=b") == "formula=a=b"
    assert canonical_tag("Example.org.x-y_z=1") == "example.org.x-y_z=1"
    assert canonical_tags(["site=Berlin", "OWNER=net", "site=Berlin"]) == ("owner=net", "site=Berlin")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("site", id="no sign"),
        pytest.param("=Berlin", id="no key"),
        pytest.param("site=", id="no value"),
        pytest.param("site=\u200b", id="invisible value"),
        pytest.param("my site=x", id="blank in the key"),
        pytest.param("straße=x", id="letter beyond a to z"),
        pytest.param("k" * 33 + "=x", id="long key"),
        pytest.param("site=" + "x" * 129, id="long value"),
        pytest.param("site=a\nb", id="line break"),
        pytest.param("site=a\u2028b", id="line separator"),
        pytest.param("site=" + "a/" * MAX_LEVELS, id="deep hierarchy"),
    ],
)
def test_a_wrong_tag_is_refused(text: str) -> None:
    """The error names the field, and not the value."""
    with pytest.raises(Invalid) as error:
        canonical_tag(text)
    assert error.value.fields[0].field == "tags"


def test_a_key_has_one_value() -> None:
    """Two values of a key, and too many tags, are refused."""
    with pytest.raises(Invalid, match="invalid tags"):
        canonical_tags(["site=Berlin", "site=Hamburg"])
    with pytest.raises(Invalid, match="invalid tags"):
        canonical_tags(f"k{number}=x" for number in range(MAX_TAGS + 1))


def test_a_change_sets_and_removes_keys() -> None:
    """Other keys keep their values."""
    assert changed_tags(("owner=net", "site=Berlin"), ["site=Hamburg", "floor=2"]) == (
        "floor=2",
        "owner=net",
        "site=Hamburg",
    )
    assert changed_tags(("owner=net", "site=Berlin"), ["SITE=", "rack="]) == ("owner=net",)
    assert changed_tags(("owner=net",), ["formula=a="]) == ("formula=a=", "owner=net")


def test_a_change_replaces_all_tags() -> None:
    """It removes as many tags as an object can have, and sets as many with other keys. The result has a limit."""
    present = canonical_tags(f"a{number}=x" for number in range(MAX_TAGS))
    new = canonical_tags(f"b{number}=x" for number in range(MAX_TAGS))
    assert changed_tags(present, [*(f"a{number}=" for number in range(MAX_TAGS)), *new]) == new
    with pytest.raises(Invalid, match="invalid tags"):
        changed_tags(present, ["b=x"])


def test_the_own_value_of_a_key_precedes() -> None:
    """A device takes over the other keys of its client."""
    effective = effective_tags(("site=Berlin",), ("owner=net", "site=Hamburg"))
    assert effective == ("owner=net", "site=Berlin")
    assert effective_tags((), ("owner=net",)) == ("owner=net",)
    assert value_for(effective, "site") == "Berlin"
    assert value_for(effective, "rack") == ""


@pytest.mark.parametrize("wanted", ["site=Berlin", "site=berlin/Floor 2", "SITE=Berlin / floor 2#Rack 7"])
def test_a_prefix_selects_a_hierarchy(wanted: str) -> None:
    """The prefix ends before a separator; blanks before the separator do not count."""
    tags = ("owner=net", "site=Berlin/Floor 2#Rack 7")
    spaced = ("owner=net", "site=Berlin / Floor 2#Rack 7")
    assert selects(wanted, tags) or selects(wanted, spaced)


@pytest.mark.parametrize("wanted", ["site=Ber", "site=Berlin/Floor", "site=Berlin/", "owner=Berlin", "site="])
def test_a_part_of_a_level_selects_nothing(wanted: str) -> None:
    """Berlin is not a prefix of Berlin Mitte, and no other key is compared."""
    assert not selects(wanted, ("owner=net", "site=Berlin/Floor 2"))
    assert not selects("site=Berlin", ("site=Berlin Mitte",))


def test_a_combining_mark_does_not_join_the_sign() -> None:
    """`=` and U+0338 are one character in normalization form C."""
    tag = canonical_tag("site=\u0338x")
    assert selects(tag, (tag,))


@given(st.lists(st.text(max_size=150), max_size=40))
def test_any_texts_are_stored_or_refused(texts: list[str]) -> None:
    """An accepted tag is the same after the store has read it, and it selects itself."""
    try:
        tags = canonical_tags(f"k{number}={text}" for number, text in enumerate(texts))
    except Invalid:
        return
    assert of_store(as_stored(tags)) == tags
    assert all(selects(tag, tags) for tag in tags)


def test_the_costliest_tags_have_few_selectors() -> None:
    """Thousands of levels are refused, so an object has a few hundred selectors."""
    value = "/".join("a" * 11 for _ in range(MAX_LEVELS))
    tags = canonical_tags(f"k{number}={value}" for number in range(MAX_TAGS))
    assert len(selectors(tags)) == MAX_TAGS * MAX_LEVELS


def test_the_memo_of_long_tags_is_small() -> None:
    """The selectors of 32 long tags have 150 KB, so that 2,048 of them would fill the memory."""
    long = canonical_tags(f"k{number}={'x' * 100}" for number in range(MAX_TAGS))
    for number in range(200):
        assert len(selectors((f"a={number}", *long[1:]))) == MAX_TAGS
    assert tags_module._long_selectors.cache_info().currsize <= 64
    before = tags_module._selectors.cache_info().misses
    assert selectors(("role=memo",)) is selectors(("role=memo",))
    assert tags_module._selectors.cache_info().misses == before + 1
