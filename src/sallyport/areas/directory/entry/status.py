"""The status of an account, from the attributes of any directory.

    Active Directory     userAccountControl (MS-ADTS section 2.2.16), accountExpires, lockoutTime
    AD LDS               msDS-UserAccountDisabled, ms-DS-UserAccountAutoLocked
    OpenLDAP             pwdAccountLockedTime, pwdStartTime, pwdEndTime (draft-behera-ldap-password-policy section 5.3),
                         pwdAccountTmpLockoutEnd
    389 DS, FreeIPA      nsAccountLock, nsRoleDN of a disabled role, accountUnlockTime, krbPrincipalExpiration
    Oracle, OpenDJ       inetUserStatus, ds-pwp-account-disabled, ds-pwp-account-expiration-time, orclIsEnabled
    eDirectory           loginDisabled, loginExpirationTime, lockedByIntruder
    IBM                  ibm-pwdAccountLocked
    universities         schacExpiryDate (SCHAC)
    Unix, Samba          shadowExpire (days), sambaKickoffTime (seconds), sambaAcctFlags

The expiry of a password is no expiry of an account, and is left to the directory.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import Final

from sallyport.base.clock import SECOND

Texts = Callable[[str], Sequence[str]]
"""A function that returns the values of an attribute. The name of the attribute is in lower case."""


class Status(StrEnum):
    """The status of an account in its directory."""

    ACTIVE = "active"
    DISABLED = "disabled"
    LOCKED = "locked"
    EXPIRED = "expired"


# userAccountControl, MS-ADTS section 2.2.16; msDS-User-Account-Control-Computed, section 3.1.1.4.5.17.
_ACCOUNT_DISABLE: Final = 0x2
_LOCKOUT: Final = 0x10
_NEVER: Final = (0, 2**63 - 1)
_FILETIME_EPOCH_US: Final = 11_644_473_600_000_000  # microseconds from 1601 to 1970
_DAY_US: Final = 86_400 * SECOND
# pwdAccountLockedTime of an account that an admin has locked (draft-behera-ldap-password-policy section 5.3.3).
_LOCKED_BY_ADMIN: Final = "000001010000Z"
_NUMBER: Final = re.compile(r"-?[0-9]{1,20}")
_TIME: Final = re.compile(
    r"([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})?([0-9]{2})?(?:[.,][0-9]+)?(?:Z|([+-])([0-9]{2})([0-9]{2})?)"
)
_DISABLED_IF: Final = {
    "nsaccountlock": frozenset({"true"}),
    "logindisabled": frozenset({"true"}),
    "ds-pwp-account-disabled": frozenset({"true"}),
    "msds-useraccountdisabled": frozenset({"true"}),
    "inetuserstatus": frozenset({"inactive", "deleted"}),
    "orclisenabled": frozenset({"disabled", "inactive"}),
    "pwdaccountlockedtime": frozenset({_LOCKED_BY_ADMIN.lower()}),
}
"""The values with which an attribute disables an account, in lower case."""
_DISABLED_ROLES: Final = ("cn=nsmanageddisabledrole,", "cn=nsdisabledrole,")
_STARTS: Final = ("pwdstarttime", "orclactivestartdate", "ds-pwp-account-activation-time")
_ENDS: Final = (
    "krbprincipalexpiration", "pwdendtime", "schacexpirydate", "loginexpirationtime", "ds-pwp-account-expiration-time",
    "orclactiveenddate",
)  # fmt: skip
_LOCKED_IF_TRUE: Final = ("ibm-pwdaccountlocked", "ms-ds-useraccountautolocked")
STATUS_ATTRIBUTES: Final = frozenset(
    {
        "useraccountcontrol", "msds-user-account-control-computed", "accountexpires", "lockouttime", "shadowexpire",
        "sambakickofftime", "sambaacctflags", "nsroledn", "accountunlocktime", "lockedbyintruder",
        "loginintruderresettime", "pwdaccounttmplockoutend", *_DISABLED_IF, *_STARTS, *_ENDS, *_LOCKED_IF_TRUE,
    }
)  # fmt: skip
"""Attributes that determine an account's status. They are always stored, because the status is computed again when an
LDIF file changes the entry."""


def status_of(texts: Texts, now: int) -> Status:
    """Return the status of an account. If several attributes block the account, return the status that lasts longest.
    now: the time in microseconds."""
    if _is_disabled(texts) or any((_moment(texts, name) or 0) > now for name in _STARTS):
        return Status.DISABLED
    if _has_expired(texts, now):
        return Status.EXPIRED
    return Status.LOCKED if _is_locked(texts, now) else Status.ACTIVE


def _is_disabled(texts: Texts) -> bool:
    return (
        bool(number(texts, "useraccountcontrol") & _ACCOUNT_DISABLE)
        or any(text.strip().lower() in values for name, values in _DISABLED_IF.items() for text in texts(name))
        or any(text.strip().lower().replace(" ", "").startswith(_DISABLED_ROLES) for text in texts("nsroledn"))
        or "D" in _flags(texts)
    )


def _has_expired(texts: Texts, now: int) -> bool:
    filetime, days = number(texts, "accountexpires"), number(texts, "shadowexpire")
    return (
        (filetime not in _NEVER and filetime // 10 - _FILETIME_EPOCH_US <= now)
        or 0 < days * _DAY_US <= now
        or 0 < number(texts, "sambakickofftime") * SECOND <= now
        or any(0 < (_moment(texts, name) or 0) <= now for name in _ENDS)  # Kerberos writes 1970 for never
    )


def _is_locked(texts: Texts, now: int) -> bool:
    """Return whether the account is locked. msDS-User-Account-Control-Computed takes precedence over lockoutTime,
    because lockoutTime stays set after the lock has ended."""
    if texts("pwdaccountlockedtime") or "L" in _flags(texts) or any(_is_true(texts, name) for name in _LOCKED_IF_TRUE):
        return True
    if (_moment(texts, "pwdaccounttmplockoutend") or 0) > now:
        return True
    until, reset = _moment(texts, "accountunlocktime"), _moment(texts, "loginintruderresettime")
    if until is not None and (until <= 0 or until > now):  # 389 DS writes 1970 for a lock without end
        return True
    if _is_true(texts, "lockedbyintruder") and (reset is None or reset > now):
        return True
    computed = "msds-user-account-control-computed"
    return bool(number(texts, computed) & _LOCKOUT) if texts(computed) else number(texts, "lockouttime") > 0


def _is_true(texts: Texts, attribute: str) -> bool:
    return any(text.strip().upper() == "TRUE" for text in texts(attribute))


def _flags(texts: Texts) -> str:
    """Return the flags in sambaAcctFlags, such as `[UX         ]`."""
    return "".join(texts("sambaacctflags"))


def number(texts: Texts, attribute: str) -> int:
    """Return the integer that is the first value of an attribute. Return 0 if there is none."""
    value = next(iter(texts(attribute)), "").strip()
    return int(value) if _NUMBER.fullmatch(value) else 0


def _moment(texts: Texts, attribute: str) -> int | None:
    """Return the time in microseconds that is the first value of an attribute, a generalized time (RFC 4517 section
    3.3.13). Return None if there is no such time."""
    found = _TIME.fullmatch(next(iter(texts(attribute)), "").strip().upper())
    if found is None:
        return None
    *parts, sign, hours, minutes = found.groups()
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    year, month, day, hour, minute, second = (int(part or 0) for part in parts)
    try:
        zone = timezone(-offset if sign == "-" else offset) if sign else UTC
        return int(datetime(year, month, day, hour, minute, min(second, 59), tzinfo=zone).timestamp()) * SECOND
    except (ValueError, OverflowError):
        return None
