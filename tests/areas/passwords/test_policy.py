"""Tests of the fields of a policy: accepted values, stored values, the rules of the engine, and contradictions."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sallyport.agentwire.state import First, Quality, Rules
from sallyport.areas.passwords import engine
from sallyport.areas.passwords.policy import FIELDS, PARAMETERS, complete, contradictions, rules_of
from tests.areas.passwords.conftest import change
from tests.areas.passwords.test_engine import RULES

ASCII = st.text(st.characters(max_codepoint=127), max_size=24) | st.text("abAB12. ", max_size=24)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("minLen", 8, "8"),
        ("maxLen", " 008 ", "8"),
        ("minLen", "", ""),
        ("minLen", "  ", ""),
        ("firstChar", "UpperCase", "uppercase"),
        ("firstChar", "", ""),
        ("allowSpecial", "Yes", "Yes"),
        ("allowSpecial", True, "yes"),
        ("allowNumeric", 0, "no"),
        ("allowUpperLower", " ", ""),
        ("dcredit", "-1", "-1"),
        ("ocredit", "+2", "2"),
        ("minclass", "4", "4"),
        ("usercheck", "true", "1"),
        ("usercheck", "0", "0"),
        ("usercheck", "", ""),
    ],
)
def test_accepted_values(field: str, value: object, text: str) -> None:
    """A number may be sent as a string, and a flag as a number or a boolean. An empty text removes the value."""
    assert change(**{field: value}) == {field: text}


@pytest.mark.parametrize("field", FIELDS)
def test_null_and_absent_fields(field: str) -> None:
    """Null leaves the value unchanged, and so does an absent field."""
    assert change(**{field: None}) == change() == {}


@pytest.mark.parametrize("field", [each for each in FIELDS if not each.endswith("Name")])
@pytest.mark.parametrize("value", ["hunter2", "1.5", "\u0661", "9" * 5000, "-1025", "1025", [1], {}, 1.5, "1\x00"])
def test_a_value_is_refused(field: str, value: object) -> None:
    """Other texts, numbers out of range and other types are refused. The message does not contain the value."""
    with pytest.raises(ValidationError) as error:
        change(**{field: value})
    (detail,) = error.value.errors(include_input=False, include_url=False)
    assert detail["loc"] == (field,)
    assert "hunter2" not in str(error.value)


def test_a_policy_without_values_demands_nothing() -> None:
    """A policy without values has no rules of the interface and no rules of libpwquality."""
    assert rules_of(complete({"policyName": "p"})) == Rules()
    everything = {"allowUpperLower": "yes", "allowSpecial": "true", "allowNumeric": "1"}
    assert rules_of(complete(everything)) == Rules()


def test_every_field_reaches_the_engine() -> None:
    """Each field has its own rule, and each flag has its meaning."""
    numbers = {name: str(number) for number, name in enumerate(("minLen", "maxLen", *PARAMETERS[:-1]), 3)}
    flags = {"allowUpperLower": "No", "allowSpecial": "false", "allowNumeric": "0", "usercheck": "1"}
    assert rules_of(complete({"firstChar": "digit", **flags, **numbers})) == Rules(
        3, 4, First.DIGIT, both_cases=False, special=False, digits=False,
        quality=Quality(5, (6, 7, 8, 9), 10, 11, 12, 13, usercheck=True),
    )  # fmt: skip


@pytest.mark.parametrize("field", PARAMETERS)
def test_any_parameter_of_libpwquality_adds_its_fixed_checks(field: str) -> None:
    """The fixed checks of libpwquality apply if one of its parameters has a value, even if the value is 0."""
    rules = rules_of(complete({field: "0"}))
    assert rules.quality is not None
    assert "palindrome" in {each.rule for each in engine.failures(rules, "abccba")}


def test_the_parameters_are_those_of_the_engine() -> None:
    """The parameters have the same names as in the engine, except the four credits, which the engine has as
    one value."""
    named = {name for name in PARAMETERS if not name.endswith("credit")}
    assert named == {field.name for field in fields(Quality)} - {"credits"}


@pytest.mark.parametrize(
    ("rules", "fields"),
    [
        (Rules(min_length=9, max_length=8), ["maxLen"]),
        (Rules(max_length=10, quality=Quality(minlen=20)), ["maxLen"]),
        (Rules(max_length=4, quality=Quality(credits=(-2, -3, 0, 0))), ["maxLen"]),
        (Rules(max_length=10, quality=Quality(minlen=20, credits=(4, 5, 0, -1))), ["maxLen"]),
        (Rules(min_length=129), ["minLen"]),
        (Rules(min_length=200, max_length=300), ["minLen"]),
        (Rules(quality=Quality(minlen=129)), ["minlen"]),
        (Rules(max_length=500, quality=Quality(credits=(-100, -29, 0, 0))), ["minlen"]),
        (Rules(first=First.DIGIT, digits=False), ["firstChar"]),
        (Rules(digits=False, special=False, quality=Quality(credits=(-1, 0, 0, -1))), ["dcredit", "ocredit"]),
        (Rules(both_cases=False, quality=Quality(credits=(0, -1, -1, 0))), ["lcredit"]),
        (Rules(both_cases=False, first=First.UPPERCASE, quality=Quality(credits=(0, 0, -1, 0))), ["lcredit"]),
        (Rules(both_cases=False, first=First.LOWERCASE, quality=Quality(credits=(0, -1, 0, 0))), ["ucredit"]),
        (Rules(special=False, quality=Quality(minclass=4)), ["minclass"]),
    ],
)
def test_a_contradiction_names_the_field_to_change(rules: Rules, fields: list[str]) -> None:
    assert [each.rule for each in contradictions(rules)] == fields


@pytest.mark.parametrize(
    "rules",
    [
        Rules(),
        engine.GUIDANCE,
        Rules(min_length=128, max_length=1024, quality=Quality(minlen=140, credits=(12, 0, 0, -20))),
        Rules(min_length=8, max_length=8, first=First.DIGIT, special=False),
        Rules(max_length=10, quality=Quality(minlen=20, credits=(5, 5, 0, 0))),
        Rules(special=False, both_cases=False, quality=Quality(minclass=2, credits=(-1, -1, 0, 0))),
    ],
)
def test_rules_that_can_be_met_are_no_contradiction(rules: Rules) -> None:
    assert contradictions(rules) == []


@given(RULES, ASCII)
def test_rules_that_a_password_meets_are_no_contradiction(rules: Rules, password: str) -> None:
    """If an ASCII password meets the rules, they are never reported as a contradiction."""
    if not engine.failures(rules, password):
        assert contradictions(rules) == []
