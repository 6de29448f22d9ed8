"""Read a directory over a network into a job's file."""

import json
from collections.abc import Collection, Mapping, Sequence
from functools import partial

import trio

from sallyport.areas.directory import repo as directories
from sallyport.areas.directory.directory import Directory
from sallyport.areas.directory.entry.entry import Entry
from sallyport.areas.directory.imports import repo
from sallyport.areas.directory.imports.files import MAX_SIZE, ImportFiles
from sallyport.areas.directory.imports.job import ATTRIBUTES, DirectorySource, Job, Read
from sallyport.areas.directory.imports.lines import gathered
from sallyport.base.errors import Invalid
from sallyport.base.secret import Secret
from sallyport.store.model import Store, Tx
from sallyport.store.vault import Vault


class Collector:
    """Reads directories into files. readers: the reader of each kind of directory. largest: the maximum size of a file,
    in octets."""

    def __init__(self, store: Store, vault: Vault, files: ImportFiles, readers: Mapping[str, Read]) -> None:
        self.largest = MAX_SIZE
        self._store = store
        self._vault = vault
        self._files = files
        self._readers = readers

    def keep_secret(self, tx: Tx, job_id: int, secret: bytes) -> None:
        """Store the bind password of a job, encrypted. The password is deleted when the job ends."""
        repo.set_secret(tx, job_id, self._vault.seal(secret, _identity(job_id)))

    async def collect(self, store: Store, job: Job, directory: Directory, mapped: Collection[str]) -> None:
        """Read a directory into a file, and store the name of the file in the job.

        store: the store that this job writes to. Raises Refused or OSError if some entries of the directory could not
        be read. In this case nothing has changed.
        """
        read = self._readers.get(directory.kind)
        if read is None:
            raise Invalid(f"the service cannot read a directory of the kind {directory.kind}")
        source = await self._source(job, directory, mapped)
        full = not directory.cursor or bool(job.complete) or bool(job.source)
        name = await trio.to_thread.run_sync(self._files.new, "spool", 0)
        size, complete, cursor = 0, False, ""
        try:
            async with read(source, "" if full else directory.cursor, full) as batches:
                async for batch in batches:
                    size += await trio.to_thread.run_sync(self._append, name, batch.entries, size)
                    complete, cursor = complete or batch.complete, batch.cursor or cursor
            if not size:
                await trio.to_thread.run_sync(self._append, name, (), 0)
            complete &= not job.source or bool(job.complete)  # a request may read only a part of the directory
            collected = partial(repo.collected, job_id=job.id, file=name, cursor=cursor, complete=complete)
            await store.write(collected)
        except BaseException:
            self._files.delete(name)
            raise

    def _append(self, name: str, entries: Sequence[Entry], at: int) -> int:
        """Append entries to a file. Return the number of octets that were appended. Raises Invalid if the file is too
        large. Raises StoreFull, OSError."""
        octets = gathered(entries)
        if at + len(octets) > self.largest:
            raise Invalid(f"an import reads at most {self.largest >> 20} MiB from a directory")
        self._files.check_room()
        self._files.append(name, octets, at)
        return len(octets)

    async def _source(self, job: Job, directory: Directory, mapped: Collection[str]) -> DirectorySource:
        """Return the directory that a job reads, with its settings and its secret. The stored secret is used only if
        the job uses the stored settings of the directory. Raises SecretError."""
        settings: dict[str, str] = json.loads(directory.settings)
        own: dict[str, str] = json.loads(job.source) if job.source else {}
        sealed = await self._store.read(lambda tx: repo.secret(tx, job.id))
        secret = None
        if sealed is not None:
            secret = Secret(self._vault.open(sealed, _identity(job.id)))
        elif directory.secret is not None and not job.source:
            secret = Secret(self._vault.open(directory.secret, directories.identity(directory.id)))
        app_url = own.pop("appUrl", directory.app_url)
        settings |= {**own, ATTRIBUTES: ",".join(sorted(mapped))}
        account = "" if job.source else directory.account_name
        return DirectorySource(job.domain_id, directory.kind, app_url, account, settings, secret)


def _identity(job_id: int) -> str:
    return f"directory_jobs/{job_id}/secret"
