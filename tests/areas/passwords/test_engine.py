"""Tests of the check of a password against rules. The tests in tests/peers compare it with libpwquality itself."""

import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.agentwire.state import First, Quality, Rules
from sallyport.areas.passwords.engine import GUIDANCE, Failure, all_failures, failures, strictest

NUMBERS = st.integers(0, 6)
CREDITS = st.integers(-4, 4)
QUALITIES = st.builds(
    Quality,
    minlen=st.none() | st.integers(0, 20),
    credits=st.tuples(CREDITS, CREDITS, CREDITS, CREDITS),
    minclass=NUMBERS,
    maxrepeat=NUMBERS,
    maxclassrepeat=NUMBERS,
    maxsequence=NUMBERS,
    usercheck=st.booleans(),
)
RULES = st.builds(
    Rules,
    min_length=st.none() | NUMBERS,
    max_length=st.none() | st.integers(0, 20),
    first=st.none() | st.sampled_from(First),
    both_cases=st.booleans(),
    special=st.booleans(),
    digits=st.booleans(),
    quality=st.none() | QUALITIES,
)
PASSWORDS = st.text(max_size=24) | st.text("abAB12.é", max_size=24)


def failed(rules: Rules, password: str, user_name: str = "") -> list[str]:
    """Return the rules that a password does not meet."""
    return [each.rule for each in failures(rules, password, user_name)]


def of_quality(password: str, user_name: str = "", **parameters: object) -> list[str]:
    """Return the rules of libpwquality that a password does not meet."""
    return failed(Rules(quality=Quality(**parameters)), password, user_name)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rules", "good", "bad", "rule"),
    [
        (Rules(min_length=4), "äöüß", "äöü", "minLen"),
        (Rules(max_length=4), "äöüß", "abcde", "maxLen"),
        (Rules(first=First.UPPERCASE), "Éa", "éA", "firstChar"),
        (Rules(first=First.LOWERCASE), "éA", "1a", "firstChar"),
        (Rules(first=First.DIGIT), "1a", "a1", "firstChar"),
        (Rules(both_cases=False), "ABC-É1", "abÉ", "allowUpperLower"),
        (Rules(special=False), "aÉ1漢ำ", "a b", "allowSpecial"),
        (Rules(special=False), "a1", "a1€", "allowSpecial"),
        (Rules(digits=False), "ab-", "ab٣", "allowNumeric"),
    ],
)
def test_each_field_is_a_rule(rules: Rules, good: str, bad: str, rule: str) -> None:
    """A rule counts characters of any script.

    One password meets the rule, and the other password fails only this rule.
    """
    assert failed(rules, good) == []
    assert failed(rules, bad) == [rule]


def test_every_failed_rule_is_listed_in_order() -> None:
    """Each failed rule is a line of its own. The rules of the interface come first, then those of libpwquality."""
    quality = Quality(
        minlen=12,
        credits=(-1, -1, -9, -1),
        minclass=2,
        maxrepeat=2,
        maxclassrepeat=3,
        maxsequence=2,
        usercheck=True,
    )
    rules = Rules(9, 3, First.DIGIT, both_cases=False, special=False, digits=False, quality=quality)
    assert failures(rules, "abccccba", "CCCC") == [
        Failure("minLen", "the password has fewer than 9 characters"),
        Failure("maxLen", "the password has more than 3 characters"),
        Failure("firstChar", "the password does not begin with a digit"),
        Failure("maxclassrepeat", "the password has more than 3 characters of one class in a row"),
        Failure("dcredit", "the password has fewer than 1 digits"),
        Failure("ucredit", "the password has fewer than 1 uppercase letters"),
        Failure("lcredit", "the password has fewer than 9 lowercase letters"),
        Failure("ocredit", "the password has fewer than 1 other characters"),
        Failure("minlen", "the password has fewer than 12 characters"),
        Failure(
            "minclass",
            "the password has characters of fewer than 2 classes (digits, uppercase, lowercase and other characters)",
        ),
        Failure("palindrome", "the password is a palindrome: it is the same when it is read backwards"),
        Failure("maxrepeat", "the password has more than 2 equal characters in a row"),
        Failure("maxsequence", "the password has a sequence, such as abcd or 4321, of more than 2 characters"),
        Failure("usercheck", "the password contains the user name, or is too similar to the user name"),
    ]


@pytest.mark.parametrize(
    ("password", "rules"),
    [("Abcdef1x", []), ("Abcdefgh", ["minclass"]), ("Ab1.", ["minlen"]), ("abc", ["minlen", "minclass"])],
)
def test_the_default_guidance(password: str, rules: list[str]) -> None:
    """The guidance demands eight characters from three of the four classes."""
    assert failed(GUIDANCE, password) == rules


