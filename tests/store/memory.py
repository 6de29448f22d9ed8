"""Stores in memory, for tests of SQL without the rest of the store."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from sallyport.store.connections import SqliteTx
from sallyport.store.migrations import migrate


@contextmanager
def store_in_memory(rows: str = "") -> Iterator[SqliteTx]:
    """Return a transaction on a store in memory. rows: SQL statements that write its first rows."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.deserialize(_schema())
        connection.executescript(rows)
        yield SqliteTx(connection)


@cache
def _schema() -> bytes:
    """An empty store. It is made once in a process, because its migrations take 100 ms."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection, Path("memory"))
        return connection.serialize()
