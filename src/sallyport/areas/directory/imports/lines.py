"""The lines of a prepared file. A line is a JSON array with an entry that can be written to the store without further
parsing: the letter of its class, and the values of its fields in order. The SQL of imports takes the same objects.

Names are hashed to keys of 16 octets (hexadecimal in the file), and members are compared by key. An unchanged entry is
recognized by the digest of all its values. After the line of a group come lines ["m", [member_key, ...]]. Each of them
has at most MEMBERS members.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from operator import attrgetter
from typing import BinaryIO, Final

from sallyport.areas.directory.entry.dn import normalized
from sallyport.areas.directory.entry.entry import (
    DEVICE_ID,
    MAX_NAME_LENGTH,
    Entry,
    Gone,
    Group,
    Person,
    Problem,
    Unchanged,
    Unit,
)
from sallyport.areas.directory.entry.wire import to_wire
from sallyport.base.errors import Invalid
from sallyport.base.text import fold

MEMBERS: Final = 500
MAX_GROUPS: Final = 2_000
MAX_ALIASES: Final = 64
MAX_OF_KIND: Final = 8
"""Maximum numbers of groups, of aliases and of identifiers of one kind in a person's entry. A login reads at most
MAX_GROUPS groups."""
KEY_OCTETS: Final = 16
_JSON: Final = json.JSONEncoder(separators=(",", ":"), default=bytes.hex)
_SPACED: Final = json.JSONEncoder(default=bytes.hex)  # digests in the store were made with spaces
UID: Final = "uid:"
ID: Final = "id:"
# The attributes of people of cloud directories that a certificate can name, by the kind of the identifier.
_IDENTIFYING: Final = {
    "sid": ("securityidentifier", "objectsid"),
    "upn": ("userprincipalname", "onpremisesuserprincipalname"),
    "mail": ("mail",),
    "serial": ("employeeid", "employeenumber"),
}
# The directory changes these attributes at each login or replication, although the person has not changed.
_VOLATILE: Final = frozenset(
    {
        "authtimestamp", "badpasswordtime", "badpwdcount", "dscorepropagationdata", "entrycsn", "lastlogoff",
        "lastlogon", "lastlogontimestamp", "logoncount", "modifiersname", "modifytimestamp", "usnchanged",
        "whenchanged",
    }
)  # fmt: skip
_OF_DEVICES: Final = {"id": (DEVICE_ID,), "sid": ("objectsid",), "dns": ("displayname",)}


# --- keys -----------------------------------------------------------------------------------------------------------


def key_of(name: str) -> bytes:
    """Return the key of a name: a hash of 16 octets.

    A name has one of three forms: a distinguished name in any spelling, `uid:` followed by a login name, or `id:`
    followed by an identifier of a cloud directory. Raises Invalid if the name has another form.
    """
    own = name.casefold() if name.startswith((UID, ID)) else normalized(name)
    if not own:
        raise Invalid("the entry has no name")
    return blake2b(own.encode("utf-8", "surrogatepass"), digest_size=KEY_OCTETS).digest()


def keys_of(names: Sequence[str]) -> list[bytes]:
    """Return the keys of the valid names, without repetitions. Invalid names are left out."""
    found = dict[bytes, None]()
    for name in names:
        try:
            found[key_of(name)] = None
        except Invalid:
            continue
    return list(found)


def digest_of(*parts: object) -> bytes:
    """Return the digest of an entry. parts: all values of the entry."""
    return blake2b(_SPACED.encode(parts).encode(), digest_size=KEY_OCTETS).digest()


# --- entries --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PreparedPerson:
    """A person. uid_key: the key of `uid:` and the login name. group_keys: the keys of the person's groups."""

    external_id: str
    dn: str
    dn_key: bytes
    uid_key: bytes
    login: str
    aliases: Sequence[str]
    status: str
    group_keys: Sequence[bytes]
    attributes: Mapping[str, Sequence[str]]
    digest: bytes


