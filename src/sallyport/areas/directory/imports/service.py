"""Import jobs in the background of the service.

A job has three steps. After a restart, the job continues with the step that was interrupted:

1. The entries are stored in a file. They were uploaded or sent by an agent, or the service reads them from a directory
   (`collect`).
2. A child process converts the file to a prepared file.
3. The lines of the prepared file are written to the store. The position in the file is stored in the job's row.

If the service stops while a job runs, the store keeps the state RUNNING for the job. The job continues after the next
start.

If there are several nodes, a job with a file runs on the node that has the file, and a job without a file can run on
any node (`handover`).
"""

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Final

import structlog
import trio

from sallyport.areas.directory import repo as directories
from sallyport.areas.directory.directory import CLOUD, Directory
from sallyport.areas.directory.imports import repo
from sallyport.areas.directory.imports.applier import Applier
from sallyport.areas.directory.imports.child import LIMITS, ChildLimits, prepare
from sallyport.areas.directory.imports.collect import Collector
from sallyport.areas.directory.imports.files import ImportFiles
from sallyport.areas.directory.imports.finish import Finisher, Losses
from sallyport.areas.directory.imports.job import ImportRun, Job, JobKind, JobState, NewJob, Read, Removals, Revocations
from sallyport.areas.directory.imports.scheduler import Scheduler
from sallyport.areas.directory.mappings.mapping import FieldMapping
from sallyport.areas.directory.principals import Invalidations
from sallyport.areas.directory.stored import repo as entries
from sallyport.base.actor import Actor, acting_as
from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import (
    Conflict,
    Contradiction,
    Invalid,
    LeaseLost,
    NotFound,
    SallyportError,
    StoreError,
)
from sallyport.base.secret import new_error_id
from sallyport.base.text import fold
from sallyport.base.wire import JSON
from sallyport.metrics import DirectoryMetrics
from sallyport.nodes.periodic import CheckedStore, every
from sallyport.nodes.service import Cluster
from sallyport.store import audit
from sallyport.store.model import Engine, Store, Tx
from sallyport.store.vault import Vault

MAX_WAITING: Final = 20
"""Maximum number of queued and running jobs of a domain."""
TOO_MANY_WAIT: Final = f"{MAX_WAITING} imports of the domain have not ended: wait for one, or cancel one"
KEPT: Final = 200
"""Number of ended jobs that are kept for each domain. Older ones are deleted."""
_RIGHTS: Final = "the base DN, the filter and the rights of the account"
FEW_REMOVALS: Final = 20
"""A job needs a confirmation if it would remove at least this number of entries, and more than half of the stored
entries."""
LOOK_S: Final = 5.0
SUCCEEDED_S: Final = 60.0
AGAIN_S: Final = 5.0
UNFINISHED_S: Final = 3600.0
"""Age in seconds. Older files that belong to no job are deleted. A younger file may belong to an upload that has not
ended."""

log = structlog.get_logger()


