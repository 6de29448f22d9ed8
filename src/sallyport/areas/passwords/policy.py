"""A stored password policy: its fields under the names of the API, and their conversion to rules of the engine.

All fields are strings, as in the API. An empty field requires nothing. The field `minlen` and the fields after it are
parameters of libpwquality.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sallyport.agentwire.state import First, Quality, Rules
from sallyport.areas.passwords.engine import CLASSES, MIN_LENGTH, Failure
from sallyport.radius import password as radius

MAX_PASSWORD: Final = 1024
"""Maximum length of a password to check, in characters. It is also the maximum value of a field that counts
characters."""
PARAMETERS: Final = (
    "minlen", "dcredit", "ucredit", "lcredit", "ocredit", "minclass", "maxrepeat", "maxclassrepeat", "maxsequence",
    "usercheck",
)  # fmt: skip
"""The fields that are parameters of libpwquality."""
FIELDS: Final = (
    "policyName", "templateName", "minLen", "maxLen", "firstChar", "allowUpperLower", "allowSpecial", "allowNumeric",
    *PARAMETERS,
)  # fmt: skip
_FLAGS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

Fields = Mapping[str, str]
"""The values of the fields of a policy, by the names in FIELDS. An empty text means that the field has no value."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A stored policy of a tenant."""

    id: int
    fields: Fields

    @property
    def name(self) -> str:
        """Return the policyName, which may be empty."""
        return self.fields["policyName"]


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assignment of a policy to an instance. adds: True to add the assignment, or False to remove it."""

    policy_id: int
    instance_id: int
    adds: bool = True


def complete(given: Fields) -> Fields:
    """Return all fields of a policy. Fields that are not given are empty."""
    return {name: given.get(name, "") for name in FIELDS}


def values(fields: Fields) -> dict[str, str]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value}


def means_yes(flag: str) -> bool | None:
    """Return whether a flag such as `yes`, `1` or `false` means yes. Return None if the text is not a flag."""
    return _FLAGS.get(flag.strip().lower())


def rules_of(fields: Fields) -> Rules:
    """Return the engine's rules for the fields of a policy."""
    return Rules(
        min_length=_number(fields["minLen"]),
        max_length=_number(fields["maxLen"]),
        first=First(fields["firstChar"]) if fields["firstChar"] else None,
        both_cases=means_yes(fields["allowUpperLower"] or "yes") is True,
        special=means_yes(fields["allowSpecial"] or "yes") is True,
        digits=means_yes(fields["allowNumeric"] or "yes") is True,
        quality=_quality(fields) if any(fields[name] for name in PARAMETERS) else None,
    )


def warnings(fields: Fields) -> list[str]:
    """Return the warning about a policy that has no rule, or an empty list."""
    rules = rules_of(fields)
    if replace(rules, min_length=rules.min_length or None) != Rules():
        return []
    return [f"the policy has no rule, so it accepts every password; the rules are {', '.join(FIELDS[2:])}"]


def _quality(fields: Fields) -> Quality:
    return Quality(
        minlen=_number(fields["minlen"]),
        credits=tuple(int(fields[name] or 0) for name in ("dcredit", "ucredit", "lcredit", "ocredit")),
        minclass=int(fields["minclass"] or 0),
        maxrepeat=int(fields["maxrepeat"] or 0),
        maxclassrepeat=int(fields["maxclassrepeat"] or 0),
        maxsequence=int(fields["maxsequence"] or 0),
        usercheck=fields["usercheck"] == "1",
    )


def _number(value: str) -> int | None:
    return int(value) if value else None


def contradictions(rules: Rules) -> list[Failure]:
    """Return the rules of one policy that contradict other rules of the same policy.

    Rules contradict each other if no ASCII password can meet all of them and is short enough for RADIUS. Only ASCII is
    considered, because people usually type ASCII passwords, and agents generate ASCII passwords.
    """
    found = list(_of_fields(rules))
    if rules.quality is not None:
        found += _of_classes(rules, rules.quality)
        found += _of_lengths(rules, rules.quality)
    return found


def _of_fields(rules: Rules) -> Iterator[Failure]:
    if (rules.min_length or 0) > radius.MAX_PASSWORD:
        yield Failure("minLen", f"must be at most {radius.MAX_PASSWORD}, the maximum length of a password")
    if rules.max_length is not None and (rules.min_length or 0) > rules.max_length:
        yield Failure("maxLen", "must be a whole number not below minLen")
    if rules.first is First.DIGIT and not rules.digits:
        yield Failure("firstChar", "must be uppercase or lowercase, because allowNumeric is no")


def _of_classes(rules: Rules, quality: Quality) -> Iterator[Failure]:
    """Yield the rules about character classes that contradict other rules. In ASCII, the API fields and libpwquality
    define the same classes of characters."""
    digits, upper, lower, other = (credit < 0 for credit in quality.credits)
    if digits and not rules.digits:
        yield Failure("dcredit", "must not be below 0, because allowNumeric is no")
    if other and not rules.special:
        yield Failure("ocredit", "must not be below 0, because allowSpecial is no")
    if not rules.both_cases:
        if (upper or rules.first is First.UPPERCASE) and lower:
            yield Failure("lcredit", "must not be below 0, because uppercase is required and allowUpperLower is no")
        if rules.first is First.LOWERCASE and upper:
            yield Failure("ucredit", "must not be below 0, because lowercase is required and allowUpperLower is no")
    left = CLASSES - (not rules.digits) - (not rules.special) - (not rules.both_cases)
    if min(quality.minclass, CLASSES) > left:
        yield Failure("minclass", f"must be at most {left}, because the policy forbids the other classes")


def _of_lengths(rules: Rules, quality: Quality) -> Iterator[Failure]:
    longest = min(rules.max_length or radius.MAX_PASSWORD, radius.MAX_PASSWORD)
    demanded = sum(-credit for credit in quality.credits if credit < 0)
    given = sum(credit for credit in quality.credits if credit > 0)
    shortest = 0 if quality.minlen is None else max(quality.minlen, MIN_LENGTH)
    if demanded <= longest and longest + min(longest, given) >= shortest:
        return
    if longest == rules.max_length:
        yield Failure("maxLen", "must be large enough for minlen and the credits")
    else:
        yield Failure(
            "minlen",
            f"must be possible, with the credits, in {radius.MAX_PASSWORD} characters: no password is longer",
        )
