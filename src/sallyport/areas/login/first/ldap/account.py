"""Evaluate a directory's data about an account: its groups, its units, and the reason why it may not log in.

After a refused bind, Active Directory gives the reason in the error text (`data 775`, a Win32 error code of MS-ERREF
section 2.2). OpenLDAP gives the reason in the password policy control. Both also store the reason in attributes. The
service account can read them if it has the permission.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sallyport.areas.directory.entry.dn import parsed
from sallyport.areas.directory.entry.sid import OBJECT_SID
from sallyport.areas.directory.entry.status import STATUS_ATTRIBUTES, Status, status_of
from sallyport.areas.directory.reading.answers import Policy, TooLarge
from sallyport.areas.directory.reading.connection import (
    INAPPROPRIATE_AUTHENTICATION,
    INVALID_CREDENTIALS,
    Entry,
    Refusal,
)
from sallyport.areas.login.first.checker import USER, DirectoryAccount
from sallyport.areas.login.login import Found, Reason
from sallyport.base.errors import Invalid
from sallyport.base.text import fold, folded, trimmed

PRINCIPAL_NAME: Final = "userPrincipalName"
OBJECT_CLASS: Final = "objectClass"
PASSWORD_TIMES: Final = ("pwdLastSet", "pwdChangedTime", "krbLastPwdChange")
"""When the password was changed: in Active Directory, in OpenLDAP and others, in FreeIPA."""
ATTRIBUTES: Final = ("memberOf", "pwdReset", *PASSWORD_TIMES, *sorted(STATUS_ATTRIBUTES))
OF_ACCOUNT: Final = (OBJECT_SID, PRINCIPAL_NAME, OBJECT_CLASS)
"""The further attributes that `directory_account` reads."""

MAX_TIME_LENGTH: Final = 32
"""Maximum length in characters of a time that a directory has written."""
MAX_NAME_LENGTH: Final = 255
"""Maximum length in characters of a user's, group's or unit's name."""
MAX_NAMES_LENGTH: Final = 65_536
"""Maximum total length in characters of the group and unit names of an account. A login keeps them in memory while it
waits for its second factor."""
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
_STATES: Final = {
    Status.ACTIVE: Reason.WRONG_PASSWORD,
    Status.DISABLED: Reason.ACCOUNT_DISABLED,
    Status.EXPIRED: Reason.ACCOUNT_EXPIRED,
    Status.LOCKED: Reason.ACCOUNT_LOCKED,
}


def why_refused(refusal: Refusal, entry: Entry, now: int) -> Reason:
    """Return the reason why a directory refused a bind with the user's password. Return NONE if the refusal was not
    caused by the user's account. now: the time in microseconds."""
    reason = coded(refusal)
    if reason is not Reason.NONE or refusal.code not in (INVALID_CREDENTIALS, INAPPROPRIATE_AUTHENTICATION):
        return reason
    return state(entry, now)


def coded(refusal: Refusal) -> Reason:
    """Return the reason from the password policy control or from Active Directory's error text. Return NONE if neither
    contains a reason."""
    if refusal.policy is not None:
        return _POLICIES[refusal.policy]
    code = _DATA.search(str(refusal))
    return Reason.NONE if code is None else _CODES.get(code[1].lower(), Reason.NONE)


def state(entry: Entry, now: int) -> Reason:
    """Return the reason from the attributes of a refused account. Return WRONG_PASSWORD if the attributes contain no
    reason."""
    locked = entry.of("pwdAccountLockedTime")
    return Reason.ACCOUNT_LOCKED if locked else _STATES[status_of(entry.of, now)]


def ended(entry: Entry, now: int) -> Reason:
    """Return why an account may not log in although the directory has accepted its password. Return NONE if it may.

    A directory enforces only attributes of its own. OpenLDAP accepts a bind of an account whose shadowExpire or
    sambaKickoffTime has passed. A lock is not evaluated: after it has ended, its attribute stays until the next bind.
    """
    status = status_of(entry.of, now)
    return _STATES[status] if status in (Status.DISABLED, Status.EXPIRED) else Reason.NONE


def must_change(entry: Entry) -> bool:
    """Return whether an admin has required the user to change the password (`pwdReset`)."""
    return any(value.upper() == "TRUE" for value in entry.of("pwdReset"))


def directory_account(name: str, entry: Entry) -> DirectoryAccount:
    """Return what an entry says about its account. name: its canonical name."""
    sid, upn = (next(iter(entry.of(each)), "") for each in (OBJECT_SID, PRINCIPAL_NAME))
    is_machine = any(fold(value) == "computer" for value in entry.of(OBJECT_CLASS))
    return DirectoryAccount(name, sid, upn, is_machine)


def principal_pattern(pattern: str) -> re.Pattern[str]:
    """Return a regular expression that finds the user's name in an attribute value. pattern: a value in a filter that
    contains {user}. The group `user` of a match is the name."""
    before, _, behind = pattern.partition(USER)
    return re.compile(f"{re.escape(before)}(?P<user>.+){re.escape(behind)}", re.IGNORECASE | re.DOTALL)


def name_of(entry: Entry, patterns: Sequence[tuple[str, re.Pattern[str]]]) -> str | None:
    """Return the canonical name of an entry, without blanks around it. The user may log in only with this name. Return
    None if no pattern matches.

    patterns: pairs of an attribute and the pattern of its value. The first match is the name. Values longer than
    MAX_NAME_LENGTH are ignored.

    A directory also finds an entry by its other attributes, and by names that differ in spaces, accents or width. If a
    user could log in with such a name, the user could evade rules: a login rule or lock-out for `ann` would not apply
    to `ann@corp.example`.
    """
    matches = (
        pattern.fullmatch(trimmed(value))
        for name, pattern in patterns
        for value in entry.of(name)
        if len(value) <= MAX_NAME_LENGTH
    )
    return next((trimmed(match["user"]) for match in matches if match), None)


def found(entry: Entry) -> Found:
    """Return the groups of which the entry is a direct member, and the organizational units that contain the entry. All
    names are case-folded.

    Raises TooLarge if a name cannot be read or a limit is exceeded. The login is then refused. A truncated list would
    be unsafe, because the group of a block rule could be missing.
    """
    if any(name.startswith(_IN_PARTS) for name in entry.values):
        raise TooLarge("the directory returns the group memberships in several parts, which is not supported")
    groups = {trimmed(pairs[0][1]) for dn in entry.of("memberOf") if (pairs := _pairs(dn))}
    units = {trimmed(value) for name, value in _pairs(entry.dn) if name == "ou"}
    if any(len(name) > MAX_NAME_LENGTH for name in groups | units):
        raise TooLarge(f"the name of a group or a unit has more than {MAX_NAME_LENGTH} characters")
    if sum(map(len, groups | units)) > MAX_NAMES_LENGTH:
        raise TooLarge(f"the names of groups and units have more than {MAX_NAMES_LENGTH:,} characters")
    times = [value for name in PASSWORD_TIMES for value in entry.of(name)[:1] if len(value) <= MAX_TIME_LENGTH]
    return Found(groups=folded(groups - {""}), ous=folded(units), password_at=" ".join(times))


def _pairs(dn: str) -> list[tuple[str, str]]:
    try:
        return [pair for pairs in parsed(dn) for pair in pairs]
    except Invalid:
        raise TooLarge(
            "the distinguished name of a group or of the entry itself is invalid, or has more than 8,192 octets"
        ) from None