class Jobs:
    """The import jobs of all domains. Call `run` to execute the jobs.

    readers: functions that read directories, by kind of directory. changed: a function that takes the id of a domain.
    It is called when an import has changed the domain. cluster: the nodes of the installation. limits: the limits of
    the child process that converts a file.
    """

    def __init__(
        self,
        store: Engine,
        vault: Vault,
        files: ImportFiles,
        cluster: Cluster,
        revocations: Revocations,
        readers: Mapping[str, Read],
        clock: Clock,
        *,
        metrics: DirectoryMetrics,
        changed: Callable[[int], None],
        limits: ChildLimits = LIMITS,
    ) -> None:
        self._store = store
        self.limits = limits
        self._files = files
        self._cluster = cluster
        self._revocations = revocations
        self._clock = clock
        self._metrics = metrics
        self._invalidations = Invalidations(changed)
        self._losses = Losses(store, files, revocations)
        self._wake = trio.Event()
        self._scheduler = Scheduler(lambda: cluster.id)
        self.collector = Collector(store, vault, files, readers)

    # --- requests ---------------------------------------------------------------------------------------------------

    def add(self, tx: Tx, domain_id: int, new: NewJob) -> int:
        """Queue a job in the caller's transaction. Return the job's id. Call `wake` after the commit. Raises Conflict
        if too many jobs are waiting."""
        if repo.open_jobs(tx, domain_id) >= MAX_WAITING:
            raise Conflict(TOO_MANY_WAIT)
        job_id = repo.add(tx, domain_id, new, self._clock(), self._cluster.id if new.file else 0)
        if new.secret is not None:
            self.collector.keep_secret(tx, job_id, new.secret)
        repo.purge(tx, domain_id, KEPT)
        return job_id

    def wake(self) -> None:
        """Look for due jobs now."""
        self._wake.set()

    async def get(self, job_id: int) -> Job:
        """Return a job. Raises NotFound."""
        job = await self._store.read(lambda tx: repo.get(tx, job_id))
        if job is None:
            raise NotFound("import not found")
        return job

    async def page(self, domain_id: int, offset: int, limit: int) -> list[Job]:
        """Return jobs of a domain, newest first."""
        return await self._store.read(lambda tx: repo.page(tx, domain_id, offset, limit))

    async def cancel(self, job: Job) -> None:
        """Cancel a job. Entries that the job has already written are kept. Raises Conflict if the job has ended."""

        def transaction(tx: Tx) -> None:
            if not repo.end(tx, job.id, JobState.CANCELLED, "cancelled", self._clock()):
                raise Conflict("the import has ended already")
            self._note(tx, job, "directory.import.cancel")

        await self._store.write(transaction)
        if not self._scheduler.cancel(job.id):
            await self._clean_up(job.id)

    async def confirm(self, job: Job) -> None:
        """Continue a job that has stopped because it would remove most entries of a directory. Raises Conflict if the
        job is not waiting for a confirmation, or if too many other jobs are queued."""

        def transaction(tx: Tx) -> None:
            if repo.open_jobs(tx, job.domain_id) >= MAX_WAITING:
                raise Conflict(TOO_MANY_WAIT)
            if not repo.confirm(tx, job.id):
                raise Conflict("the import does not wait for a confirmation")
            self._note(tx, job, "directory.import.confirm")

        await self._store.write(transaction)
        self.wake()

    def forget(self) -> None:
        """Cancel the running jobs. Call this method after a backup has replaced the store."""
        self._scheduler.cancel_all()

    # --- in the background ------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run the jobs, until cancelled."""
        with suppress(OSError):
            kept = await self._store.read(repo.files)
            spare_s = UNFINISHED_S if self._store.is_shared else 0
            await trio.to_thread.run_sync(self._files.keep_only, kept, spare_s)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(every, SUCCEEDED_S, self._show_succeeded, failure="imports_not_counted"))
            while True:
                self._wake = trio.Event()
                try:
                    for job in await self._store.read(self._scheduler.due()):
                        self._scheduler.begin(job)
                        nursery.start_soon(self._run_job, job)
                except StoreError as error:
                    log.warning("imports_not_started", error=str(error))
                with trio.move_on_after(LOOK_S):
                    await self._wake.wait()

    async def _show_succeeded(self) -> None:
        """Update the metric that shows when the last successful import of each domain ended. The times are read from
        the store, because an import may have run on another node or before a restart."""
        for domain_id, at in await self._store.read(repo.last_done):
            self._metrics.succeeded(domain_id, at / SECOND)

    def _owned(self, job: Job) -> Store:
        """Return a store for the writes of a running job. A write raises LeaseLost if the job was cancelled on another
        node, or if another node has taken over the job."""
        if not self._cluster.is_shared:
            return self._store
        return CheckedStore(self._store, partial(repo.must_own, job_id=job.id, node_id=self._cluster.id))

    async def _run_job(self, job: Job) -> None:
        """Run a job until it ends. Return earlier if the job must wait for the store, or if the service stops."""
        waits = False
        with self._scheduler.domain_taken(job):
            with self._scheduler.running(job):
                waits = await self._attempt(job)
            if waits:  # meanwhile, jobs of other domains can start
                self.wake()
                await trio.sleep(AGAIN_S)
        self.wake()
        await self._clean_up(job.id)

    async def _attempt(self, job: Job) -> bool:
        """Run a job. Return True if the store has failed, so that the job must run again later."""
        try:
            with acting_as(Actor("service", f"import {job.id}", tenant_id=job.tenant_id)):
                await self._perform(job)
        except LeaseLost:
            return False
        except StoreError as error:
            if not isinstance(error, Contradiction):
                log.warning("import_waits_for_store", job=job.id, error=str(error))
                return True
            await self._fail_unexpectedly(job)
        except (SallyportError, OSError) as error:
            await self._fail(job, str(error))
        except Exception:
            await self._fail_unexpectedly(job)
        finally:
            self._invalidations.flush(job.domain_id)
        return False

    async def _fail_unexpectedly(self, job: Job) -> None:
        """End the job as failed, and log the current exception with its traceback."""
        error_id = new_error_id()
        log.exception("import_failed", job=job.id, error_id=error_id)
        await self._fail(job, f"internal error {error_id}, see the log of the service")

    async def _fail(self, job: Job, message: str) -> None:
        log.warning("import_failed", job=job.id, domain=job.domain_id, error=message)
        with suppress(StoreError, NotFound):  # the domain of the job was removed
            await self._owned(job).write(partial(self.end, job=job, state=JobState.FAILED, message=message))

    async def _clean_up(self, job_id: int) -> None:
        """Finish an ended job: count it in the metrics, end the sessions of people who have lost their access, and
        delete the job's files."""
        with suppress(StoreError, OSError, NotFound):
            job = await self.get(job_id)
            if job.ended_at is not None:
                self._count(job, job.ended_at)
                await self._losses.settle(job)
                await trio.to_thread.run_sync(self._files.delete, job.file)

    def _count(self, job: Job, ended_at: int) -> None:
        self._metrics.ended(job.domain_id, job.state)
        if job.state == JobState.DONE:
            results = {name: getattr(job, name) for name in ("added", "updated", "removed", "skipped", "failed")}
            seconds = (ended_at - (job.started_at or ended_at)) / SECOND
            self._metrics.done(job.domain_id, job.directory_kind, seconds, results)
            self._metrics.succeeded(job.domain_id, ended_at / SECOND)

    async def _perform(self, job: Job) -> None:
        if not await self._store.write(lambda tx: repo.begin(tx, job.id, self._clock(), self._cluster.id)):
            return
        directory = await self._store.read(lambda tx: directories.get(tx, job.directory_id))
        if directory is None:
            raise NotFound("the directory is deleted")
        mapped = await self._store.read(
            partial(entries.attributes_wanted, directory_id=directory.id, mapping=directory.mapping)
        )
        if job.kind == JobKind.READING and not job.file:
            await self.collector.collect(self._owned(job), job, directory, mapped)
        async with self._scheduler.writers:
            await self._write(self._owned(job), job, directory, mapped)

    async def _write(self, store: Store, job: Job, directory: Directory, mapped: frozenset[str]) -> None:
        """Write the entries of the job's prepared file, and update everything that depends on them."""
        writes = job.kind not in (JobKind.MAPPING, JobKind.REMOVAL) and job.removals != Removals.CONFIRMED
        applier = Applier(store, self._revocations, self._clock, self._invalidations.changed)
        if writes:
            await self._prepare(store, await self.get(job.id), mapped)
        job = await self.get(job.id)
        of_files = await self._store.read(partial(entries.mappings_of_files, directory_id=directory.id))
        run = ImportRun(
            job.domain_id,
            job.directory_id,
            job.id,
            directory.kind in CLOUD,
            marks=bool(job.complete),
            mapping=FieldMapping(json.loads(directory.mapping)),
            mapped=mapped,
            started_at=job.started_at or job.created_at,
            former={fold(name): json.dumps(own) for name, own in of_files.items()},
        )
        if not (writes and job.position):
            await applier.undo_moves(run)
        if job.kind == JobKind.REMOVAL:
            await self._remove_directory(store, applier, run, job)
            return
        if job.kind != JobKind.MAPPING:
            await self._losses.note(job)
        if writes:
            await applier.apply(run, self._files.prepared(job.file), job.position)
            self._invalidations.flush(run.domain_id)
        reads_devices = json.loads(directory.settings).get("readDevices") == "true"
        message = await self._finish(store, applier, run, reads_devices=reads_devices)
        await self._losses.settle(job)
        await store.write(partial(self.end, job=job, state=JobState.DONE, message=message))

    async def _remove_directory(self, store: Store, applier: Applier, run: ImportRun, job: Job) -> None:
        """Remove all people and revoke their access, then remove the groups and the units. Finally remove the directory
        with its secret, its mapping, its schedule and its jobs, including this job."""
        await applier.remove_unseen(run)

        def transaction(tx: Tx) -> list[str]:
            self.end(tx, job, JobState.DONE, "")
            return directories.delete(tx, run.directory_id)

        for name in await store.write(transaction):
            await trio.to_thread.run_sync(self._files.delete, name)
        if not await self._store.read(partial(directories.of_domain, domain_id=job.domain_id)):
            self._metrics.forget(job.domain_id)

    async def _prepare(self, store: Store, job: Job, mapped: Collection[str]) -> None:
        """Convert the job's file to a prepared file in a child process. Raises Invalid if the file has an error or
        exceeds a limit."""
        source, target = self._files.path(job.file), self._files.prepared(job.file)
        if target.exists() and job.total:
            return
        kind = "ldif" if job.kind == JobKind.LDIF else "spool"
        done = await prepare(kind, source, target, mapped, self.limits)
        await store.write(partial(repo.prepared, job_id=job.id, total=done.total, skipped=done.skipped))

    async def _finish(self, store: Store, applier: Applier, run: ImportRun, *, reads_devices: bool) -> str:
        """Remove the missing entries, and update fields and member counts. Return the message of the job.
        reads_devices: see `_too_many`."""
        job, message, stops = await self.get(run.job_id), "", ""
        if run.marks and job.kind == JobKind.LDIF and job.failed:
            message = "nothing was removed, because some entries could not be used"
        elif run.marks and await self._store.search(partial(entries.shows_nobody, run=run)):
            message = "nothing was removed, because the source has no people"
        elif run.marks:
            stops = await self._too_many(job, run, reads_devices=reads_devices)
            if not stops:
                await applier.remove_unseen(run)
        finisher = Finisher(store, self._revocations, self._clock, self._invalidations.changed)
        await finisher.finish(run, counts=job.kind == JobKind.MAPPING)
        if stops:
            await store.write(partial(repo.stop, job_id=job.id))
            raise Invalid(stops)
        return message

    async def _too_many(self, job: Job, run: ImportRun, *, reads_devices: bool) -> str:
        """Return the reason if the missing entries are too many to be removed without a confirmation. Return an empty
        text if the job may remove them. reads_devices: whether the directory's devices are read. If an admin has
        switched this off, the devices are removed without a confirmation."""
        if job.removals == Removals.CONFIRMED:
            return ""
        what = "the rights of the application or token" if run.cloud else _RIGHTS
        for kind in ("users", "devices", "groups") if reads_devices else ("users", "groups"):
            found = await self._store.search(partial(entries.missing, run=run, kind=kind))
            if found.missing >= FEW_REMOVALS and 2 * found.missing > found.known:
                return (
                    f"nothing was removed: {found.missing:,} of the {found.known:,} {kind} in the store are missing in "
                    f"the directory. Check {what}. If the entries are really gone, confirm import {job.id}"
                )
        return ""

    def end(self, tx: Tx, job: Job, state: JobState, message: str) -> None:
        """End a job, unless it has already ended. Call `wake` after the commit."""
        at = self._clock()
        if not repo.end(tx, job.id, state, message, at):
            return
        if state is JobState.DONE and job.cursor:
            # A request with its own settings may have read only a part of the directory.
            directories.update(tx, job.directory_id, {"cursor": "" if job.source else job.cursor}, at)
        if state is JobState.DONE and job.kind in (JobKind.READING, JobKind.AGENT) and not job.source:
            directories.set_read_at(tx, job.directory_id, job.started_at or job.created_at)
        self._note(tx, job, "directory.import.end")

    def _note(self, tx: Tx, job: Job, action: str) -> None:
        now = repo.get(tx, job.id) or job
        counts: dict[str, JSON] = {"added": now.added, "updated": now.updated, "removed": now.removed}
        changes = audit.changed({"state": job.state}, {"state": now.state, **counts})
        target = f"import {job.id} of {job.directory_name}"
        audit.record_in(tx, action, job.domain_id, target, changes, at=self._clock())