def test_an_empty_password_fails_one_rule() -> None:
    """An empty password fails one rule, whatever the policy is."""
    assert failed(Rules(), "") == failed(GUIDANCE, "") == ["empty"]


def test_rules_of_libpwquality_count_octets() -> None:
    """For minlen and credits, a two-octet UTF-8 character counts as two characters of the class `other`.

    For minLen it counts as one character.
    """
    assert of_quality("éöü", minlen=6) == []
    assert of_quality("éöü", minlen=8, credits=(0, 0, 0, 2)) == []
    assert of_quality("éöü", credits=(-1, -1, -1, -6)) == ["dcredit", "ucredit", "lcredit"]
    assert failed(Rules(min_length=4), "éöü") == ["minLen"]
    assert of_quality("j\udcff\udcfe", credits=(0, 0, 0, -2)) == []


def test_a_credit_without_a_length_has_no_effect() -> None:
    """A negative credit is a minimum number of characters."""
    assert of_quality("a", credits=(2, 2, -2, 2)) == ["lcredit", "palindrome"]


@pytest.mark.parametrize("password", ["xxANN.Kxx", "k.nna77", "aannn..kk", "K.NA"])
def test_a_password_with_the_user_name_is_refused(password: str) -> None:
    """The user name is found in upper or lower case, backwards, and with repeated characters."""
    assert of_quality(password, "ann.k", usercheck=True) == ["usercheck"]
    assert of_quality(password, "ann.k") == of_quality(password, "nnk", usercheck=True) == []


@given(RULES, PASSWORDS, PASSWORDS, st.text(max_size=8))
def test_messages_do_not_depend_on_the_password(rules: Rules, one: str, other: str, user_name: str) -> None:
    """The text of a rule is the same for every password and user name, and is listed once."""
    first, second = failures(rules, one, user_name), failures(rules, other, "")
    words = {each.rule: each.message for each in first}
    assert len(words) == len(first)
    assert all(words.get(each.rule, each.message) == each.message for each in second)


@given(RULES, PASSWORDS)
def test_removing_a_rule_removes_only_its_failure(rules: Rules, password: str) -> None:
    before = failed(rules, password)
    for field, rule in (("min_length", "minLen"), ("max_length", "maxLen"), ("first", "firstChar")):
        assert failed(replace(rules, **{field: None}), password) == [each for each in before if each != rule]


@given(QUALITIES, PASSWORDS)
def test_a_longer_password_is_not_too_short(quality: Quality, password: str) -> None:
    """If a password meets a minimum, it still meets it after more characters are appended."""
    lengths = {"dcredit", "ucredit", "lcredit", "ocredit", "minlen", "minclass"}
    rules = Rules(quality=quality)
    before = {each.rule for each in failures(rules, password + "x")} & lengths
    assert {each.rule for each in failures(rules, password + "xyZ7")} & lengths <= before


@given(st.lists(RULES, min_size=1, max_size=8), PASSWORDS, st.text("ab", max_size=6))
def test_merged_rules_imply_each_policy(many: list[Rules], password: str, user_name: str) -> None:
    """A password that meets the merged rules meets each of the policies. A single policy is not changed."""
    few = strictest(many)
    assert len(few) <= len(First)
    if not any(failures(rules, password, user_name) for rules in few):
        assert not any(failures(rules, password, user_name) for rules in many)


def test_merged_rules_can_be_met() -> None:
    """If there is a password that meets several policies, there is also one that meets their merged rules."""
    many = [
        Rules(min_length=8),
        Rules(max_length=40, first=First.LOWERCASE),
        GUIDANCE,
        Rules(quality=Quality(credits=(-2, 1, 0, 0))),
    ]
    assert not any(failures(rules, "ab12CD34efgh", "ann") for rules in strictest(many))


@given(st.lists(RULES, max_size=8), PASSWORDS, st.text("ab", max_size=6))
def test_failures_of_several_policies_are_listed_once(many: list[Rules], password: str, user_name: str) -> None:
    """Failures are listed in the order of the rules. If there are no rules, there are no failures."""
    each = dict.fromkeys(failure for rules in many for failure in failures(rules, password, user_name))
    assert all_failures(many, password, user_name) == list(each)


def test_many_policies_read_a_password_once() -> None:
    """The number of steps for each character does not grow with the number of policies."""

    def steps(number: int, password: str) -> int:
        many = [Rules(quality=Quality(minlen=each, maxrepeat=3, maxclassrepeat=3)) for each in range(number)]
        calls = 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            all_failures(many, password)
        finally:
            sys.setprofile(None)
        return calls

    short, long = "abcd", "abcd" * 256
    assert steps(200, long) - steps(200, short) < 10 * len(long)
