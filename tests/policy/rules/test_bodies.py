"""Login rules in request bodies."""

import pytest
from pydantic import ValidationError

from sallyport.policy.rules.bodies import MAX_ENTRIES, RuleFields
from sallyport.policy.rules.rule import Action, Window


def test_what_is_not_given_is_not_there() -> None:
    """A field that is missing or null is not set."""
    assert RuleFields.model_validate({"users": None, "enabled": "no"}).given() == {"enabled": False}


@pytest.mark.parametrize(
    ("text", "action"), [("ALLOW", "allow"), ("mfa-required", "mfa_required"), (" Block ", "block")]
)
def test_actions_as_people_say_them(text: str, action: str) -> None:
    """Actions are read in any case."""
    assert RuleFields.model_validate({"action": text}).action == Action(action)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""), ("name", "x" * 256), ("name", "a\nb"), ("action", ""), ("action", "deny"),
        ("priority", -1), ("priority", "x"), ("priority", True), ("priority", 1_000_001), ("enabled", "perhaps"),
        ("users", ["x"] * (MAX_ENTRIES + 1)), ("users", [""]), ("users", ["x" * 256]), ("users", {}),
        ("stations", ["a\0"]), ("vlan", "x" * 65), ("replyAttributes", [{"name": "Class"}]), ("replyAttributes", ["x"]),
        ("replyAttributes", [{"name": "Class", "value": "a\nb"}]),
        ("time", "08:00-18:00"), ("time", {"days": ["noday"]}), ("time", {"days": ["m"]}), ("time", {"from": "8"}),
        ("time", {"from": "24:01"}), ("time", {"until": "25:00"}), ("time", {"from": "08:60"}),
        ("time", {"from": "08:00", "until": "8:00"}), ("time", {"from": "24:00", "until": "08:00"}),
        ("time", {"timezone": "Mars/Base"}), ("time", {"timezone": "../etc/passwd"}), ("time", {"timezone": "Europe"}),
        ("time", {"timezone": ""}),
    ],
)  # fmt: skip
def test_what_is_no_rule(field: str, value: object) -> None:
    """An invalid rule is refused."""
    with pytest.raises(ValidationError):
        RuleFields.model_validate({field: value})


@pytest.mark.parametrize("value", ["", {}, [], {"days": []}, {"from": "00:00", "until": "24:00"}])
def test_a_time_that_excludes_nothing(value: object) -> None:
    """A time that excludes nothing is no condition."""
    assert RuleFields.model_validate({"time": value}).given() == {"time": None}


def test_days_are_one_or_many() -> None:
    """By their short or long names."""
    assert RuleFields.model_validate({"time": {"days": "Thursday"}}).given() == {"time": Window(("thu",))}
