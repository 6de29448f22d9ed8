"""What an entry of a directory means, wherever it comes from, and what a reading of a directory tells.

    Raw  --understand-->  Person | Group | Unit

One reading is a row of batches; what it says of one entry is one of: what it is now (Person, Group, Unit), that it is
there and has not changed (Unchanged), that it is gone (Gone), or that it cannot be used (Problem).

What is understood: RFC 4519, RFC 2307 and its successors, and Active Directory (MS-ADTS, MS-ADSC).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final
from uuid import UUID

from sallyport.base.clock import SECOND
from sallyport.base.errors import Invalid
from sallyport.directory.dn import normalized as normalized  # noqa: PLC0414  part of what this module offers
from sallyport.directory.dn import pairs_of
from sallyport.directory.secret_attributes import holds_secret

_PEOPLE: Final = frozenset(
    {"person", "organizationalperson", "inetorgperson", "user", "account", "posixaccount", "shadowaccount", "inetuser"}
)
# They are of the class `person` too in Active Directory, and nobody logs in with them.
_NO_PEOPLE: Final = frozenset({"computer", "contact", "foreignsecurityprincipal", "inetorgcontact"})
_GROUPS: Final = frozenset(
    {"group", "groupofnames", "groupofuniquenames", "groupofmembers", "groupofentries", "posixgroup"}
)
_UNITS: Final = frozenset({"organizationalunit"})
_NAMES: Final = ("samaccountname", "uid", "userprincipalname", "krbprincipalname", "cn")
ALIASES: Final = ("samaccountname", "uid", "userprincipalname", "krbprincipalname")
"""What else somebody may be called, beside the name."""
_MEMBERS: Final = ("member", "uniquemember")
_UNIQUE_ID: Final = re.compile(r"#'[01]*'B$")  # RFC 4517 section 3.3.21: a name, and what tells it from an older one
_NUMBER: Final = re.compile(r"-?[0-9]{1,20}")

# userAccountControl, MS-ADTS section 2.2.16; msDS-User-Account-Control-Computed, section 3.1.1.4.5.17.
_ACCOUNT_DISABLE: Final = 0x2
_LOCKOUT: Final = 0x10
_NO_USER: Final = 0x800 | 0x1000 | 0x2000  # trusts, workstations, domain controllers
_NEVER: Final = (0, 2**63 - 1)
_FILETIME_EPOCH_US: Final = 11_644_473_600_000_000  # from 1601 to 1970
_DAY_US: Final = 86_400 * SECOND
# pwdAccountLockedTime of who was locked by an admin (draft-behera-ldap-password-policy section 5.3.3).
_FOR_GOOD: Final = "000001010000Z"

MOST_ATTRIBUTES: Final = 64
MOST_VALUES: Final = 32
LONGEST_VALUE: Final = 1024
LONGEST_NAME: Final = 255
# Attributes that may hold a secret, and those that tell when one was set.
_LIKE_SECRET: Final = re.compile(
    r"pass|pwd|secret|credential|hash|principalkey|pkcs|private|recovery|token|otp|seed|laps|krbextradata"
)
STATUS_ATTRIBUTES: Final = frozenset(
    {
        "useraccountcontrol", "msds-user-account-control-computed", "accountexpires", "lockouttime",
        "pwdaccountlockedtime", "nsaccountlock", "shadowexpire",
    }
)  # fmt: skip
"""What says whether an account may log in: always kept, since a change of the entry is judged by it."""
# What names somebody, what is shown of them, and what fields are taken from where nothing else is set.
_SHOWN: Final = frozenset(
    {
        *_NAMES, "displayname", "gecos", "name", "mail", "email", "rfc822mailbox", "department", "l", "st",
        "facsimiletelephonenumber",
    }
)  # fmt: skip
_ELSEWHERE: Final = frozenset({"member", "uniquemember", "memberuid", "memberof", "objectclass"})


@dataclass(frozen=True, slots=True)
class Raw:
    """One entry as a directory or an LDIF file has it. attributes: by `attribute_key`."""

    dn: str
    attributes: Mapping[str, tuple[bytes, ...]]


class Status(StrEnum):
    """Whether an account may log in, as its directory says."""

    ACTIVE = "active"
    DISABLED = "disabled"
    LOCKED = "locked"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Person:
    """An account.

    external_id: names it for good, whatever it is renamed to: entryUUID, objectGUID (both as canonical text), the id
    of a cloud directory; else "dn:" and the normalized name. name: what it logs in with. aliases: other names of the
    same principal; not addresses of mail, which in many directories people write themselves. member_of: names of
    groups. attributes: text, by name in lower case; never a password. primary_group: the `key` of a group of which it
    is a member although neither entry says so; empty once that is in member_of, or where there is none.
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
    """A group. members: names of entries; where an entry gives login names (memberUid), "uid:" and the name.
    key: what a Person's primary_group refers to."""

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
    """An entry that is there, and has not been changed since the reading before.

    dn, status: as they are now, where they are known: a subtree that is renamed changes the names of all below, and
    time changes what an account may, without any change to the entries. status: of a Person.
    """

    external_id: str
    dn: str = ""
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """An entry that is not there any more: by its external_id, or by its name where only that is known."""

    external_id: str = ""
    dn: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """An entry that cannot be used. message: for an admin, without its values. The entry is not gone."""

    dn: str
    message: str
    external_id: str = ""


