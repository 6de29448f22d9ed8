"""Passwords that meet the policies of the host's machine, from the system's randomness.

Characters are drawn one by one from the classes that the policies leave, and what does not meet a policy is drawn anew:
so every password that meets them is about as likely as any other.
"""

import secrets
import string
from collections.abc import Sequence
from typing import Final

from sallyport.base.agentwire import state
from sallyport.base.agentwire.state import Policy
from sallyport.base.errors import HostError
from sallyport.passwords.engine import First, Quality, Rules, failures

LENGTH: Final = 24
"""Characters, unless a policy wants more or fewer: 140 random bits of letters and digits."""
_LONGEST: Final = 128  # what RADIUS carries of a password (RFC 2865 section 5.2)
_SPECIAL: Final = "!#$%&()*+,-./;<=>?@[]^_{|}~"  # without quotes, backslash and colon, which get lost in configurations
_TRIES: Final = 300


def generate(policies: Sequence[Policy], user: str) -> str:
    """A password that meets all policies. HostError: none was found; they contradict each other."""
    rules = [_rules(policy) for policy in policies]
    length = _length(policies)
    for classes in _choices(policies):
        for _ in range(_TRIES):
            password = _draw(policies, classes, length)
            if not any(failures(each, password, user) for each in rules):
                return password
    raise HostError("no password meets all policies of the machine")


def _rules(policy: Policy) -> Rules:
    return Rules(
        min_length=policy.min_length,
        max_length=policy.max_length,
        first=First(policy.first) if policy.first else None,
        both_cases=policy.both_cases,
        special=policy.special,
        digits=policy.digits,
        quality=None if policy.quality is None else _quality(policy.quality),
    )


def _quality(sent: state.Quality) -> Quality:
    return Quality(
        minlen=sent.minlen,
        credits=(sent.dcredit, sent.ucredit, sent.lcredit, sent.ocredit),
        minclass=sent.minclass,
        maxrepeat=sent.maxrepeat,
        maxclassrepeat=sent.maxclassrepeat,
        maxsequence=sent.maxsequence,
        usercheck=sent.usercheck,
    )


def _length(policies: Sequence[Policy]) -> int:
    shortest = [policy.min_length or 0 for policy in policies]
    shortest += [policy.quality.minlen or 0 for policy in policies if policy.quality]
    longest = [policy.max_length for policy in policies if policy.max_length is not None]
    return min([max([LENGTH, *shortest]), _LONGEST, *longest])


def _choices(policies: Sequence[Policy]) -> list[list[str]]:
    """The classes of characters to draw from: all that are allowed; with letters of one case where it must be one."""
    digits = [string.digits] if all(policy.digits for policy in policies) else []
    # Letters and digits are enough unless a policy asks for more: they survive every form and every shell.
    special = [_SPECIAL] if all(policy.special for policy in policies) else []
    upper, lower = string.ascii_uppercase, string.ascii_lowercase
    letters = [[lower, upper]] if all(policy.both_cases for policy in policies) else [[lower], [upper]]
    return [each + digits for each in letters] + [each + digits + special for each in letters if special]


def _draw(policies: Sequence[Policy], classes: Sequence[str], length: int) -> str:
    """A password of that length in which no class stands more often in a row than the policies allow."""
    longest_run = min((q.maxclassrepeat for p in policies if (q := p.quality) and q.maxclassrepeat > 1), default=length)
    password = ""
    run = 0
    last = ""
    while len(password) < length:
        allowed = [each for each in classes if each != last or run < longest_run] or list(classes)
        if not password:
            allowed = _first(policies, allowed)
        # By the character, not by the class: a class of ten digits is not as good as one of 26 letters.
        character = secrets.choice("".join(allowed))
        kind = next(each for each in classes if character in each)
        run = run + 1 if kind == last else 1
        last = kind
        password += character
    return password


def _first(policies: Sequence[Policy], classes: list[str]) -> list[str]:
    kinds = {
        First.UPPERCASE: string.ascii_uppercase,
        First.LOWERCASE: string.ascii_lowercase,
        First.DIGIT: string.digits,
    }
    wanted = [kinds[First(policy.first)] for policy in policies if policy.first]
    return [each for each in classes if all(each == kind for kind in wanted)] or classes
