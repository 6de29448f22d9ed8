"""Write a prepared file to the store. The transactions are short, so that logins do not wait for them.

A transaction writes one batch of entries (`store.slices`) and stores the position in the file. An interrupted import
continues from this position.

A large group takes several transactions, and a change of many members too. Only the last transaction stores the group's
digest. The renaming of an entry with many memberships takes several transactions (`entries.memberships`), and only the
last of them writes the entry. The renaming of a unit can also take several transactions. The entries below the unit are
renamed first, and the unit is renamed last. So if the service restarts in between, the unit still has its old name, and
the remaining entries are found by it.
"""

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, TypeVar, cast

import trio

from sallyport.areas.directory.entries import groups, memberships, people
from sallyport.areas.directory.entries.changes import (
    Change,
    Steps,
    change,
    follow,
    group_after,
    names_below,
    new_person,
    rename_unit,
    whole_person,
)
from sallyport.areas.directory.entries.groups import GROUPS, UNITS, NewNamed
from sallyport.areas.directory.entries.memberships import AT_ONCE as PEOPLE_AT_ONCE
from sallyport.areas.directory.entries.memberships import MOST
from sallyport.areas.directory.entries.people import PEOPLE, NewPerson
from sallyport.areas.directory.entries.rows import NO_DIGEST, Stored
from sallyport.areas.directory.entry.dn import normalized
from sallyport.areas.directory.imports import repo
from sallyport.areas.directory.imports.job import Counts, Moved, Revocations, Run
from sallyport.areas.directory.imports.lines import Line
from sallyport.base.clock import Clock
from sallyport.base.errors import Invalid
from sallyport.store.model import Store, Tx
from sallyport.store.slices import AT_ONCE, one_batch

LINES: Final = 400
"""Number of lines that are read at once."""

T = TypeVar("T")
Problem = tuple[str, str]
"""(place, reason) for an entry that cannot be used. The place is the entry's line in the file, or its name."""
_NAMELESS: Final = "the directory sent only a part of a new group, without its name"
_TABLES: Final = ("directory_users", "directory_groups", "directory_units")


@dataclass(frozen=True, slots=True)
class Item:
    """An entry of a prepared file. end: the number of the last line of the entry in the file. members: the keys of a
    group's members. person: the person that the line describes, or None."""

    end: int
    line: Line
    members: tuple[bytes, ...] = ()
    person: NewPerson | None = None


@dataclass(slots=True)
class _Batch:
    """The result of one transaction. done: how many items were written. unindexed: added people that the search index
    does not contain yet."""

    done: int = 0
    counts: Counts = field(default_factory=Counts)
    problems: list[Problem] = field(default_factory=list)
    unindexed: people.Unindexed = field(default_factory=list)


