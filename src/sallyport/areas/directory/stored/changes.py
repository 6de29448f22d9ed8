"""Apply the changes of an LDIF file to stored entries (RFC 4511 sections 4.6 and 4.9).

The store keeps the text attributes of an entry. After a change, `entry.understand` interprets all stored attributes of
the entry again. Thus the result is the same as after reading the changed entry from the directory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sallyport.areas.directory.entry.dn import lies_below, moved, normalized
from sallyport.areas.directory.entry.entry import MAX_VALUES, Gone, Person, Raw, is_name, understand
from sallyport.areas.directory.entry.ldif import LdifStep
from sallyport.areas.directory.entry.status import STATUS_ATTRIBUTES, Status
from sallyport.areas.directory.imports.job import EntryCounts, ImportRun, Revocations
from sallyport.areas.directory.imports.lines import (
    UID,
    PartialPerson,
    PreparedChange,
    PreparedPerson,
    PreparedUnit,
    digest_of,
    key_of,
    keys_of,
    prepared_person,
)
from sallyport.areas.directory.stored import groups, memberships, people
from sallyport.areas.directory.stored.groups import GROUPS, UNITS
from sallyport.areas.directory.stored.memberships import MAX_CHANGED
from sallyport.areas.directory.stored.people import PEOPLE, StoredPerson
from sallyport.areas.directory.stored.rows import NO_DIGEST, StoredEntry
from sallyport.base.errors import Invalid
from sallyport.base.text import trimmed
from sallyport.store.model import Tx

SLICE: Final = 500
"""Number of names that one query checks."""
_MEMBERS: Final = ("member", "uniquemember")


@dataclass(frozen=True, slots=True)
class GroupAfter:
    """A group after a change. joined, left: keys of the members that the change adds and removes."""

    group: PreparedUnit
    joined: Sequence[bytes]
    left: Sequence[bytes]


def change(tx: Tx, run: ImportRun, wanted: PreparedChange, revocations: Revocations, at: int) -> EntryCounts | None:
    """Change an entry. Raises Invalid if the change is not possible, for example if another entry already has the new
    name.

    Return None if the change needs more than one transaction. The caller must then make the change itself. For a unit,
    `rename_unit` renames the unit, and the caller renames the entries below the unit. For a group with many members,
    `group_after` returns the changed group, which the caller writes. For a person in many groups, the caller calls this
    function again.
    """
    is_renamed = wanted.dn_key != wanted.new_dn_key
    if is_renamed and any(table.find(tx, run, dn_key=wanted.new_dn_key) for table in (PEOPLE, GROUPS, UNITS)):
        raise Invalid("another entry has the new name")
    person = PEOPLE.find(tx, run, dn_key=wanted.dn_key)
    if person is not None:
        return _change_person(tx, run, person, wanted, revocations, at)
    group = GROUPS.find(tx, run, dn_key=wanted.dn_key)
    if group is not None:
        return None if _is_long(tx, run, group, wanted) else _change_group(tx, run, group, wanted, at)
    unit = UNITS.find(tx, run, dn_key=wanted.dn_key)
    if unit is None:
        raise Invalid("no entry has this name")
    if wanted.dn_key == wanted.new_dn_key:
        return UNITS.mark(tx, run, unit)
    if lies_below(wanted.new_dn, normalized(wanted.dn)):
        raise Invalid("a unit cannot be moved into itself")
    return None


def _change_person(
    tx: Tx, run: ImportRun, known: StoredPerson, wanted: PreparedChange, revocations: Revocations, at: int
) -> EntryCounts | None:
    new = _person(tx, run, known, wanted, at)
    if new is None:
        return people.remove(tx, run, known, revocations)
    if new.digest == known.digest:
        return PEOPLE.mark(tx, run, known)
    if not PEOPLE.rename(tx, run, known, new.dn_key):
        return None
    people.update(tx, run, known, new, revocations, at)
    return EntryCounts(updated=1)


def rename_unit(tx: Tx, run: ImportRun, wanted: PreparedChange, at: int) -> EntryCounts:
    """Rename a unit, without the entries below it."""
    known = UNITS.find(tx, run, dn_key=wanted.dn_key)
    if known is None:
        return EntryCounts(skipped=1)
    own = [values[0] for step, name, values in wanted.steps if step == LdifStep.ADD and name == "ou" and values]
    name = _valid(own[0]) if own else known.name
    external, digest = _external(known.external_id, wanted.new_dn), digest_of(wanted.new_dn, name)
    new = PreparedUnit(external, wanted.new_dn, wanted.new_dn_key, name, digest)
    return groups.rename_unit(tx, run, known, new, at)


def names_below(tx: Tx, run: ImportRun, table: str, above: str, after: int) -> tuple[int, list[str]]:
    """Read the next SLICE rows of a table, in the order of their ids. after: the last id that was read before.

    Return the last id that was read now, or 0 if no rows are left. Also return the names in these rows that are below
    `above`, which is a normalized name.
    """
    sql = f"select id, dn from {table} where directory_id = :dir and id > :after order by id limit :most"  # noqa: S608
    rows = tx.rows(sql, dir=run.directory_id, after=after, most=SLICE)
    last = int(str(rows[-1][0])) if len(rows) == SLICE else 0
    return last, [str(dn) for _, dn in rows if lies_below(str(dn), above)]


def follow(dn: str, wanted: PreparedChange) -> PreparedChange:
    """Return the change that renames the entry `dn` after a unit above it was renamed. wanted: the change that renames
    the unit. Raises Invalid if the new name of the entry is too long."""
    new_dn = moved(dn, wanted.dn, wanted.new_dn)
    return PreparedChange(dn, key_of(dn), new_dn, key_of(new_dn), ())


def _external(external_id: str, new_dn: str) -> str:
    return f"dn:{normalized(new_dn)}" if external_id[:3] == "dn:" else external_id


def _person(tx: Tx, run: ImportRun, known: StoredPerson, wanted: PreparedChange, at: int) -> PreparedPerson | None:
    """Return a person after a change, or None if the change marks the entry as deleted. Raises Invalid."""
    before = people.attributes_of(tx, known.id)
    # objectclass is stored only if it is mapped
    after = {"objectclass": ("person",), **{name: tuple(values) for name, values in before.items()}}
    keys = set(memberships.stated_by(tx, run.directory_id, known.dn_key))
    touched = set[str]()
    for step, name, values in wanted.steps:
        touched.add(name)
        if name == "memberof":
            _step(keys, step, values)
        if name != "memberof" or name in run.mapped:
            after[name] = tuple(_stepped(after.get(name, ()), step, values)[:MAX_VALUES])
    octets = {name: tuple(value.encode() for value in values) for name, values in after.items() if values}
    person = understand(Raw(wanted.new_dn, octets), now=at, mapped=run.mapped)
    if isinstance(person, Gone):
        return None
    if not isinstance(person, Person):
        raise Invalid("the entry would not be an account after the change")
    status = person.status if touched & STATUS_ATTRIBUTES or "useraccountcontrol" in octets else Status(known.status)
    external = _external(known.external_id, wanted.new_dn)
    return prepared_person(replace(person, status=status, external_id=external), sorted(keys))


def whole_person(tx: Tx, run: ImportRun, part: PartialPerson) -> PreparedPerson:
    """Return the person that consists of the stored person and of a part. Raises Invalid if the person is not stored,
    and the part has no name or no status."""
    known = PEOPLE.find(tx, run, part.external_id, part.dn_key)
    if known is None and not (part.name and part.status):
        raise Invalid("the directory sent only a part of a new account: without its name, or without its status")
    attributes = {key: tuple(values) for key, values in part.attributes.items()}
    login, aliases = part.name or (known.login if known else ""), tuple(part.aliases)
    if part.alias_attributes is not None:
        before = people.attributes_of(tx, known.id) if known else {}
        attributes = {key: tuple(values) for key, values in {**before, **attributes}.items() if values}
        values = [trimmed(value) for key in part.alias_attributes for value in attributes.get(key, ())]
        aliases = tuple(dict.fromkeys(value for value in values if is_name(value) and value != login))
    keys = memberships.stated_by(tx, run.directory_id, known.dn_key) if known else []
    status = Status(part.status or (known.status if known else Status.DISABLED))
    return prepared_person(Person(part.external_id, part.dn, login, aliases, status, (), attributes), keys)


def _is_long(tx: Tx, run: ImportRun, known: StoredEntry, wanted: PreparedChange) -> bool:
    """Return whether a change of a group needs several transactions, because many members are involved."""
    named = _named(wanted)
    if not named:
        return False
    return sum(map(len, named)) > MAX_CHANGED or memberships.are_many(tx, run.directory_id, known.dn_key)


def _named(wanted: PreparedChange) -> list[Sequence[str]]:
    """Return the values of the steps that change the members of a group."""
    return [values for _, attribute, values in wanted.steps if attribute in (*_MEMBERS, "memberuid")]


def _change_group(tx: Tx, run: ImportRun, known: StoredEntry, wanted: PreparedChange, at: int) -> EntryCounts | None:
    after = group_after(tx, run, known, wanted)
    if not GROUPS.rename(tx, run, known, after.group.dn_key):
        return None
    groups.put_group(tx, run, after.group, known, at)
    memberships.take_members(tx, run.directory_id, after.group.dn_key, after.left)
    memberships.add_members(tx, run.directory_id, after.group.dn_key, after.joined)
    return EntryCounts(updated=1)


def group_after(tx: Tx, run: ImportRun, known: StoredEntry, wanted: PreparedChange) -> GroupAfter:
    """Return the state of a group after a change. `joined` and `left` do not contain members that an earlier
    transaction has already written."""
    before, by_login = set[bytes](), set[bytes]()
    if _named(wanted):  # a group may have half a million members
        before = memberships.stated_members(tx, run.directory_id, known.dn_key)
        by_login = memberships.members_by_login(tx, run.directory_id, known.dn_key)
    by_name, name = before - by_login, known.name
    # An added naming value becomes the group's name only if the distinguished name changes too.
    naming = (LdifStep.REPLACE,) if wanted.dn_key == wanted.new_dn_key else (LdifStep.REPLACE, LdifStep.ADD)
    for step, attribute, values in wanted.steps:
        if attribute in _MEMBERS:
            _step(by_name, step, values)
        elif attribute == "memberuid":
            logins = [UID + trimmed(value) for value in values]
            _step(by_login, step, logins)
            if step == LdifStep.DELETE and logins:
                _step(by_name, step, logins)  # a login name without a person is in by_name
        elif attribute in ("cn", "samaccountname") and step in naming and values:
            name = _valid(values[0])
    external = _external(known.external_id, wanted.new_dn)
    new = PreparedUnit(external, wanted.new_dn, wanted.new_dn_key, name, NO_DIGEST)
    members = by_name | by_login
    joined, left = memberships.difference(members, before)
    return GroupAfter(new, joined, left)


def _valid(name: str) -> str:
    if not is_name(trimmed(name)):
        raise Invalid("the new name is not valid")
    return trimmed(name)


def _step(keys: set[bytes], step: str, names: Sequence[str]) -> None:
    if step == LdifStep.REPLACE or not names:
        keys.clear()
    changed = keys_of(names)
    if step == LdifStep.DELETE:
        keys.difference_update(changed)
    else:
        keys.update(changed)


def _stepped(values: Sequence[str], step: str, wanted: Sequence[str]) -> list[str]:
    if step == LdifStep.REPLACE:
        return list(wanted)
    if step == LdifStep.DELETE:
        gone = {value.casefold() for value in wanted}  # most attributes ignore case (caseIgnoreMatch, RFC 4517)
        return [value for value in values if value.casefold() not in gone] if wanted else []
    return list(dict.fromkeys((*values, *wanted)))
