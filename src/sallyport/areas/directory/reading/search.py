"""Searches in an LDAP directory: filters (RFC 4515), attributes, and the kind of directory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from sallyport.areas.directory.entry.status import STATUS_ATTRIBUTES
from sallyport.base.errors import Invalid

MAX_LENGTH: Final = 4096
MAX_DEPTH: Final = 32

_NUMBERS: Final = r"[0-9]+(?:\.[0-9]+)+"
_ATTRIBUTE: Final = rf"(?:[A-Za-z][A-Za-z0-9-]*|{_NUMBERS})(?:;[A-Za-z0-9-]+)*"
_RULE: Final = rf"(?:[A-Za-z][A-Za-z0-9-]*|{_NUMBERS})"
_VALUE: Final = r"(?:[^()*\\\0]|\\[0-9A-Fa-f]{2})*"
_ITEM: Final = re.compile(
    rf"{_ATTRIBUTE}=(?:{_VALUE}\*)*{_VALUE}"  # equal, present, substrings
    rf"|{_ATTRIBUTE}[~<>]={_VALUE}"
    rf"|{_ATTRIBUTE}(?::dn)?(?::{_RULE})?:={_VALUE}|(?::dn)?:{_RULE}:={_VALUE}"  # extensible
)


def checked(text: str) -> str:
    """Return a filter in parentheses, after checking it. In `text` the outer parentheses may be missing. Raises Invalid
    if the text is not a filter, or if servers would refuse it because it is too long or nested too deep."""
    pattern = text.strip()
    if not pattern.startswith("("):
        pattern = f"({pattern})"
    if len(pattern) > MAX_LENGTH:
        raise Invalid(f"must be an LDAP filter of at most {MAX_LENGTH} characters")
    if _end(pattern, 0, 0) != len(pattern):
        raise Invalid("must be an LDAP filter that ends with its last parenthesis")
    return pattern


def all_of(*patterns: str) -> str:
    """Return the filter that matches if all filters match."""
    return f"(&{''.join(patterns)})"


def either(*patterns: str) -> str:
    """Return the filter that matches if one of the filters matches."""
    return f"(|{''.join(patterns)})"


def escaped(value: str) -> str:
    """Return a value escaped for a filter (RFC 4515 section 3)."""
    return "".join(f"\\{ord(each):02x}" if each in "\\*()\0" else each for each in value)


def _end(text: str, at: int, depth: int) -> int:
    """Return the position after the filter that begins at `at`. depth: in how many other filters this filter is nested.
    Raises Invalid."""
    if depth > MAX_DEPTH:
        raise Invalid(f"must be an LDAP filter with at most {MAX_DEPTH} nested levels")
    if text[at : at + 1] != "(":
        raise Invalid(f"must be an LDAP filter; at character {at + 1}, a ( is missing")
    kind = text[at + 1 : at + 2]
    if kind == "!":
        at = _end(text, at + 2, depth + 1)
    elif kind in ("&", "|"):  # without parts, they mean true and false (RFC 4526)
        at += 2
        while text[at : at + 1] == "(":
            at = _end(text, at, depth + 1)
    else:
        item = _ITEM.match(text, at + 1)
        if item is None:
            raise Invalid(f"must be an LDAP filter; at character {at + 2}, the condition is malformed")
        at = item.end()
    if text[at : at + 1] != ")":
        raise Invalid(f"must be an LDAP filter; at character {at + 1}, a ) is missing")
    return at + 1


ACCOUNTS: Final = "(|(objectClass=person)(objectClass=account)(objectClass=posixAccount)(objectClass=inetUser))"
"""The default filter for accounts."""
GROUPS: Final = (
    "(|(objectClass=group)(objectClass=groupOfNames)(objectClass=groupOfUniqueNames)(objectClass=groupOfMembers)"
    "(objectClass=posixGroup))"
)
UNITS: Final = "(objectClass=organizationalUnit)"

IDENTITY: Final = (
    "objectClass", "entryUUID", "objectGUID", "ipaUniqueID", "nsUniqueId", "ibm-entryUUID", "orclGUID", "GUID", "uid",
    "cn", "ou", "sAMAccountName", "userPrincipalName", "krbPrincipalName", "objectSid", "gidNumber", "modifyTimestamp",
    "uSNChanged", "isDeleted", "nsds5ReplConflict", "ds-sync-conflict", *sorted(STATUS_ATTRIBUTES),
)  # fmt: skip
"""Attributes for the identity, the last change and the status of an entry."""
CONTENT: Final = (
    "member", "uniqueMember", "memberUid", "memberOf", "primaryGroupID", "uidNumber",
    "sn", "givenName", "initials", "displayName", "gecos", "title", "description", "mail", "proxyAddresses",
    "telephoneNumber", "mobile", "homePhone", "pager", "facsimileTelephoneNumber", "otherTelephone", "labeledURI",
    "department", "departmentNumber", "division", "company", "o", "businessCategory", "manager", "secretary",
    "employeeID", "employeeNumber", "employeeType", "physicalDeliveryOfficeName", "roomNumber", "street",
    "streetAddress", "postalAddress", "postalCode", "l", "st", "c", "co", "countryCode", "preferredLanguage",
    "homeDirectory", "loginShell", "info", "url", "wWWHomePage",
    *(f"extensionAttribute{number}" for number in range(1, 16)),
)  # fmt: skip
"""Attributes for memberships and field mappings."""

_ACTIVE_DIRECTORY: Final = b"1.2.840.113556.1.4.800"  # MS-ADTS section 3.1.1.3.4.3.1
ROOT: Final = ("supportedCapabilities", "highestCommittedUSN", "dsServiceName", "vendorName")
OVERLAP_S: Final = 300
"""Changes are read from this number of seconds before the last known change, because replication may bring changes with
earlier times."""


@dataclass(frozen=True, slots=True)
class ChangeTracking:
    """How the changes of a directory are found. A place is a position in these changes. It is either a counter value or
    a time in seconds.

    origin: identifies the counter. If the origin of a cursor is different, the cursor is not used. stamp: an attribute
    of entries; each change of an entry gives it a new value. counts: True if the stamp is a counter value, False if it
    is a time.
    """

    origin: str
    stamp: str
    counts: bool

    def first(self, since: int) -> int:
        """Return the place from which changes must be read: a counter value or a time. since: the place at which the
        last reading ended."""
        return since + 1 if self.counts else max(since - OVERLAP_S, 1)

    def written(self, place: int) -> str:
        """Return a place in the form that the stamp has: a number, or a generalized time (RFC 4517 section 3.3.13)."""
        return str(place) if self.counts else datetime.fromtimestamp(place, UTC).strftime("%Y%m%d%H%M%SZ")

    def place_of(self, stamp: bytes) -> int:
        """Return the place that a value of the stamp contains: a counter value or a time. Return 0 if the value is not
        valid."""
        try:
            if self.counts:
                return int(stamp[:20])
            # strptime would take ten times as long
            year, *others = (int(stamp[at : at + (4 if at == 0 else 2)]) for at in (0, 4, 6, 8, 10, 12))
            month, day, hour, minute, second = others
            return int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp())
        except ValueError:
            return 0


def kind_of(root: Mapping[str, tuple[bytes, ...]]) -> ChangeTracking:
    """Return the kind of a directory from its root DSE (RFC 4512 section 5.1)."""
    if _ACTIVE_DIRECTORY in root.get("supportedcapabilities", ()):
        # The counter counts the changes of one domain controller, and cannot be used with another one.
        service = next(iter(root.get("dsservicename", ())), b"").decode(errors="replace")
        return ChangeTracking(f"usn {service}", "uSNChanged", counts=True)
    return ChangeTracking("time", "modifyTimestamp", counts=False)


def everything(accounts: str) -> str:
    """Return the filter for accounts, groups and units. Groups are included because they state the memberships."""
    return either(accounts, GROUPS, UNITS)
