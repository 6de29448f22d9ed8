"""The jobs: imports in the background of the service, in their turns (`turns`).

A job goes through three steps, each of which leaves something behind that a restart goes on from: all of its source is
in a file (an upload, what an agent has sent, or a directory that is read now); a child process has prepared that file;
it is written, and the job knows how far. A job that runs when the service stops is RUNNING in the store, and goes on
with the next start.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import structlog
import trio

from sallyport.base.actor import Actor, acting_as
from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import Conflict, Contradiction, Invalid, NotFound, SallyportError, StoreError
from sallyport.base.ids import new_error_id
from sallyport.base.secret import Secret
from sallyport.base.wire import JSON
from sallyport.directory import repo as directories
from sallyport.directory.directory import CLOUD, Directory
from sallyport.directory.entries import repo as entries
from sallyport.directory.entry import Entry
from sallyport.directory.imports import repo
from sallyport.directory.imports.applier import Applier
from sallyport.directory.imports.child import LIMITS, Limits, prepare
from sallyport.directory.imports.files import LARGEST, ImportFiles
from sallyport.directory.imports.finish import Finisher, Losses
from sallyport.directory.imports.job import (
    ATTRIBUTES,
    Job,
    Kind,
    NewJob,
    Read,
    Removals,
    Revocations,
    Run,
    Source,
    State,
)
from sallyport.directory.imports.lines import gathered
from sallyport.directory.imports.turns import Turns
from sallyport.directory.mapping import FieldMapping
from sallyport.directory.principals import Invalidations
from sallyport.metrics import DirectoryMetrics
from sallyport.store import audit
from sallyport.store.model import Store, Tx
from sallyport.store.vault import Vault

MOST_WAITING: Final = 20
"""Jobs of a domain that wait or run."""
TOO_MANY_WAIT: Final = f"{MOST_WAITING} imports of the domain are not done yet"
KEPT: Final = 200
"""Jobs of a domain that are over and still shown."""
FEW_REMOVALS: Final = 20
"""So many are removed however few there are; of more, not more than half."""
LOOK_S: Final = 5.0
AGAIN_S: Final = 5.0

log = structlog.get_logger()


class Jobs:
    """The jobs of all domains, done while `run` runs. readers: by the kind of the directory. changed: is called with
    the id of each domain that an import has changed. limits: of the child process that prepares a file."""

    def __init__(
        self,
        store: Store,
        vault: Vault,
        files: ImportFiles,
        revocations: Revocations,
        readers: Mapping[str, Read],
        clock: Clock,
        *,
        metrics: DirectoryMetrics,
        changed: Callable[[int], None],
        limits: Limits = LIMITS,
    ) -> None:
        self._store = store
        self.limits = limits
        self.largest = LARGEST
        self._vault = vault
        self._files = files
        self._readers = readers
        self._clock = clock
        self._metrics = metrics
        self._invalidations = Invalidations(changed)
        self._applier = Applier(store, revocations, clock, self._invalidations.changed)
        self._finisher = Finisher(store, clock, self._invalidations.changed)
        self._losses = Losses(store, files, revocations)
        self._wake = trio.Event()
        self._turns = Turns()

    # --- for others -------------------------------------------------------------------------------------------------

    def add(self, tx: Tx, domain_id: int, new: NewJob) -> int:
        """Queue a job, in the transaction of who asks for it, who then calls `wake`. Conflict: too many wait."""
        if repo.open_jobs(tx, domain_id) >= MOST_WAITING:
            raise Conflict(TOO_MANY_WAIT)
        job_id = repo.add(tx, domain_id, new, self._clock())
        if new.secret is not None:
            repo.set_secret(tx, job_id, self._vault.seal(new.secret, _identity(job_id)))
        repo.purge(tx, domain_id, KEPT)
        return job_id

    def wake(self) -> None:
        """There is a job."""
        self._wake.set()

    async def get(self, job_id: int) -> Job:
        """A job. NotFound."""
        job = await self._store.read(lambda tx: repo.get(tx, job_id))
        if job is None:
            raise NotFound("import not found")
        return job

    async def page(self, domain_id: int, offset: int, limit: int) -> list[Job]:
        """Jobs of a domain, the newest first."""
        return await self._store.read(lambda tx: repo.page(tx, domain_id, offset, limit))

    async def cancel(self, job: Job) -> None:
        """End a job; what it has written stays. Conflict: it is over."""

        def work(tx: Tx) -> None:
            if not repo.end(tx, job.id, State.CANCELLED, "cancelled", self._clock()):
                raise Conflict("the import is over")
            self._note(tx, job, "directory.import.cancel")

        await self._store.write(work)
        if not self._turns.cancel(job.id):
            await self._put_away(job.id)

    async def confirm(self, job: Job) -> None:
        """Let a job that has stopped remove what it has found missing. Conflict: it has not, or too many wait."""

        def work(tx: Tx) -> None:
            if repo.open_jobs(tx, job.domain_id) >= MOST_WAITING:
                raise Conflict(TOO_MANY_WAIT)
            if not repo.confirm(tx, job.id):
                raise Conflict("the import does not wait for a confirmation")
            self._note(tx, job, "directory.import.confirm")

        await self._store.write(work)
        self.wake()

    def forget(self) -> None:
        """The store was replaced: no job of before goes on."""
        self._turns.cancel_all()

    # --- in the background ------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Do the jobs, until cancelled."""
        with suppress(StoreError):
            for domain_id, at in await self._store.read(repo.last_done):
                self._metrics.succeeded(domain_id, at / SECOND)
        with suppress(OSError):
            kept = await self._store.read(repo.files)
            await trio.to_thread.run_sync(self._files.keep_only, kept)
        async with trio.open_nursery() as nursery:
            while True:
                self._wake = trio.Event()
                try:
                    for job in await self._store.read(self._turns.look()):
                        self._turns.begin(job)
                        nursery.start_soon(self._do, job)
                except StoreError as error:
                    log.warning("imports are not looked after", error=str(error))
                with trio.move_on_after(LOOK_S):
                    await self._wake.wait()

    async def _do(self, job: Job) -> None:
        """One job, until it is over, waits for the store, or the service stops."""
        waits = False
        with self._turns.keeping(job):
            with self._turns.at_work(job):
                waits = await self._attempt(job)
            if waits:  # without keeping other domains' jobs from their turn
                self.wake()
                await trio.sleep(AGAIN_S)
        self.wake()
        await self._put_away(job.id)

    async def _attempt(self, job: Job) -> bool:
        """Do a job; whether it is to be done again when the store takes it."""
        try:
            with acting_as(Actor("service", f"import {job.id}")):
                await self._perform(job)
        except StoreError as error:
            if not isinstance(error, Contradiction):
                log.warning("an import waits for the store", job=job.id, error=str(error))
                return True
            await self._fail_by_fault(job)
        except (SallyportError, OSError) as error:
            await self._fail(job, str(error))
        except Exception:
            await self._fail_by_fault(job)
        finally:
            self._invalidations.flush(job.domain_id)
        return False

    async def _fail_by_fault(self, job: Job) -> None:
        """End a job by an error of the program that is being handled."""
        error_id = new_error_id()
        log.exception("an import failed", job=job.id, error_id=error_id)
        await self._fail(job, f"internal error {error_id}, see the log of the service")

    async def _fail(self, job: Job, message: str) -> None:
        log.warning("an import failed", job=job.id, domain=job.domain_id, error=message)
        with suppress(StoreError):
            await self._store.write(partial(self._end, job=job, state=State.FAILED, message=message))

    async def _put_away(self, job_id: int) -> None:
        """Count a job that is over, and delete its files."""
        with suppress(StoreError, OSError, NotFound):
            job = await self.get(job_id)
            if job.ended_at is not None:
                self._count(job, job.ended_at)
                await self._losses.settle(job)
                await trio.to_thread.run_sync(self._files.delete, job.file)

    def _count(self, job: Job, ended_at: int) -> None:
        self._metrics.ended(job.domain_id, job.state)
        if job.state == State.DONE:
            results = {name: getattr(job, name) for name in ("added", "updated", "removed", "skipped", "failed")}
            seconds = (ended_at - (job.started_at or ended_at)) / SECOND
            self._metrics.done(job.domain_id, job.directory_kind, seconds, results)
            self._metrics.succeeded(job.domain_id, ended_at / SECOND)

    async def _perform(self, job: Job) -> None:
        if not await self._store.write(lambda tx: repo.begin(tx, job.id, self._clock())):
            return
        directory = await self._store.read(lambda tx: directories.get(tx, job.directory_id))
        if directory is None:
            raise NotFound("the directory is deleted")
        mapped = await self._store.read(
            partial(entries.attributes_wanted, directory_id=directory.id, mapping=directory.mapping)
        )
        if job.kind == Kind.READING and not job.file:
            await self._collect(job, directory, mapped)
        async with self._turns.writing:
            await self._write(job, directory, mapped)

    async def _write(self, job: Job, directory: Directory, mapped: frozenset[str]) -> None:
        """Write what is in the job's file, or follows from what is known, to its end."""
        writes = job.kind not in (Kind.MAPPING, Kind.REMOVAL) and job.removals != Removals.CONFIRMED
        if writes:
            await self._prepare(await self.get(job.id), mapped)
        job = await self.get(job.id)
        run = Run(
            job.domain_id,
            job.directory_id,
            job.id,
            directory.kind in CLOUD,
            marks=bool(job.complete),
            mapping=FieldMapping(json.loads(directory.mapping)),
            mapped=mapped,
            started_at=job.started_at or job.created_at,
        )
        if job.kind == Kind.REMOVAL:
            await self._remove_directory(run, job)
            return
        if job.kind != Kind.MAPPING:
            await self._losses.note(job)
        if writes:
            await self._applier.apply(run, self._files.prepared(job.file), job.position)
            self._invalidations.flush(run.domain_id)
        message = await self._finish(run)
        await self._losses.settle(job)
        await self._store.write(partial(self._end, job=job, state=State.DONE, message=message))

    async def _remove_directory(self, run: Run, job: Job) -> None:
        """Remove the people, who lose their access one after the other, the groups and the units; then the directory
        with its secret, its mapping, its schedule and its jobs, this one included."""
        await self._applier.remove_unseen(run)

        def work(tx: Tx) -> list[str]:
            self._end(tx, job, State.DONE, "")
            return directories.delete(tx, run.directory_id)

        for name in await self._store.write(work):
            await trio.to_thread.run_sync(self._files.delete, name)
        if not await self._store.read(partial(directories.of_domain, domain_id=job.domain_id)):
            self._metrics.forget(job.domain_id)

    async def _collect(self, job: Job, directory: Directory, mapped: Collection[str]) -> None:
        """Read a directory into a file. Refused, OSError: it could not be read; nothing has changed."""
        read = self._readers.get(directory.kind)
        if read is None:
            raise Invalid(f"a directory of the kind {directory.kind} is not read by the service")
        source = await self._source(job, directory, mapped)
        full = not directory.cursor or bool(job.complete) or bool(job.source)
        name = await trio.to_thread.run_sync(self._files.new, "spool", 0)
        size, complete, cursor = 0, False, ""
        try:
            async with read(source, "" if full else directory.cursor, full) as batches:
                async for batch in batches:
                    size += await trio.to_thread.run_sync(self._spool, name, batch.entries, size)
                    complete, cursor = complete or batch.complete, batch.cursor or cursor
            if not size:
                self._spool(name, (), 0)
            complete &= not job.source or bool(job.complete)  # what was asked for may be a part of the directory
            collected = partial(repo.collected, job_id=job.id, file=name, cursor=cursor, complete=complete)
            await self._store.write(collected)
        except BaseException:
            self._files.delete(name)
            raise

    def _spool(self, name: str, batch: Sequence[Entry], at: int) -> int:
        """Write a batch at the end of a file; its size. Invalid: the file is too large; StoreFull, OSError."""
        octets = gathered(batch)
        if at + len(octets) > self.largest:
            raise Invalid(f"a reading has at most {self.largest >> 20} MiB")
        self._files.check_room()
        self._files.append(name, octets, at)
        return len(octets)

    async def _source(self, job: Job, directory: Directory, mapped: Collection[str]) -> Source:
        """What is read, and with which secret: the directory's goes nowhere but where the directory is. SecretError."""
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
        return Source(job.domain_id, directory.kind, app_url, account, settings, secret)

    async def _prepare(self, job: Job, mapped: Collection[str]) -> None:
        """Prepare the job's file in a child process. Invalid: the file has an error, or needs too much."""
        source, target = self._files.path(job.file), self._files.prepared(job.file)
        if target.exists() and job.total:
            return
        kind = "ldif" if job.kind == Kind.LDIF else "spool"
        done = await prepare(kind, source, target, mapped, self.limits)
        await self._store.write(partial(repo.prepared, job_id=job.id, total=done.total, skipped=done.skipped))

    async def _finish(self, run: Run) -> str:
        """What follows from all entries together; what there is to tell."""
        job, message, stops = await self.get(run.job_id), "", ""
        if run.marks and job.kind == Kind.LDIF and job.failed:
            message = "nothing was removed, since some entries could not be used"
        elif run.marks and await self._store.search(partial(entries.shows_nobody, run=run)):
            message = "nothing was removed, since nobody was there"
        elif run.marks:
            stops = await self._too_many(job, run)
            if not stops:
                await self._applier.remove_unseen(run)
        await self._finisher.finish(run, counts=job.kind == Kind.MAPPING)
        if stops:
            await self._store.write(partial(repo.stop, job_id=job.id))
            raise Invalid(stops)
        return message

    async def _too_many(self, job: Job, run: Run) -> str:
        """Why a job must not remove what it has found missing; empty: it may."""
        if job.removals == Removals.CONFIRMED:
            return ""
        for table, kind in (("directory_users", "users"), ("directory_groups", "groups")):
            found = await self._store.search(partial(entries.missing, run=run, table=table))
            if found.missing >= FEW_REMOVALS and 2 * found.missing > found.known:
                return (
                    f"nothing was removed: {found.missing:,} of the {found.known:,} {kind} known of this directory are "
                    "missing. Look at the base DN, the filter and what the account may read; if they are gone indeed, "
                    f"confirm import {job.id}"
                )
        return ""

    def _end(self, tx: Tx, job: Job, state: State, message: str) -> None:
        at = self._clock()
        if not repo.end(tx, job.id, state, message, at):
            return
        if state is State.DONE and job.cursor:
            # What was asked for once may have been another part than what the directory is set to.
            directories.update(tx, job.directory_id, {"cursor": "" if job.source else job.cursor}, at)
        self._note(tx, job, "directory.import.end")

    def _note(self, tx: Tx, job: Job, action: str) -> None:
        now = repo.get(tx, job.id) or job
        counts: dict[str, JSON] = {"added": now.added, "updated": now.updated, "removed": now.removed}
        audit.record(
            tx,
            action,
            at=self._clock(),
            tenant_id=audit.tenant_of(tx, job.domain_id),
            domain_id=job.domain_id,
            target=f"import {job.id} of {job.directory_name}",
            changes=audit.changed({"state": job.state}, {"state": now.state, **counts}),
        )


def _identity(job_id: int) -> str:
    return f"directory_jobs/{job_id}/secret"
