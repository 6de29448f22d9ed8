"""The SQL of directories, of their schedules, and of the runs in which agents send entries.

A directory's secret is encrypted with `directories/ID/secret` as associated data.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

from sallyport.areas.directory.directory import Directory
from sallyport.areas.directory.imports import repo as jobs
from sallyport.areas.directory.schedules.schedule import LATEST_DAY_US, LATEST_US, MINUTE, Schedule
from sallyport.base.errors import Conflict
from sallyport.base.text import fold
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.erasure import PRESENT
from sallyport.store.inserts import insert_row, put_row
from sallyport.store.model import Tx, Value, columns_of

_SELECT: Final = f"select {', '.join(columns_of(Directory))} from directories"


def identity(directory_id: int) -> str:
    """Return the associated data with which a directory's secret is encrypted."""
    return f"directories/{directory_id}/secret"


def get(tx: Tx, directory_id: int) -> Directory | None:
    """Return a directory, or None."""
    return tx.one(Directory, f"{_SELECT} where id = :id", id=directory_id)


def named(tx: Tx, domain_id: int, name: str) -> Directory | None:
    """Return the directory with this name in a domain, or None. Names are case-insensitive."""
    return tx.one(Directory, f"{_SELECT} where domain_id = :d and name_key = :key", d=domain_id, key=fold(name))


def called(tx: Tx, domain_id: int, name: str) -> list[Directory] | None:
    """Return the directories that a name selects, or None. Names are case-insensitive.

    If a directory has the name, the name selects this directory. Otherwise, if the name is the domain's directoryName,
    it selects all directories of the domain.
    """
    directory = named(tx, domain_id, name)
    if directory is not None:
        return [directory]
    directory_name = tx.value(str, "select directory_name from domains where id = :d", d=domain_id)
    if not directory_name or fold(directory_name) != fold(name):
        return None
    return of_domain(tx, domain_id)


def named_for_use(tx: Tx, domain_id: int, name: str) -> Directory | None:
    """Return the directory with this name in a domain, or None. Raises Conflict if the directory is being removed."""
    found = named(tx, domain_id, name)
    if found is not None and jobs.open_removal(tx, found.id) is not None:
        raise Conflict("the directory is being removed")
    return found


def of_domain(tx: Tx, domain_id: int) -> list[Directory]:
    """Return a domain's directories, sorted by id."""
    return tx.all(Directory, f"{_SELECT} where domain_id = :d order by id", d=domain_id)


def settings_with_certificates(tx: Tx) -> list[tuple[int, str]]:
    """Return (id of the domain, settings in JSON) for each directory whose settings contain certificates."""
    sql = "select domain_id, settings from directories where settings like :with_certificates"
    rows = tx.rows(sql, with_certificates="%BEGIN CERTIFICATE%")
    return [(domain, text) for domain, text in rows if isinstance(domain, int) and isinstance(text, str)]


def add(tx: Tx, domain_id: int, name: str, kind: str, at: int) -> Directory:
    """Add a directory without settings."""
    new = Directory(0, domain_id, name, kind, "", "", "{}", None, "", "{}", at, at, 0)
    columns = {column: value for column, value in asdict(new).items() if column != "id"}
    return replace(new, id=insert_row(tx, "directories", name_key=fold(name), **columns))


def update(tx: Tx, directory_id: int, columns: Mapping[str, Value], at: int) -> None:
    """Set the given columns: kind, account_name, app_url, settings, secret, cursor, mapping."""
    changes = ", ".join(f"{name} = :{name}" for name in columns)
    tx.execute(f"update directories set {changes}, updated_at = :at where id = :id", id=directory_id, at=at, **columns)


def set_read_at(tx: Tx, directory_id: int, at: int) -> None:
    """Set the time at which a directory had the state that is stored now, in microseconds. This is no change of its
    settings. An import that was confirmed late does not set an earlier time."""
    tx.execute("update directories set read_at = :at where id = :id and read_at < :at", id=directory_id, at=at)


@dataclass(frozen=True, slots=True)
class DataAge:
    """The time of the data of a cloud directory, in microseconds. at: the time when it was added, if it was never
    read."""

    id: int
    domain_id: int
    name: str
    at: int


def data_ages(tx: Tx) -> list[DataAge]:
    """Return the times of the data of all cloud directories."""
    sql = (
        "select id, domain_id, name, case when read_at > 0 then read_at else created_at end as at from directories "
        "where kind in ('graph', 'okta') order by id"
    )
    return tx.all(DataAge, sql)


def delete(tx: Tx, directory_id: int) -> list[str]:
    """Delete a directory that has no people, groups or units. Return the names of two kinds of files: the files of the
    directory's jobs, and the files with entries that an agent has sent for the directory."""
    sql = "select file from directory_jobs where directory_id = :id union select file from directory_runs "
    files = [str(row[0]) for row in tx.rows(f"{sql}where directory_id = :id", id=directory_id)]
    for table in ("directory_members", "directory_jobs", "directory_runs", "directory_schedules"):
        tx.execute(f"delete from {table} where directory_id = :id", id=directory_id)
    tx.execute("delete from directories where id = :id", id=directory_id)
    return files


def note(
    tx: Tx, action: str, directory: Directory, at: int, changes: Mapping[str, JSON] | None = None, *, part: str = ""
) -> None:
    """Record an action on a directory in the audit trail. part: a text to append to the directory's name."""
    target = f"directory {directory.id} {directory.name}{part}"
    audit.record_in(tx, action, directory.domain_id, target, changes, at=at)


