"""Checks a password against the rules of a policy. The result contains every rule that the password fails, with a
message that never contains the password.

There are two families of rules:

- `Rules` has the fields that the API defines. They apply to characters (Unicode code points). The length of a password
  is the number of its characters. `É` is an uppercase letter. A letter of a script without case is neither uppercase
  nor lowercase. The digits of any script count as digits. Every character that is not a letter, a digit or a mark is a
  special character.
- `Quality` has the parameters of libpwquality 1.4.5, with the same meaning as in pwquality.conf(5). A password that
  passes here also passes `pam_pwquality` on a machine with the same parameters and `dictcheck=0`. The rules apply to
  the octets of the password in UTF-8. The library treats octets in the same way, in the C locale and in UTF-8 locales.
  Each octet above 127 is a character without case, and belongs to the class `other`.

For ASCII passwords, both families agree. minLen requires the same length as an equal minlen of 6 or more without
credits. Both families count the same digits. The library reports only the first rule that fails. This module reports
all rules that fail, in the order in which the library checks them.

Octets that are not UTF-8 are represented by lone surrogates (`surrogateescape`). A password must not contain NUL,
because the library would ignore all characters after the NUL.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Final

from sallyport.agentwire.state import First, Quality, Rules
from sallyport.base.text import counted

MIN_LENGTH: Final = 6
"""The lowest effective minlen. libpwquality raises smaller values to this value."""
CLASSES: Final = 4
"""The number of character classes (digits, uppercase, lowercase, others). libpwquality reduces a larger minclass to
this number."""
MIN_NAME_LENGTH: Final = 4
"""Minimum length of a user name for the rule usercheck. libpwquality ignores shorter names."""
_DIGIT, _UPPER, _LOWER, _OTHER = range(CLASSES)
_CREDITS: Final = (
    ("dcredit", "digits"),
    ("ucredit", "uppercase letters"),
    ("lcredit", "lowercase letters"),
    ("ocredit", "other characters"),
)
_CASES: Final = dict.fromkeys(range(0x41, 0x5B), _UPPER) | dict.fromkeys(range(0x61, 0x7B), _LOWER)
_CLASS: Final = tuple((_CASES | dict.fromkeys(range(0x30, 0x3A), _DIGIT)).get(octet, _OTHER) for octet in range(256))


_FIRSTS: Final[Mapping[First, tuple[str, Callable[[str], bool]]]] = {
    First.UPPERCASE: ("an uppercase letter", str.isupper),
    First.LOWERCASE: ("a lowercase letter", str.islower),
    First.DIGIT: ("a digit", str.isdecimal),
}


GUIDANCE: Final = Rules(quality=Quality(minlen=8, minclass=3))
"""The rules for a machine without a policy: at least eight characters, of at least three classes."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A rule that a password fails. rule: the name of the field that sets the rule. Two checks belong to no field.
    Their names are `empty` and `palindrome`."""

    rule: str
    message: str


def strictest(many: Sequence[Rules]) -> list[Rules]:
    """Merge many rules into few rules. A password that meets all returned rules also meets all given rules.

    The returned rules differ only in the field `first`. There is one of them for each different value of this field, or
    a single one if no given rule sets the field. The returned rules may be stricter than all given rules together. For
    example, each credit of libpwquality is the lowest of the given credits.
    """
    longest = [rules.max_length for rules in many if rules.max_length is not None]
    qualities = [rules.quality for rules in many if rules.quality is not None]
    merged = Rules(
        min_length=max((rules.min_length or 0 for rules in many), default=0) or None,
        max_length=min(longest, default=None),
        both_cases=all(rules.both_cases for rules in many),
        special=all(rules.special for rules in many),
        digits=all(rules.digits for rules in many),
        quality=_strictest_quality(qualities) if qualities else None,
    )
    firsts = dict.fromkeys(rules.first for rules in many if rules.first is not None)
    return [replace(merged, first=first) for first in firsts] or [merged]


def _strictest_quality(many: Sequence[Quality]) -> Quality:
    return Quality(
        minlen=max((each.minlen for each in many if each.minlen is not None), default=None),
        credits=tuple(min(credits) for credits in zip(*(each.credits for each in many), strict=True)),
        minclass=max(each.minclass for each in many),
        maxrepeat=_least(each.maxrepeat for each in many),
        maxclassrepeat=_least(each.maxclassrepeat for each in many if each.maxclassrepeat != 1),
        maxsequence=_least(each.maxsequence for each in many),
        usercheck=any(each.usercheck for each in many),
    )


def _least(bounds: Iterable[int]) -> int:
    """Return the smallest upper bound. A bound of 0 means that there is no limit, so 0 is returned only if every bound
    is 0."""
    return min((each for each in bounds if each), default=0)


class _Features:
    """The properties of a password that the rules check. Each property is computed only once for all rules."""

    def __init__(self, password: str, user_name: str) -> None:
        self.password = password
        self.octets = _octets(password)
        self._user_name = _octets(user_name)

    @cached_property
    def has_both_cases(self) -> bool:
        """Return whether the password has uppercase and lowercase letters."""
        return any(map(str.isupper, self.password)) and any(map(str.islower, self.password))

    @cached_property
    def has_special(self) -> bool:
        """Return whether the password has special characters."""
        return any(map(_is_special, self.password))

    @cached_property
    def has_digits(self) -> bool:
        """Return whether the password has digits of any script."""
        return any(map(str.isdecimal, self.password))

    @cached_property
    def classes(self) -> list[int]:
        """Return the class of each octet according to libpwquality."""
        return [_CLASS[octet] for octet in self.octets]

    @cached_property
    def counts(self) -> list[int]:
        """Return the number of octets in each class."""
        return [self.classes.count(kind) for kind in range(CLASSES)]

    @cached_property
    def class_run(self) -> int:
        """Return the maximum number of consecutive octets of one class."""
        return _longest_run(self.classes)

    @cached_property
    def run(self) -> int:
        """Return the maximum number of consecutive equal octets."""
        return _longest_run(self.octets)

    @cached_property
    def sequence(self) -> int:
        """Return the length of the longest sequence, such as abcd or 4321."""
        return _longest_sequence(self.octets)

    @cached_property
    def is_palindrome(self) -> bool:
        """Return whether the password is a palindrome (case-insensitive)."""
        lowered = self.octets.lower()
        return lowered == lowered[::-1]

    @cached_property
    def has_user_name(self) -> bool:
        """Return whether the password contains the user name (case-insensitive); see `_names`."""
        return _names(self._user_name.lower(), self.octets.lower())


def failures(rules: Rules, password: str, user_name: str = "") -> list[Failure]:
    """Return every rule that the password fails. The rules for characters come first. The rules of libpwquality follow,
    in the order in which the library checks them.

    user_name: the name of the user. If the name is empty, the rule usercheck is not checked.
    """
    return all_failures([rules], password, user_name)


def all_failures(many: Iterable[Rules], password: str, user_name: str = "") -> list[Failure]:
    """Return every rule that the password fails, without duplicates. many: the rules of several policies. See
    `failures`."""
    features = _Features(password, user_name)
    found = dict[Failure, None]()
    for rules in many:
        if not password:
            return [Failure("empty", "the password is empty")]
        found |= dict.fromkeys(_of_characters(rules, features))
        if rules.quality is not None:
            found |= dict.fromkeys(_of_octets(rules.quality, features))
    return list(found)


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _of_characters(rules: Rules, features: _Features) -> Iterator[Failure]:
    password = features.password
    if rules.min_length is not None and len(password) < rules.min_length:
        yield Failure("minLen", f"the password has fewer than {counted(rules.min_length, 'character')}")
    if rules.max_length is not None and len(password) > rules.max_length:
        yield Failure("maxLen", f"the password has more than {counted(rules.max_length, 'character')}")
    if rules.first is not None:
        wanted, begins = _FIRSTS[rules.first]
        if not begins(password[0]):
            yield Failure("firstChar", f"the password does not begin with {wanted}")
    if not rules.both_cases and features.has_both_cases:
        yield Failure(
            "allowUpperLower",
            "the password has uppercase and lowercase letters, and the policy allows only one of the two",
        )
    if not rules.special and features.has_special:
        yield Failure("allowSpecial", "the password has special characters, and the policy does not allow them")
    if not rules.digits and features.has_digits:
        yield Failure("allowNumeric", "the password has digits, and the policy does not allow them")


def _is_special(character: str) -> bool:
    return not character.isalnum() and not unicodedata.category(character).startswith("M")


def _of_octets(quality: Quality, features: _Features) -> Iterator[Failure]:
    if 1 < quality.maxclassrepeat < features.class_run:
        yield Failure(
            "maxclassrepeat",
            f"the password has more than {counted(quality.maxclassrepeat, 'character')} of one class in a row",
        )
    yield from _of_credits(quality, features.counts)
    demanded = min(quality.minclass, CLASSES)
    if sum(map(bool, features.counts)) < demanded:
        yield Failure(
            "minclass",
            f"the password has characters of fewer than {demanded} classes (digits, uppercase, lowercase and "
            "other characters)",
        )
    if features.is_palindrome:
        yield Failure("palindrome", "the password is a palindrome: it is the same when it is read backwards")
    if 0 < quality.maxrepeat < features.run:
        yield Failure("maxrepeat", f"the password has more than {quality.maxrepeat} equal characters in a row")
    if 0 < quality.maxsequence < features.sequence:
        yield Failure(
            "maxsequence",
            "the password has a sequence, such as abcd or 4321, of more than "
            f"{counted(quality.maxsequence, 'character')}",
        )
    if quality.usercheck and features.has_user_name:
        yield Failure("usercheck", "the password contains the user name, or is too similar to the user name")


def _of_credits(quality: Quality, counts: Sequence[int]) -> Iterator[Failure]:
    for (rule, named), credit, count in zip(_CREDITS, quality.credits, counts, strict=True):
        if count < -credit:
            yield Failure(rule, f"the password has fewer than {-credit} {named}")
    if quality.minlen is None:
        return
    shortest = max(quality.minlen, MIN_LENGTH)
    credited = sum(min(count, max(credit, 0)) for credit, count in zip(quality.credits, counts, strict=True))
    if sum(counts) < shortest - credited:
        mixed = ", where some kinds of characters count twice" if any(credit > 0 for credit in quality.credits) else ""
        yield Failure("minlen", f"the password has fewer than {counted(shortest, 'character')}{mixed}")


def _longest_run(items: Sequence[int]) -> int:
    return max(sum(1 for _ in run) for _, run in groupby(items))


def _longest_sequence(octets: bytes) -> int:
    """Return the length of the longest sequence of octets. In a rising sequence, each octet is the previous octet plus
    1. In a falling sequence, each octet is the previous octet minus 1."""
    longest = length = 1
    direction = 0
    for before, octet in pairwise(octets):
        # libpwquality reads octets above 127 as negative numbers, because `char` is signed on most machines.
        step = octet - before if (octet < 128) == (before < 128) else 0
        length = (length if step == direction else 1) + 1 if step in (1, -1) else 1
        direction = step
        longest = max(longest, length)
    return longest


def _names(name: bytes, password: bytes) -> bool:
    """Return whether the password contains the name, forwards or backwards. Return False if the name is shorter than
    MIN_NAME_LENGTH.

    Also return True if the name and the password become equal when consecutive equal characters are reduced to one.
    libpwquality regards such texts as too similar (difok=1).
    """
    if len(name) < MIN_NAME_LENGTH:
        return False
    return any(each in password or _once(each) == _once(password) for each in (name, name[::-1]))


def _once(octets: bytes) -> bytes:
    return bytes(octet for octet, _ in groupby(octets))
