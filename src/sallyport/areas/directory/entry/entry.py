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
from functools import lru_cache
from typing import Final
from uuid import UUID

from sallyport.areas.directory.entry.descriptions import incomplete
from sallyport.areas.directory.entry.dn import normalized, pairs_of, parsed
from sallyport.areas.directory.entry.secret_attributes import holds_secret
from sallyport.areas.directory.entry.sid import OBJECT_SID, sid_text
from sallyport.areas.directory.entry.status import STATUS_ATTRIBUTES, Status, number, status_of
from sallyport.base.errors import Invalid
from sallyport.base.text import trimmed

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
MEMBERSHIPS: Final = frozenset({*_MEMBERS, "memberuid", "memberof"})
_IDENTIFIERS: Final = ("entryuuid", "ipauniqueid", "nsuniqueid", "ibm-entryuuid", "orclguid")
# Entries that a server keeps for replication, or hides from searches (RFC 3672, 389 DS, OpenDJ).
_REMOVED: Final = frozenset({"nstombstone", "ldapsubentry", "subentry", "ds-sync-conflict-entry"})
_CONFLICTS: Final = ("nsds5replconflict", "ds-sync-conflict")
# Parts of the names of conflict entries and deleted entries: in 389 DS, in OpenDJ, and in Active Directory.
_LIKE_REMOVED: Final = ("nsuniqueid", "entryuuid", "cnf:", "del:")
_DELETED: Final = ("isdeleted", "isrecycled")
_PROVISIONING: Final = re.compile(r",\s*cn=(?:deleted|staged) users,\s*cn=accounts,\s*cn=provisioning,", re.IGNORECASE)
"""Matches the name of an entry of FreeIPA that is no user any more, or no user yet."""
_CONFLICT_MARKS: Final = ("\ncnf:", "\ndel:")
_UNIQUE_ID: Final = re.compile(r"#'[01]*'B$")  # RFC 4517 section 3.3.21: the bit string after a name
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_NOT_USERS: Final = 0x800 | 0x1000 | 0x2000
"""The flags in userAccountControl of trusts, workstations and domain controllers (MS-ADTS section 2.2.16)."""

DEVICE_ID: Final = "entra-device-id"
"""The attribute with the deviceId of a device of Entra ID. No directory has an attribute with this name, so a person
cannot be taken for a device."""
MAX_ATTRIBUTES: Final = 64
MAX_VALUES: Final = 32
MAX_VALUE_LENGTH: Final = 1024
MAX_NAME_LENGTH: Final = 255
# Names of attributes that may hold a secret, or the time when a secret was set.
_LIKE_SECRET: Final = re.compile(
    r"pass|pwd|secret|credential|hash|principalkey|pkcs|private|recovery|token|otp|seed|laps|krbextradata"
)
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
    The attribute names are in the form that `descriptions.interpreted` returns."""

    dn: str
    attributes: Mapping[str, tuple[bytes, ...]]


@dataclass(frozen=True, slots=True)
class Person:
    """An account.

    external_id: an identifier that stays the same when the entry is renamed. It is the canonical text of the entryUUID,
    objectGUID or nsUniqueId, or the id in a cloud directory. If an entry has no such identifier, external_id is "dn:"
    and the normalized name.

    name: the login name. aliases: further login names. Mail addresses are not aliases, because in many directories
    people can set their own mail address.

    member_of: names of groups. primary_group: the `Group.key` of the primary group. It is empty if member_of already
    contains the primary group.

    attributes: text values by attribute name in lower case, without passwords.

    A cloud directory may state only a part of an account. The stored person then keeps the rest. status: None if the
    status is not stated. alias_attributes: None if all other values are stated. Otherwise, an empty name and missing
    attributes are not stated, an attribute without values is deleted, and the aliases are the values of these
    attributes.
    """

    external_id: str
    dn: str
    name: str
    aliases: tuple[str, ...]
    status: Status | None
    member_of: tuple[str, ...]
    attributes: Mapping[str, tuple[str, ...]]
    primary_group: str = ""
    alias_attributes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A group. name: empty if a cloud directory does not state it; the stored group then keeps its name. members: names
    of entries, or "uid:" followed by a login name (memberUid). key: the value by which accounts refer to this group as
    their primary group (`Person.primary_group`)."""

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
    """An entry that exists and cannot be used. message: a text for an admin, without values of the entry. status: the
    status of an account that the directory has blocked; None if it is active or unknown."""

    dn: str
    message: str
    external_id: str = ""
    status: Status | None = None


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