class Applier:
    """The writer of prepared entries. changed: a function that is called with the id of the domain after each
    transaction that changes entries."""

    def __init__(self, store: Store, revocations: Revocations, clock: Clock, changed: Callable[[int], None]) -> None:
        self._store = store
        self._revocations = revocations
        self._clock = clock
        self._changed = changed

    async def apply(self, run: Run, path: Path, position: int) -> None:
        """Write the entries of a prepared file. position: the number of lines to skip. Raises OSError, StoreError."""
        waiting, most = list[Item](), AT_ONCE
        with path.open("rb") as file:
            async with aclosing(_items(file, position)) as read:
                async for items in read:
                    waiting += items
                    while waiting:
                        if len(waiting[0].members) > MOST:
                            await self._large_group(run, waiting.pop(0))
                            continue
                        written = await self._write_batch(run, _before_large_group(waiting[:most]))
                        del waiting[:written]
                        most = AT_ONCE if written else 1
                        if not written and waiting[0].line[0] == "~":
                            await self._long_change(run, waiting.pop(0))
                        elif not written and waiting[0].line[0] == "g":
                            await self._large_group(run, waiting.pop(0))

    async def undo_moves(self, run: Run) -> None:
        """Undo the renamings that an earlier import has not finished. Raises StoreError."""
        while not await self._store.write(partial(memberships.undo_move, directory_id=run.directory_id)):
            pass

    async def remove_unseen(self, run: Run) -> None:
        """Remove the entries that a complete import has not found. Raises StoreError."""
        for table in _TABLES:
            after = 0
            while ids := await self._store.search(partial(_unseen, run=run, table=table, after=after)):
                after = ids[-1]
                await self._write_all(run, ids, partial(self._remove_unseen, run=run, table=table))

    async def _write_all(self, run: Run, entries: list[T], put: "_Put[T]") -> None:
        """Write all entries in batches. Written entries are deleted from the list."""
        while entries:
            batch = await self._store.write(partial(_some, run=run, entries=entries[:AT_ONCE], put=put))
            self._report(run, batch)
            del entries[: batch.done]

    async def _write_batch(self, run: Run, items: Sequence[Item]) -> int:
        """Write some items in one transaction. Return how many were written."""
        parts = [*_together(items)]
        put = partial(self._put, run=run)
        write = partial(_some, run=run, entries=parts, put=put, position=lambda done: parts[done - 1][-1].end)
        batch = await self._store.write(write)
        self._report(run, batch)
        return sum(map(len, parts[: batch.done]))

    def _report(self, run: Run, batch: _Batch) -> None:
        if batch.counts.changed:
            self._changed(run.domain_id)

    def _put(self, tx: Tx, part: Sequence[Item], batch: _Batch, *, run: Run) -> Counts | None:
        at, item = self._clock(), part[0]
        several = [each.person for each in part if each.person is not None]
        if several:
            return people.put(tx, run, several, self._revocations, at, batch.unindexed)
        people.index_added(tx, batch.unindexed)
        line = item.line
        match line[0]:
            case "g":
                done: Counts | None = self._small_group(tx, run, item, at, batch.problems)
            case "+":
                done = self._part(tx, run, line, at, batch)
            case "u":
                _, external_id, dn, dn_key, name, digest = line
                done = groups.put_unit(tx, run, _named(external_id, dn, dn_key, name, digest), at)
            case "=":
                done = self._unchanged(tx, run, line, at)
            case "-":
                done = self._gone(tx, run, str(line[1]), bytes.fromhex(str(line[2])))
            case "~":
                done = self._change(tx, run, _change_of(line), at, batch.problems)
            case _:
                done = self._problem(tx, run, line, at, batch.problems)
        return done

    def _part(self, tx: Tx, run: Run, line: Line, at: int, batch: _Batch) -> Counts | None:
        try:
            person = whole_person(tx, run, line)
        except Invalid as error:
            batch.problems.append((str(line[2]), str(error)))
            return Counts(failed=1)
        return people.put(tx, run, [person], self._revocations, at, batch.unindexed)

    def _problem(self, tx: Tx, run: Run, line: Line, at: int, problems: list[Problem]) -> Counts:
        where, message, external_id, *status = map(str, line[1:])  # a file of an older version has no status
        problems.append((where, message))
        if external_id:
            self._unchanged(tx, run, ["=", external_id, "", "", *(status or [""])], at)
        return Counts(failed=1)

    def _unchanged(self, tx: Tx, run: Run, line: Line, at: int) -> Counts | None:
        external_id, dn, dn_key, status = map(str, line[1:])
        moved = Moved(dn, bytes.fromhex(dn_key), status)
        # An entry may have an identifier now that an older version of the service did not read.
        person = PEOPLE.find(tx, run, external_id, moved.dn_key)
        if person is not None:
            return people.touch(tx, run, person, moved, self._revocations, at)
        group = GROUPS.find(tx, run, external_id, moved.dn_key)
        if group is not None:
            return groups.touch(tx, GROUPS, run, group, moved)
        unit = UNITS.find(tx, run, external_id, moved.dn_key)
        return Counts(skipped=1) if unit is None else groups.touch(tx, UNITS, run, unit, moved)

    def _change(self, tx: Tx, run: Run, wanted: Change, at: int, problems: list[Problem]) -> Counts | None:
        try:
            return change(tx, run, wanted, self._revocations, at)
        except Invalid as error:
            problems.append((wanted.dn, str(error)))
            return Counts(failed=1)

    def _small_group(self, tx: Tx, run: Run, item: Item, at: int, problems: list[Problem]) -> Counts | None:
        """Write a group with its members. Return None if the stored group has too many members for one transaction."""
        new, known = _group_of(tx, run, item.line)
        if not new.name:
            problems.append((new.dn, _NAMELESS))
            return Counts(failed=1)
        if known is not None and known.digest == new.digest:
            return GROUPS.mark(tx, run, known)
        keys = {new.dn_key} if known is None else {new.dn_key, known.dn_key}
        if any(memberships.are_many(tx, run.directory_id, key) for key in keys):
            return None
        if known is not None and not GROUPS.rename(tx, run, known, new.dn_key):
            return None
        counts = groups.put_group(tx, run, new, known, at)
        before = memberships.stated_members(tx, run.directory_id, new.dn_key)
        memberships.add_members(tx, run.directory_id, new.dn_key, sorted(set(item.members) - before))
        memberships.take_members(tx, run.directory_id, new.dn_key, sorted(before - set(item.members)))
        return counts

    async def _large_group(self, run: Run, item: Item) -> None:
        new, _ = await self._store.search(lambda tx: _group_of(tx, run, item.line))

        def end(tx: Tx, counts: Counts, *problems: Problem) -> Counts:
            repo.progress(tx, run.job_id, item.end, counts, problems)
            return Counts()

        def begin(tx: Tx) -> Counts | None:
            known = GROUPS.find(tx, run, new.external_id, new.dn_key)
            if not new.name:
                return end(tx, Counts(failed=1), (new.dn, _NAMELESS))
            if known is not None and known.digest == new.digest:
                return end(tx, GROUPS.mark(tx, run, known))
            if known is not None and not GROUPS.rename(tx, run, known, new.dn_key):
                return None
            return groups.put_group(tx, run, replace(new, digest=NO_DIGEST), known, self._clock())

        counts = await self._repeat(begin)
        if not counts.changed:
            return
        before = partial(memberships.stated_members, directory_id=run.directory_id, group_key=new.dn_key)
        joined, left = await self._store.search(lambda tx: memberships.difference(item.members, before(tx)))
        await self._members(run, new.dn_key, joined=joined, left=left)

        def finish(tx: Tx) -> None:
            groups.finish_group(tx, run, new, new.digest)
            repo.progress(tx, run.job_id, item.end, counts)

        await self._store.write(finish)
        self._changed(run.domain_id)

    async def _repeat(self, work: Callable[[Tx], Counts | None]) -> Counts:
        """Do some work in one transaction after the other, until it does not return None."""
        while (counts := await self._store.write(work)) is None:
            pass
        return counts

    async def _members(self, run: Run, group_key: bytes, *, joined: Sequence[bytes], left: Sequence[bytes]) -> None:
        for write, keys in ((memberships.add_members, joined), (memberships.take_members, left)):
            for part in _parts(keys):
                await self._store.write(
                    partial(write, directory_id=run.directory_id, group_key=group_key, member_keys=part)
                )

    async def _long_change(self, run: Run, item: Item) -> None:
        wanted = _change_of(item.line)
        group = await self._store.search(lambda tx: GROUPS.find(tx, run, dn_key=wanted.dn_key))
        person = await self._store.search(lambda tx: PEOPLE.find(tx, run, dn_key=wanted.dn_key))
        if person is not None:
            while not await self._write_batch(run, [item]):
                pass
        elif group is not None:
            await self._long_group(run, item, wanted, group)
        else:
            await self._subtree(run, item, wanted)

    async def _long_group(self, run: Run, item: Item, wanted: Change, group: Stored) -> None:
        """Change the members of a group in several transactions. If the service restarts in between, the change is made
        again from its beginning."""
        after = await self._store.search(partial(group_after, run=run, known=group, wanted=wanted))

        def begin(tx: Tx) -> Counts | None:
            if not GROUPS.rename(tx, run, group, after.group.dn_key):
                return None
            return groups.put_group(tx, run, after.group, group, self._clock())

        await self._repeat(begin)
        await self._members(run, after.group.dn_key, joined=after.joined, left=after.left)
        await self._store.write(lambda tx: repo.progress(tx, run.job_id, item.end, Counts(updated=1)))
        self._changed(run.domain_id)

    def _gone(self, tx: Tx, run: Run, external_id: str, dn_key: bytes) -> Counts | None:
        person = PEOPLE.find(tx, run, external_id, dn_key)
        if person is not None:
            return people.remove(tx, run, person, self._revocations)
        group = GROUPS.find(tx, run, external_id, dn_key)
        if group is not None:
            return groups.remove_group(tx, run, group)
        unit = UNITS.find(tx, run, external_id, dn_key)
        return Counts(skipped=1) if unit is None else groups.remove_unit(tx, unit)

    def _remove_unseen(self, tx: Tx, row_id: int, _batch: _Batch, *, run: Run, table: str) -> Counts | None:
        sql = f"select external_id from {table} where id = :id and directory_id = :dir and seen < :job"  # noqa: S608
        external_id = tx.value(str, sql, id=row_id, dir=run.directory_id, job=run.job_id)
        return Counts() if external_id is None else self._gone(tx, run, external_id, b"")

    async def _subtree(self, run: Run, item: Item, wanted: Change) -> None:
        """Rename all entries below a unit, and then the unit."""
        above = normalized(wanted.dn)
        for table in _TABLES:
            after = -1
            while after:
                look = partial(names_below, run=run, table=table, above=above, after=after)
                after, names = await self._store.search(look)
                await self._write_all(run, names, partial(self._follow, run=run, table=table, wanted=wanted))

        def finish(tx: Tx) -> None:
            repo.progress(tx, run.job_id, item.end, rename_unit(tx, run, wanted, self._clock()))

        await self._store.write(finish)
        self._changed(run.domain_id)

    def _follow(self, tx: Tx, dn: str, batch: _Batch, *, run: Run, table: str, wanted: Change) -> Counts | None:
        try:
            own = follow(dn, wanted)
        except Invalid as error:
            batch.problems.append((dn, str(error)))
            return Counts(failed=1)
        done = self._change(tx, run, own, self._clock(), batch.problems)
        return rename_unit(tx, run, own, self._clock()) if done is None and table == UNITS.name else done