# --- schedules ------------------------------------------------------------------------------------------------------

_SCHEDULES: Final = (
    "select s.directory_id, s.domain_id, d.name as directory_name, s.every_minutes, s.times, s.zone, s.full_every, "
    "s.runs, s.next_at from directory_schedules s join directories d on d.id = s.directory_id"
)


def schedule_of(tx: Tx, directory_id: int) -> Schedule | None:
    """Return the schedule of a directory, or None."""
    return tx.one(Schedule, f"{_SCHEDULES} where s.directory_id = :id", id=directory_id)


def schedules_of_domain(tx: Tx, domain_id: int) -> list[Schedule]:
    """Return the schedules of a domain, sorted by directory id."""
    return tx.all(Schedule, f"{_SCHEDULES} where s.domain_id = :d order by s.directory_id", d=domain_id)


def put_schedule(tx: Tx, schedule: Schedule, at: int) -> None:
    """Set a directory's schedule."""
    put_row(
        tx,
        "directory_schedules",
        "directory_id",
        kept="domain_id",
        directory_id=schedule.directory_id,
        domain_id=schedule.domain_id,
        every_minutes=schedule.every_minutes,
        times=schedule.times,
        zone=schedule.zone,
        full_every=schedule.full_every,
        next_at=schedule.next_at,
        updated_at=at,
    )


def delete_schedule(tx: Tx, directory_id: int) -> None:
    """Delete a directory's schedule."""
    tx.execute("delete from directory_schedules where directory_id = :id", id=directory_id)


def due_schedules(tx: Tx, now: int, limit: int) -> list[Schedule]:
    """Return at most `limit` schedules that are due, the earliest first. A schedule is also due if its next time is
    later than it could be set now, because the clock was set back."""
    most = f"case when s.every_minutes > 0 then s.every_minutes * {MINUTE} + {LATEST_US} else {LATEST_DAY_US} end"
    return tx.all(
        Schedule,
        f"{_SCHEDULES} where s.next_at <= :now or s.next_at > :now + {most} order by s.next_at limit :limit",
        now=now,
        limit=limit,
    )


def next_due(tx: Tx) -> int | None:
    """Return the earliest time at which a schedule is due, in microseconds. Return None if there are no schedules."""
    return tx.value(int, "select min(next_at) from directory_schedules")


def advance_schedule(tx: Tx, schedule: Schedule, next_at: int, runs: int) -> bool:
    """Set the next time of a schedule. Return False if another node was earlier and has already set it."""
    sql = "update directory_schedules set next_at = :next, runs = :runs where directory_id = :id and next_at = :seen"
    return tx.execute(sql, id=schedule.directory_id, next=next_at, runs=runs, seen=schedule.next_at) > 0


# --- runs of agents -------------------------------------------------------------------------------------------------

_RUNS: Final = "select id, domain_id, directory_id, file, sequence, octets, node_id from directory_runs"


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run of an agent. In a run, the agent sends the entries of a directory in batches, and the service collects them
    in a file. sequence: the number of the last stored batch. octets: the size of the file. node_id: the node that has
    the file."""

    id: int
    domain_id: int
    directory_id: int
    file: str
    sequence: int
    octets: int
    node_id: int


def get_run(tx: Tx, domain_id: int, run_id: int) -> RunRow | None:
    """Return an agent's run in the domain, or None."""
    return tx.one(RunRow, f"{_RUNS} where id = :id and domain_id = :d", id=run_id, d=domain_id)


def run_of_directory(tx: Tx, directory_id: int) -> RunRow | None:
    """Return the open run in which an agent sends the entries of a directory, or None."""
    return tx.one(RunRow, f"{_RUNS} where directory_id = :dir", dir=directory_id)


def add_run(tx: Tx, domain_id: int, directory_id: int, file: str, node_id: int, at: int) -> int:
    """Add a run in which an agent sends the entries of a directory. Return the id of the run. node_id: the node that
    has the file of the run."""
    return insert_row(
        tx,
        "directory_runs",
        domain_id=domain_id,
        directory_id=directory_id,
        file=file,
        complete=0,
        created_at=at,
        updated_at=at,
        node_id=node_id,
    )


def batch_taken(tx: Tx, run: RunRow, octets: int, at: int) -> bool:
    """Count a batch from an agent after it was stored in the file. Return False if another request has already counted
    the batch, or if the domain was removed."""
    sql = (
        "update directory_runs set sequence = sequence + 1, octets = :octets, updated_at = :at "
        f"where id = :id and sequence = :sequence and {PRESENT}"
    )
    return tx.execute(sql, id=run.id, sequence=run.sequence, octets=octets, at=at) > 0


def delete_run(tx: Tx, run_id: int) -> None:
    """Delete the row of an agent's run. The run was finished or discarded before."""
    tx.execute("delete from directory_runs where id = :id", id=run_id)


def job_of_run(tx: Tx, domain_id: int, run_id: int) -> int | None:
    """Return the id of the import job for the entries of a finished run, or None."""
    sql = "select max(id) from directory_jobs where domain_id = :d and kind = 'agent' and file_name = :name"
    return tx.value(int, sql, d=domain_id, name=run_name(run_id))


def run_name(run_id: int) -> str:
    """Return the text for a run that lists of imports show in place of a file name."""
    return f"run {run_id}"
