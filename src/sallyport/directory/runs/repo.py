"""The SQL of agents' runs."""

from dataclasses import dataclass
from typing import Final

from sallyport.store.model import Tx

_SELECT: Final = "select id, domain_id, directory_id, file, sequence, octets from directory_runs"


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run that is not finished. sequence: of the last batch that was taken. octets: of the file."""

    id: int
    domain_id: int
    directory_id: int
    file: str
    sequence: int
    octets: int


def get(tx: Tx, domain_id: int, run_id: int) -> RunRow | None:
    """A run of the domain, or None."""
    return tx.one(RunRow, f"{_SELECT} where id = :id and domain_id = :d", id=run_id, d=domain_id)


def of_directory(tx: Tx, directory_id: int) -> RunRow | None:
    """The run of a directory, or None."""
    return tx.one(RunRow, f"{_SELECT} where directory_id = :dir", dir=directory_id)


def add(tx: Tx, domain_id: int, directory_id: int, file: str, at: int) -> int:
    """The new run's id."""
    run_id = tx.value(
        int,
        "insert into directory_runs (domain_id, directory_id, file, complete, created_at, updated_at) "
        "values (:d, :dir, :file, 0, :at, :at) returning id",
        d=domain_id,
        dir=directory_id,
        file=file,
        at=at,
    )
    assert run_id is not None  # noqa: S101  an insert returns its row
    return run_id


def taken(tx: Tx, run: RunRow, octets: int, at: int) -> bool:
    """The batch after the last is in the file; False: another request was quicker."""
    sql = (
        "update directory_runs set sequence = sequence + 1, octets = :octets, updated_at = :at "
        "where id = :id and sequence = :sequence"
    )
    return tx.execute(sql, id=run.id, sequence=run.sequence, octets=octets, at=at) > 0


def delete(tx: Tx, run_id: int) -> None:
    """A run is finished, or thrown away."""
    tx.execute("delete from directory_runs where id = :id", id=run_id)


def job_of(tx: Tx, domain_id: int, run_id: int) -> int | None:
    """The import of a run that is finished, or None."""
    sql = "select max(id) from directory_jobs where domain_id = :d and kind = 'agent' and file_name = :name"
    return tx.value(int, sql, d=domain_id, name=name_of(run_id))


def name_of(run_id: int) -> str:
    """What an import of a run calls its file."""
    return f"run {run_id}"