Entry = Person | Group | Unit | Unchanged | Gone | Problem


@dataclass(frozen=True, slots=True)
class Batch:
    """A part of a reading, at most 500 entries.

    complete: set on the last batch of a reading that has told of every entry: what it has not told of is gone. The
    other kind of reading, which tells of changes alone, tells of deletions by Gone. cursor: set on the last batch:
    where the next reading of changes goes on.
    """

    entries: Sequence[Entry]
    complete: bool = False
    cursor: str = ""


# --- understanding --------------------------------------------------------------------------------------------------


def understand(raw: Raw, *, now: int, mapped: Collection[str] = ()) -> Person | Group | Unit | None:
    """Return what an entry means; None for another kind of entry. now: microseconds, by which an account has expired.
    mapped: the attributes that mappings take, by `attribute_key`.

    Invalid: it is a person, a group or a unit that cannot be used.
    """
    kinds = {value.lower() for value in _texts(raw, "objectclass")}
    if kinds & _PEOPLE and not kinds & _NO_PEOPLE and not _number(raw, "useraccountcontrol") & _NO_USER:
        return _person(raw, now, mapped)
    if kinds & _GROUPS:
        return _group(raw)
    if kinds & _UNITS:
        return Unit(identity(raw), raw.dn, _named(raw, ("ou",)))
    return None


def _person(raw: Raw, now: int, mapped: Collection[str]) -> Person:
    name = _named(raw, _NAMES)
    others = (value for attribute in ALIASES for value in _texts(raw, attribute))
    return Person(
        external_id=identity(raw),
        dn=raw.dn,
        name=name,
        aliases=tuple(other for other in dict.fromkeys(others) if other != name and is_name(other)),
        status=_status(raw, now),
        member_of=_names(raw, ("memberof",)),
        attributes=mappable(((name, _texts(raw, name)) for name in raw.attributes), mapped),
        primary_group=_primary_group(raw),
    )


def _group(raw: Raw) -> Group:
    people = (f"uid:{name}" for name in _texts(raw, "memberuid") if is_name(name))
    sid, number = _sid(raw), next(_texts(raw, "gidnumber"), "")
    return Group(
        external_id=identity(raw),
        dn=raw.dn,
        name=_named(raw, ("samaccountname", "cn")),
        members=tuple(dict.fromkeys((*_names(raw, _MEMBERS), *people))),
        key=sid or (f"gid:{number}" if number else ""),
    )


# --- who it is ------------------------------------------------------------------------------------------------------


def identity(raw: Raw) -> str:
    """What names an entry for good, as `Person.external_id`. Invalid: it has no distinguished name."""
    name = normalized(raw.dn)  # of every entry: what has no name cannot be a member
    if not name:
        raise Invalid("it has no distinguished name")
    for octets in raw.attributes.get("objectguid", ()):
        if len(octets) == 16:
            return str(UUID(bytes_le=octets))
    for attribute in ("entryuuid", "ipauniqueid"):
        for value in _texts(raw, attribute):
            try:
                return str(UUID(value))
            except ValueError:
                continue
    return f"dn:{name}"


def _named(raw: Raw, attributes: Iterable[str]) -> str:
    """The first attribute's value that may be a name. Of several, the one in the distinguished name is its own."""
    for attribute in attributes:
        values = [value for value in _texts(raw, attribute) if is_name(value)]
        if len(values) > 1:
            own = {value.casefold() for kind, value in pairs_of(raw.dn) if kind == attribute}
            return next((value for value in values if value.casefold() in own), values[0])
        if values:
            return values[0]
    raise Invalid("it has no name")


