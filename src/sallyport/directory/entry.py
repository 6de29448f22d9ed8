"""The entries of directories from any source, and how they are interpreted.

    Raw  --understand-->  Person | Group | Unit

The reader of a directory returns batches. For each entry, a batch contains one of these values: the content of the
entry (Person, Group, Unit), or the fact that the entry is unchanged (Unchanged), was removed (Gone), or cannot be used
(Problem).

Schemas: RFC 4519, RFC 2307 and its successors, and Active Directory (MS-ADTS, MS-ADSC).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final
from uuid import UUID

from sallyport.base.clock import SECOND
from sallyport.base.errors import Invalid
from sallyport.directory.dn import normalized, pairs_of
from sallyport.directory.secret_attributes import holds_secret

_PEOPLE: Final = frozenset(
    {"person", "organizationalperson", "inetorgperson", "user", "account", "posixaccount", "shadowaccount", "inetuser"}
)
# In Active Directory, entries of these classes also have the class `person`, but are not accounts of people.
_NOT_PEOPLE: Final = frozenset({"computer", "contact", "foreignsecurityprincipal", "inetorgcontact"})
_GROUPS: Final = frozenset(
    {"group", "groupofnames", "groupofuniquenames", "groupofmembers", "groupofentries", "posixgroup"}
)
_UNITS: Final = frozenset({"organizationalunit"})
_NAMES: Final = ("samaccountname", "uid", "userprincipalname", "krbprincipalname", "cn")
ALIASES: Final = ("samaccountname", "uid", "userprincipalname", "krbprincipalname")
"""Attributes that contain further login names."""
_MEMBERS: Final = ("member", "uniquemember")
_UNIQUE_ID: Final = re.compile(r"#'[01]*'B$")  # RFC 4517 section 3.3.21: the bit string after a name
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,20}")

# userAccountControl, MS-ADTS section 2.2.16; msDS-User-Account-Control-Computed, section 3.1.1.4.5.17.
_ACCOUNT_DISABLE: Final = 0x2
_LOCKOUT: Final = 0x10
_NOT_USERS: Final = 0x800 | 0x1000 | 0x2000  # trusts, workstations, domain controllers
_NEVER: Final = (0, 2**63 - 1)
_FILETIME_EPOCH_US: Final = 11_644_473_600_000_000  # microseconds from 1601 to 1970
_DAY_US: Final = 86_400 * SECOND
# pwdAccountLockedTime of an account that an admin has locked (draft-behera-ldap-password-policy section 5.3.3).
_LOCKED_BY_ADMIN: Final = "000001010000Z"

MOST_ATTRIBUTES: Final = 64
MOST_VALUES: Final = 32
LONGEST_VALUE: Final = 1024
LONGEST_NAME: Final = 255
# Names of attributes that may hold a secret, or the time when a secret was set.
_LIKE_SECRET: Final = re.compile(
    r"pass|pwd|secret|credential|hash|principalkey|pkcs|private|recovery|token|otp|seed|laps|krbextradata"
)
STATUS_ATTRIBUTES: Final = frozenset(
    {
        "useraccountcontrol", "msds-user-account-control-computed", "accountexpires", "lockouttime",
        "pwdaccountlockedtime", "nsaccountlock", "shadowexpire",
    }
)  # fmt: skip
"""Attributes that determine an account's status. They are always stored, because the status is computed again when an
LDIF file changes the entry."""
# Attributes for names, for display and for default field mappings.
_SHOWN: Final = frozenset(
    {
        *_NAMES, "displayname", "gecos", "name", "mail", "email", "rfc822mailbox", "department", "l", "st",
        "facsimiletelephonenumber",
    }
)  # fmt: skip
_NOT_STORED: Final = frozenset({"member", "uniquemember", "memberuid", "memberof", "objectclass"})


@dataclass(frozen=True, slots=True)
class Raw:
    """An entry of a directory or of an LDIF file, before it is interpreted. attributes: the values of each attribute.
    The attribute names are in the form that `attribute_key` returns."""

    dn: str
    attributes: Mapping[str, tuple[bytes, ...]]


class Status(StrEnum):
    """The status of an account in its directory."""

    ACTIVE = "active"
    DISABLED = "disabled"
    LOCKED = "locked"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Person:
    """An account.

    external_id: an identifier that stays the same when the entry is renamed. It is the canonical text of the entryUUID
    or objectGUID, or the id in a cloud directory. If an entry has no such identifier, external_id is "dn:" and the
    normalized name.

    name: the login name. aliases: further login names. Mail addresses are not aliases, because in many directories
    people can set their own mail address.

    member_of: names of groups. primary_group: the `Group.key` of the primary group. It is empty if member_of already
    contains the primary group.

    attributes: text values by attribute name in lower case, without passwords.
    """

    external_id: str
    dn: str
    name: str
    aliases: tuple[str, ...]
    status: Status
    member_of: tuple[str, ...]
    attributes: Mapping[str, tuple[str, ...]]
    primary_group: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """A group. members: names of entries, or "uid:" followed by a login name (memberUid). key: the value by which
    accounts refer to this group as their primary group (`Person.primary_group`)."""

    external_id: str
    dn: str
    name: str
    members: tuple[str, ...]
    key: str = ""


@dataclass(frozen=True, slots=True)
class Unit:
    """An organizational unit."""

    external_id: str
    dn: str
    name: str


@dataclass(frozen=True, slots=True)
class Unchanged:
    """An entry that exists and has not changed since the directory was last read.

    dn, status: the entry's current name and status. A value is empty if it is not known, and only people have a status.
    Though the entry has not changed, its name can differ because a unit above it was renamed, and its status can differ
    because the account has expired.
    """

    external_id: str
    dn: str = ""
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """An entry that was removed. external_id identifies the entry. If external_id is empty, dn identifies the entry."""

    external_id: str = ""
    dn: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """An entry that exists and cannot be used. message: a text for an admin, without values of the entry."""

    dn: str
    message: str
    external_id: str = ""


Entry = Person | Group | Unit | Unchanged | Gone | Problem


@dataclass(frozen=True, slots=True)
class Batch:
    """At most 500 of the entries that the reader of a directory returns.

    complete: whether all batches together contain every entry of the directory. If so, the import removes all stored
    entries that no batch contains. If not, the import removes only the entries that a batch reports as Gone. cursor:
    the position from which the reader must read the next changes. Only the last batch sets these two fields.
    """

    entries: Sequence[Entry]
    complete: bool = False
    cursor: str = ""


# --- understanding --------------------------------------------------------------------------------------------------


def understand(raw: Raw, *, now: int, mapped: Collection[str] = ()) -> Person | Group | Unit | None:
    """Return the person, group or unit that an entry describes. Return None for any other kind of entry. Raises Invalid
    if the entry cannot be used.

    now: the time in microseconds. mapped: the attributes that mappings use, in the form of `attribute_key`.
    """
    kinds = {value.lower() for value in _texts(raw, "objectclass")}
    if kinds & _PEOPLE and not kinds & _NOT_PEOPLE and not _number(raw, "useraccountcontrol") & _NOT_USERS:
        return _person(raw, now, mapped)
    if kinds & _GROUPS:
        return _group(raw)
    if kinds & _UNITS:
        return Unit(identity(raw), raw.dn, _named(raw, ("ou",)))
    return None


def _person(raw: Raw, now: int, mapped: Collection[str]) -> Person:
    name = _named(raw, _NAMES)
    others = [value for attribute in ALIASES for value in _texts(raw, attribute)]
    return Person(
        external_id=identity(raw),
        dn=raw.dn,
        name=name,
        aliases=tuple([other for other in dict.fromkeys(others) if other != name and is_name(other)]),
        status=_status(raw, now),
        member_of=_names(raw, ("memberof",)),
        attributes=mappable([(name, _texts(raw, name)) for name in raw.attributes], mapped),
        primary_group=_primary_group(raw),
    )


def _group(raw: Raw) -> Group:
    people = (f"uid:{name}" for name in _texts(raw, "memberuid") if is_name(name))
    sid, number = _sid(raw), _text(raw, "gidnumber")
    return Group(
        external_id=identity(raw),
        dn=raw.dn,
        name=_named(raw, ("samaccountname", "cn")),
        members=tuple(dict.fromkeys((*_names(raw, _MEMBERS), *people))),
        key=sid or (f"gid:{number}" if number else ""),
    )


# --- names ----------------------------------------------------------------------------------------------------------


def identity(raw: Raw) -> str:
    """Return the `Person.external_id` of an entry. Raises Invalid if the entry has no distinguished name."""
    name = normalized(raw.dn)  # memberships refer to entries by name
    if not name:
        raise Invalid("the entry has no distinguished name")
    for octets in raw.attributes.get("objectguid", ()):
        if len(octets) == 16:
            return str(UUID(bytes_le=octets))
    for attribute in ("entryuuid", "ipauniqueid"):
        for value in _texts(raw, attribute):
            if _UUID.fullmatch(value):
                return value.lower()
            try:
                return str(UUID(value))
            except ValueError:
                continue
    return f"dn:{name}"


def _named(raw: Raw, attributes: Iterable[str]) -> str:
    """Return the entry's name from the first of the given attributes that has a valid name. Raises Invalid if none of
    them has a valid name.

    If that attribute has several valid names, return the one that is part of the distinguished name. If none of them
    is, return the first one.
    """
    for attribute in attributes:
        values = [value for value in _texts(raw, attribute) if is_name(value)]
        if len(values) > 1:
            own = {value.casefold() for kind, value in pairs_of(raw.dn) if kind == attribute}
            return next((value for value in values if value.casefold() in own), values[0])
        if values:
            return values[0]
    raise Invalid("the entry has no name")


def is_name(value: str) -> bool:
    """Return whether a text is a valid login name or group name."""
    return 0 < len(value) <= LONGEST_NAME and value.isprintable() and value == value.strip()


def _names(raw: Raw, attributes: Iterable[str]) -> tuple[str, ...]:
    values = [value for attribute in attributes for value in _texts(raw, attribute) if value]
    return tuple(dict.fromkeys([_UNIQUE_ID.sub("", value) if "#" in value else value for value in values]))


def _primary_group(raw: Raw) -> str:
    own, number = _sid(raw), _text(raw, "primarygroupid")
    if own and number.isdecimal():
        return f"{own.rpartition('-')[0]}-{number}"
    number = _text(raw, "gidnumber")
    return f"gid:{number}" if number.isdecimal() else ""


def _sid(raw: Raw) -> str:
    """Return the security identifier (SID) as text (MS-DTYP section 2.4.2). Return an empty text if the SID is missing
    or malformed."""
    octets = next(iter(raw.attributes.get("objectsid", ())), b"")
    if len(octets) < 8 or octets[0] != 1 or len(octets) != 8 + 4 * octets[1]:
        return ""
    parts = (int.from_bytes(octets[at : at + 4], "little") for at in range(8, len(octets), 4))
    return "-".join(("S-1", str(int.from_bytes(octets[2:8])), *map(str, parts)))


# --- status ---------------------------------------------------------------------------------------------------------


def _status(raw: Raw, now: int) -> Status:
    if STATUS_ATTRIBUTES.isdisjoint(raw.attributes):
        return Status.ACTIVE
    locked = _text(raw, "pwdaccountlockedtime")
    if (
        _number(raw, "useraccountcontrol") & _ACCOUNT_DISABLE
        or locked == _LOCKED_BY_ADMIN
        or any(value.upper() == "TRUE" for value in _texts(raw, "nsaccountlock"))
    ):
        return Status.DISABLED
    if _has_expired(raw, now):
        return Status.EXPIRED
    return Status.LOCKED if locked or _is_locked_out(raw) else Status.ACTIVE


def _has_expired(raw: Raw, now: int) -> bool:
    expires, days = _number(raw, "accountexpires"), _number(raw, "shadowexpire")
    return (expires not in _NEVER and expires // 10 - _FILETIME_EPOCH_US <= now) or (days > 0 and days * _DAY_US <= now)


def _is_locked_out(raw: Raw) -> bool:
    """Return whether an account is locked. The attribute msDS-User-Account-Control-Computed takes precedence over
    lockoutTime, because lockoutTime stays set after the lock has ended."""
    computed = "msds-user-account-control-computed"
    if computed in raw.attributes:
        return bool(_number(raw, computed) & _LOCKOUT)
    return _number(raw, "lockouttime") > 0


# --- values ---------------------------------------------------------------------------------------------------------


def _texts(raw: Raw, attribute: str) -> Sequence[str]:
    """Return the values of an attribute that are text."""
    values = raw.attributes.get(attribute)
    if not values:
        return ()
    try:
        return [value.decode() for value in values]
    except UnicodeDecodeError:
        return [text for value in values if (text := _decoded(value)) is not None]


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _text(raw: Raw, attribute: str) -> str:
    """Return the first value of an attribute that is text, or an empty text."""
    values = _texts(raw, attribute)
    return values[0] if values else ""


def _number(raw: Raw, attribute: str) -> int:
    value = _text(raw, attribute)
    return int(value) if _NUMBER.fullmatch(value) else 0


def attribute_key(description: str) -> str:
    """Return the normalized form of an attribute description (RFC 4512 section 2.5). The name is in lower case, and the
    options are sorted."""
    return _known_key(description) if len(description) <= LONGEST_NAME else _key(description)


def _key(description: str) -> str:
    name, *options = description.lower().split(";")
    return ";".join((name, *sorted(options)))


_known_key: Final = lru_cache(4096)(_key)


def mappable(values: Iterable[tuple[str, Iterable[str]]], mapped: Collection[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return the attributes to store for field mappings. Attributes that hold secrets are left out. The limits of one
    person are applied.

    values: the values of each attribute, with names in the form of `attribute_key`. mapped: the attributes that
    mappings use. If there are too many attributes, the attributes of mappings and those for names, display and status
    are stored first.
    """

    def place(value: tuple[str, Iterable[str]]) -> tuple[bool, str]:
        name = value[0]
        return name not in mapped and name not in _SHOWN and name not in STATUS_ATTRIBUTES, name

    kept: dict[str, tuple[str, ...]] = {}
    several = list(values)
    for name, texts in several if len(several) <= MOST_ATTRIBUTES else sorted(several, key=place):
        if len(kept) == MOST_ATTRIBUTES:
            break
        if holds_secret(name) if name in mapped else not _is_kept_unmapped(name):
            continue
        fit = [text for text in texts if 0 < len(text) <= LONGEST_VALUE and (text.isprintable() or _is_text(text))]
        if fit:
            kept[name] = tuple(fit[:MOST_VALUES])
    return kept


@lru_cache(4096)
def _is_kept_unmapped(name: str) -> bool:
    """Return whether to store an attribute that no mapping uses. Some attributes are not stored: those with options,
    those that state a membership, and those with a name that suggests a secret."""
    if name in STATUS_ATTRIBUTES:
        return True
    return ";" not in name and name not in _NOT_STORED and len(name) <= LONGEST_NAME and not _LIKE_SECRET.search(name)


def _is_text(value: str) -> bool:
    return all(each.isprintable() or each in "\t\r\n" for each in value)


def with_primary_group(person: Person, groups: Mapping[str, str]) -> Person:
    """Return a person after adding the name of the primary group to member_of. If the group is not in `groups`, return
    the person unchanged. groups: group names by `Group.key`."""
    name = groups.get(person.primary_group)
    if name is None:
        return person
    return replace(person, member_of=tuple(dict.fromkeys((*person.member_of, name))), primary_group="")
