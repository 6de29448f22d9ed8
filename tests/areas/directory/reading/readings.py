"""Read a whole directory and collect its entries."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TypeVar

import trio

from sallyport.areas.directory.entry.entry import Batch, Entry, Gone, Group, Person, Problem, Unchanged, Unit
from sallyport.areas.directory.reading.reader import LdapReader, LdapSource
from sallyport.base.clock import now_us
from sallyport.outgoing.egress import Egress, LookUp, look_up
from sallyport.settings.values import ANYWHERE
from tests.areas import trust

Kind = TypeVar("Kind", Person, Group, Unit, Unchanged, Gone, Problem)


@dataclass
class Reading:
    """The entries and the cursor that a reading has returned."""

    entries: list[Entry] = field(default_factory=list)
    complete: bool = False
    cursor: str = ""

    def all(self, kind: type[Kind]) -> list[Kind]:
        """Return the entries of one kind."""
        return [entry for entry in self.entries if isinstance(entry, kind)]

    @property
    def people(self) -> dict[str, Person]:
        """The people by name."""
        return {person.name: person for person in self.all(Person)}

    @property
    def groups(self) -> dict[str, Group]:
        """The groups by name."""
        return {group.name: group for group in self.all(Group)}


async def read(source: LdapSource, cursor: str = "", *, full: bool = True, look_up: LookUp = look_up) -> Reading:
    """Read a directory to its end, without a limit on egress. look_up: the function that resolves names by DNS."""
    with trio.fail_after(120):
        return await collect(LdapReader(Egress(ANYWHERE, look_up), now_us, trust()).read(source, cursor, full=full))


async def collect(reading: AbstractAsyncContextManager[AsyncIterator[Batch]]) -> Reading:
    """Collect all batches of a reading."""
    collected = Reading()
    async with reading as batches:
        async for batch in batches:
            assert not collected.cursor, "a batch follows the last one"
            assert len(batch.entries) <= 500
            collected.entries.extend(batch.entries)
            collected.complete, collected.cursor = batch.complete, batch.cursor
    return collected


def names(entries: Sequence[Person | Group | Unit]) -> set[str]:
    """Return the names of the entries."""
    return {entry.name for entry in entries}
