"""All rows of a PostgreSQL database, as the source or target of `store.transfer`."""

from collections.abc import Iterator, Sequence
from typing import Final, cast

from psycopg import RawServerCursor

from sallyport.store.model import Value
from sallyport.store.postgres.connection import Connection
from sallyport.store.transfer import CHUNK, Rows, Table

LOAD_S: Final = 24 * 3600
"""Time limit in seconds of a statement that reads or writes a whole table."""


class PostgresRows:
    """The tables of a PostgreSQL database. They are read and written in the current transaction of the connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        connection.execute(f"set local statement_timeout = '{LOAD_S}s'")

    def read(self, table: Table) -> Iterator[Sequence[Value]]:
        with RawServerCursor(self._connection, "rows") as cursor:
            cursor.itersize = CHUNK
            cursor.execute(f"select {', '.join(table.columns)} from {table.name}".encode())
            yield from cast(Iterator[tuple[Value, ...]], cursor)

    def last_number(self, table: Table) -> int:
        sequence = self._sequence(table)
        row = self._connection.execute(f"select last_value, is_called from {sequence}".encode()).fetchone()
        assert row is not None  # noqa: S101  a sequence has one row
        return int(str(row[0])) if row[1] else 0

    def _sequence(self, table: Table) -> str:
        row = self._connection.execute(b"select pg_get_serial_sequence($1, 'id')", [table.name]).fetchone()
        assert row is not None  # noqa: S101
        return str(row[0])

    def clear(self, tables: Sequence[Table]) -> None:
        """Delete all rows. Disable the triggers of the tables until `enable` is called. The rows are not deleted with
        `truncate`, because read transactions that already run would then see empty tables."""
        for table in tables:
            self._connection.execute(f"alter table {table.name} disable trigger user".encode())
        for table in reversed(tables):
            self._connection.execute(f"delete from {table.name}".encode())

    def enable(self, tables: Sequence[Table]) -> None:
        """Enable the triggers of the tables again."""
        for table in tables:
            self._connection.execute(f"alter table {table.name} enable trigger user".encode())

    def write(self, table: Table, rows: Rows) -> None:
        into = f"copy {table.name} ({', '.join(table.columns)}) from stdin"
        with self._connection.cursor() as cursor, cursor.copy(into.encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def set_last_number(self, table: Table, number: int) -> None:
        """Set the sequence of a table's key. The next key is then higher than `number` and higher than all keys used so
        far. The sequence is never lowered, because a rollback would not restore its old number."""
        number = max(number, self.last_number(table))
        sequence = self._sequence(table)
        self._connection.execute(
            b"select setval($1::text::regclass, $2, $3 = 1)", [sequence, max(number, 1), number > 0]
        )
