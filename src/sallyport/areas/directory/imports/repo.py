"""The SQL of jobs."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Final

from sallyport.areas.directory.imports.job import (
    MAX_ERROR_LENGTH,
    MAX_ERRORS,
    EntryCounts,
    Job,
    JobState,
    NewJob,
    Removals,
)
from sallyport.base.errors import LeaseLost
from sallyport.store.inserts import insert_row
from sallyport.store.model import LISTED, Tx, listed

_COLUMNS: Final = (
    "j.id, o.tenant_id, j.domain_id, j.directory_id, d.name as directory_name, d.kind as directory_kind, j.kind, "
    "j.state, j.file_name, j.file, j.complete, j.source, j.cursor, j.total, j.added, j.updated, j.removed, j.skipped, "
    "j.failed, j.position, j.errors, j.message, j.removals, j.created_at, j.started_at, j.ended_at, "
    "j.node_id"
)
_SELECT: Final = (
    f"select {_COLUMNS} from directory_jobs j join directories d on d.id = j.directory_id "
    "join domains o on o.id = j.domain_id"
)
_OPEN: Final = "j.state in ('QUEUED', 'RUNNING')"


def add(tx: Tx, domain_id: int, new: NewJob, at: int, node_id: int) -> int:
    """Add a job and return its id. node_id: the node that must run the job; 0 for any node."""
    return insert_row(
        tx,
        "directory_jobs",
        domain_id=domain_id,
        directory_id=new.directory_id,
        kind=new.kind.value,
        state=JobState.QUEUED.value,
        file_name=new.file_name,
        file=new.file,
        complete=int(new.complete),
        source=new.source,
        created_at=at,
        node_id=node_id,
    )


def get(tx: Tx, job_id: int) -> Job | None:
    """Return a job, or None."""
    return tx.one(Job, f"{_SELECT} where j.id = :id", id=job_id)


def page(tx: Tx, domain_id: int, offset: int, limit: int) -> list[Job]:
    """Return jobs of a domain, newest first."""
    sql = f"{_SELECT} where j.domain_id = :d order by j.id desc limit :limit offset :offset"
    return tx.all(Job, sql, d=domain_id, limit=limit, offset=offset)


def of_directory(tx: Tx, directory_id: int, limit: int) -> list[Job]:
    """Return the last jobs of a directory, newest first."""
    return tx.all(
        Job, f"{_SELECT} where j.directory_id = :id order by j.id desc limit :limit", id=directory_id, limit=limit
    )


def waiting(tx: Tx, node_id: int, busy: Collection[int], held: Mapping[int, int], most: int) -> list[Job]:
    """Return the jobs that this node may start now, oldest first. For each domain, only the oldest job is considered.
    Domains in `busy` are left out.

    A domain is also left out if its oldest job belongs to another node. held: the number of running jobs of each
    tenant. most: the limit for the running jobs and the returned jobs of a tenant together.
    """
    sql = (
        "select min(j.id), j.domain_id, d.tenant_id from directory_jobs j join domains d on d.id = j.domain_id "
        f"where {_OPEN} group by j.domain_id, d.tenant_id order by min(j.id)"
    )
    taken, found = Counter(held), list[Job]()
    for job_id, domain_id, tenant_id in (map(int, map(str, row)) for row in tx.rows(sql)):
        job = get(tx, job_id) if domain_id not in busy and taken[tenant_id] < most else None
        if job is not None and job.node_id in (0, node_id):
            taken[tenant_id] += 1
            found.append(job)
    return found


def open_jobs(tx: Tx, domain_id: int) -> int:
    """Return the number of queued and running jobs of a domain."""
    return tx.value(int, f"select count(*) from directory_jobs j where j.domain_id = :d and {_OPEN}", d=domain_id) or 0


def open_reading(tx: Tx, directory_id: int) -> int | None:
    """Return the id of the queued job that reads a directory, or None."""
    sql = "select id from directory_jobs where directory_id = :id and kind = 'reading' and state = 'QUEUED'"
    return tx.value(int, sql, id=directory_id)


def is_read(tx: Tx, directory_id: int) -> bool:
    """Return whether a job that reads the directory is queued or running."""
    sql = f"select 1 from directory_jobs j where j.directory_id = :id and j.kind = 'reading' and {_OPEN} limit 1"
    return tx.value(int, sql, id=directory_id) is not None


def open_removal(tx: Tx, directory_id: int) -> int | None:
    """Return the id of the queued or running removal of a directory, or None."""
    sql = f"select j.id from directory_jobs j where j.directory_id = :id and j.kind = 'removal' and {_OPEN}"
    return tx.value(int, sql, id=directory_id)


def last_done(tx: Tx) -> list[tuple[int, int]]:
    """Return a pair (domain id, time) for each domain. The time says when the domain's last successful job ended, in
    microseconds."""
    sql = "select domain_id, max(ended_at) from directory_jobs where state = 'DONE' group by domain_id"
    return [(row[0], row[1]) for row in tx.rows(sql) if isinstance(row[0], int) and isinstance(row[1], int)]


def files(tx: Tx) -> set[str]:
    """Return the names of all files that are in use. A file is in use if a queued or running job needs it, or if an
    agent is still sending entries that are stored in it."""
    sql = f"select j.file from directory_jobs j where {_OPEN} union select file from directory_runs"
    return {str(row[0]) for row in tx.rows(sql)}


def set_secret(tx: Tx, job_id: int, sealed: bytes) -> None:
    """Store the encrypted bind password of a job."""
    tx.execute("update directory_jobs set secret = :sealed where id = :id", sealed=sealed, id=job_id)


def secret(tx: Tx, job_id: int) -> bytes | None:
    """Return the encrypted bind password of a job, or None."""
    return tx.value(bytes, "select secret from directory_jobs where id = :id", id=job_id)


def begin(tx: Tx, job_id: int, at: int, node_id: int) -> bool:
    """Mark a job as running on a node. Return False if the job has ended or another node has it."""
    sql = (
        "update directory_jobs set state = 'RUNNING', started_at = coalesce(started_at, :at), message = '', "
        "node_id = :node where id = :id and state in ('QUEUED', 'RUNNING') and node_id in (0, :node)"
    )
    return tx.execute(sql, id=job_id, at=at, node=node_id) > 0


def must_own(tx: Tx, job_id: int, node_id: int) -> None:
    """Raise LeaseLost if this node does not run the job any more. The job was then cancelled, or another node has taken
    over the job. node_id: the id of this node."""
    sql = f"select 1 from directory_jobs j where j.id = :id and j.node_id = :node and {_OPEN}"
    if not tx.rows(sql, id=job_id, node=node_id):
        raise LeaseLost(f"import {job_id} was cancelled or taken over by another node")


def of_other_nodes(tx: Tx, alive: Collection[int]) -> list[Job]:
    """Return the queued and running jobs of nodes that are not alive."""
    return tx.all(
        Job,
        f"{_SELECT} where {_OPEN} and j.node_id <> 0 and j.node_id not in {LISTED} order by j.id",
        ids=listed(alive),
    )


def release(tx: Tx, job_id: int) -> None:
    """Queue a job again. Any node can then run it from its first step."""
    tx.execute(
        "update directory_jobs set state = 'QUEUED', node_id = 0, file = '', position = 0, total = 0, skipped = 0, "
        "failed = 0, errors = '[]' where id = :id",
        id=job_id,
    )


def collected(tx: Tx, job_id: int, file: str, cursor: str, *, complete: bool) -> None:
    """Store the name of the file that holds all entries of the source. Also store the cursor, from which the next
    reading reads the changes."""
    sql = "update directory_jobs set file = :file, cursor = :cursor, complete = :complete where id = :id"
    tx.execute(sql, id=job_id, file=file, cursor=cursor, complete=int(complete))


def prepared(tx: Tx, job_id: int, total: int, skipped: int) -> None:
    """Store the numbers of entries in a prepared file. Do nothing if some of its lines were already written."""
    sql = "update directory_jobs set total = :total, skipped = :skipped where id = :id and position = 0"
    tx.execute(sql, id=job_id, total=total, skipped=skipped)


def progress(
    tx: Tx, job_id: int, position: int | None, counts: EntryCounts, errors: Sequence[tuple[str, str]] = ()
) -> None:
    """Add the results of a transaction to the job. Call this function in that transaction. position: how many lines of
    the prepared file are written; with None, the stored number stays."""
    tx.execute(
        "update directory_jobs set added = added + :added, updated = updated + :updated, removed = removed + :removed, "
        "skipped = skipped + :skipped, failed = failed + :failed, position = coalesce(:position, position) "
        "where id = :id",
        id=job_id,
        position=position,
        **asdict(counts),
    )
    if errors:
        _keep_errors(tx, job_id, errors)


def is_finished(tx: Tx, directory_id: int, job_id: int, mappings: str) -> bool:
    """Return whether no job has changed the directory since `set_finished` was called with the same mappings. Each job
    since then, except this one, must have ended: an interrupted one may have moved memberships."""
    sql = (
        "select 1 from directories d where d.id = :id and d.finished_job > 0 and d.finished_mappings = :mappings "
        "and not exists (select 1 from directory_jobs j where j.directory_id = d.id and j.id > d.finished_job "
        "and (j.added + j.updated + j.removed > 0 or (j.id <> :job and j.state <> 'DONE')))"
    )
    return bool(tx.rows(sql, id=directory_id, job=job_id, mappings=mappings))


def set_finished(tx: Tx, directory_id: int, job_id: int, mappings: str) -> None:
    """Store that the mapped fields and the numbers of members are complete after a job. mappings: the digest of the
    mappings."""
    tx.execute(
        "update directories set finished_job = :job, finished_mappings = :mappings where id = :id",
        id=directory_id,
        job=job_id,
        mappings=mappings,
    )


def _keep_errors(tx: Tx, job_id: int, errors: Sequence[tuple[str, str]]) -> None:
    kept = json.loads(tx.value(str, "select errors from directory_jobs where id = :id", id=job_id) or "[]")
    more = [[where[:MAX_ERROR_LENGTH], message[:MAX_ERROR_LENGTH]] for where, message in errors]
    if len(kept) < MAX_ERRORS:
        text = json.dumps((kept + more)[:MAX_ERRORS])
        tx.execute("update directory_jobs set errors = :errors where id = :id", errors=text, id=job_id)


def end(tx: Tx, job_id: int, state: JobState, message: str, at: int) -> bool:
    """End a job and delete its secret. Return False if the job has already ended."""
    sql = (
        "update directory_jobs set state = :state, message = :message, ended_at = :at, secret = null "
        "where id = :id and state in ('QUEUED', 'RUNNING')"
    )
    return tx.execute(sql, id=job_id, state=state.value, message=message[:MAX_ERROR_LENGTH], at=at) > 0


def stop(tx: Tx, job_id: int) -> None:
    """Mark a job as stopped. It waits until an admin confirms its removals."""
    tx.execute("update directory_jobs set removals = :stopped where id = :id", stopped=Removals.STOPPED, id=job_id)


def confirm(tx: Tx, job_id: int) -> bool:
    """Queue a job again after an admin has confirmed it. Return False if the job does not wait for a confirmation."""
    sql = (
        "update directory_jobs set state = 'QUEUED', removals = :confirmed, message = '', ended_at = null, node_id = 0 "
        "where id = :id and state = 'FAILED' and removals = :stopped"
    )
    return tx.execute(sql, id=job_id, confirmed=Removals.CONFIRMED, stopped=Removals.STOPPED) > 0


def purge(tx: Tx, domain_id: int, keep: int) -> None:
    """Delete the oldest ended jobs of a domain. keep: the number of ended jobs to keep."""
    sql = (
        "delete from directory_jobs where domain_id = :d and state not in ('QUEUED', 'RUNNING') and id <= coalesce("
        "(select id from directory_jobs where domain_id = :d order by id desc limit 1 offset :keep), 0)"
    )
    tx.execute(sql, d=domain_id, keep=keep)
