"""Rules that exclude each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.agentwire.state import First, Quality, Rules
from sallyport.passwords.contradictions import contradictions
from sallyport.passwords.engine import GUIDANCE, failures
from tests.passwords.test_engine import RULES

ASCII = st.text(st.characters(max_codepoint=127), max_size=24) | st.text("abAB12. ", max_size=24)


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
def test_a_contradiction(rules: Rules, fields: list[str]) -> None:
    """It is told by the field that is to be changed."""
    assert [each.rule for each in contradictions(rules)] == fields


@pytest.mark.parametrize(
    "rules",
    [
        Rules(),
        GUIDANCE,
        Rules(min_length=128, max_length=1024, quality=Quality(minlen=140, credits=(12, 0, 0, -20))),
        Rules(min_length=8, max_length=8, first=First.DIGIT, special=False),
        Rules(max_length=10, quality=Quality(minlen=20, credits=(5, 5, 0, 0))),
        Rules(special=False, both_cases=False, quality=Quality(minclass=2, credits=(-1, -1, 0, 0))),
    ],
)
def test_what_can_be_met(rules: Rules) -> None:
    """It is no contradiction."""
    assert contradictions(rules) == []


@given(RULES, ASCII)
def test_what_a_password_meets(rules: Rules, password: str) -> None:
    """Rules that a password in ASCII meets do not exclude each other."""
    if not failures(rules, password):
        assert contradictions(rules) == []
