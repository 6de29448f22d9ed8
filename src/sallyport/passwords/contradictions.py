"""Rules of one policy that no password in ASCII, which people type and agents make, could meet together, or none that
RADIUS carries, which no user's is longer than."""

from collections.abc import Iterator

from sallyport.base.agentwire.state import First, Quality, Rules
from sallyport.passwords.engine import CLASSES, SHORTEST, Failure
from sallyport.radius.password import MAX_PASSWORD


def contradictions(rules: Rules) -> list[Failure]:
    """Return each rule that cannot be met together with the others, by the name of its field."""
    found = list(_of_fields(rules))
    if rules.quality is not None:
        found += _of_classes(rules, rules.quality)
        found += _of_lengths(rules, rules.quality)
    return found


def _of_fields(rules: Rules) -> Iterator[Failure]:
    if (rules.min_length or 0) > MAX_PASSWORD:
        yield Failure("minLen", f"at most {MAX_PASSWORD}: no password is longer")
    if rules.max_length is not None and (rules.min_length or 0) > rules.max_length:
        yield Failure("maxLen", "a whole number that is not below minLen")
    if rules.first is First.DIGIT and not rules.digits:
        yield Failure("firstChar", "uppercase or lowercase, since allowNumeric is no")


def _of_classes(rules: Rules, quality: Quality) -> Iterator[Failure]:
    """libpwquality's classes are those of the interface, for passwords in ASCII."""
    digits, upper, lower, other = (credit < 0 for credit in quality.credits)
    if digits and not rules.digits:
        yield Failure("dcredit", "not below 0, since allowNumeric is no")
    if other and not rules.special:
        yield Failure("ocredit", "not below 0, since allowSpecial is no")
    if not rules.both_cases:
        if (upper or rules.first is First.UPPERCASE) and lower:
            yield Failure("lcredit", "not below 0, since uppercase is demanded and allowUpperLower is no")
        if rules.first is First.LOWERCASE and upper:
            yield Failure("ucredit", "not below 0, since lowercase is demanded and allowUpperLower is no")
    left = CLASSES - (not rules.digits) - (not rules.special) - (not rules.both_cases)
    if min(quality.minclass, CLASSES) > left:
        yield Failure("minclass", f"at most {left}, since the policy allows no more classes")


def _of_lengths(rules: Rules, quality: Quality) -> Iterator[Failure]:
    longest = min(rules.max_length or MAX_PASSWORD, MAX_PASSWORD)
    demanded = sum(-credit for credit in quality.credits if credit < 0)
    given = sum(credit for credit in quality.credits if credit > 0)
    shortest = 0 if quality.minlen is None else max(quality.minlen, SHORTEST)
    if demanded <= longest and longest + min(longest, given) >= shortest:
        return
    if longest == rules.max_length:
        yield Failure("maxLen", "large enough for minlen and the credits")
    else:
        yield Failure("minlen", f"with the credits, met by {MAX_PASSWORD} characters: no password is longer")
