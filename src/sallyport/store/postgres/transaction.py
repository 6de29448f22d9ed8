"""The transaction of PostgreSQL that repositories use."""

import re
import time
from collections.abc import Callable, Mapping, Sequence, Sized
from functools import lru_cache, partial
from typing import Final, TypeVar, cast

from sallyport.base.errors import BODY, Invalid, StoreError
from sallyport.store.model import CursorTx, NewRows, Tx, Value, ValueCursor
from sallyport.store.postgres.connection import Cursor

T = TypeVar("T")

_NAME: Final = re.compile(r"'(?:[^']|'')*'|(?<!:):([a-z_][a-z0-9_]*)( is (?:not )?null)?")
"""A pattern for a text in quotes or a named parameter. It also matches a test for null after the parameter, because
such a test needs a cast: null has no type."""
COPIED: Final = 128
"""The number of rows above which COPY is faster than arrays."""
STATEMENT_S: Final = 0.05
"""Maximum time in seconds for which one statement counts toward the limit of a write."""
SLOW_S: Final = 3.0
"""Time in seconds after which the write of a request ends, if the database is slow."""
_TYPES: Final = b"""select attname, format_type(atttypid, null) from pg_attribute
where attrelid = $1::text::regclass and attnum > 0 and not attisdropped"""


@lru_cache(2048)
def numbered(sql: str) -> tuple[bytes, tuple[str, ...]]:
    """Replace the named parameters in SQL by numbered parameters. Return the new SQL, and the names of the parameters
    in the order of their numbers."""
    names: dict[tuple[str, bool], int] = {}

    def number(found: re.Match[str]) -> str:
        name, test = found[1], found[2]
        if not name:
            return found[0]
        mark = f"${names.setdefault((name, bool(test)), len(names) + 1)}"
        return f"{mark}::text{test}" if test else mark

    return _NAME.sub(number, sql).encode(), tuple(name for name, _ in names)


class Inserts:
    """A cache for all connections: the statements that insert many rows, and the types of the columns. The types are
    needed because the statements cast their parameters."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], bytes] = {}
        self._types: dict[str, dict[str, str]] = {}

    def types(self, cursor: Cursor, table: str) -> dict[str, str]:
        """Return the types of a table's columns."""
        known = self._types.get(table)
        if known is None:
            rows = cursor.execute(_TYPES, [table])
            known = self._types[table] = {str(column): str(kind) for column, kind in rows}
        return known

    def get(self, cursor: Cursor, parts: Sequence[NewRows]) -> bytes:
        """Return the statement that inserts the parts. The parameters of a part are one value for each column of
        `same`, and one array for each other column."""
        key = tuple([(each.table, tuple(each.same), tuple(each.columns), each.on_conflict) for each in parts])
        known = self._known.get(key)
        if known is None:
            inserts, number = list[str](), 1
            for each in parts:
                inserts.append(self._insert(cursor, each, number))
                number += len(each.same) + len(each.columns)
            *before, last = inserts
            named = ", ".join(f"part{number} as ({sql})" for number, sql in enumerate(before))
            known = self._known[key] = (f"with {named} {last}" if named else last).encode()
        return known

    def _insert(self, cursor: Cursor, part: NewRows, first: int) -> str:
        """Return the statement that inserts one part. first: the number of its first parameter."""
        kinds = self.types(cursor, part.table)
        columns = (*part.same, *part.columns)
        marks = [f"${number}::{kinds[column]}" for number, column in enumerate(columns, first)]
        arrays = ", ".join(f"{mark}[]" for mark in marks[len(part.same) :])
        shown = ", ".join([*marks[: len(part.same)], "given.*"])
        head = f"insert into {part.table} ({', '.join(columns)})"
        return f"{head} select {shown} from unnest({arrays}) as given {part.on_conflict}"


