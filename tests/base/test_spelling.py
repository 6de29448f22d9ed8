"""Misspelled names."""

import pytest

from sallyport.base.spelling import MAX_LENGTH, Spellings, unknown_field

FIELDS = Spellings(["users", "requireClean", "policies", "addresses", "name", "id", "dn"])


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("user", "users"),
        ("Users", "users"),
        ("userss", "users"),
        ("usxrs", "users"),
        ("usesr", "users"),
        ("requireclean", "requireClean"),
        ("require_clean", "requireClean"),
        ("REQUIRE-CLEAN", "requireClean"),
        ("policy", "policies"),
        ("address", "addresses"),
        ("names", "name"),
    ],
)
def test_a_near_miss(sent: str, meant: str) -> None:
    """Another case, one edit, two swapped letters, or the singular for the plural is a near miss."""
    assert FIELDS.near(sent) == [meant]


@pytest.mark.parametrize("sent", ["usr", "groups", "clean", "requireDirty", "idd", "ids", "dnn", "", "x" * 10_000])
def test_another_name(sent: str) -> None:
    """Two edits, a short name, or any other name is no near miss."""
    assert FIELDS.near(sent) == []


def test_a_guess_is_made_for_less_similar_names() -> None:
    """The nearest name may differ in more than one letter, but is never guessed for a name without similarity."""
    policy = Spellings(["minLen", "maxLen", "firstChar"])
    assert (policy.near("minLength"), policy.nearest("minLength")) == ([], "minLen")
    assert policy.nearest("sudo") is None
    assert policy.nearest("minLen" * MAX_LENGTH) is None


def test_the_message_lists_the_known_fields_without_a_guess() -> None:
    """The message names the fields that the sender probably meant, else all fields."""
    assert unknown_field(["users"]) == "unknown field: did you mean users?"
    assert unknown_field([], ["a", "b"]) == "unknown field: the known fields are a, b"
    assert unknown_field(["a"], ["a", "b"]) == "unknown field: did you mean a? The known fields are a, b"
