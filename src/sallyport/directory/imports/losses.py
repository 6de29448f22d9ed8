"""Who has lost, by an import, a group that gives access: who was in it before the import and is not in it after.

Told by what all entries come to together, and not entry by entry: a group may be lost because the group in the middle
has left it, and who is moved from one group to another below the same loses nothing. Who was in a group is kept in a
file beside the import's, from before its first entry is written until its last: an import that goes on after a stop
still knows. In a domain without such a group nothing is looked at.
"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import trio

from sallyport.base import disk
from sallyport.base.text import fold
from sallyport.directory.entries import people, repo
from sallyport.directory.entries.model import GONE
from sallyport.directory.imports.files import ImportFiles
from sallyport.directory.imports.model import Job
from sallyport.directory.revoking import Revocations
from sallyport.store.model import Store, Tx

AT_ONCE: Final = 50
"""People in one transaction."""

Names = Mapping[str, list[str]]
"""What people may log in as, by their ids."""


class Losses:
    """Ends the sessions of those who lose a group by an import."""

    def __init__(self, store: Store, files: ImportFiles, revocations: Revocations) -> None:
        self._store = store
        self._files = files
        self._revocations = revocations

    async def note(self, job: Job) -> None:
        """Keep who is in each group that gives access, unless that was done before a stop. StoreError, OSError."""
        path = self._files.before(job.file)
        if await trio.to_thread.run_sync(path.exists):
            return
        found = await self._store.search(lambda tx: self._inside(tx, job))
        if found:
            await trio.to_thread.run_sync(_write, path, found)

    async def settle(self, job: Job) -> None:
        """End the sessions of whoever was in such a group and is not any more. StoreError, OSError."""
        path, told = self._files.before(job.file), set[int]()
        for group, before in (await trio.to_thread.run_sync(_read, path)).items():
            found = partial(_lost, directory_id=job.directory_id, group=group, before=before)
            lost = [each for each in await self._store.search(found) if each[0] not in told]
            told.update(user_id for user_id, _ in lost)
            for at in range(0, len(lost), AT_ONCE):
                await self._store.write(partial(self._revoke, job=job, lost=lost[at : at + AT_ONCE]))
        await trio.to_thread.run_sync(partial(path.unlink, missing_ok=True))

    def _inside(self, tx: Tx, job: Job) -> dict[str, dict[int, list[str]]]:
        found: dict[str, dict[int, list[str]]] = {}
        for group_id, name in repo.groups_of_directory(tx, job.directory_id):
            if self._revocations.group_matters(job.domain_id, name):
                found.setdefault(fold(name), {}).update(repo.named_people(tx, group_id, job.directory_id))
        return found

    def _revoke(self, tx: Tx, job: Job, lost: Sequence[tuple[int, list[str]]]) -> None:
        for user_id, before in lost:
            if repo.status_of(tx, user_id) not in (None, *GONE):  # of whom more than a group was taken, that was told
                names = dict.fromkeys((*people.names_of(tx, user_id), *before))
                reason = "the user has lost a group in the directory"
                self._revocations.revoke(tx, job.domain_id, tuple(names), reason)


def _lost(tx: Tx, directory_id: int, group: str, before: Names) -> list[tuple[int, list[str]]]:
    """Who was in a group of that name, which is what rules know, and is in none any more."""
    groups = [group_id for group_id, name in repo.groups_of_directory(tx, directory_id) if fold(name) == group]
    after = {user_id for group_id in groups for user_id in repo.everyone_in(tx, group_id, directory_id)}
    return [(int(user_id), names) for user_id, names in before.items() if int(user_id) not in after]


def _write(path: Path, found: Mapping[str, Mapping[int, list[str]]]) -> None:
    with disk.replacing(path) as file:
        file.write(json.dumps(found).encode())


def _read(path: Path) -> dict[str, Names]:
    try:
        with path.open() as file:
            found: dict[str, Names] = json.load(file)
    except FileNotFoundError:
        return {}
    return found
