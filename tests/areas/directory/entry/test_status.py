"""The status of an account in the directories of several products."""

from datetime import UTC, datetime

import pytest

from sallyport.areas.directory.entry.status import Status, status_of
from sallyport.base.clock import SECOND

NOW = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * SECOND
PAST, FUTURE = "20251231235959Z", "20260101000001Z"
Case = tuple[str, str, Status]


def status(*values: tuple[str, str]) -> Status:
    """Return the status of an account with these attributes."""
    known = {name.lower(): (value,) for name, value in values}
    return status_of(lambda name: known.get(name, ()), NOW)


@pytest.mark.parametrize(
    "attribute",
    [
        "krbPrincipalExpiration", "pwdEndTime", "loginExpirationTime", "ds-pwp-account-expiration-time",
        "orclActiveEndDate", "schacExpiryDate",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (PAST, Status.EXPIRED), (FUTURE, Status.ACTIVE), ("20251231235959.250Z", Status.EXPIRED),
        ("202512312359Z", Status.EXPIRED),
        ("2025123123Z", Status.EXPIRED), (f" {PAST} ", Status.EXPIRED), ("20260101005959+0100", Status.EXPIRED),
        ("20251231235959-0100", Status.ACTIVE), ("19700101000000Z", Status.ACTIVE), ("99991231235959Z", Status.ACTIVE),
        ("20251331000000Z", Status.ACTIVE), ("soon", Status.ACTIVE), ("", Status.ACTIVE),
    ],
)  # fmt: skip
def test_an_account_ends(attribute: str, time: str, expected: Status) -> None:
    """An account whose end is in the past is expired. A text that is not a time is ignored, and 1970 means never."""
    assert status((attribute, time)) is expected


@pytest.mark.parametrize("attribute", ["pwdStartTime", "orclActiveStartDate", "ds-pwp-account-activation-time"])
def test_an_account_that_has_not_begun_is_disabled(attribute: str) -> None:
    assert status((attribute, FUTURE)) is Status.DISABLED
    assert status((attribute, PAST)) is Status.ACTIVE


@pytest.mark.parametrize(
    ("attribute", "value", "expected"),
    [
        ("loginDisabled", "TRUE", Status.DISABLED), ("loginDisabled", "FALSE", Status.ACTIVE),
        ("ds-pwp-account-disabled", "true", Status.DISABLED), ("msDS-UserAccountDisabled", "TRUE", Status.DISABLED),
        ("inetUserStatus", "Inactive", Status.DISABLED), ("inetUserStatus", "deleted", Status.DISABLED),
        ("inetUserStatus", "active", Status.ACTIVE), ("orclIsEnabled", "DISABLED", Status.DISABLED),
        ("orclIsEnabled", "ENABLED", Status.ACTIVE), ("nsAccountLock", "true ", Status.DISABLED),
        ("nsRoleDN", "cn=nsManagedDisabledRole, dc=example", Status.DISABLED),
        ("nsRoleDN", "cn=staff,dc=x", Status.ACTIVE),
        ("sambaAcctFlags", "[UD         ]", Status.DISABLED), ("sambaAcctFlags", "[UL         ]", Status.LOCKED),
        ("sambaAcctFlags", "[UX         ]", Status.ACTIVE), ("sambaKickoffTime", "1767225599", Status.EXPIRED),
        ("sambaKickoffTime", "1767225601", Status.ACTIVE), ("sambaKickoffTime", "0", Status.ACTIVE),
        ("userAccountControl", " 514 ", Status.DISABLED), ("ibm-pwdAccountLocked", "TRUE", Status.LOCKED),
        ("ms-DS-UserAccountAutoLocked", "TRUE", Status.LOCKED), ("lockedByIntruder", "TRUE", Status.LOCKED),
        ("pwdAccountTmpLockoutEnd", FUTURE, Status.LOCKED), ("pwdAccountTmpLockoutEnd", PAST, Status.ACTIVE),
        ("accountUnlockTime", FUTURE, Status.LOCKED), ("accountUnlockTime", PAST, Status.ACTIVE),
        ("accountUnlockTime", "19700101000000Z", Status.LOCKED), ("shadowExpire", "20454", Status.EXPIRED),
        ("krbPasswordExpiration", PAST, Status.ACTIVE), ("passwordExpirationTime", PAST, Status.ACTIVE),
    ],
)  # fmt: skip
def test_attributes_of_several_products(attribute: str, value: str, expected: Status) -> None:
    """Each product has its own attribute. The expiry of a password does not change the status of the account."""
    assert status((attribute, value)) is expected


def test_a_lock_of_an_intruder_ends() -> None:
    assert status(("lockedByIntruder", "TRUE"), ("loginIntruderResetTime", PAST)) is Status.ACTIVE


def test_the_longest_state_counts() -> None:
    """If several attributes block an account, its status is the one that lasts longest."""
    assert status(("krbPrincipalExpiration", PAST), ("nsAccountLock", "TRUE")) is Status.DISABLED
    assert status(("krbPrincipalExpiration", PAST), ("lockedByIntruder", "TRUE")) is Status.EXPIRED
