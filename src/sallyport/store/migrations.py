"""The migrations of the SQLite schema: the baseline, and each later step (`schema.step_files`).

`migrate` upgrades a database to the schema of this program with sqlite-utils, or raises SchemaError.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from ipaddress import ip_network
from pathlib import Path
from typing import Final

from sqlite_utils import Database, Migrations

from sallyport.base.addresses import network_bits
from sallyport.base.errors import SchemaError
from sallyport.store.connections import add_fold
from sallyport.store.schema import PACKAGE, SEARCHED, StepFile, limits, statements, statements_of, step_files
from sallyport.store.schema.dialect import SqliteDialect

BASELINE = "m0001_baseline"
MERGED_BY_HAND = "directory_users_search"
"""The search index to which imports add many rows. `SearchIndex.merge` merges it in small parts, so that logins do not
wait."""
_TABLES = "select 1 from sqlite_schema where type = 'table' and name not in ('_sqlite_migrations', 'sqlite_sequence')"


def _create(db: Database) -> None:
    """Create all tables, indexes, triggers and search indexes of the baseline."""
    for statement in (*statements(SqliteDialect()), *limits.triggers()):
        db.execute(statement)
    db.execute("insert into config_version (id, version) values (1, 1)")
    for name in SEARCHED:
        options = "tokenize = 'trigram case_sensitive 1', columnsize = 0"
        db.execute(f"create virtual table {name}_search using fts5 (texts, {options})")
    db.execute(f"insert into {MERGED_BY_HAND} ({MERGED_BY_HAND}, rank) values ('automerge', 0)")  # noqa: S608


def _fill_network_bits(db: Database) -> None:
    for number, network in db.execute("select id, network from radius_clients").fetchall():
        bits = network_bits(ip_network(network))
        db.execute("update radius_clients set network_bits = ? where id = ?", (bits, number))


_FURTHER: Final[Mapping[str, Callable[[Database], None]]] = {"network_bits": _fill_network_bits}
"""What steps do after their SQL, by their topics."""


def _step(step: StepFile) -> Callable[[Database], None]:
    """Return the function that applies a step."""

    def apply(db: Database) -> None:
        for statement in statements_of(step.file, SqliteDialect()):
            db.execute(statement)
        if further := _FURTHER.get(step.topic):
            further(db)

    return apply


def migrations_of(folders: Sequence[Path] = (PACKAGE,)) -> Migrations:
    """Return the baseline and the steps of the areas in the folders."""
    migrations = Migrations("sallyport")
    migrations(name=BASELINE)(_create)
    for step in step_files("m", folders, has_nodes=False):
        migrations(name=step.name)(_step(step))
    return migrations


ALL = migrations_of()


def migrate(connection: sqlite3.Connection, path: Path, migrations: Migrations = ALL) -> list[str]:
    """Apply the pending migrations, and return their names.

    Raises SchemaError if the file is not a database, or if this program cannot use the database. The lock of the data
    directory prevents two processes from migrating at the same time.
    """
    try:
        add_fold(connection)
        database = Database(connection, execute_plugins=False)
        applied = {each.name for each in migrations.applied(database)}
        if not applied and connection.execute(_TABLES).fetchone() is not None:
            raise SchemaError(f"{path} is a database of another program")
        if reason := incompatibility(path, applied, migrations):
            raise SchemaError(reason)
        pending = [each.name for each in migrations._migrations if each.name not in applied]
        if pending:
            migrations.apply(database)
    except sqlite3.DatabaseError as error:
        raise SchemaError(f"{path}: {error}") from error
    return pending


def incompatibility(path: Path, applied: AbstractSet[str], migrations: Migrations = ALL) -> str:
    """Return the reason why this program cannot use a database, as text for a message. Return "" if the program can use
    the database.

    applied: the names of the migrations that were applied to the database.
    """
    newer = applied - {each.name for each in migrations._migrations}
    if newer and BASELINE in applied:
        return (
            f"{path} was written by a newer version of Sallyport (migration {', '.join(sorted(newer))}): install that "
            "version again, or go back to a backup that this version has made: move the database away, then run "
            "sallyport db restore FILE"
        )
    if newer:
        return (
            f"{path} was written before the first release, and its schema cannot be upgraded: "
            "choose another data directory, or move the database away"
        )
    return ""
