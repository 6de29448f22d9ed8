"""What the transactions of both engines have in common: they read their rows from a cursor of Python's DB-API."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Protocol, TypeVar

from sallyport.store.model import NOTHING, NewRows, Tx, V, Value

T = TypeVar("T")


class ValueCursor(Protocol):
    """The part of a cursor of sqlite3 and psycopg that reads the result of a statement."""

    @property
    def rowcount(self) -> int: ...

    @property
    def description(self) -> Sequence[Sequence[object]] | None: ...

    def fetchone(self) -> tuple[Value, ...] | None: ...

    def fetchall(self) -> list[tuple[Value, ...]]: ...


class CursorTx(Tx):
    """A transaction that reads its rows from a cursor.

    run: runs a statement with its parameters, and returns a cursor. waiting: the logins that wait for the end of the
    transaction.
    """

    def __init__(self, run: Callable[[str, Mapping[str, Value]], ValueCursor], waiting: Sized) -> None:
        self._run = run
        self._waiting = waiting

    def others_wait(self) -> bool:
        return len(self._waiting) > 0

    def execute(self, sql: str, /, **parameters: Value) -> int:
        return self._run(sql, parameters).rowcount

    def one(self, shape: Callable[..., T], sql: str, /, **parameters: Value) -> T | None:
        cursor = self._run(sql, parameters)
        row = cursor.fetchone()
        return None if row is None else shape(**dict(zip(_names(cursor), row, strict=True)))

    def all(self, shape: Callable[..., T], sql: str, /, **parameters: Value) -> list[T]:
        cursor = self._run(sql, parameters)
        names = _names(cursor)
        rows = cursor.fetchall()
        # the shape is a dataclass whose fields are these columns, in this order
        if names == getattr(shape, "__match_args__", None):
            return [shape(*row) for row in rows]
        return [shape(**dict(zip(names, row, strict=True))) for row in rows]

    def rows(self, sql: str, /, **parameters: Value) -> list[tuple[Value, ...]]:
        return self._run(sql, parameters).fetchall()

    def value(self, kind: type[V], sql: str, /, **parameters: Value) -> V | None:
        row = self._run(sql, parameters).fetchone()
        return None if row is None or row[0] is None else kind(row[0])  # type: ignore[arg-type]

    def insert(
        self,
        table: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[Value]],
        *,
        same: Mapping[str, Value] = NOTHING,
        on_conflict: str = "",
    ) -> None:
        self.insert_all([NewRows(table, columns, list(rows), same, on_conflict)])


def _names(cursor: ValueCursor) -> tuple[str, ...]:
    # faster than a generator, which would cost a call for each column
    return tuple([column[0] for column in cursor.description or ()])  # type: ignore[misc]
