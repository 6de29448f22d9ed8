"""What a directory tells of an account: groups, organizational units, and why it may not log in.

Active Directory says why in the text of a refused bind (`data 775`; error codes of Win32, MS-ERREF section 2.2);
OpenLDAP in the password policy control; both in attributes, as far as the service account may read them.
"""

from __future__ import annotations

import re
from typing import Final

from sallyport.directory.dn import pairs_of
from sallyport.directory.reading.connection import (
    INAPPROPRIATE_AUTHENTICATION,
    INVALID_CREDENTIALS,
    Entry,
    Policy,
    Refusal,
)
from sallyport.login.model import Found, Reason

ATTRIBUTES: Final = (
    "memberOf", "userAccountControl", "accountExpires", "lockoutTime", "pwdAccountLockedTime", "pwdReset",
)  # fmt: skip

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
    """Why a bind with the user's password was refused. now: microseconds. NONE: for none of the user's reasons."""
    if refusal.policy is not None:
        return _POLICIES[refusal.policy]
    code = _DATA.search(str(refusal))
    if code is not None and code[1].lower() in _CODES:
        return _CODES[code[1].lower()]
    if refusal.code not in (INVALID_CREDENTIALS, INAPPROPRIATE_AUTHENTICATION):
        return Reason.NONE
    return state(entry, now)


def state(entry: Entry, now: int) -> Reason:
    """What an entry's attributes say of an account that was refused; WRONG_PASSWORD where they say nothing."""
    if entry.of("pwdAccountLockedTime") or _number(entry, "lockoutTime"):
        return Reason.ACCOUNT_LOCKED
    if _number(entry, "userAccountControl") & _ACCOUNT_DISABLE:
        return Reason.ACCOUNT_DISABLED
    expires = _number(entry, "accountExpires")
    if expires not in _NEVER and expires // 10 - _FILETIME_EPOCH_US <= now:
        return Reason.ACCOUNT_EXPIRED
    return Reason.WRONG_PASSWORD


def must_change(entry: Entry) -> bool:
    """Whether somebody else has set the password."""
    return any(value.upper() == "TRUE" for value in entry.of("pwdReset"))


def found(entry: Entry) -> Found:
    """The groups of which the entry is a member itself, by their names, and the units that it lies in."""
    groups = [next(pairs_of(dn), ("", ""))[1] for dn in entry.of("memberOf")]
    units = [value for name, value in pairs_of(entry.dn) if name == "ou"]
    return Found(groups=frozenset(filter(None, groups)), ous=frozenset(units))


def _number(entry: Entry, attribute: str) -> int:
    value = next(iter(entry.of(attribute)), "")
    return int(value) if re.fullmatch(r"-?[0-9]{1,20}", value) else 0