class TrigramSearch:
    """Substring search in one table. The rows of the search index have a trigram index on their texts."""

    def find(self, index: str, text: str) -> tuple[str, dict[str, Value]]:
        """Return SQL for the entries that contain a text, and the parameters of the SQL. The SQL is the part of a
        select statement after `from`: a table and a condition. text: must be case-folded."""
        pattern = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return f"{index} where texts like :pattern", {"pattern": f"%{pattern}%"}

    def merge(self, tx: Tx, index: str) -> None:
        """Do nothing, because PostgreSQL merges its index by itself."""


class WriteLimit:
    """The time limit of the write of a request. It counts the CPU time of the calling thread, and the statements.

    A slow server, or a lock of another transaction, delays short statements too, and the request is not at fault. So a
    statement counts for at most STATEMENT_S. clock: returns the time in seconds.
    """

    def __init__(self, limit_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until = time.thread_time() + limit_s
        self._slow_at = clock() + SLOW_S

    def run(self, statement: Callable[[], T]) -> T:
        """Run a statement, and count it. Raises Invalid instead if the write has done too much. Raises StoreError if
        the database is too slow for it."""
        began = self._clock()
        if time.thread_time() > self._until:
            raise Invalid.about("the request changes too much at once: split it into smaller requests", BODY)
        if began > self._slow_at:
            raise StoreError(f"the database needs more than {SLOW_S:g} s for a write")
        found = statement()
        self._until -= min(self._clock() - began, STATEMENT_S)
        return found


class PostgresTx(CursorTx):
    """A transaction on the connection of a cursor. limit: the limit of a request's write, or None."""

    search = TrigramSearch()
    share = ""

    def __init__(
        self, cursor: Cursor, inserts: Inserts, waiting: Sized = (), limit: WriteLimit | None = None, *, share: str = ""
    ) -> None:
        self._run, self._waiting = self._execute, waiting
        self._cursor = cursor
        self.share = share
        self._inserts = inserts
        self._limit = limit

    def limited(self, limit_s: float) -> "PostgresTx":
        """Return this transaction with a time limit in seconds. After it, each statement raises Invalid, or StoreError
        if the database is slow (see `WriteLimit`)."""
        return PostgresTx(self._cursor, self._inserts, self._waiting, WriteLimit(limit_s), share=self.share)

    def lock(self, table: str) -> str:
        return f" for no key update of {table}"

    def table(self, columns: Mapping[str, Sequence[int]]) -> tuple[str, dict[str, Value]]:
        arrays = ", ".join(f"cast(:given_{name} as bigint[])" for name in columns)
        parameters = {f"given_{name}": list(numbers) for name, numbers in columns.items()}
        return f"unnest({arrays}) as given ({', '.join(columns)})", cast("dict[str, Value]", parameters)

    def _execute(self, sql: str, parameters: Mapping[str, Value]) -> ValueCursor:
        text, names = numbered(sql)
        values = [parameters[name] for name in names]
        run = partial(self._cursor.execute, text, values)
        return cast(ValueCursor, run() if self._limit is None else self._limit.run(run))

    def insert_all(self, parts: Sequence[NewRows]) -> None:
        """Insert all parts in one statement, which gets one array for each column. For many rows, COPY is used instead,
        unless the part has `on_conflict`."""
        small: list[NewRows] = []
        for part in parts:
            if len(part.rows) >= COPIED and not part.on_conflict:
                self._copy(part.table, (*part.columns, *part.same), part.rows, tuple(part.same.values()))
            elif part.rows:
                small.append(part)
        if small:
            values: list[object] = []
            for part in small:
                values += part.same.values()
                values += map(list, zip(*part.rows, strict=True))
            self._cursor.execute(self._inserts.get(self._cursor, small), values)

    def _copy(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Value]], same: tuple[Value, ...]
    ) -> None:
        types = self._inserts.types(self._cursor, table)
        with self._cursor.copy(f"copy {table} ({', '.join(columns)}) from stdin (format binary)".encode()) as copy:
            copy.set_types([types[column] for column in columns])
            for row in rows:
                copy.write_row((*row, *same))
