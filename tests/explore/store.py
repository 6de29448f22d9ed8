"""The shared database of an exploration, in memory, and the store of each node."""

import re
import sqlite3
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from typing import TypeVar

import trio

from sallyport.base.errors import StoreError
from sallyport.store.connections import SqliteTx
from sallyport.store.foreign import ForeignChange
from sallyport.store.model import Value, Work
from sallyport.store.postgres.schema import _NODES as TABLES

T = TypeVar("T")
Park = Callable[[str, object], Awaitable[str]]
"""A function that waits until the explorer runs a step. It takes the name of the step, and what identifies it. It
returns the error of the step: empty, FAILS or LOST."""
FAILS, LOST = "fails", "lost"
"""The errors of a transaction or of a call. FAILS: it did not happen. LOST: it happened, and its caller gets an
error."""

# SQLite 3.40 has an error in `returning ... is not null` if other columns of the table are not null.
_PROMPTS = re.sub(
    r" collate \"C\"| not null", "", next(each for each in TABLES if each.startswith("create table prompts"))
)
_OTHERS = """
create table challenges (id text primary key, domain_id integer, expires_at integer, session text);
create table nodes (session text primary key, seen_at integer);
create table answers (packet integer, node text, code text);
"""


class Database:
    """The tables of the second factor, with the functions of PostgreSQL that its SQL uses. now_us: the database's
    clock."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._connection = connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.executescript(f"{_PROMPTS};{_OTHERS}")
        connection.create_function("now_us", 0, now_us)
        connection.create_function("greatest", -1, lambda *values: max(each for each in values if each is not None))
        connection.create_function("least", -1, min)
        connection.create_function("hashtext", 1, lambda _: 0)
        connection.create_function("pg_advisory_xact_lock", 2, lambda *_: None)
        self._tx = SqliteTx(_Translated(connection))

    def run(self, work: Work[T]) -> T:
        """Run a transaction."""
        self._connection.execute("begin")
        try:
            result = work(self._tx)
        except BaseException:
            self._connection.execute("rollback")
            raise
        self._connection.execute("commit")
        return result

    def rows(self, sql: str, /, **parameters: Value) -> list[tuple[Value, ...]]:
        """Return the rows of a select statement."""
        return self._tx.rows(sql, **parameters)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class _Translated:
    """A connection that takes SQL for PostgreSQL."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, *parameters: object) -> sqlite3.Cursor:
        return self._connection.execute(_of_sqlite(sql), *parameters)


@lru_cache
def _of_sqlite(sql: str) -> str:
    if sql.startswith("update prompts p "):
        sql = sql.replace("prompts p ", "prompts ", 1).replace("p.", "prompts.")
    return re.sub(r" for update( of p)?$", "", sql)


class NodeStore:
    """The store of one node. Each transaction waits in `park` until the explorer runs it."""

    is_shared = True
    ready = True

    def __init__(self, database: Database, park: Park) -> None:
        self._database = database
        self._park = park

    async def write_aside(self, work: Work[T]) -> T:
        """Run a transaction. As in the engines, it is not cancelled when it has begun."""
        await trio.lowlevel.checkpoint_if_cancelled()
        with trio.CancelScope(shield=True):
            error = await self._park(name_of(work), work)
            if error == FAILS:
                raise StoreError("the transaction has failed")
            result = self._database.run(work)
            if error == LOST:
                raise StoreError("the result of the transaction is unknown")
            return result

    read = read_now = write = search = write_aside

    def on_foreign_change(self, changed: Callable[[ForeignChange], None]) -> None:
        """Do nothing: announcements may be lost, and the reads of each second replace them."""


def name_of(work: object) -> str:
    """Return the name of the function that runs in a transaction."""
    while isinstance(work, partial):
        work = work.func
    name: str = getattr(work, "__qualname__", "")
    return name.partition(".<locals>")[0]
