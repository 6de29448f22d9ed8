"""The lines of a prepared file. A line is a JSON array with an entry that can be written to the store without further
parsing.

Names are hashed to keys of 16 octets, and members are compared by key. An unchanged entry is recognized by the digest
of all its values. The lines with a group's members follow the line of the group. A line has at most MEMBERS members.

    ["p", external_id, dn, dn_key, uid_key, name, aliases, status, group_keys, attributes, digest]
    ["+", external_id, dn, dn_key, name, aliases, status, attributes, alias_attributes]   a part of a person
    ["g", external_id, dn, dn_key, name, digest, number of "m" lines that follow]   ["m", [member_key, ...]]
    ["u", external_id, dn, dn_key, name, digest]
    ["=", external_id, dn, dn_key, status] unchanged, except for the given name and status
    ["-", external_id, dn_key]             removed
    ["~", dn, dn_key, new dn, new dn_key, steps]    changed by steps of [step, attribute, values], perhaps renamed
    ["x", where, message, external_id, status]    an entry that exists and cannot be used, but may block an account
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Final

from sallyport.areas.directory.entry.dn import normalized
from sallyport.areas.directory.entry.entry import Entry, Gone, Group, Person, Problem, Unchanged, Unit
from sallyport.areas.directory.entry.wire import Wire, to_wire
from sallyport.base.errors import Invalid

Line = list[object]
MEMBERS: Final = 500
MOST_GROUPS: Final = 2_000
MOST_ALIASES: Final = 64
"""Maximum numbers of groups and of aliases in a person's entry. A login reads at most MOST_GROUPS groups."""
KEY_OCTETS: Final = 16
_JSON: Final = json.JSONEncoder(separators=(",", ":"))
UID: Final = "uid:"
ID: Final = "id:"
# The directory changes these attributes at each login or replication, although the person has not changed.
_VOLATILE: Final = frozenset(
    {
        "authtimestamp", "badpasswordtime", "badpwdcount", "dscorepropagationdata", "entrycsn", "lastlogoff",
        "lastlogon", "lastlogontimestamp", "logoncount", "modifiersname", "modifytimestamp", "usnchanged",
        "whenchanged",
    }
)  # fmt: skip


def encoded(line: Line | Wire) -> bytes:
    """Return a line as octets of JSON with a line feed. line: a line of a prepared file, or an entry in the form of
    `wire`."""
    return _JSON.encode(line).encode("ascii") + b"\n"


def gathered(entries: Iterable[Entry]) -> bytes:
    """Return entries as JSON lines in the form of `wire`. Such lines are stored while a directory is read."""
    return b"".join(encoded(line) for entry in entries for line in to_wire(entry))


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


def keys_of(names: Sequence[str]) -> list[str]:
    """Return the keys of the valid names, in hexadecimal, without repetitions. Invalid names are left out."""
    found = dict[str, None]()
    for name in names:
        try:
            found[key_of(name).hex()] = None
        except Invalid:
            continue
    return list(found)


def digest_of(*parts: object) -> bytes:
    """Return the digest of an entry. parts: all values of the entry."""
    return blake2b(json.dumps(parts).encode(), digest_size=KEY_OCTETS).digest()


# --- prepared -------------------------------------------------------------------------------------------------------


def prepared(entry: Entry) -> Iterator[Line]:
    """Yield the lines of an entry in a prepared file. Raises Invalid if the name of the entry is not valid."""
    match entry:
        case Person() if entry.status is None or entry.alias_attributes is not None:
            yield _part(entry)
        case Person():
            yield person_line(entry, keys_of(entry.member_of))
        case Group():
            yield from _group(entry)
        case Unit():
            digest = digest_of(entry.dn, entry.name)
            yield ["u", entry.external_id, entry.dn, key_of(entry.dn).hex(), entry.name, digest.hex()]
        case Unchanged():
            key = key_of(entry.dn).hex() if entry.dn else ""
            yield ["=", entry.external_id, entry.dn, key, "" if entry.status is None else entry.status.value]
        case Gone():
            yield ["-", entry.external_id, key_of(entry.dn).hex() if entry.dn else ""]
        case Problem():
            status = "" if entry.status is None else entry.status.value
            yield ["x", entry.dn, entry.message, entry.external_id, status]


def _part(person: Person) -> Line:
    return [
        "+",
        person.external_id,
        person.dn,
        key_of(person.dn).hex(),
        person.name,
        list(person.aliases),
        "" if person.status is None else person.status.value,
        {name: list(values) for name, values in person.attributes.items()},
        person.alias_attributes,
    ]


def person_line(person: Person, group_keys: Sequence[str]) -> Line:
    """Return the line of a whole person. Raises Invalid if the name is not valid, or if the person has so many groups
    or aliases that one transaction would become too long. group_keys: the keys of the person's groups, in
    hexadecimal."""
    if len(group_keys) > MOST_GROUPS or len(person.aliases) > MOST_ALIASES:
        raise Invalid(
            f"the entry names more than {MOST_GROUPS:,} groups, or has more than {MOST_ALIASES} further login names"
        )
    attributes = {name: list(values) for name, values in sorted(person.attributes.items()) if name not in _VOLATILE}
    rest = (person.dn, person.name, person.aliases, person.status, sorted(group_keys), attributes)
    return [
        "p",
        person.external_id,
        person.dn,
        key_of(person.dn).hex(),
        key_of(UID + person.name).hex(),
        person.name,
        list(person.aliases),
        str(person.status),
        list(group_keys),
        attributes,
        digest_of(*rest).hex(),
    ]


def _group(group: Group) -> Iterator[Line]:
    members = keys_of(group.members)
    digest = digest_of(group.dn, group.name, sorted(members)).hex()
    more = range(0, len(members), MEMBERS)
    yield ["g", group.external_id, group.dn, key_of(group.dn).hex(), group.name, digest, len(more)]
    for at in more:
        yield ["m", members[at : at + MEMBERS]]


def prepared_change(dn: str, new_dn: str, steps: Iterable[tuple[str, str, Iterable[bytes]]]) -> Line:
    """Return the line that changes the attributes of a stored entry, or renames the entry, or both. Values that are not
    text are left out. Raises Invalid if a name is not valid."""
    texts = [[step, name, [text for value in values if (text := _text(value))]] for step, name, values in steps]
    return ["~", dn, key_of(dn).hex(), new_dn, key_of(new_dn).hex(), texts]


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return ""
