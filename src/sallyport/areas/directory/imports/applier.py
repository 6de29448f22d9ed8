"""Write a prepared file to the store. The transactions are short, so that logins do not wait for them.

A transaction writes one batch of entries (`store.slices`) and stores the position in the file. An interrupted import
continues from this position.

A large group takes several transactions, and a change of many members too. Only the last transaction stores the group's
digest. The renaming of an entry with many memberships takes several transactions (`stored.memberships`), and only the
last of them writes the entry. The renaming of a unit can also take several transactions. The entries below the unit are
renamed first, and the unit is renamed last. So if the service restarts in between, the unit still has its old name, and
the remaining entries are found by it.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import trio

from sallyport.areas.directory.entry.dn import normalized
from sallyport.areas.directory.imports import repo
from sallyport.areas.directory.imports.job import EntryCounts, ImportRun, Revocations
from sallyport.areas.directory.imports.lines import (
    PartialPerson,
    PreparedChange,
    PreparedEntry,
    PreparedGroup,
    PreparedPerson,
    PreparedProblem,
    PreparedRemoval,
    PreparedUnchanged,
    PreparedUnit,
    read_entry,
)
from sallyport.areas.directory.stored import groups, memberships, people
from sallyport.areas.directory.stored import repo as stored
from sallyport.areas.directory.stored.changes import (
    change,
    follow,
    group_after,
    names_below,
    rename_unit,
    whole_person,
)
from sallyport.areas.directory.stored.groups import GROUPS, UNITS
from sallyport.areas.directory.stored.memberships import AT_ONCE as PEOPLE_AT_ONCE
from sallyport.areas.directory.stored.memberships import MAX_CHANGED
from sallyport.areas.directory.stored.people import PEOPLE
from sallyport.areas.directory.stored.rows import NO_DIGEST, StoredEntry
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
class FileEntry:
    """An entry of a prepared file. end: the number of the last line of the entry in the file."""

    end: int
    entry: PreparedEntry

    @property
    def is_large_group(self) -> bool:
        """Return whether the entry is a group with more members than one transaction writes."""
        return isinstance(self.entry, PreparedGroup) and len(self.entry.members) > MAX_CHANGED


@dataclass(slots=True)
class _Batch:
    """The result of one transaction. done: how many items were written. unindexed: added people that the search index
    does not contain yet."""

    done: int = 0
    counts: EntryCounts = field(default_factory=EntryCounts)
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

    async def apply(self, run: ImportRun, path: Path, position: int) -> None:
        """Write the entries of a prepared file. position: the number of lines to skip. Raises OSError, StoreError."""
        waiting, most = list[FileEntry](), AT_ONCE
        with path.open("rb") as file:
            async with aclosing(_items(file, position)) as read:
                async for items in read:
                    waiting += items
                    while waiting:
                        if waiting[0].is_large_group:
                            await self._write_in_parts(run, waiting.pop(0))
                            continue
                        written = await self._write_batch(run, _before_large_group(waiting[:most]))
                        del waiting[:written]
                        most = AT_ONCE if written else 1
                        if not written and isinstance(waiting[0].entry, PreparedChange | PreparedGroup):
                            await self._write_in_parts(run, waiting.pop(0))

    async def _write_in_parts(self, run: ImportRun, item: FileEntry) -> None:
        """Write a group or a change that one transaction cannot write."""
        if isinstance(item.entry, PreparedGroup):
            await self._large_group(run, item.end, item.entry)
        elif isinstance(item.entry, PreparedChange):
            await self._long_change(run, item, item.entry)

    async def undo_moves(self, run: ImportRun) -> None:
        """Undo the renamings that an earlier import has not finished. Raises StoreError."""
        while not await self._store.write(partial(memberships.undo_move, directory_id=run.directory_id)):
            pass

    async def remove_unseen(self, run: ImportRun) -> None:
        """Remove the entries that a complete import has not found. Raises StoreError."""
        for table in _TABLES:
            after = 0
            while ids := await self._store.search(partial(stored.unseen_ids, run=run, table=table, after=after)):
                after = ids[-1]
                await self._write_all(run, ids, partial(self._remove_unseen, run=run, table=table))

    async def _write_all(self, run: ImportRun, entries: list[T], put: "_Put[T]") -> None:
        """Write all entries in batches. Written entries are deleted from the list."""
        while entries:
            batch = await self._store.write(partial(_some, run=run, entries=entries[:AT_ONCE], put=put))
            self._report(run, batch)
            del entries[: batch.done]

    async def _write_batch(self, run: ImportRun, items: Sequence[FileEntry]) -> int:
        """Write some items in one transaction. Return how many were written."""
        parts = [*_together(items)]
        put = partial(self._put, run=run)
        write = partial(_some, run=run, entries=parts, put=put, position=lambda done: parts[done - 1][-1].end)
        batch = await self._store.write(write)
        self._report(run, batch)
        return sum(map(len, parts[: batch.done]))

    def _report(self, run: ImportRun, batch: _Batch) -> None:
        if batch.counts.changed:
            self._changed(run.domain_id)

    def _put(self, tx: Tx, part: Sequence[FileEntry], batch: _Batch, *, run: ImportRun) -> EntryCounts | None:
        at, entry = self._clock(), part[0].entry
        if isinstance(entry, PreparedPerson):
            several = [each.entry for each in part if isinstance(each.entry, PreparedPerson)]
            return people.put(tx, run, several, self._revocations, at, batch.unindexed)
        people.index_added(tx, batch.unindexed)
        match entry:
            case PreparedGroup():
                done: EntryCounts | None = self._small_group(tx, run, entry, at, batch.problems)
            case PreparedUnit():
                done = groups.put_unit(tx, run, entry, at)
            case PartialPerson():
                done = self._part(tx, run, entry, at, batch)
            case PreparedUnchanged():
                done = self._unchanged(tx, run, entry, at)
            case PreparedRemoval():
                done = self._gone(tx, run, entry.external_id, entry.dn_key)
            case PreparedChange():
                done = self._change(tx, run, entry, at, batch.problems)
            case PreparedProblem():
                done = self._problem(tx, run, entry, at, batch.problems)
        return done

    def _part(self, tx: Tx, run: ImportRun, part: PartialPerson, at: int, batch: _Batch) -> EntryCounts | None:
        try:
            person = whole_person(tx, run, part)
        except Invalid as error:
            batch.problems.append((part.dn, str(error)))
            return EntryCounts(failed=1)
        return people.put(tx, run, [person], self._revocations, at, batch.unindexed)

    def _problem(self, tx: Tx, run: ImportRun, new: PreparedProblem, at: int, problems: list[Problem]) -> EntryCounts:
        problems.append((new.where, new.message))
        if new.external_id:
            self._unchanged(tx, run, PreparedUnchanged(new.external_id, "", b"", new.status), at)
        return EntryCounts(failed=1)

    def _unchanged(self, tx: Tx, run: ImportRun, new: PreparedUnchanged, at: int) -> EntryCounts | None:
        # An entry may have an identifier now that an older version of the service did not read.
        person = PEOPLE.find(tx, run, new.external_id, new.dn_key)
        if person is not None:
            return people.touch(tx, run, person, new, self._revocations, at)
        group = GROUPS.find(tx, run, new.external_id, new.dn_key)
        if group is not None:
            return groups.touch(tx, GROUPS, run, group, new)
        unit = UNITS.find(tx, run, new.external_id, new.dn_key)
        return EntryCounts(skipped=1) if unit is None else groups.touch(tx, UNITS, run, unit, new)

    def _change(
        self, tx: Tx, run: ImportRun, wanted: PreparedChange, at: int, problems: list[Problem]
    ) -> EntryCounts | None:
        try:
            return change(tx, run, wanted, self._revocations, at)
        except Invalid as error:
            problems.append((wanted.dn, str(error)))
            return EntryCounts(failed=1)

    def _small_group(
        self, tx: Tx, run: ImportRun, read: PreparedGroup, at: int, problems: list[Problem]
    ) -> EntryCounts | None:
        """Write a group with its members. Return None if the stored group has too many members for one transaction."""
        new, known = _group_of(tx, run, read)
        if not new.name:
            problems.append((new.dn, _NAMELESS))
            return EntryCounts(failed=1)
        if known is not None and known.digest == new.digest:
            return GROUPS.mark(tx, run, known)
        keys = {new.dn_key} if known is None else {new.dn_key, known.dn_key}
        if any(memberships.are_many(tx, run.directory_id, key) for key in keys):
            return None
        if known is not None and not GROUPS.rename(tx, run, known, new.dn_key):
            return None
        counts = groups.put_group(tx, run, new, known, at)
        before = memberships.stated_members(tx, run.directory_id, new.dn_key)
        memberships.add_members(tx, run.directory_id, new.dn_key, sorted(set(new.members) - before))
        memberships.take_members(tx, run.directory_id, new.dn_key, sorted(before - set(new.members)))
        return counts

    async def _large_group(self, run: ImportRun, position: int, read: PreparedGroup) -> None:
        new, _ = await self._store.search(lambda tx: _group_of(tx, run, read))

        def end(tx: Tx, counts: EntryCounts, *problems: Problem) -> EntryCounts:
            repo.progress(tx, run.job_id, position, counts, problems)
            return EntryCounts()

        def begin(tx: Tx) -> EntryCounts | None:
            known = GROUPS.find(tx, run, new.external_id, new.dn_key)
            if not new.name:
                return end(tx, EntryCounts(failed=1), (new.dn, _NAMELESS))
            if known is not None and known.digest == new.digest:
                return end(tx, GROUPS.mark(tx, run, known))
            if known is not None and not GROUPS.rename(tx, run, known, new.dn_key):
                return None
            return groups.put_group(tx, run, replace(new, digest=NO_DIGEST), known, self._clock())

        counts = await self._repeat(begin)
        if not counts.changed:
            return
        before = partial(memberships.stated_members, directory_id=run.directory_id, group_key=new.dn_key)
        joined, left = await self._store.search(lambda tx: memberships.difference(new.members, before(tx)))
        await self._members(run, new.dn_key, joined=joined, left=left)

        def finish(tx: Tx) -> None:
            groups.finish_group(tx, run, new, new.digest)
            repo.progress(tx, run.job_id, position, counts)

        await self._store.write(finish)
        self._changed(run.domain_id)

    async def _repeat(self, work: Callable[[Tx], EntryCounts | None]) -> EntryCounts:
        """Do some work in one transaction after the other, until it does not return None."""
        while (counts := await self._store.write(work)) is None:
            pass
        return counts

    async def _members(
        self, run: ImportRun, group_key: bytes, *, joined: Sequence[bytes], left: Sequence[bytes]
    ) -> None:
        for write, keys in ((memberships.add_members, joined), (memberships.take_members, left)):
            for at in range(0, len(keys), MAX_CHANGED):
                some = partial(write, directory_id=run.directory_id, group_key=group_key)
                await self._store.write(partial(some, member_keys=keys[at : at + MAX_CHANGED]))

    async def _long_change(self, run: ImportRun, item: FileEntry, wanted: PreparedChange) -> None:
        group = await self._store.search(lambda tx: GROUPS.find(tx, run, dn_key=wanted.dn_key))
        person = await self._store.search(lambda tx: PEOPLE.find(tx, run, dn_key=wanted.dn_key))
        if person is not None:
            while not await self._write_batch(run, [item]):
                pass
        elif group is not None:
            await self._long_group(run, item, wanted, group)
        else:
            await self._subtree(run, item, wanted)

    async def _long_group(self, run: ImportRun, item: FileEntry, wanted: PreparedChange, group: StoredEntry) -> None:
        """Change the members of a group in several transactions. If the service restarts in between, the change is made
        again from its beginning."""
        after = await self._store.search(partial(group_after, run=run, known=group, wanted=wanted))

        def begin(tx: Tx) -> EntryCounts | None:
            if not GROUPS.rename(tx, run, group, after.group.dn_key):
                return None
            return groups.put_group(tx, run, after.group, group, self._clock())

        await self._repeat(begin)
        await self._members(run, after.group.dn_key, joined=after.joined, left=after.left)
        await self._store.write(lambda tx: repo.progress(tx, run.job_id, item.end, EntryCounts(updated=1)))
        self._changed(run.domain_id)

    def _gone(self, tx: Tx, run: ImportRun, external_id: str, dn_key: bytes) -> EntryCounts | None:
        person = PEOPLE.find(tx, run, external_id, dn_key)
        if person is not None:
            return people.remove(tx, run, person, self._revocations)
        group = GROUPS.find(tx, run, external_id, dn_key)
        if group is not None:
            return groups.remove_group(tx, run, group)
        unit = UNITS.find(tx, run, external_id, dn_key)
        return EntryCounts(skipped=1) if unit is None else groups.remove_unit(tx, unit)

    def _remove_unseen(self, tx: Tx, row_id: int, _batch: _Batch, *, run: ImportRun, table: str) -> EntryCounts | None:
        external_id = stored.unseen_external_id(tx, run, table, row_id)
        return EntryCounts() if external_id is None else self._gone(tx, run, external_id, b"")

    async def _subtree(self, run: ImportRun, item: FileEntry, wanted: PreparedChange) -> None:
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

    def _follow(
        self, tx: Tx, dn: str, batch: _Batch, *, run: ImportRun, table: str, wanted: PreparedChange
    ) -> EntryCounts | None:
        try:
            own = follow(dn, wanted)
        except Invalid as error:
            batch.problems.append((dn, str(error)))
            return EntryCounts(failed=1)
        done = self._change(tx, run, own, self._clock(), batch.problems)
        return rename_unit(tx, run, own, self._clock()) if done is None and table == UNITS.name else done


_Put = Callable[[Tx, T, _Batch], EntryCounts | None]
"""A function that writes one entry. It returns None if the entry needs another transaction. The caller then calls the
function again."""


def _some(
    tx: Tx, run: ImportRun, entries: Sequence[T], put: _Put[T], position: Callable[[int], int] | None = None
) -> _Batch:
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


def _together(items: Sequence[FileEntry]) -> Iterator[list[FileEntry]]:
    """Yield the parts of a list. The items of a part are written together: one item, or several people without a common
    identifier or name."""
    part, known = list[FileEntry](), set[str | bytes]()
    for item in items:
        person = item.entry
        keys: set[str | bytes] = {person.external_id, person.dn_key} if isinstance(person, PreparedPerson) else set()
        is_alone = not keys or not all(keys)
        if part and (len(part) == PEOPLE_AT_ONCE or is_alone or not known or not keys.isdisjoint(known)):
            yield part
            part, known = [], set()
        part.append(item)
        known = set() if is_alone else known | keys
    if part:
        yield part


def _before_large_group(items: Sequence[FileEntry]) -> Sequence[FileEntry]:
    for index, item in enumerate(items):
        if item.is_large_group:
            return items[:index]
    return items


def _group_of(tx: Tx, run: ImportRun, new: PreparedGroup) -> tuple[PreparedGroup, StoredEntry | None]:
    """Return a group of the file, and the stored group. A group without a name gets the stored name."""
    known = GROUPS.find(tx, run, new.external_id, new.dn_key)
    return (replace(new, name=known.name) if known is not None and not new.name else new), known


async def _items(file: BinaryIO, position: int) -> AsyncGenerator[list[FileEntry], None]:
    """Yield the entries of a file in lists. position: number of lines to skip."""
    await trio.to_thread.run_sync(_skip, file, position)
    while items := await trio.to_thread.run_sync(_read, file, position):
        position = items[-1].end
        yield items


def _skip(file: BinaryIO, lines: int) -> None:
    for _ in islice(file, lines):
        pass


def _read(file: BinaryIO, position: int) -> list[FileEntry]:
    items, end = list[FileEntry](), position
    while end - position < LINES and (found := read_entry(file)) is not None:
        entry, lines = found
        end += lines
        items.append(FileEntry(end, entry))
    return items
