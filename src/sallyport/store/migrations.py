"""The migrations of the SQLite schema: the baseline, and each later step (`schema.step_files`).

`migrate` upgrades a database to the schema of this program with sqlite-utils, or raises SchemaError.

A new table has the columns of later steps from its creation (`_Columns`), because SQLite parses the whole schema again
after each column that is added to a table. With one `alter table` for each column, a first start would take three times
as long.
"""

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
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


_COMMENTS: Final = r"(?:\s*--[^\n]*\n)*\s*"
_ADDED = re.compile(rf"{_COMMENTS}alter table (\w+) add column ((\w+) .*)", re.DOTALL)
_CREATED = re.compile(rf"{_COMMENTS}create table (\w+) ")
_PART = re.compile(rf"--[^\n]*|'[^']*'|[()]|,{_COMMENTS}(?:primary|unique|foreign|check|constraint)\b")
"""A part of the declaration of a table that says where its columns end: a parenthesis, or the comma before the first
constraint. Comments and texts are parts as well, because they may contain the others."""


class _Columns:
    """The columns that steps add to tables."""

    def __init__(self, steps: Sequence[StepFile]) -> None:
        self._steps = steps

    def run(self, db: Database, statement: str) -> None:
        """Run a statement of the schema: create a table with the columns of all steps, and add no column twice."""
        if added := _ADDED.match(statement):
            table, _, column = added.groups()
            if db.execute("select 1 from pragma_table_info(?) where name = ?", (table, column)).fetchone():
                return
        created = _CREATED.match(statement)
        db.execute(_with_columns(statement, self._of_table.get(created[1], ())) if created else statement)

    @cached_property
    def _of_table(self) -> Mapping[str, Sequence[str]]:
        """The declarations of the added columns, by table."""
        found: dict[str, list[str]] = {}
        for step in self._steps:
            for statement in statements_of(step.file, SqliteDialect()):
                if added := _ADDED.match(statement):
                    found.setdefault(added[1], []).append(added[2].strip())
        return found


def _with_columns(statement: str, columns: Sequence[str]) -> str:
    """Return the declaration of a table with further columns, which is the text that SQLite stores after `alter
    table`."""
    depth = 0
    for part in _PART.finditer(statement):
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        if (depth == 0 and part[0] == ")") or (depth == 1 and part[0][0] == ","):
            return statement[: part.start()] + "".join(f", {each}" for each in columns) + statement[part.start() :]
    return statement


def _baseline(columns: _Columns) -> Callable[[Database], None]:
    """Return the function that creates all tables, indexes, triggers and search indexes of the baseline."""

    def create(db: Database) -> None:
        for statement in (*statements(SqliteDialect()), *limits.triggers()):
            columns.run(db, statement)
        db.execute("insert into config_version (id, version) values (1, 1)")
        for name in SEARCHED:
            options = "tokenize = 'trigram case_sensitive 1', columnsize = 0"
            db.execute(f"create virtual table {name}_search using fts5 (texts, {options})")
        db.execute(f"insert into {MERGED_BY_HAND} ({MERGED_BY_HAND}, rank) values ('automerge', 0)")  # noqa: S608

    return create


def _fill_network_bits(db: Database) -> None:
    for number, network in db.execute("select id, network from radius_clients").fetchall():
        bits = network_bits(ip_network(network))
        db.execute("update radius_clients set network_bits = ? where id = ?", (bits, number))


_FURTHER: Final[Mapping[str, Callable[[Database], None]]] = {"network_bits": _fill_network_bits}
"""What steps do after their SQL, by their topics."""


def _step(step: StepFile, columns: _Columns) -> Callable[[Database], None]:
    """Return the function that applies a step."""

    def apply(db: Database) -> None:
        for statement in statements_of(step.file, SqliteDialect()):
            columns.run(db, statement)
        if further := _FURTHER.get(step.topic):
            further(db)

    return apply


def migrations_of(folders: Sequence[Path] = (PACKAGE,)) -> Migrations:
    """Return the baseline and the steps of the areas in the folders."""
    migrations = Migrations("sallyport")
    steps = step_files("m", folders, has_nodes=False)
    columns = _Columns(steps)
    migrations(name=BASELINE)(_baseline(columns))
    for step in steps:
        migrations(name=step.name)(_step(step, columns))
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
