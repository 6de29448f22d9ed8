"""The protocols of the store that the other packages use, and what the transactions of both engines have in common.

SQL is written for both engines: named parameters, explicit columns, UTC integer microseconds, JSON as text, `on
conflict ... returning`. Both engines have the function `fold(text)`, which case-folds text of every script. `lower`
converts only the letters A to Z, but indexes exist only for `lower`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from sallyport.base.mac import mac_key, spellings
from sallyport.base.text import fold
from sallyport.store.foreign import ForeignChange

if TYPE_CHECKING:
    import trio  # imported for the type alone, because the bodies that the command line reads import this module
    from _typeshed import DataclassInstance

Value = int | float | str | bytes | None
NOTHING: Final[Mapping[str, Value]] = {}
T = TypeVar("T")
V = TypeVar("V", int, float, str, bytes)


@dataclass(frozen=True, slots=True)
class NewRows:
    """Rows to insert into a table.

    same: additional columns that have the same value in all rows. on_conflict: a clause such as `on conflict (id) do
    update set ...`. The inserted rows must not conflict with each other.
    """

    table: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    same: Mapping[str, Value] = field(default_factory=dict)
    on_conflict: str = ""


class TextSearch(Protocol):
    """Substring search in one engine, in the tables of `store.search`."""

    def find(self, index: str, text: str) -> "tuple[str, dict[str, Value]]":
        """Return SQL for the entries of an index that contain a text, and the parameters of the SQL. The SQL is the
        part of a select statement after `from`: a table and a condition. text: must be case-folded."""

    def merge(self, tx: "Tx", index: str) -> None:
        """Merge a small part of a search index, so that no later transaction has to merge a large part."""


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The part of a domain's list that a caller requests."""

    domain_id: int
    offset: int
    limit: int


class Tx(Protocol):
    """One transaction. It is valid only inside the function that receives it."""

    @property
    def search(self) -> TextSearch:
        """Return the engine's substring search."""

    @property
    def share(self) -> str:
        """Return the suffix of the totals that this transaction changes (see `store.counters`). The suffix is empty if
        only one process writes to the database."""

    def lock(self, table: str) -> str:
        """Return the end of a select statement that locks the selected rows of a table until the transaction ends. It
        is empty if only one process writes to the database. All nodes must lock rows in the same order."""

    def execute(self, sql: str, /, **parameters: Value) -> int:
        """Run a statement. Return the number of changed rows."""

    def one(self, shape: Callable[..., T], sql: str, /, **parameters: Value) -> T | None:
        """Return the first row as `shape(column=value, ...)`. Return None if there is no row."""

    def all(self, shape: Callable[..., T], sql: str, /, **parameters: Value) -> list[T]:
        """Return every row as `shape(column=value, ...)`."""

    def rows(self, sql: str, /, **parameters: Value) -> list[tuple[Value, ...]]:
        """Return every row as a tuple. This method is faster than `all`. It is meant for the code that runs at each
        login."""

    def value(self, kind: type[V], sql: str, /, **parameters: Value) -> V | None:
        """Return the first column of the first row. Return None if there is no row, or if the value is null."""

    def insert(
        self,
        table: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[Value]],
        *,
        same: Mapping[str, Value] = NOTHING,
        on_conflict: str = "",
    ) -> None:
        """Insert many rows with few statements (see `NewRows`). This is faster than one statement for each row."""
        self.insert_all([NewRows(table, columns, list(rows), same, on_conflict)])

    def insert_all(self, parts: "Sequence[NewRows]") -> None:
        """Insert rows into several tables, in any order. On PostgreSQL this needs only one round trip to the server. A
        row must not refer to another row of the same call."""

    def table(self, columns: Mapping[str, Sequence[int]]) -> "tuple[str, dict[str, Value]]":
        """Return SQL for a table of given numbers, and the parameters of the SQL. Each column has a name and one number
        for each row. The table is named `given`. It is meant for statements that change many rows at once."""

    def others_wait(self) -> bool:
        """Return whether a login waits for this transaction to end. Long work should call this method after each step,
        and stop early if the method returns True."""


class ValueCursor(Protocol):
    """The part of a cursor of sqlite3 and psycopg that reads the result of a statement."""

    @property
    def rowcount(self) -> int: ...

    @property
    def description(self) -> Sequence[Sequence[object]] | None: ...

    def fetchone(self) -> tuple[Value, ...] | None: ...

    def fetchall(self) -> list[tuple[Value, ...]]: ...


