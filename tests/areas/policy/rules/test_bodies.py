"""Login rules in request bodies."""

import pytest
from pydantic import ValidationError

from sallyport.areas.policy.rules.bodies import MAX_ENTRIES, RuleFields
from sallyport.areas.policy.rules.rule import Action
from sallyport.areas.policy.rules.window import Window


def test_a_missing_field_is_not_set() -> None:
    """A field that is missing or null is not set."""
    assert RuleFields.model_validate({"users": None, "enabled": "no"}).given() == {"enabled": False}


@pytest.mark.parametrize(
    ("text", "action"), [("ALLOW", "allow"), ("mfa-required", "mfa_required"), (" Block ", "block")]
)
def test_an_action_is_accepted_in_any_case(text: str, action: str) -> None:
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
def test_an_invalid_rule_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValidationError):
        RuleFields.model_validate({field: value})


@pytest.mark.parametrize("value", ["", {}, [], {"days": []}, {"from": "00:00", "until": "24:00"}])
def test_a_time_that_excludes_nothing_is_no_condition(value: object) -> None:
    assert RuleFields.model_validate({"time": value}).given() == {"time": None}


def test_days_have_short_or_long_names() -> None:
    """A single day may be given without a list."""
    assert RuleFields.model_validate({"time": {"days": "Thursday"}}).given() == {"time": Window(("thu",))}