def is_name(value: str) -> bool:
    """Whether somebody may log in by that name, or a group be called so."""
    return 0 < len(value) <= LONGEST_NAME and value.isprintable() and value == value.strip()


def _names(raw: Raw, attributes: Iterable[str]) -> tuple[str, ...]:
    values = (value for attribute in attributes for value in _texts(raw, attribute))
    return tuple(dict.fromkeys(_UNIQUE_ID.sub("", value) for value in values if value))


def _primary_group(raw: Raw) -> str:
    own, number = _sid(raw), next(_texts(raw, "primarygroupid"), "")
    if own and number.isdecimal():
        return f"{own.rpartition('-')[0]}-{number}"
    number = next(_texts(raw, "gidnumber"), "")
    return f"gid:{number}" if number.isdecimal() else ""


def _sid(raw: Raw) -> str:
    """The security identifier as text (MS-DTYP section 2.4.2)."""
    octets = next(iter(raw.attributes.get("objectsid", ())), b"")
    if len(octets) < 8 or octets[0] != 1 or len(octets) != 8 + 4 * octets[1]:
        return ""
    parts = (int.from_bytes(octets[at : at + 4], "little") for at in range(8, len(octets), 4))
    return "-".join(("S-1", str(int.from_bytes(octets[2:8])), *map(str, parts)))


# --- whether it may log in ------------------------------------------------------------------------------------------


def _status(raw: Raw, now: int) -> Status:
    locked = next(_texts(raw, "pwdaccountlockedtime"), "")
    if (
        _number(raw, "useraccountcontrol") & _ACCOUNT_DISABLE
        or locked == _FOR_GOOD
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
    """lockoutTime stays after the time is over; where the domain controller says how it is, that counts."""
    computed = "msds-user-account-control-computed"
    if computed in raw.attributes:
        return bool(_number(raw, computed) & _LOCKOUT)
    return _number(raw, "lockouttime") > 0


# --- values ---------------------------------------------------------------------------------------------------------


def _texts(raw: Raw, attribute: str) -> Iterator[str]:
    for value in raw.attributes.get(attribute, ()):
        try:
            yield value.decode()
        except UnicodeDecodeError:
            continue


def _number(raw: Raw, attribute: str) -> int:
    value = next(_texts(raw, attribute), "")
    return int(value) if _NUMBER.fullmatch(value) else 0


def attribute_key(description: str) -> str:
    """Return an attribute's name in lower case, with its options in order (RFC 4512 section 2.5)."""
    name, *options = description.lower().split(";")
    return ";".join((name, *sorted(options)))


def mappable(values: Iterable[tuple[str, Iterable[str]]], mapped: Collection[str] = ()) -> dict[str, tuple[str, ...]]:
    """Return the texts that fields may be taken from, without secrets, within the limits of one person. Attributes that
    are mapped, shown, or say whether an account may log in come first. values: by `attribute_key`.
    """

    def place(value: tuple[str, Iterable[str]]) -> tuple[bool, str]:
        name = value[0]
        return name not in mapped and name not in _SHOWN and name not in STATUS_ATTRIBUTES, name

    kept: dict[str, tuple[str, ...]] = {}
    for name, texts in sorted(values, key=place):
        if len(kept) == MOST_ATTRIBUTES:
            break
        if holds_secret(name) if name in mapped else not _is_kept_unmapped(name):
            continue
        fit = tuple(text for text in texts if 0 < len(text) <= LONGEST_VALUE and _is_text(text))[:MOST_VALUES]
        if fit:
            kept[name] = fit
    return kept


@lru_cache(4096)
def _is_kept_unmapped(name: str) -> bool:
    """Return whether an attribute is kept that no mapping takes: no options, no membership, nothing like a secret."""
    if name in STATUS_ATTRIBUTES:
        return True
    return ";" not in name and name not in _ELSEWHERE and len(name) <= LONGEST_NAME and not _LIKE_SECRET.search(name)


def _is_text(value: str) -> bool:
    return value.isprintable() or all(each.isprintable() or each in "\t\r\n" for each in value)


def with_primary_group(person: Person, groups: Mapping[str, str]) -> Person:
    """A person with the primary group among the others. groups: the name of each group by its `key`."""
    name = groups.get(person.primary_group)
    if name is None:
        return person
    return replace(person, member_of=tuple(dict.fromkeys((*person.member_of, name))), primary_group="")
