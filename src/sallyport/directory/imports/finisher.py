"""What follows from all entries of a directory together, once they are written: the fields of those whose mapping is
another now, and how many members each group has."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from sallyport.base.clock import Clock
from sallyport.directory.entries import people, repo
from sallyport.directory.entries.model import Counts, Run
from sallyport.directory.imports import repo as jobs
from sallyport.directory.mappings.model import FieldMapping
from sallyport.store.model import Store, Tx

STEP: Final = 500
AT_ONCE: Final = 32
"""People in one transaction."""
GROUPS_AT_ONCE: Final = 50

_Wanted = tuple[int, FieldMapping]


class Finisher:
    """Finishes runs. changed: told of each domain in which somebody has changed."""

    def __init__(self, store: Store, clock: Clock, changed: Callable[[int], None]) -> None:
        self._store = store
        self._clock = clock
        self._changed = changed

    async def finish(self, run: Run, *, counts: bool) -> None:
        """All of it; what is so already is left alone. counts: whose fields change count as updated. StoreError."""
        own = await self._mappings_of_people(run)
        base, after = run.mapping.digest, 0
        while found := await self._store.read(
            partial(repo.mapped, directory_id=run.directory_id, after=after, limit=STEP)
        ):
            after = found[-1].id
            stale = [
                (each.id, own.get(each.id, run.mapping))
                for each in found
                if each.mapping != (own[each.id].digest if each.id in own else base)
            ]
            while stale:
                done = await self._store.write(partial(self._remap, run=run, wanted=stale[:AT_ONCE], counts=counts))
                del stale[:done]
                self._changed(run.domain_id)
        await self._count(run)

    async def _mappings_of_people(self, run: Run) -> dict[int, FieldMapping]:
        """The mappings of those who are in a group that has one."""
        found = dict[int, FieldMapping]()
        for group in await self._store.read(partial(repo.groups_with_mapping, directory_id=run.directory_id)):
            mapping = FieldMapping(json.loads(group.mapping)).over(run.mapping)
            ids = partial(repo.everyone_in, group_id=group.id, directory_id=run.directory_id)
            for user_id in await self._store.search(ids):
                before = found.get(user_id)
                found[user_id] = mapping if before is None else before.over(mapping)
        return found

    def _remap(self, tx: Tx, run: Run, wanted: Sequence[_Wanted], *, counts: bool) -> int:
        """Some of the first of them: how many."""
        at, done, changed = self._clock(), 0, 0
        for user_id, mapping in wanted:
            changed += people.remap(tx, user_id, run.domain_id, mapping, at)
            done += 1
            if tx.others_wait():
                break
        people.tidy(tx)
        if counts:
            jobs.progress(tx, run.job_id, None, Counts(updated=changed))
        return done

    async def _count(self, run: Run) -> None:
        """Keep how many members each group has."""
        after = 0
        while found := await self._store.search(
            partial(repo.counted, directory_id=run.directory_id, after=after, limit=GROUPS_AT_ONCE)
        ):
            after = found[-1].id
            wrong = [each for each in found if each.now != each.members]
            if wrong:
                await self._store.write(partial(repo.set_members, counts=wrong))