class CursorTx(Tx):
    """A transaction of either engine: it reads its rows from a cursor of Python's DB-API. The engine sets the
    attributes.

    _run: runs a statement with its parameters, and returns a cursor. _waiting: the logins that wait for the end of the
    transaction.
    """

    _run: Callable[[str, Mapping[str, Value]], ValueCursor]
    _waiting: Sized

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
        columns = tuple([column[0] for column in cursor.description or ()])
        rows = cursor.fetchall()
        # the shape is a dataclass whose fields are these columns, in this order
        if columns == getattr(shape, "__match_args__", None):
            return [shape(*row) for row in rows]
        names = _names(cursor)
        return [shape(**dict(zip(names, row, strict=True))) for row in rows]

    def rows(self, sql: str, /, **parameters: Value) -> list[tuple[Value, ...]]:
        return self._run(sql, parameters).fetchall()

    def value(self, kind: type[V], sql: str, /, **parameters: Value) -> V | None:
        row = self._run(sql, parameters).fetchone()
        return None if row is None or row[0] is None else kind(row[0])  # type: ignore[arg-type]


def _names(cursor: ValueCursor) -> tuple[str, ...]:
    # A list is faster than a generator, which would cost a call for each column. Python finds the parameter of an
    # interned name by its address. Without that, a row of 40 columns costs 800 comparisons of texts.
    return tuple([intern(str(column[0])) for column in cursor.description or ()])


Work = Callable[[Tx], T]
Done = Callable[[T | None, BaseException | None], None]
"""A function that is called on the event loop with the result of the work, or with its error."""


LISTED: Final = "(select cast(value as bigint) from json_each(:ids))"
"""SQL for a set of numbers, for `id in ...`. Pass the set as the parameter `ids=listed(...)`. One statement then serves
sets of any size."""
LISTED_TEXTS: Final = "(select value from json_each(:ids))"
"""SQL for a set of texts, passed as the parameter `ids=listed(...)`."""


def columns_of(row: "type[DataclassInstance]") -> list[str]:
    """Return the names of the columns from which `Tx.all` makes rows of a class: its fields."""
    return [each.name for each in fields(row)]


def among(values: Sequence[Value], most: int) -> tuple[str, dict[str, Value]]:
    """Return SQL for a set of values of any type, for `column in ...`, and its parameters.

    The set must have at least one value and at most `most` values. All sets with the same `most` have the same SQL, so
    that it is prepared only once.
    """
    padded = [*values, *[values[-1]] * (most - len(values))]
    return _marks(most), {f"among{number}": value for number, value in enumerate(padded)}


@cache
def _marks(most: int) -> str:
    return f"({', '.join(f':among{number}' for number in range(most))})"


def listed(ids: Iterable[Value]) -> str:
    """Return numbers or texts as JSON, for a parameter of LISTED or LISTED_TEXTS."""
    return json.dumps(list(ids))


def without_case(column: str, text: str) -> tuple[str, str]:
    """Return the two sides of a case-insensitive comparison: SQL for the column, and the converted text. If the text is
    ASCII, the comparison can use an index."""
    return (f"lower({column})", text.lower()) if text.isascii() else (f"fold({column})", fold(text))


def containing(columns: Iterable[str], text: str) -> tuple[str, dict[str, Value]]:
    """Return SQL for rows in which one of the columns contains a text, ignoring case, and the parameters of the SQL. If
    the text is a MAC address, the column `station` may have it in any notation."""
    template, folded = without_case("{}", text)
    found = [f"instr({template.format(column)}, :search) > 0" for column in columns]
    same, parameters = same_station(text)
    if "station" in columns and parameters:
        found.append(same)
    return f"({' or '.join(found)})", {"search": folded, **parameters}


def same_station(text: str) -> tuple[str, dict[str, Value]]:
    """Return SQL for rows whose column `station` is a MAC address, in any notation, and the parameters of the SQL.
    Return no parameters if the text is no MAC address."""
    key = mac_key(text)
    if not key:
        return "", {}
    return f"lower(station) in {LISTED_TEXTS.replace(':ids', ':spellings')}", {"spellings": listed(spellings(key))}