@dataclass(frozen=True, slots=True)
class PartialPerson:
    """A part of a person. The stored person has the rest. The fields are those of `entry.Person`; an unknown status is
    empty."""

    external_id: str
    dn: str
    dn_key: bytes
    name: str
    aliases: Sequence[str]
    status: str
    attributes: Mapping[str, Sequence[str]]
    alias_attributes: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class PreparedUnit:
    """A unit, or a group without its members."""

    external_id: str
    dn: str
    dn_key: bytes
    name: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class PreparedGroup(PreparedUnit):
    """A group. members: the keys of its members. In the file, the number of "m" lines takes their place. sid: its
    security identifier; empty if it has none."""

    members: Sequence[bytes] = ()
    sid: str = ""


@dataclass(frozen=True, slots=True)
class PreparedUnchanged:
    """An entry with unchanged content. It has the entry's present name and status, which are empty if unknown. If a
    unit above the entry was renamed, the name differs from the stored name. The status can change with time, for
    example when an account expires."""

    external_id: str
    dn: str
    dn_key: bytes
    status: str


@dataclass(frozen=True, slots=True)
class PreparedRemoval:
    """An entry that was removed. It is found by its identifier or by its name."""

    external_id: str
    dn_key: bytes


@dataclass(frozen=True, slots=True)
class PreparedChange:
    """A change of a stored entry, which is perhaps also renamed. steps: triples of a step (`ldif.Step`), an attribute,
    and values."""

    dn: str
    dn_key: bytes
    new_dn: str
    new_dn_key: bytes
    steps: Sequence[tuple[str, str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class PreparedProblem:
    """An entry that exists and cannot be used, but may block an account. where: the entry's line in the source, or its
    name. status: absent in a file of an older version."""

    where: str
    message: str
    external_id: str
    status: str = ""


PreparedEntry = (
    PreparedPerson | PartialPerson | PreparedGroup | PreparedUnit | PreparedUnchanged | PreparedRemoval | PreparedChange
    | PreparedProblem
)  # fmt: skip
_CLASSES: Final[Mapping[str, type[PreparedEntry]]] = {
    "p": PreparedPerson, "+": PartialPerson, "g": PreparedGroup, "u": PreparedUnit, "=": PreparedUnchanged,
    "-": PreparedRemoval, "~": PreparedChange, "x": PreparedProblem,
}  # fmt: skip
_LETTERS: Final = {kind: letter for letter, kind in _CLASSES.items()}
_VALUES: Final = {kind: attrgetter(*(field.name for field in fields(kind))) for kind in _LETTERS}
_FIELDS: Final = {letter: tuple(field.name for field in fields(kind)) for letter, kind in _CLASSES.items()}
_KEYS: Final = frozenset({"dn_key", "uid_key", "new_dn_key", "digest"})


def encoded(entry: PreparedEntry) -> bytes:
    """Return the lines of an entry."""
    line, parts = [_LETTERS[type(entry)], *_VALUES[type(entry)](entry)], list[Sequence[bytes]]()
    if isinstance(entry, PreparedGroup):
        parts = [entry.members[at : at + MEMBERS] for at in range(0, len(entry.members), MEMBERS)]
        line[1 + _FIELDS["g"].index("members")] = len(parts)
    return _line(line) + b"".join(_line(["m", part]) for part in parts)


def read_entry(file: BinaryIO) -> tuple[PreparedEntry, int] | None:
    """Read an entry from a prepared file. Return it with the number of its lines, or None at the end of the file."""
    octets = file.readline()
    if not octets:
        return None
    letter, *values = json.loads(octets)
    given = dict(zip(_FIELDS[letter], values, strict=False))
    for name in _KEYS & given.keys():
        given[name] = bytes.fromhex(given[name])
    if letter == "p":
        given["group_keys"] = [bytes.fromhex(key) for key in given["group_keys"]]
    lines = given.get("members", 0)
    if letter == "g":
        given["members"] = [bytes.fromhex(key) for _ in range(lines) for key in json.loads(file.readline())[1]]
    return _CLASSES[letter](**given), 1 + lines


def gathered(entries: Iterable[Entry]) -> bytes:
    """Return entries as JSON lines in the form of `wire`. Such lines are stored while a directory is read."""
    return b"".join(_line(wire) for entry in entries for wire in to_wire(entry))


def _line(value: object) -> bytes:
    return _JSON.encode(value).encode("ascii") + b"\n"


# --- preparing ------------------------------------------------------------------------------------------------------


def prepared(entry: Entry) -> PreparedEntry:
    """Return the form of an entry in a prepared file. Raises Invalid if the name of the entry is not valid."""
    match entry:
        case Person():
            is_partial = entry.status is None or entry.alias_attributes is not None
            return _partial(entry) if is_partial else prepared_person(entry, keys_of(entry.member_of))
        case Group():
            members = keys_of(entry.members)
            sid = entry.key if entry.key.startswith("S-") else ""
            digest = digest_of(entry.dn, entry.name, sorted(members), *([sid] if sid else ()))
            return PreparedGroup(entry.external_id, entry.dn, key_of(entry.dn), entry.name, digest, members, sid)
        case Unit():
            digest = digest_of(entry.dn, entry.name)
            return PreparedUnit(entry.external_id, entry.dn, key_of(entry.dn), entry.name, digest)
        case Unchanged():
            return PreparedUnchanged(entry.external_id, entry.dn, _key_or_none(entry.dn), entry.status or "")
        case Gone():
            return PreparedRemoval(entry.external_id, _key_or_none(entry.dn))
        case Problem():
            return PreparedProblem(entry.dn, entry.message, entry.external_id, entry.status or "")


def prepared_person(person: Person, group_keys: Sequence[bytes]) -> PreparedPerson:
    """Return a whole person. Raises Invalid if the name is not valid, or if the person has so many groups or aliases
    that one transaction would become too long. group_keys: the keys of the person's groups."""
    if len(group_keys) > MAX_GROUPS or len(person.aliases) > MAX_ALIASES:
        raise Invalid(
            f"the entry names more than {MAX_GROUPS:,} groups, or has more than {MAX_ALIASES} further login names"
        )
    attributes = {name: values for name, values in sorted(person.attributes.items()) if name not in _VOLATILE}
    # With the identifiers, a person of a cloud directory that an earlier version has stored has another digest.
    identifiers = identifiers_of(person.dn, person.name, attributes)
    rest = (person.dn, person.name, person.aliases, person.status, sorted(group_keys), attributes, *identifiers)
    return PreparedPerson(
        external_id=person.external_id,
        dn=person.dn,
        dn_key=key_of(person.dn),
        uid_key=key_of(UID + person.name),
        login=person.name,
        aliases=person.aliases,
        status=str(person.status),
        group_keys=group_keys,
        attributes=attributes,
        digest=digest_of(*rest),
    )


def identifiers_of(dn: str, login: str, attributes: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the identifiers by which a client certificate can name a person or a device of a cloud directory, as
    case-folded texts `kind:value`. The kinds are id, sid, upn, mail and serial; for devices, they are id, sid and dns.
    Return none for people of other directories."""
    if not dn.startswith(ID):
        return []
    is_device = DEVICE_ID in attributes
    found = [fold(dn)] if is_device else [fold(dn), f"upn:{fold(login)}"]
    for kind, names in (_OF_DEVICES if is_device else _IDENTIFYING).items():
        values = [value for name in names for value in attributes.get(name, ()) if len(value) <= MAX_NAME_LENGTH]
        found += (f"{kind}:{fold(value)}" for value in values[:MAX_OF_KIND])
    return list(dict.fromkeys(found))


def _partial(person: Person) -> PartialPerson:
    named = person.external_id, person.dn, key_of(person.dn), person.name
    return PartialPerson(*named, person.aliases, person.status or "", person.attributes, person.alias_attributes)


def prepared_change(dn: str, new_dn: str, steps: Iterable[tuple[str, str, Iterable[bytes]]]) -> PreparedChange:
    """Return a change of the attributes of a stored entry, or its renaming, or both. Values that are not text are left
    out. Raises Invalid if a name is not valid."""
    texts = [(step, name, [text for value in values if (text := _text(value))]) for step, name, values in steps]
    return PreparedChange(dn, key_of(dn), new_dn, key_of(new_dn), texts)


def _key_or_none(name: str) -> bytes:
    return key_of(name) if name else b""


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return ""