def understand(raw: Raw, *, now: int, mapped: Collection[str] = ()) -> Person | Group | Unit | Gone | None:
    """Return the person, group or unit that an entry describes. Return Gone for an entry that was deleted, or that lost
    a conflict of replication. Return None for any other kind of entry. Raises Invalid if the entry cannot be used.

    now: the time in microseconds. mapped: the attributes that mappings use, in the form of `attribute_key`.
    """
    kinds = _kinds(raw)
    is_person = _is_account(raw, kinds)
    if not (is_person or kinds & _GROUPS or kinds & _UNITS):
        return None
    if _is_removed(raw, kinds):
        return Gone(identity(raw))
    if parts := sorted(MEMBERSHIPS & incomplete(raw.attributes)):
        raise Invalid(f"the entry has only a part of the values of {parts[0]} (range): export all values")
    if is_person:
        return _person(raw, now, mapped)
    return _group(raw) if kinds & _GROUPS else Unit(identity(raw), raw.dn, _named(raw, ("ou",)))


def understood(raw: Raw, *, now: int, mapped: Collection[str] = ()) -> Person | Group | Unit | Gone | Problem | None:
    """Return what `understand` returns, but return a Problem for an entry that cannot be used. If such an account is
    disabled, expired or locked, the Problem has this status."""
    try:
        return understand(raw, now=now, mapped=mapped)
    except Invalid as error:
        status = _status(raw, now) if _is_account(raw, _kinds(raw)) else Status.ACTIVE
        return Problem(raw.dn, str(error), _identity_or_none(raw), None if status is Status.ACTIVE else status)


def _kinds(raw: Raw) -> set[str]:
    """Return the object classes of an entry in lower case."""
    return {value.strip().lower() for value in _texts(raw, "objectclass")}


def _is_account(raw: Raw, kinds: set[str]) -> bool:
    """Return whether an entry is an account of a person. kinds: see `_kinds`."""
    flags = number(lambda name: _texts(raw, name), "useraccountcontrol")
    return bool(kinds & _PEOPLE) and not kinds & _NOT_PEOPLE and not flags & _NOT_USERS


def _is_removed(raw: Raw, kinds: Collection[str]) -> bool:
    """Return whether the directory keeps an entry only for replication: a deleted entry, or an entry whose name was
    taken by another one."""
    return (
        not _REMOVED.isdisjoint(kinds)
        or any(name in raw.attributes for name in _CONFLICTS)
        or any(value.strip().upper() == "TRUE" for name in _DELETED for value in _texts(raw, name))
        or has_replaced_name(raw.dn)
        or _PROVISIONING.search(raw.dn) is not None
    )


def has_replaced_name(dn: str) -> bool:
    """Return whether a name is one that a directory gives to a deleted entry, or to an entry that lost a conflict of
    replication. Return False if dn is not a distinguished name."""
    lower = dn.lower()
    if not any(part in lower for part in _LIKE_REMOVED):
        return False
    try:
        own = next(iter(parsed(dn)), [])
    except Invalid:
        return False
    kinds = {kind for kind, _ in own}
    return (
        "nsuniqueid" in kinds
        or ("entryuuid" in kinds and len(own) > 1)
        or any(mark in value.lower() for _, value in own for mark in _CONFLICT_MARKS)
    )