class Store(Protocol):
    """The store of the service's data. The embedded engine (SQLite) and PostgreSQL implement this protocol."""

    @property
    def changes(self) -> int:
        """Return a number that grows with each commit of this process. If the number is unchanged, this process has
        changed no row."""

    async def read(self, work: Work[T]) -> T:
        """Run `work` in a read transaction, on a consistent view of the committed rows. Raises StoreError."""

    async def read_now(self, work: Work[T]) -> T:
        """Run a short `work` that reads a row by its key, or a page of at most 100 rows (about 1 ms). Raises
        StoreError.

        The embedded engine runs `work` on the event loop, and then lets other tasks run. If `work` takes too long on
        the event loop, the engine stops it and runs it again in a thread. So `work` may run twice.
        """

    async def search(self, work: Work[T]) -> T:
        """Run `work` that reads many rows, with a time limit. Only a few searches run at the same time. A tenant has
        one search at a time, and the tenants take turns. Public documents have a connection of their own. Raises
        StoreError."""

    async def settled(self, table: str) -> int:
        """Return the highest id of a table for which all lower ids are settled: no new row can get a lower id. Return 0
        if the table is empty. Raises StoreError.

        A reader that follows a table stores this id as its position. The reader cannot use the highest id of the table
        at any time: nodes that write at the same time do not commit in the order of the ids. So this method waits until
        the current writers of the table have ended, usually for some milliseconds.
        """

    async def write(self, work: Work[T]) -> T:
        """Run `work`, and return when its changes are on disk. Raises StoreError if its changes were not committed.

        `work` may share a transaction with the work of other callers. If `work` raises an error, only the changes of
        `work` are undone. `work` may run twice, because the engine can abort a transaction that conflicts with a
        transaction of another node.
        """

    def submit(self, work: Work[T], done: Done[T]) -> None:
        """Run `work` without a waiting task, and call `done(result, error)` on the event loop.

        `done` is called in the order of the submissions, and possibly before this method returns. `work` must be short,
        because it may run on the event loop. It runs before all work that was passed to `write`.
        """


class Engine(Store, Protocol):
    """A store with the methods that the service needs to open, run, replace and close it."""

    @property
    def schema(self) -> str:
        """Return the name of the last migration of the schema that this program contains."""

    @property
    def is_shared(self) -> bool:
        """Return whether other nodes may use the database at the same time."""

    @property
    def is_replaced(self) -> bool:
        """Return whether a restore has replaced all rows and `acknowledge` was not called yet."""

    async def write_aside(self, work: Work[T]) -> T:
        """Run a short `work` that must not wait behind other writes, such as a heartbeat or a lease (see
        `Store.write`)."""

    def on_foreign_change(self, changed: Callable[[ForeignChange], None]) -> None:
        """Set the function that is called on the event loop when another process or node has changed rows."""

    @property
    def ready(self) -> bool:
        """Return whether the last write was committed."""

    async def run(self, *, task_status: "trio.TaskStatus[None]" = ...) -> None:
        """Process the queue of writes until cancelled. Then process the writes that are left in the queue."""

    def close(self) -> None:
        """Close every connection. No work may be running, and none may follow."""

    def write_copy(self, path: Path) -> None:
        """Write all rows into a new SQLite database, as a backup. The rows are a consistent view of the store.

        Call this method in a worker thread. Raises StoreError.
        """

    async def replace(self, path: Path) -> None:
        """Replace all rows by the rows of a SQLite database with the schema of this program.

        Raises StoreError if the replacement fails; then no row has changed. Until `acknowledge` is called, writes fail,
        because they may depend on the old rows.
        """

    def write_dump(self, path: Path) -> None:
        """Write all rows into a file with pg_dump. The rows are a consistent view of the store.

        Call this method in a worker thread. Raises StoreError if this engine has no dumps, or if pg_dump fails.
        """

    async def replace_by_dump(self, path: Path, then: Work[None]) -> None:
        """Replace all rows by the rows of a dump, as `replace` does. The dump is a file that `write_dump` has made from
        a database with the schema of this program.

        then: checks and completes the new rows in the same transaction. If `then` raises an error, no row has changed.
        """

    def acknowledge(self) -> None:
        """Accept writes again after a restore. Call this method when no cache contains old rows any more."""
