"""The transaction of PostgreSQL that repositories use."""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from functools import lru_cache
from typing import Final, TypeVar

from sallyport.base.errors import BODY, Invalid
from sallyport.store.model import NOTHING, V, Value
from sallyport.store.postgres.connection import Cursor
from sallyport.store.postgres.search import TrigramSearch

T = TypeVar("T")
_NAME: Final = re.compile(r"'(?:[^']|'')*'|(?<!:):([a-z_][a-z0-9_]*)( is (?:not )?null)?")
"""A pattern for a text in quotes or a named parameter. It also matches a test for null after the parameter, because
such a
test needs a cast: null has no type."""
COPIED: Final = 32
"""The number of rows above which COPY is faster than arrays."""
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

    def get(
        self, cursor: Cursor, table: str, same: tuple[str, ...], columns: tuple[str, ...], on_conflict: str
    ) -> bytes:
        """Return the statement that inserts rows. Its parameters are one value for each column of `same`, and one array
        for each other column."""
        key = (table, same, columns, on_conflict)
        known = self._known.get(key)
        if known is None:
            kinds = self.types(cursor, table)
            marks = [f"${number}::{kinds[column]}" for number, column in enumerate((*same, *columns), 1)]
            arrays = ", ".join(f"{mark}[]" for mark in marks[len(same) :])
            head = f"insert into {table} ({', '.join((*same, *columns))})"
            shown = ", ".join([*marks[: len(same)], "given.*"])
            sql = f"{head} select {shown} from unnest({arrays}) as given {on_conflict}"
            known = self._known[key] = sql.encode()
        return known


class PostgresTx:
    """A transaction on the connection of a cursor. limit_s: the time limit in seconds; after it, each statement raises
    Invalid."""

    search = TrigramSearch()

    def __init__(
        self,
        cursor: Cursor,
        inserts: Inserts,
        waiting: Sized = (),
        limit_s: float | None = None,
        *,
        share: str = "",
    ) -> None:
        self._cursor = cursor
        self.share = share
        self._inserts = inserts
        self._waiting = waiting
        self._until = None if limit_s is None else time.monotonic() + limit_s

    def limited(self, limit_s: float) -> "PostgresTx":
        """Return this transaction with a time limit. After `limit_s` seconds, each statement raises Invalid."""
        return PostgresTx(self._cursor, self._inserts, self._waiting, limit_s, share=self.share)

    def lock(self, table: str) -> str:
        return f" for no key update of {table}"

    def others_wait(self) -> bool:
        return len(self._waiting) > 0

    def _run(self, sql: str, parameters: Mapping[str, Value]) -> Cursor:
        if self._until is not None and time.monotonic() > self._until:
            raise Invalid.about("the request changes too much at once: split it into smaller requests", BODY)
        text, names = numbered(sql)
        return self._cursor.execute(text, [parameters[name] for name in names])

    def execute(self, sql: str, /, **parameters: Value) -> int:
        return self._run(sql, parameters).rowcount

    def one(self, shape: Callable[..., T], sql: str, /, **parameters: Value) -> T | None:
        cursor = self._run(sql, parameters)
        row = cursor.fetchone()
        return None if row is None else shape(**dict(zip(_names(cursor), row, strict=True)))

    def all(self, shape: Callable[..., T], sql: str, /, **parameters: Value) -> list[T]:
        cursor = self._run(sql, parameters)
        names = _names(cursor)
        # the shape is a dataclass whose fields are these columns, in this order
        if names == getattr(shape, "__match_args__", None):
            return [shape(*row) for row in cursor.fetchall()]
        return [shape(**dict(zip(names, row, strict=True))) for row in cursor.fetchall()]

    def rows(self, sql: str, /, **parameters: Value) -> list[tuple[Value, ...]]:
        return self._run(sql, parameters).fetchall()  # type: ignore[return-value]

    def value(self, kind: type[V], sql: str, /, **parameters: Value) -> V | None:
        row = self._run(sql, parameters).fetchone()
        return None if row is None or row[0] is None else kind(row[0])  # type: ignore[call-overload,arg-type]

    def insert(
        self,
        table: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[Value]],
        *,
        same: Mapping[str, Value] = NOTHING,
        on_conflict: str = "",
    ) -> None:
        """Insert all rows in one statement, which gets one array for each column. For many rows, COPY is used instead,
        unless `on_conflict` is given."""
        all_rows = list(rows)
        if len(all_rows) >= COPIED and not on_conflict:
            self._copy(table, (*columns, *same), all_rows, tuple(same.values()))
        elif all_rows:
            sql = self._inserts.get(self._cursor, table, tuple(same), tuple(columns), on_conflict)
            self._cursor.execute(sql, [*same.values(), *(list(column) for column in zip(*all_rows, strict=True))])

    def _copy(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Value]], same: tuple[Value, ...]
    ) -> None:
        types = self._inserts.types(self._cursor, table)
        with self._cursor.copy(f"copy {table} ({', '.join(columns)}) from stdin (format binary)".encode()) as copy:
            copy.set_types([types[column] for column in columns])
            for row in rows:
                copy.write_row((*row, *same))


def _names(cursor: Cursor) -> tuple[str, ...]:
    return tuple([column.name for column in cursor.description or ()])
