"""The indexes of references between tables."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sallyport.store.connections import open_connection
from sallyport.store.migrations import migrate

NEVER_DELETED = {"tenants"}


def test_every_reference_has_an_index(tmp_path: Path) -> None:
    """An index begins with each column that refers to another table. Without it, the deletion of one row reads all rows
    that may refer to it, which belong to any tenant.
    """
    path = tmp_path / "s.db"
    with closing(open_connection(path)) as connection:
        migrate(connection, path)
        assert without_index(connection) == []


def without_index(connection: sqlite3.Connection) -> list[str]:
    """Return the columns that refer to another table and begin no index."""
    tables = [name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")]
    missing = []
    for table in tables:
        indexed = {key for (key,) in connection.execute("select name from pragma_table_info(?) where pk = 1", (table,))}
        for _, index, _, _, is_partial in connection.execute(f"pragma index_list({table})"):
            sql = "select name from pragma_index_info(?) where seqno = 0"
            (column,) = connection.execute(sql, (index,)).fetchone()
            created = connection.execute("select sql from sqlite_master where name = ?", (index,)).fetchone()
            if not is_partial or str(created).endswith(f"where {column} is not null',)"):
                indexed.add(column)
        for _, _, parent, column, *_ in connection.execute(f"pragma foreign_key_list({table})"):
            if parent not in NEVER_DELETED and column not in indexed:
                missing.append(f"{table} ({column})")
    return missing
