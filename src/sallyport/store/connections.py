"""Connections to the embedded database (SQLite): how they are opened, the transaction on a connection, and the pool of
read connections."""

import json
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence, Sized
from contextlib import suppress
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from types import NoneType
from typing import Protocol, TypeVar

import trio

from sallyport.base.errors import BODY, Contradiction, Invalid, LimitReached, SallyportError, StoreError, TookTooLong
from sallyport.base.text import fold
from sallyport.settings.limits import DEFAULTS
from sallyport.store.model import CursorTx, NewRows, Tx, Value, Work
from sallyport.store.turns import TimeSlices

T = TypeVar("T")

TRIGRAM = 3
MAX_PHRASE_LENGTH = 16
"""Maximum number of letters of a phrase that FTS5 searches for. FTS5 reads the entries of each trigram of a phrase. A
search for 255 letters took 1.3 s; a search for 16 letters takes 80 ms."""
MERGED = 16
"""Number of pages that one merge of FTS5 writes. A short transaction adds fewer pages to the index."""
MAX_INSERT_LENGTH = 64  # rows in one statement; 500 columns would still be within SQLite's 32,766 parameters
# Length of the write-ahead log that starts a checkpoint, in pages of 4 KiB. With LONG_LOG, checkpoints are so rare that
# the p99 of a commit is 6 ms, and the log stays below 80 MB. On a nearly full disk SHORT_LOG applies, because the log
# takes space that the database needs.
LONG_LOG, SHORT_LOG = 20_000, 256
# After a transaction on the event loop that takes longer than QUICK_S seconds, none runs there for SLOW_FOR_S seconds.
QUICK_S, SLOW_FOR_S = 0.01, 1.0
# A transaction on the event loop may take QUICK_STEPS * QUICK_LOOKS steps of SQLite's virtual machine, about 0.3 ms.
QUICK_STEPS, QUICK_LOOKS = 1000, 20
SLICE_S = 0.1
"""Time in seconds after which a search lets the search of another tenant run."""
MAX_STRETCH = 3
BUSY_MS = 5000  # the longest wait for a lock that another program holds
_PRAGMAS = f"""
pragma journal_mode = wal; pragma synchronous = full; pragma wal_autocheckpoint = {LONG_LOG};
pragma journal_size_limit = 83886080; pragma foreign_keys = on; pragma busy_timeout = {BUSY_MS};
pragma temp_store = memory; pragma secure_delete = fast;
"""


def _as_it_is(value: bytes | None) -> bytes | None:
    return value


# Without these adapters, sqlite3 searches for an adapter for each null and each bytes value, and raises an internal
# exception, which takes half a microsecond for each value.
for _kind in (NoneType, bytes):
    sqlite3.register_adapter(_kind, _as_it_is)


class Statements(Protocol):
    """The methods of a SQLite connection that `SqliteTx` uses."""

    def execute(self, sql: str, parameters: Mapping[str, Value] | Sequence[Value], /) -> sqlite3.Cursor:
        """Run a statement."""


class _Limited:
    """A connection for one caller, with a limit of CPU time. When the caller's thread has used `limit_s` seconds of CPU
    time, each statement raises Invalid."""

    def __init__(self, connection: Statements, limit_s: float) -> None:
        self._connection = connection
        self._until = time.thread_time() + limit_s

    def execute(self, sql: str, parameters: Mapping[str, Value] | Sequence[Value], /) -> sqlite3.Cursor:
        if time.thread_time() > self._until:
            raise Invalid.about("the request changes too much at once: split it into smaller requests", BODY)
        return self._connection.execute(sql, parameters)


class FtsSearch:
    """Substring search with SQLite's FTS5, in a table with the trigram tokenizer.

    If the searched text is long, FTS5 looks only for the first letters of the text. The rows that FTS5 finds are then
    searched for the whole text. A text of one or two letters contains no trigram. For such a text, SQLite scans the
    rows of the domain in FTS5's table `..._content`.
    """

    def find(self, index: str, text: str) -> tuple[str, dict[str, Value]]:
        if len(text) < TRIGRAM:
            return f"{index}_content where instr(c0, :match) > 0", {"match": text}
        found = f"{index} where {index} match :match"
        phrase = '"{}"'.format(text[:MAX_PHRASE_LENGTH].replace('"', '""'))
        if len(text) <= MAX_PHRASE_LENGTH:
            return found, {"match": phrase}
        return f"{found} and instr(texts, :wanted) > 0", {"match": phrase, "wanted": text}

    def merge(self, tx: Tx, index: str) -> None:
        """Merge a few pages of a search index. This replaces FTS5's `automerge`, which merges large parts at once and
        takes 30 ms with 30,000 rows."""
        tx.execute(f"insert into {index} ({index}, rank) values ('merge', :pages)", pages=MERGED)  # noqa: S608


