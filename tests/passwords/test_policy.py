"""The fields of a policy: accepted values, stored values, and the rules of the engine."""

from dataclasses import fields

import pytest
from pydantic import ValidationError

from sallyport.base.agentwire.state import First, Quality, Rules
from sallyport.passwords import engine
from sallyport.passwords.policy import FIELDS, PARAMETERS, complete, rules_of
from tests.passwords.conftest import change


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
def test_a_value_is_change(field: str, value: object, text: str) -> None:
    """Numbers may be strings, and the other way round; an empty text is a value that is taken away."""
    assert change(**{field: value}) == {field: text}


@pytest.mark.parametrize("field", FIELDS)
def test_what_is_not_given(field: str) -> None:
    """Null and absence are the same: nothing is given."""
    assert change(**{field: None}) == change() == {}


@pytest.mark.parametrize("field", [each for each in FIELDS if not each.endswith("Name")])
@pytest.mark.parametrize("value", ["hunter2", "1.5", "\u0661", "9" * 5000, "-1025", "1025", [1], {}, 1.5, "1\x00"])
def test_a_value_is_refused(field: str, value: object) -> None:
    """Another text, a number that is out of range, another type: the error does not repeat it."""
    with pytest.raises(ValidationError) as error:
        change(**{field: value})
    (detail,) = error.value.errors(include_input=False, include_url=False)
    assert detail["loc"] == (field,)
    assert "hunter2" not in str(error.value)


def test_a_policy_without_values_demands_nothing() -> None:
    """Neither in the fields of the interface nor in libpwquality's."""
    assert rules_of(complete({"policyName": "p"})) == Rules()
    everything = {"allowUpperLower": "yes", "allowSpecial": "true", "allowNumeric": "1"}
    assert rules_of(complete(everything)) == Rules()


def test_every_field_reaches_the_engine() -> None:
    """Each with its own value; flags by what they mean."""
    numbers = {name: str(number) for number, name in enumerate(("minLen", "maxLen", *PARAMETERS[:-1]), 3)}
    flags = {"allowUpperLower": "No", "allowSpecial": "false", "allowNumeric": "0", "usercheck": "1"}
    assert rules_of(complete({"firstChar": "digit", **flags, **numbers})) == Rules(
        3, 4, First.DIGIT, both_cases=False, special=False, digits=False,
        quality=Quality(5, (6, 7, 8, 9), 10, 11, 12, 13, usercheck=True),
    )  # fmt: skip


@pytest.mark.parametrize("field", PARAMETERS)
def test_any_parameter_of_libpwquality_brings_the_library(field: str) -> None:
    """What the library refuses in any case is refused as soon as one of its parameters has a value, also 0."""
    rules = rules_of(complete({field: "0"}))
    assert rules.quality is not None
    assert "palindrome" in {each.rule for each in engine.failures(rules, "abccba")}


def test_the_parameters_are_those_of_the_engine() -> None:
    """Under the same names, but for the four credits, which stand together there."""
    named = {name for name in PARAMETERS if not name.endswith("credit")}
    assert named == {field.name for field in fields(Quality)} - {"credits"}
