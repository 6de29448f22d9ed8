"""The protocols of the store that the areas use.

SQL is written for both engines: named parameters, explicit columns, UTC integer microseconds, JSON as text, `on
conflict ... returning`. Both engines also have `fold(text)`, which case-folds text of every script. `lower` converts
only the letters A to Z, but the indexes use it.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

import trio

from sallyport.base.text import fold
from sallyport.store.foreign import ForeignChange

Value = int | float | str | bytes | None
NOTHING: Final[Mapping[str, Value]] = {}
T = TypeVar("T")
V = TypeVar("V", int, float, str, bytes)


class TextSearch(Protocol):
    """The search of an engine in the tables of `store.search`."""

    def find(self, index: str, text: str) -> "tuple[str, dict[str, Value]]":
        """Return SQL for the entries of an index that contain a folded text, and its parameters. The SQL begins after
        `from`, with the table, and ends with a condition."""

    def merge(self, tx: "Tx", index: str) -> None:
        """Merge a small part of the index."""


class Tx(Protocol):
    """One transaction. It is valid only inside the work that received it."""

    @property
    def search(self) -> TextSearch:
        """Return the engine's search."""

    @property
    def share(self) -> str:
        """Return the suffix of the totals that this transaction changes (`store.counters`). If it is empty, each total
        has only one row."""

    def execute(self, sql: str, /, **parameters: Value) -> int:
        """Run a statement, and return the number of rows that it changed."""

    def one(self, shape: Callable[..., T], sql: str, /, **parameters: Value) -> T | None:
        """Return the first row as `shape(column=value, ...)`, or None."""

    def all(self, shape: Callable[..., T], sql: str, /, **parameters: Value) -> list[T]:
        """Return every row as `shape(column=value, ...)`."""

    def rows(self, sql: str, /, **parameters: Value) -> list[tuple[Value, ...]]:
        """Return every row as a tuple. This is faster than `all`, and meant for the hot path."""

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
        """Insert many rows in few statements, for the hot path and imports.

        same: additional columns, with one value for all rows. on_conflict: a clause such as `on conflict (id) do update
        set ...`. No two of the given rows may conflict with each other.
        """

    def others_wait(self) -> bool:
        """Return whether an answer waits for this transaction. If so, work that consists of many steps should end after
        its present step."""


Work = Callable[[Tx], T]
Done = Callable[[T | None, BaseException | None], None]
"""A function that is called on the event loop with the result of the work, or with its error."""


LISTED: Final = "(select cast(value as bigint) from json_each(:ids))"
"""SQL for a set of numbers. The set is given as the parameter `ids=listed(...)`, so that the statement is the same for
sets of any size."""
LISTED_TEXTS: Final = "(select value from json_each(:ids))"
"""The same for texts."""


def listed(ids: Iterable[Value]) -> str:
    """Return numbers or texts in the form of the parameter that LISTED or LISTED_TEXTS uses."""
    return json.dumps(list(ids))


def without_case(column: str, text: str) -> tuple[str, str]:
    """Return SQL for a case-insensitive form of a column, and the text in the same form. Their comparison uses an index
    if possible."""
    return (f"lower({column})", text.lower()) if text.isascii() else (f"fold({column})", fold(text))


class Store(Protocol):
    """The store of all data."""

    @property
    def changes(self) -> int:
        """Return a number that grows with each commit of this process. While it is unchanged, this process has changed
        no row."""

    async def read(self, work: Work[T]) -> T:
        """Run `work` on a consistent view of the committed rows. Raises StoreError."""

    async def read_now(self, work: Work[T]) -> T:
        """Run `work` that takes about 1 ms, because it reads a key or a page of at most 100 rows. Raises StoreError.

        The embedded engine runs it on the event loop, without a checkpoint. If it takes longer than expected, it starts
        again in a thread. So `work` may run twice.
        """

    async def search(self, work: Work[T]) -> T:
        """Run `work` that reads many rows, with a time limit. Only a few run at a time; the tenants and other actors
        (`base.actor`) take turns. Raises StoreError."""

    async def settled(self, table: str) -> int:
        """Return the newest id of a table once no smaller one can appear any more; 0 if the table is empty. Raises
        StoreError.

        A reader that stores how far it has read may store this id, but no newer one. The reason is that nodes that
        write at the same time do not commit in the order of the ids. It waits for the present writers of the table,
        usually for some milliseconds.
        """

    async def write(self, work: Work[T]) -> T:
        """Run `work`, and return when its changes are on disk. Raises StoreError if none of them was kept. `work` may
        share a transaction with other work. If it raises an error, only its own changes are undone. It runs again if
        the engine has aborted the transaction because of a transaction of another node.
        """

    def submit(self, work: Work[T], done: Done[T]) -> None:
        """Run `work` without a task that waits for it. Then `done(result, error)` is called on the event loop, in the
        order of the submissions, possibly before this method returns. `work` must be short: it may run on the event
        loop, and runs before all work that was passed to `write`."""


class Engine(Store, Protocol):
    """A store that the service opens, runs and closes."""

    @property
    def schema(self) -> str:
        """Return the name of the last step of the schema that this program contains."""

    @property
    def is_shared(self) -> bool:
        """Return whether other nodes may use the database at the same time."""

    @property
    def is_replaced(self) -> bool:
        """Return whether all rows were replaced since `acknowledge`."""

    async def write_aside(self, work: Work[T]) -> T:
        """Like `write`, for short work that must not wait behind other writes, such as heartbeats and leases."""

    def on_foreign_change(self, changed: Callable[[ForeignChange], None]) -> None:
        """Set a function that is called on the event loop after a change by another process."""

    @property
    def ready(self) -> bool:
        """Return whether the last write was kept."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Process the writes until cancelled. Then process the writes that are still in the queue."""

    def close(self) -> None:
        """Close every connection. No work may run any more."""

    def write_copy(self, path: Path) -> None:
        """Write all rows into a new SQLite database, which has the form of a backup. The rows are read at one moment.
        Call this method in a worker thread. Raises StoreError."""

    async def replace(self, path: Path) -> None:
        """Replace all rows by those of a database of SQLite with the schema of this program. Raises StoreError if it
        fails; then no row has changed. Until `acknowledge`, writes are refused, because they may depend on the old
        rows."""

    def write_dump(self, path: Path) -> None:
        """Let pg_dump write all rows into a file. The rows are read at one moment. Call this method in a worker thread.
        Raises StoreError if this engine has no such files, or if pg_dump has failed."""

    async def replace_by_dump(self, path: Path, then: Work[None]) -> None:
        """Like `replace`, but the rows come from a file that `write_dump` has made with the schema of this program.
        then: checks and completes the new rows in the same transaction. If it raises, no row has changed."""

    def acknowledge(self) -> None:
        """Accept writes again. Call it when no cache contains old rows any more."""