class SqliteTx(CursorTx):
    """A transaction on one connection of the embedded database."""

    search = FtsSearch()
    share = ""

    def __init__(self, connection: Statements, waiting: Sized = ()) -> None:
        self._connection = connection
        self._run, self._waiting = connection.execute, waiting

    def limited(self, limit_s: float) -> "SqliteTx":
        """Return this transaction with a limit of CPU time. After `limit_s` seconds of CPU time, each statement raises
        Invalid."""
        return SqliteTx(_Limited(self._connection, limit_s), self._waiting)

    def lock(self, table: str) -> str:
        return ""

    def table(self, columns: Mapping[str, Sequence[int]]) -> tuple[str, dict[str, Value]]:
        names = ", ".join(f"json_extract(value, '$[{number}]') as {name}" for number, name in enumerate(columns))
        rows = json.dumps([*zip(*columns.values(), strict=True)])
        return f"(select {names} from json_each(:given)) as given", {"given": rows}  # noqa: S608

    def insert_all(self, parts: Sequence[NewRows]) -> None:
        """Insert rows in statements of up to 64 rows.

        A few large statements are better than many small ones. While SQLite runs a statement, sqlite3 does not hold the
        interpreter lock, and the event loop can run. After each statement, the thread must get the lock again. Values
        of `same` are bound once for each statement.
        """
        for new in parts:
            for start in range(0, len(new.rows), MAX_INSERT_LENGTH):
                part = new.rows[start : start + MAX_INSERT_LENGTH]
                sql = _insert_sql(new.table, tuple(new.columns), tuple(new.same), len(part), new.on_conflict)
                self._connection.execute(sql, [*new.same.values(), *chain.from_iterable(part)])


@lru_cache(maxsize=1024)
def _insert_sql(table: str, columns: tuple[str, ...], same: tuple[str, ...], count: int, on_conflict: str) -> str:
    """Return the statement that inserts `count` rows. same: the columns whose value is bound once for all rows."""
    names = (*same, *columns)
    into = f"insert into {table} ({', '.join(names)})"
    if count == 1 or not same:
        return f"{into} values {_places(len(names), count)} {on_conflict}"
    # Numbered parameters (`?1`) would do the same, but Python 3.14 no longer accepts a sequence for them.
    once = ", ".join("?" * len(same))
    return f"{into} select {once}, * from (values {_places(len(columns), count)}) where true {on_conflict}"  # noqa: S608


def _places(columns: int, count: int) -> str:
    """Return the placeholders for the values of `count` rows."""
    return ", ".join([f"({', '.join('?' * columns)})"] * count)


