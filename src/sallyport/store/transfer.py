"""The copy of all rows from one engine to the other, for backups of PostgreSQL and for `sallyport db copy`.

A backup is a SQLite file with the schema of the program, whichever engine the store uses. So moving an installation to
the other engine takes the same steps as a backup and a restore.

Every table is copied with its keys. The search indexes are copied too, and so are the totals that triggers maintain.
After the copy, the count and checksum of each table in the target are compared with those in the source.
"""

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from sqlite_utils import Database

from sallyport.base.errors import StoreError
from sallyport.store.connections import open_connection
from sallyport.store.migrations import migrate
from sallyport.store.model import Value
from sallyport.store.schema import SEARCHED

CHUNK: Final = 2000
"""Number of rows that are read and written at a time."""
Rows = Iterable[Sequence[Value]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that exists in both engines. numbers: whether its key is a number that the engine assigns and never
    reuses."""

    name: str
    columns: tuple[str, ...]
    numbers: bool


@dataclass(slots=True)
class Sum:
    """The number and the checksum of the rows of a table. The order of the rows does not change the checksum."""

    rows: int = 0
    digest: int = 0

    def add(self, row: Sequence[Value]) -> None:
        """Add a row to the number and the checksum."""
        self.rows += 1
        packed = repr([each.replace("\0", "\ufffd") if isinstance(each, str) else each for each in row]).encode()
        self.digest = (self.digest + int.from_bytes(hashlib.blake2b(packed, digest_size=16).digest())) % (1 << 128)


class Source(Protocol):
    """The database from which the rows are copied."""

    def read(self, table: Table) -> Iterator[Sequence[Value]]:
        """Yield all rows of a table."""

    def last_number(self, table: Table) -> int:
        """Return the highest key that a table has ever used."""


class Target(Source, Protocol):
    """The database to which the rows are copied, in one transaction."""

    def write(self, table: Table, rows: Rows) -> None:
        """Replace all rows of a table, without running triggers."""

    def set_last_number(self, table: Table, number: int) -> None:
        """Set the highest key that a table has ever used. The next key will be higher."""


def transfer(source: Source, target: Target, tables: Sequence[Table]) -> int:
    """Copy all rows of the tables, and return their number. Raises StoreError if the rows in the target differ from the
    rows in the source."""
    copied = 0
    for table in tables:
        read, kept = Sum(), Sum()
        target.write(table, _counted(source.read(table), read))
        for row in target.read(table):
            kept.add(row)
        if read != kept:
            raise StoreError(f"the copy of {table.name} is wrong: {read.rows} rows read, {kept.rows} rows in the copy")
        if table.numbers:
            target.set_last_number(table, source.last_number(table))
        copied += read.rows
    return copied


def _counted(rows: Iterator[Sequence[Value]], into: Sum) -> Iterator[Sequence[Value]]:
    for row in rows:
        into.add(row)
        yield row


class SqliteFile:
    """A SQLite database with the schema of this program, as a source or target."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def tables(self) -> list[Table]:
        """Return all tables of the database. A table comes after the tables that it refers to."""
        found = [
            Table(each.name, tuple(each.columns_dict), "autoincrement" in each.schema)
            for each in Database(self._connection, execute_plugins=False).tables
            if not each.name.startswith(("sqlite_", "_sqlite")) and "_search" not in each.name
        ]
        return [*found, *(Table(f"{name}_search", ("rowid", "texts"), numbers=False) for name in SEARCHED)]

    def read(self, table: Table) -> Iterator[Sequence[Value]]:
        yield from self._connection.execute(f"select {', '.join(table.columns)} from {table.name}")  # noqa: S608

    def last_number(self, table: Table) -> int:
        row = self._connection.execute("select seq from sqlite_sequence where name = ?", (table.name,)).fetchone()
        return 0 if row is None else int(row[0])

    def write(self, table: Table, rows: Rows) -> None:
        marks = ", ".join("?" * len(table.columns))
        self._connection.execute(f"delete from {table.name}")  # noqa: S608
        self._connection.executemany(
            f"insert into {table.name} ({', '.join(table.columns)}) values ({marks})",  # noqa: S608
            rows,
        )

    def set_last_number(self, table: Table, number: int) -> None:
        self._connection.execute("delete from sqlite_sequence where name = ?", (table.name,))
        self._connection.execute("insert into sqlite_sequence (name, seq) values (?, ?)", (table.name, number))


def tables() -> list[Table]:
    """Return all tables of the schema. A table comes after the tables that it refers to."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, Path("the schema"))
        return SqliteFile(connection).tables()


def write_file(path: Path, source: Source) -> None:
    """Create a SQLite database at `path` with all rows of a source. Raises StoreError."""
    with closing(open_connection(path)) as connection:
        migrate(connection, path)
        connection.execute("pragma foreign_keys = off")
        connection.execute("begin")
        triggers = Database(connection, execute_plugins=False).triggers
        for each in triggers:
            connection.execute(f"drop trigger {each.name}")
        file = SqliteFile(connection)
        transfer(source, file, file.tables())
        for each in triggers:
            connection.execute(each.sql)
        connection.execute("commit")
        connection.execute("pragma journal_mode = delete")
