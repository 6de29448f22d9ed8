"""Bring a database to the schema of this program (through sqlite-utils), or refuse one that is newer."""

import sqlite3
from pathlib import Path

from sallyport.base.errors import SchemaError
from sallyport.store.migrations import ALL

_TABLES = "select 1 from sqlite_master where type = 'table' and name not in ('_sqlite_migrations', 'sqlite_sequence')"


def migrate(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Apply what is missing; the names of what was applied.

    Raises SchemaError: the file is no database, or a newer program has written it. The data directory's lock keeps
    a second process from doing the same at the same time.
    """
    from sqlite_utils import Database

    try:
        database = Database(connection, execute_plugins=False)
        applied = {each.name for each in ALL.applied(database)}
        if not applied and connection.execute(_TABLES).fetchone() is not None:
            raise SchemaError(f"{path} is a database of another program")
        newer = applied - {each.name for each in ALL._migrations}
        if newer:
            raise SchemaError(f"{path} was written by a newer version (it has {', '.join(sorted(newer))})")
        pending = [each.name for each in ALL.pending(database)]
        ALL.apply(database)
    except sqlite3.DatabaseError as error:
        raise SchemaError(f"{path}: {error}") from error
    return pending