def open_connection(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a connection with the settings that all connections share. Raises StoreError if the file cannot be opened or
    is not a database."""
    uri = f"{path.absolute().as_uri()}{'?mode=ro' if read_only else ''}"
    try:
        connection = sqlite3.connect(
            uri, uri=True, check_same_thread=False, isolation_level=None, cached_statements=256
        )
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}") from error
    try:
        add_fold(connection)
        connection.executescript(f"pragma query_only = on; pragma busy_timeout = {BUSY_MS};" if read_only else _PRAGMAS)
    except sqlite3.Error as error:
        connection.close()
        raise StoreError(f"{path}: {error}") from error
    return connection


def add_fold(connection: sqlite3.Connection) -> None:
    """Add the SQL function `fold` to a connection."""
    connection.create_function("fold", 1, _fold, deterministic=True)


def _fold(value: Value) -> str | None:
    """Return the case-folded text. Octets are decoded as UTF-8."""
    if isinstance(value, bytes):
        return fold(value.decode(errors="replace"))
    return None if value is None else fold(str(value))


class Read(Protocol):
    """A method of the store that reads."""

    def __call__(self, work: Work[T], /) -> Awaitable[T]:
        """Run `work` in a read transaction."""


class QuickReader:
    """A read-only connection for short reads on the event loop.

    otherwise: runs a read that takes too long here, in a thread. clock: returns the time in seconds.
    """

    def __init__(self, path: Path, otherwise: Read, clock: Callable[[], float] = time.perf_counter) -> None:
        self._otherwise = otherwise
        self._clock = clock
        self._connection = open_connection(path, read_only=True)
        self._connection.execute("pragma busy_timeout = 0")
        self._connection.set_progress_handler(self._is_spent, QUICK_STEPS)
        self._looks = 0
        self._slow_until = 0.0
        self._was_slow = False

    async def read(self, work: Work[T]) -> T:
        """Run `work` here, and then let other tasks run; see `Store.read_now`."""
        with suppress(sqlite3.Error):
            found = self.run(work)
            await trio.lowlevel.checkpoint()
            return found
        return await self._otherwise(work)

    def run(self, work: Work[T]) -> T:
        """Run `work` in a read transaction. Raises sqlite3.Error if SQLite needs too many steps for `work`, if the disk
        is slow, or if SQLite fails."""
        started = self._clock()
        if started < self._slow_until:
            raise sqlite3.OperationalError("the disk is slow")
        self._looks = QUICK_LOOKS
        try:
            self._connection.execute("begin")
            return work(SqliteTx(self._connection))
        finally:
            with suppress(sqlite3.Error):
                self._connection.execute("rollback")
            was_slow, self._was_slow = self._was_slow, self._clock() - started > QUICK_S
            if was_slow and self._was_slow:  # a single slow transaction may only have waited for a processor
                self._slow_until = started + SLOW_FOR_S

    def _is_spent(self) -> bool:
        """Return whether the transaction has used up the number of SQLite's steps that it may take. This method counts
        the steps of all statements together. SQLite would count the steps of each statement separately."""
        self._looks -= 1
        return self._looks < 0

    def close(self) -> None:
        self._connection.close()


class Readers:
    """A pool of read-only connections, opened when needed. Each connection serves one read at a time.

    count: the maximum number of connections. running: the number of reads that run at the same time. If it is less than
    `count`, the reads share the time in slices of SLICE_S seconds, so that no read waits for the end of a long one.
    """

    def __init__(self, path: Path, count: int, running: int | None = None) -> None:
        self._open = partial(open_connection, path, read_only=True)
        self._idle: list[sqlite3.Connection] = []
        self._is_closed = False
        self._limit = trio.CapacityLimiter(count)
        self._slices = TimeSlices(running or count)

    async def run(self, work: Work[T], *, timeout_s: float) -> T:
        """Run `work` in a read transaction. Raises StoreError if the engine fails, or if the work runs for longer than
        `timeout_s`."""
        async with self._limit:
            if self._is_closed:
                raise StoreError("the store is closed")
            connection = self._idle.pop() if self._idle else await trio.to_thread.run_sync(self._open)
            try:
                return await trio.to_thread.run_sync(_read, connection, work, Allowance(timeout_s, self._slices))
            finally:
                self._idle.append(connection)

    def close(self) -> None:
        self._is_closed = True
        for connection in self._idle:
            connection.close()


class Allowance:
    """The time that one read may take.

    timeout_s: the time in seconds for which the read may run. With its pauses, it may take MAX_STRETCH times as long.
    clock: returns the time in seconds.
    """

    def __init__(self, timeout_s: float, slices: TimeSlices, clock: Callable[[], float] = time.monotonic) -> None:
        self.timeout_s = timeout_s
        self._slices = slices
        self._clock = clock
        self._left = timeout_s

    def __enter__(self) -> "Allowance":
        self._last = self._clock() + MAX_STRETCH * self.timeout_s
        self._slices.take()
        self._began = self._clock()
        return self

    def __exit__(self, *_: object) -> None:
        self._slices.give()

    def is_spent(self) -> bool:
        """Return whether the read must end. SQLite calls this every few milliseconds. At the end of a slice, the read
        pauses here if another one waits."""
        now = self._clock()
        if now > self._last or now - self._began > self._left:
            return True
        if now - self._began > SLICE_S and self._slices.others_wait:
            self._left -= now - self._began
            self._slices.give()
            self._slices.take()
            self._began = self._clock()
        return False


def _read(connection: sqlite3.Connection, work: Work[T], allowance: Allowance) -> T:
    try:
        with allowance:
            connection.set_progress_handler(allowance.is_spent, 10_000)
            connection.execute("begin")
            return work(SqliteTx(connection))
    except sqlite3.Error as error:
        if primary_code(error) == sqlite3.SQLITE_INTERRUPT:
            raise TookTooLong(allowance.timeout_s) from error
        raise StoreError(str(error)) from error
    finally:
        with suppress(sqlite3.Error):
            connection.set_progress_handler(None, 0)
            connection.execute("rollback")


def primary_code(error: Exception) -> int:
    """Return SQLite's primary result code of an error. Return 0 if SQLite did not raise the error."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def as_ours(error: sqlite3.Error) -> SallyportError:
    """Convert an error of SQLite to the corresponding error of `base.errors`."""
    if not isinstance(error, sqlite3.IntegrityError):
        return StoreError(str(error))
    limit = str(error).removeprefix("limit: ")  # an error that a trigger of schema.limits has raised
    return LimitReached(limit) if limit in DEFAULTS else Contradiction(str(error))