def _person(raw: Raw, now: int, mapped: Collection[str]) -> Person:
    name = _named(raw, _NAMES)
    others = [trimmed(value) for attribute in ALIASES for value in _texts(raw, attribute)]
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
    people = (f"uid:{name}" for value in _texts(raw, "memberuid") if is_name(name := trimmed(value)))
    sid, gid = _sid(raw), _text(raw, "gidnumber")
    return Group(
        external_id=identity(raw),
        dn=raw.dn,
        name=_named(raw, ("samaccountname", "cn")),
        members=tuple(dict.fromkeys((*_names(raw, _MEMBERS), *people))),
        key=sid or (f"gid:{gid}" if gid else ""),
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
    for attribute in _IDENTIFIERS:
        for value in _texts(raw, attribute):
            if _UUID.fullmatch(value):
                return value.lower()
            try:
                return str(UUID(value.strip()))
            except ValueError:
                continue
    for octets in raw.attributes.get("guid", ()):  # eDirectory
        if len(octets) == 16:
            return str(UUID(bytes=octets))
    return f"dn:{name}"


def _identity_or_none(raw: Raw) -> str:
    try:
        return identity(raw)
    except Invalid:
        return ""


def _named(raw: Raw, attributes: Iterable[str]) -> str:
    """Return the entry's name from the first of the given attributes that the entry has, without blanks around it.
    Raises Invalid if the entry has none of them, or if the first of them has no valid name.

    If that attribute has several valid names, return the one that is part of the distinguished name. If none of them
    is, return the first one.
    """
    for attribute in attributes:
        values = [name for value in _texts(raw, attribute) if is_name(name := trimmed(value))]
        if len(values) > 1:
            own = {trimmed(value).casefold() for kind, value in pairs_of(raw.dn) if kind == attribute}
            return next((value for value in values if value.casefold() in own), values[0])
        if values:
            return values[0]
        if raw.attributes.get(attribute):
            raise Invalid(f"the entry has no valid name in {attribute}")
    raise Invalid("the entry has no name")


def is_name(value: str) -> bool:
    """Return whether a text is a valid login name or group name."""
    return 0 < len(value) <= MAX_NAME_LENGTH and value.isprintable() and value == value.strip()


def _names(raw: Raw, attributes: Iterable[str]) -> tuple[str, ...]:
    values = [value for attribute in attributes for value in _texts(raw, attribute) if value]
    return tuple(dict.fromkeys([_UNIQUE_ID.sub("", value) if "#" in value else value for value in values]))


def _primary_group(raw: Raw) -> str:
    own, rid = _sid(raw), _text(raw, "primarygroupid")
    if own and rid.isdecimal():
        return f"{own.rpartition('-')[0]}-{rid}"
    gid = _text(raw, "gidnumber")
    return f"gid:{gid}" if gid.isdecimal() else ""


def _sid(raw: Raw) -> str:
    """Return the security identifier (SID) as text. Return an empty text if the SID is missing or malformed."""
    return sid_text(next(iter(raw.attributes.get(OBJECT_SID.lower(), ())), b""))


def _status(raw: Raw, now: int) -> Status:
    if STATUS_ATTRIBUTES.isdisjoint(raw.attributes):
        return Status.ACTIVE
    return status_of(lambda name: _texts(raw, name), now)


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
    """Return the first value of an attribute that is text, without blanks around it, or an empty text."""
    values = _texts(raw, attribute)
    return values[0].strip() if values else ""


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
    for name, texts in several if len(several) <= MAX_ATTRIBUTES else sorted(several, key=place):
        if len(kept) == MAX_ATTRIBUTES:
            break
        if holds_secret(name) if name in mapped else not _is_kept_unmapped(name):
            continue
        fit = [text for text in texts if 0 < len(text) <= MAX_VALUE_LENGTH and (text.isprintable() or _is_text(text))]
        if fit:
            kept[name] = tuple(fit[:MAX_VALUES])
    return kept


@lru_cache(4096)
def _is_kept_unmapped(name: str) -> bool:
    """Return whether to store an attribute that no mapping uses. Some attributes are not stored: those with options,
    those that state a membership, and those with a name that suggests a secret."""
    if name in STATUS_ATTRIBUTES:
        return True
    if ";" in name or name in _NOT_STORED or len(name) > MAX_NAME_LENGTH:
        return False
    return not _LIKE_SECRET.search(name)


def _is_text(value: str) -> bool:
    return all(each.isprintable() or each in "\t\r\n" for each in value)


def with_primary_group(person: Person, groups: Mapping[str, str]) -> Person:
    """Return a person after adding the name of the primary group to member_of. If the group is not in `groups`, return
    the person unchanged. groups: group names by `Group.key`."""
    name = groups.get(person.primary_group)
    if name is None:
        return person
    return replace(person, member_of=tuple(dict.fromkeys((*person.member_of, name))), primary_group="")
