"""The data about an account in a directory: its groups, its organizational units, and the reason if it may not log in.

Active Directory returns the reason in the error text of a refused bind (`data 775`, a Win32 error code of MS-ERREF
section 2.2), OpenLDAP in the password policy control. Both also have attributes with the reason, if the service account
may read them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sallyport.base.errors import Invalid
from sallyport.base.text import folded
from sallyport.directory.dn import parsed
from sallyport.directory.reading.answers import TooLarge
from sallyport.directory.reading.connection import (
    INAPPROPRIATE_AUTHENTICATION,
    INVALID_CREDENTIALS,
    Entry,
    Policy,
    Refusal,
)
from sallyport.login.login import Found, Reason

USER: Final = "{user}"
ASSERTION: Final = re.compile(r"\(([A-Za-z][A-Za-z0-9-]*)=([^()=]*\{user\}[^()]*)\)")
"""The assertions of a filter that contain the user's name. Each is given as the attribute and the pattern of its value
(RFC 4515 section 3)."""
ATTRIBUTES: Final = (
    "memberOf", "userAccountControl", "accountExpires", "lockoutTime", "pwdAccountLockedTime", "pwdReset",
)  # fmt: skip

LONGEST_NAME: Final = 255
"""Maximum length in characters of a value that is compared with names, and of a group's or unit's name."""
LONGEST_NAMES: Final = 65_536
"""Maximum length in characters of all groups and units of an account together. It is limited because a login that waits
for its second factor keeps them in memory."""
_IN_PARTS: Final = "memberof;range="  # MS-ADTS section 3.1.1.3.1.3.3
_DATA: Final = re.compile(r"\bdata ([0-9a-f]{3,4})\b", re.IGNORECASE)
_CODES: Final = {
    "525": Reason.UNKNOWN_USER,  # ERROR_NO_SUCH_USER
    "52e": Reason.WRONG_PASSWORD,  # ERROR_LOGON_FAILURE
    "52f": Reason.LOGON_RESTRICTED,  # ERROR_ACCOUNT_RESTRICTION
    "530": Reason.LOGON_RESTRICTED,  # ERROR_INVALID_LOGON_HOURS
    "531": Reason.LOGON_RESTRICTED,  # ERROR_INVALID_WORKSTATION
    "532": Reason.PASSWORD_EXPIRED,  # ERROR_PASSWORD_EXPIRED
    "533": Reason.ACCOUNT_DISABLED,  # ERROR_ACCOUNT_DISABLED
    "569": Reason.LOGON_RESTRICTED,  # ERROR_LOGON_TYPE_NOT_GRANTED
    "701": Reason.ACCOUNT_EXPIRED,  # ERROR_ACCOUNT_EXPIRED
    "773": Reason.PASSWORD_MUST_CHANGE,  # ERROR_PASSWORD_MUST_CHANGE
    "775": Reason.ACCOUNT_LOCKED,  # ERROR_ACCOUNT_LOCKED_OUT
}
_POLICIES: Final = {
    Policy.LOCKED: Reason.ACCOUNT_LOCKED,
    Policy.EXPIRED: Reason.PASSWORD_EXPIRED,
    Policy.MUST_CHANGE: Reason.PASSWORD_MUST_CHANGE,
}
_ACCOUNT_DISABLE: Final = 0x2  # MS-ADTS section 2.2.16
_NEVER: Final = (0, 2**63 - 1)
_FILETIME_EPOCH_US: Final = 11_644_473_600_000_000  # from 1601 to 1970


def why_refused(refusal: Refusal, entry: Entry, now: int) -> Reason:
    """Return the reason why a bind with the user's password was refused; NONE if the user is not the cause. now: the
    present time in microseconds."""
    reason = coded(refusal)
    if reason is not Reason.NONE or refusal.code not in (INVALID_CREDENTIALS, INAPPROPRIATE_AUTHENTICATION):
        return reason
    return state(entry, now)


def coded(refusal: Refusal) -> Reason:
    """Return the reason in the password policy control or in Active Directory's error text; NONE if neither contains
    one."""
    if refusal.policy is not None:
        return _POLICIES[refusal.policy]
    code = _DATA.search(str(refusal))
    return Reason.NONE if code is None else _CODES.get(code[1].lower(), Reason.NONE)


def state(entry: Entry, now: int) -> Reason:
    """Return the reason in the attributes of an account that was refused; WRONG_PASSWORD if they contain none."""
    if entry.of("pwdAccountLockedTime") or _number(entry, "lockoutTime"):
        return Reason.ACCOUNT_LOCKED
    if _number(entry, "userAccountControl") & _ACCOUNT_DISABLE:
        return Reason.ACCOUNT_DISABLED
    expires = _number(entry, "accountExpires")
    if expires not in _NEVER and expires // 10 - _FILETIME_EPOCH_US <= now:
        return Reason.ACCOUNT_EXPIRED
    return Reason.WRONG_PASSWORD


def must_change(entry: Entry) -> bool:
    """Return whether the user must change the password because an admin has set it (`pwdReset`)."""
    return any(value.upper() == "TRUE" for value in entry.of("pwdReset"))


def principal_pattern(pattern: str) -> re.Pattern[str]:
    """Return a regular expression for the values that an assertion matches; its group `user` is the user's name."""
    before, _, behind = pattern.partition(USER)
    return re.compile(f"{re.escape(before)}(?P<user>.+){re.escape(behind)}", re.IGNORECASE | re.DOTALL)


def name_of(entry: Entry, patterns: Sequence[tuple[str, re.Pattern[str]]]) -> str | None:
    """Return the canonical name of an entry, or None if no pattern matches. It is the only name under which the entry
    may log in. Each pattern is tried on the values of its attribute, and the first match is the name. Values longer
    than LONGEST_NAME are ignored.

    A directory also finds an entry by other attributes and values, and ignores spaces, accents and width. If such names
    could log in, a login rule or a lock-out for `ann` would not apply to the same person as `Ann ` or
    `ann@corp.example`.
    """
    matches = (
        pattern.fullmatch(value) for name, pattern in patterns for value in entry.of(name) if len(value) <= LONGEST_NAME
    )
    return next((match["user"] for match in matches if match), None)


def found(entry: Entry) -> Found:
    """Return the case-folded names of the groups of which the entry is a direct member, and of the organizational units
    that contain it.

    Raises TooLarge if a name cannot be read or a limit is exceeded. The login is then refused. The list is not
    truncated, because the group of a block rule could then be missing.
    """
    if any(name.startswith(_IN_PARTS) for name in entry.values):
        raise TooLarge("the directory gives the memberships in parts")
    groups = {pairs[0][1] for dn in entry.of("memberOf") if (pairs := _pairs(dn))}
    units = {value for name, value in _pairs(entry.dn) if name == "ou"}
    if any(len(name) > LONGEST_NAME for name in groups | units):
        raise TooLarge(f"the name of a group or a unit has more than {LONGEST_NAME} characters")
    if sum(map(len, groups | units)) > LONGEST_NAMES:
        raise TooLarge(f"the names of groups and units have more than {LONGEST_NAMES:,} characters")
    return Found(groups=folded(groups - {""}), ous=folded(units))


def _pairs(dn: str) -> list[tuple[str, str]]:
    try:
        return [pair for pairs in parsed(dn) for pair in pairs]
    except Invalid:
        raise TooLarge("a membership, or the entry, has no distinguished name of at most 8,192 octets") from None


def _number(entry: Entry, attribute: str) -> int:
    value = next(iter(entry.of(attribute)), "")
    return int(value) if re.fullmatch(r"-?[0-9]{1,20}", value) else 0
