"""The end of an import, after all entries are written: update the mapped fields, count the members of each group, and
end the sessions of former members."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Final

import trio

from sallyport.areas.directory.directory import Group
from sallyport.areas.directory.imports import repo as jobs
from sallyport.areas.directory.imports.files import ImportFiles
from sallyport.areas.directory.imports.job import EntryCounts, ImportRun, Job, Revocations
from sallyport.areas.directory.mappings.mapping import FieldMapping
from sallyport.areas.directory.stored import people, repo
from sallyport.areas.directory.stored.people import GONE
from sallyport.base.clock import Clock
from sallyport.base.text import fold
from sallyport.host import disk
from sallyport.store.model import Store, Tx

STEP: Final = 500
REMAPPED_AT_ONCE: Final = 32
"""Number of people that one transaction updates."""
GROUPS_AT_ONCE: Final = 50
REVOKED_AT_ONCE: Final = 50
WRITTEN_AT_ONCE: Final = 500
Names = dict[str, list[str]]
"""The case-folded names of people, by person id."""

_PersonMapping = tuple[int, FieldMapping]


class Finisher:
    """Updates mapped fields and member counts. changed: a function that is called with the id of the domain after each
    change of people."""

    def __init__(self, store: Store, revocations: Revocations, clock: Clock, changed: Callable[[int], None]) -> None:
        self._store = store
        self._revocations = revocations
        self._clock = clock
        self._changed = changed

    async def finish(self, run: ImportRun, *, counts: bool) -> None:
        """Update the mapped fields and member counts that are outdated. counts: if true, a person whose fields have
        changed counts as an updated entry of the import. Raises StoreError.

        If no job has changed anything since the last complete call, and the mappings are the same, nothing is outdated.
        """
        groups = await self._store.read(partial(repo.groups_with_mapping, directory_id=run.directory_id))
        mappings = _digest_of(run.mapping, groups)
        finished = partial(jobs.is_finished, directory_id=run.directory_id, job_id=run.job_id, mappings=mappings)
        if await self._store.read(finished):
            return
        own = await self._mappings_of_people(run, groups)
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
                done = await self._store.write(
                    partial(self._remap, run=run, wanted=stale[:REMAPPED_AT_ONCE], counts=counts)
                )
                del stale[:done]
                self._changed(run.domain_id)
        await self._count(run)
        end = partial(jobs.set_finished, directory_id=run.directory_id, job_id=run.job_id, mappings=mappings)
        await self._store.write(end)

    async def _mappings_of_people(self, run: ImportRun, groups: Sequence[Group]) -> dict[int, FieldMapping]:
        """Return the mappings of the people that are in a group with its own mapping. The keys are person ids."""
        found = dict[int, FieldMapping]()
        for group in groups:
            mapping = FieldMapping(json.loads(group.mapping)).over(run.mapping)
            ids = await self._store.search(partial(repo.everyone_in, group_id=group.id, directory_id=run.directory_id))
            await trio.to_thread.run_sync(_overlay, found, ids, mapping)
        return found

    def _remap(self, tx: Tx, run: ImportRun, wanted: Sequence[_PersonMapping], *, counts: bool) -> int:
        """Update the fields of people, and stop when other writers wait. Return the number of people that were
        processed."""
        at, done, changed = self._clock(), 0, 0
        for user_id, mapping in wanted:
            changed += people.remap(tx, run, user_id, mapping, self._revocations, at)
            done += 1
            if tx.others_wait():
                break
        people.merge_index(tx)
        if counts:
            jobs.progress(tx, run.job_id, None, EntryCounts(updated=changed))
        return done

    async def _count(self, run: ImportRun) -> None:
        """Store the number of members of each group."""
        after = 0
        while found := await self._store.search(
            partial(repo.counted, directory_id=run.directory_id, after=after, limit=GROUPS_AT_ONCE)
        ):
            after = found[-1].id
            wrong = [each for each in found if each.now != each.members]
            if wrong:
                await self._store.write(partial(repo.set_members, counts=wrong))


class Losses:
    """Ends the sessions of people who have lost a group that gives access.

    The members of a group before the import are compared with its members after the import. It would not be enough to
    look at each changed entry. For example, if a nested group is removed from a parent group, the people of the nested
    group leave the parent group too. But if a person moves from one group to another and both have the same parent
    group, the person stays in the parent group.

    The members before the import are stored in a file next to the import's file, so a restart does not lose them. If no
    group of a domain gives access, nothing is compared.
    """

    def __init__(self, store: Store, files: ImportFiles, revocations: Revocations) -> None:
        self._store = store
        self._files = files
        self._revocations = revocations

    async def note(self, job: Job) -> None:
        """Store which people are in the groups that give access, before the import changes them. If a restart has
        interrupted the import and they were stored before the restart, do nothing. Raises StoreError, OSError."""
        path = self._files.before(job.file)
        if await trio.to_thread.run_sync(path.exists):
            return
        found = await self._store.search(lambda tx: self._inside(tx, job))
        if found:
            await trio.to_thread.run_sync(_write, path, found)

    async def settle(self, job: Job) -> None:
        """End the sessions of people who have left a group that gives access. Raises StoreError, OSError."""
        path, ended = self._files.before(job.file), set[int]()
        for group, before in (await trio.to_thread.run_sync(_read, path)).items():
            found = partial(_lost, directory_id=job.directory_id, group=group, before=before, ended=ended)
            lost = await self._store.search(found)
            for at in range(0, len(lost), REVOKED_AT_ONCE):
                await self._store.write(partial(self._revoke, job=job, lost=lost[at : at + REVOKED_AT_ONCE]))
        await trio.to_thread.run_sync(partial(path.unlink, missing_ok=True))

    def _inside(self, tx: Tx, job: Job) -> dict[str, dict[int, list[str]]]:
        found: dict[str, dict[int, list[str]]] = {}
        for group_id, name in repo.groups_of_directory(tx, job.directory_id):
            if self._revocations.group_matters(job.domain_id, name):
                found.setdefault(fold(name), {}).update(repo.named_people(tx, group_id, job.directory_id))
        return found

    def _revoke(self, tx: Tx, job: Job, lost: Sequence[tuple[int, list[str]]]) -> None:
        for user_id, before in lost:
            # The sessions of removed and disabled people have already ended.
            if repo.status_of(tx, user_id) not in (None, *GONE):
                names = dict.fromkeys((*people.session_names(tx, job.domain_id, user_id), *before))
                reason = "the user has lost a group in the directory"
                self._revocations.revoke(tx, job.domain_id, tuple(names), reason)


def _digest_of(base: FieldMapping, groups: Sequence[Group]) -> str:
    """Return the SHA-256, in hex, of the mappings of a directory and its groups."""
    found = sha256(base.digest)
    for each in groups:
        found.update(f"{each.id} {len(each.mapping)} {each.mapping}".encode())
    return found.hexdigest()


def _overlay(found: dict[int, FieldMapping], ids: Iterable[int], mapping: FieldMapping) -> None:
    """Add the mapping of a group to the mappings of its people."""
    for user_id in ids:
        before = found.get(user_id)
        found[user_id] = mapping if before is None else before.over(mapping)


def _lost(tx: Tx, directory_id: int, group: str, before: Names, ended: set[int]) -> list[tuple[int, list[str]]]:
    """Return the people that were in a group before the import and are not in the group now, and add them to `ended`.
    People that are in `ended` already are left out. group: the case-folded name of the group. Login rules use this
    name, and several groups may have it."""
    groups = [group_id for group_id, name in repo.groups_of_directory(tx, directory_id) if fold(name) == group]
    after = {user_id for group_id in groups for user_id in repo.everyone_in(tx, group_id, directory_id)}
    after |= ended
    lost = [(int(user_id), names) for user_id, names in before.items() if int(user_id) not in after]
    ended.update(user_id for user_id, _ in lost)
    return lost


def _write(path: Path, found: Mapping[str, Mapping[int, list[str]]]) -> None:
    """Write the people of groups as lines of JSON. A line has one group and a part of its people, because to write or
    read all people at once would hold the interpreter, and the logins would wait."""
    with disk.replacing(path) as file:
        for group, names in found.items():
            people = iter(names.items())
            while part := dict(islice(people, WRITTEN_AT_ONCE)):
                file.write(json.dumps({group: part}).encode() + b"\n")


def _read(path: Path) -> dict[str, Names]:
    found: dict[str, Names] = {}
    with suppress(FileNotFoundError), path.open() as file:
        for line in file:
            for group, names in json.loads(line).items():
                found.setdefault(group, {}).update(names)
    return found