_Put = Callable[[Tx, T, _Batch], Counts | None]
"""A function that writes one entry. It returns None if the entry needs another transaction. The caller then calls the
function again."""


def _some(tx: Tx, run: Run, entries: Sequence[T], put: _Put[T], position: Callable[[int], int] | None = None) -> _Batch:
    """Write some of the entries in one transaction, and count the results. If other writers are waiting, write fewer
    entries.

    position: a function that takes the number of written entries. It returns the position in the file after these
    entries.
    """
    batch = _Batch()
    for entry in one_batch(tx, entries):
        done = put(tx, entry, batch)
        if done is None:
            break
        batch.counts += done
        batch.done += 1
    people.index_added(tx, batch.unindexed)
    if batch.counts.changed:
        people.merge_index(tx)
    at = position(batch.done) if position is not None and batch.done else None
    repo.progress(tx, run.job_id, at, batch.counts, batch.problems)
    return batch


def _together(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Yield the parts of a list. The items of a part are written together: one item, or several people without a common
    identifier or name."""
    part, known = list[Item](), set[str | bytes]()
    for item in items:
        person = item.person
        keys: set[str | bytes] = {person.external_id, person.dn_key} if person is not None else set()
        is_alone = not keys or not all(keys)
        if part and (len(part) == PEOPLE_AT_ONCE or is_alone or not known or not keys.isdisjoint(known)):
            yield part
            part, known = [], set()
        part.append(item)
        known = set() if is_alone else known | keys
    if part:
        yield part


def _before_large_group(items: Sequence[Item]) -> Sequence[Item]:
    for place, item in enumerate(items):
        if len(item.members) > MOST:
            return items[:place]
    return items


def _parts(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (keys[at : at + MOST] for at in range(0, len(keys), MOST))


def _named(external_id: object, dn: object, dn_key: object, name: object, digest: object) -> NewNamed:
    keys = bytes.fromhex(str(dn_key)), bytes.fromhex(str(digest))
    return NewNamed(str(external_id), str(dn), keys[0], str(name), keys[1])


def _change_of(line: Line) -> Change:
    _, dn, dn_key, new_dn, new_dn_key, steps = line
    keys = bytes.fromhex(str(dn_key)), bytes.fromhex(str(new_dn_key))
    return Change(str(dn), keys[0], str(new_dn), keys[1], cast(Steps, steps))


def _group_of(tx: Tx, run: Run, line: Line) -> tuple[NewNamed, Stored | None]:
    """Return the group of a line, and the stored group. If the line has no name, the group has the stored name."""
    new = _named(*line[1:6])
    known = GROUPS.find(tx, run, new.external_id, new.dn_key)
    return (replace(new, name=known.name) if known is not None and not new.name else new), known


def _unseen(tx: Tx, run: Run, table: str, after: int) -> list[int]:
    sql = f"select id from {table} where directory_id = :dir and id > :after and seen < :job order by id limit 1000"  # noqa: S608
    return [int(str(row[0])) for row in tx.rows(sql, dir=run.directory_id, after=after, job=run.job_id)]


async def _items(file: BinaryIO, position: int) -> AsyncGenerator[list[Item], None]:
    """Yield the entries of a file in lists. position: number of lines to skip."""
    await trio.to_thread.run_sync(_skip, file, position)
    while items := await trio.to_thread.run_sync(_read, file, position):
        position = items[-1].end
        yield items


def _skip(file: BinaryIO, lines: int) -> None:
    for _ in islice(file, lines):
        pass


def _read(file: BinaryIO, position: int) -> list[Item]:
    items = list[Item]()
    read = 0
    while read < LINES and (octets := file.readline()):
        line, members = json.loads(octets), list[bytes]()
        read += 1
        for _ in range(line[6] if line[0] == "g" else 0):
            members += map(bytes.fromhex, json.loads(file.readline())[1])
            read += 1
        person = new_person(line) if line[0] == "p" else None
        items.append(Item(position + read, line, tuple(members), person))
    return items
