"""The SQL of directories themselves. A directory's secret is sealed as `directories/ID/secret`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sallyport.base.errors import Conflict
from sallyport.base.text import fold
from sallyport.directory.imports import repo as jobs
from sallyport.store.model import Tx, Value
from sallyport.store.vault import Vault

_SELECT: Final = (
    "select id, domain_id, name, kind, account_name, app_url, settings, secret, cursor, mapping, created_at, "
    "updated_at from directories"
)


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory as it is stored. settings, mapping: JSON. secret: sealed."""

    id: int
    domain_id: int
    name: str
    kind: str
    account_name: str
    app_url: str
    settings: str
    secret: bytes | None
    cursor: str
    mapping: str
    created_at: int
    updated_at: int

    def __repr__(self) -> str:
        return f"Directory(id={self.id}, domain_id={self.domain_id}, name={self.name!r})"


def identity(directory_id: int) -> str:
    """What a directory's secret is sealed for."""
    return f"directories/{directory_id}/secret"


def get(tx: Tx, directory_id: int) -> Directory | None:
    """A directory, or None."""
    return tx.one(Directory, f"{_SELECT} where id = :id", id=directory_id)


def named(tx: Tx, domain_id: int, name: str) -> Directory | None:
    """The domain's directory of that name, without case, or None."""
    return tx.one(Directory, f"{_SELECT} where domain_id = :d and name_key = :key", d=domain_id, key=fold(name))


def called(tx: Tx, domain_id: int, name: str) -> list[Directory] | None:
    """Return the domain's directory of that name, or all its directories if its directoryName is that name; else
    None. Case does not matter."""
    directory = named(tx, domain_id, name)
    if directory is not None:
        return [directory]
    directory_name = tx.value(str, "select directory_name from domains where id = :d", d=domain_id)
    if not directory_name or fold(directory_name) != fold(name):
        return None
    return tx.all(Directory, f"{_SELECT} where domain_id = :d order by id", d=domain_id)


def standing(tx: Tx, domain_id: int, name: str) -> Directory | None:
    """`named`, for who has something done with the directory. Conflict: it is being removed."""
    found = named(tx, domain_id, name)
    if found is not None and jobs.open_removal(tx, found.id) is not None:
        raise Conflict("the directory is being removed")
    return found


def of_domain(tx: Tx, domain_id: int) -> list[Directory]:
    """A domain's directories, by id."""
    return tx.all(Directory, f"{_SELECT} where domain_id = :d order by id", d=domain_id)


def add(tx: Tx, domain_id: int, name: str, kind: str, at: int) -> Directory:
    """A new directory, of which nothing more is known."""
    added = tx.one(
        Directory,
        "insert into directories (domain_id, name, name_key, kind, account_name, app_url, settings, created_at, "
        "updated_at) values (:d, :name, :key, :kind, '', '', '{}', :at, :at) returning id, domain_id, name, kind, "
        "account_name, app_url, settings, secret, cursor, mapping, created_at, updated_at",
        d=domain_id,
        name=name,
        key=fold(name),
        kind=kind,
        at=at,
    )
    assert added is not None  # noqa: S101  an insert returns its row
    return added


def update(tx: Tx, directory_id: int, columns: Mapping[str, Value], at: int) -> None:
    """Set some of kind, account_name, app_url, settings, secret, cursor, mapping."""
    told = ", ".join(f"{name} = :{name}" for name in columns)
    tx.execute(f"update directories set {told}, updated_at = :at where id = :id", id=directory_id, at=at, **columns)


def delete(tx: Tx, directory_id: int) -> list[str]:
    """Forget a directory of which no person, group and unit is left; the files of its jobs and runs."""
    sql = "select file from directory_jobs where directory_id = :id union select file from directory_runs "
    files = [str(row[0]) for row in tx.rows(f"{sql}where directory_id = :id", id=directory_id)]
    for table in ("directory_members", "directory_jobs", "directory_runs", "directory_schedules"):
        tx.execute(f"delete from {table} where directory_id = :id", id=directory_id)
    tx.execute("delete from directories where id = :id", id=directory_id)
    return files


def check_key(tx: Tx, vault: Vault) -> None:
    """Open a secret, if there is one. SecretError."""
    found = tx.one(Directory, f"{_SELECT} where secret is not null limit 1")
    if found is not None and found.secret is not None:
        vault.open(found.secret, identity(found.id))
