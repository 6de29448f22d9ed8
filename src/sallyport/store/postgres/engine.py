"""The store on PostgreSQL: connections that read and that write, and the listener for changes by other nodes."""

import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Final, TypeVar

import psycopg
import trio

from sallyport.base.errors import SchemaError, StoreError, TookTooLong
from sallyport.metrics import StoreMetrics
from sallyport.settings.limits import DEFAULTS
from sallyport.store.foreign import ForeignChange
from sallyport.store.model import Tx, Work
from sallyport.store.postgres import server
from sallyport.store.postgres.connection import Connection, Cursor, as_ours, connect
from sallyport.store.postgres.dialer import Dialer, Pause, cut
from sallyport.store.postgres.dump import load_dump, write_dump
from sallyport.store.postgres.listener import Listener
from sallyport.store.postgres.migration import STEPS, Steps, check_current, has_store, migrate
from sallyport.store.postgres.rows import PostgresRows
from sallyport.store.postgres.schema import set_limits
from sallyport.store.postgres.transaction import Inserts, PostgresTx
from sallyport.store.postgres.writer import Restores, WriterConnection
from sallyport.store.transfer import SqliteFile, transfer, write_file
from sallyport.store.turns import Turns

T = TypeVar("T")

READERS: Final = 4
SEARCHERS: Final = 4
WRITERS: Final = ("journal", "others", "pulse")
CONNECTIONS: Final = READERS + SEARCHERS + len(WRITERS) + 2
"""Maximum number of connections of a process, including the connection that listens and the connection for public
documents."""
READ_S: Final = 30.0
SEARCH_S: Final = 10.0
PUBLIC_S: Final = 2.0
"""Time limit in seconds of a search for a public document."""
WRITE_S: Final = 1.0
"""Limit of the write of a request, in seconds (`transaction.WriteLimit`). It is short, because other writes wait."""
SETTLE_S: Final = 0.01
"""Pause in seconds between two checks for transactions that write to a table."""
LATE_S: Final = 0.6
"""Time in seconds after which a running transaction of the journal counts as failed."""
HUNG_S: Final = 5.0
"""Time in seconds after which the connections are closed if the server does not answer. The server itself ends work
that
takes too long."""
WATCH_S: Final = 0.25
_CANCELLED: Final = "57014"
_PLANS_ANEW: Final = "; set local plan_cache_mode = force_custom_plan"
"""After five executions, PostgreSQL may plan a prepared statement for unknown values. Such a plan of a search reads all
rows of a domain in their order, in place of the trigram index: over 10 s in place of 0.2 s with 10,000,000 devices."""
_WRITERS: Final = """select virtualtransaction from pg_locks where mode = 'RowExclusiveLock'
and relation = cast(:table as text)::regclass
and database = (select oid from pg_database where datname = current_database())"""


class PostgresStore:
    """The store in a PostgreSQL database. `run` must be running while writes are submitted. Call `close` when nothing
    uses the store any more.

    url: `postgresql://...`. limits: the numbers of rows that each tenant may have (`settings/limits.py`). name: the
    name of this process, unique for the database. steps: the history of the schema. Raises StoreError if the server
    cannot be reached, fails, or is not suitable (see `server.check`).
    """

    def __init__(
        self,
        url: str,
        metrics: StoreMetrics,
        limits: Mapping[str, int] = DEFAULTS,
        *,
        name: str = "node",
        steps: Steps = STEPS,
    ) -> None:
        server.check(url, CONNECTIONS)
        try:
            with connect(url) as connection:
                migrate(connection, steps)
                set_limits(connection, limits)
                restores = int(str(connection.execute("select number from restores").fetchall()[0][0]))
        except psycopg.Error as error:
            raise as_ours(error) from error
        self._inserts = Inserts()
        self._url = url
        self._steps = steps
        self._restores = Restores(restores, restores)
        pause = Pause()
        self._journal, self._others, self._pulse = self._writers = tuple(
            WriterConnection(
                Dialer(url, pause), f"{name}/{writer}", self._inserts, metrics, self._restores, alone=writer == "others"
            )
            for writer in WRITERS
        )
        self._readers = _Readers(Dialer(url, pause), self._inserts, READERS, READ_S, plans_anew=False)
        self._searchers = _Readers(Dialer(url, pause), self._inserts, SEARCHERS, SEARCH_S)
        self._public = _Readers(Dialer(url, pause), self._inserts, 1, PUBLIC_S)
        self._pools = (self._readers, self._searchers, self._public)
        self._turns = Turns(READERS, SEARCHERS)
        self._journal.connect()
        self.submit = self._journal.submit
        self._listener = Listener(url, lambda: {each.server_process for each in self._writers}, self._changed)
        self._on_foreign_change: list[Callable[[ForeignChange], None]] = []
        metrics.watch_queue(lambda: self._journal.queued() + self._others.queued())

    @property
    def ready(self) -> bool:
        """Return whether the last writes were committed, and the current write is not late."""
        return self._journal.ready and self._others.ready and self._journal.in_flight_s < LATE_S

    @property
    def schema(self) -> str:
        return self._steps[-1].name

    @property
    def is_shared(self) -> bool:
        """Return True, because several nodes may use the database."""
        return True

    @property
    def is_replaced(self) -> bool:
        return self._restores.accepted != self._restores.seen

    @property
    def changes(self) -> int:
        return self._journal.changes + self._others.changes

    async def read(self, work: Work[T]) -> T:
        async with self._turns.reading():
            return await self._readers.run(work)

    async def read_now(self, work: Work[T]) -> T:
        return await self.read(work)

    async def search(self, work: Work[T]) -> T:
        async with self._turns.searching() as is_public:
            return await (self._public if is_public else self._searchers).run(work)

    async def settled(self, table: str) -> int:
        """Return the newest id below which no new row can appear (see `Store.settled`).

        A transaction locks the table before it gets an id, and releases the lock when its rows are visible. This method
        reads the newest id, and then waits for the transactions that hold the lock at this time. When these
        transactions have ended, each row with a smaller id is visible, or will never exist. The xmax of a snapshot
        cannot be used instead. It names the newest transaction that has ended, but a row may belong to a transaction
        that began later.
        """
        newest, writers = await self.read(partial(_newest, table=table))
        while writers:
            await trio.sleep(SETTLE_S)
            writers &= await self.read(partial(_writers, table=table))
        return newest

    async def write(self, work: Work[T]) -> T:
        async with self._turns.writing() as is_limited:
            return await self._others.write(_limited(work) if is_limited else work)

    async def write_aside(self, work: Work[T]) -> T:
        return await self._pulse.write(work)

    def on_foreign_change(self, changed: Callable[[ForeignChange], None]) -> None:
        self._on_foreign_change.append(changed)

    def _changed(self, change: ForeignChange) -> None:
        for changed in self._on_foreign_change:
            changed(change)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Process the queues of writes until cancelled. Then process the writes that are left in the queues."""
        async with trio.open_nursery() as nursery:
            for writer in self._writers:
                await nursery.start(writer.run)
            await nursery.start(self._listener.run)
            nursery.start_soon(self._watch)
            task_status.started()

    async def _watch(self) -> None:
        """Give up the connections to a server that hangs. The journal tests its connection all the time, and its
        transactions are short. So if one transaction of the journal does not end, the server does not answer.

        Then the journal may get a new connection, for example to a standby that was promoted. Meanwhile, other
        transactions may still wait for the server that hangs. So all transactions that began before the journal
        last noticed the hanging server are given up, too.
        """
        hung_at = -inf
        while True:
            await trio.sleep(WATCH_S)
            now = time.monotonic()
            if self._journal.in_flight_s > HUNG_S:
                hung_at = now
                for readers in self._pools:
                    readers.close_idle()
            least_s = max(HUNG_S, now - hung_at)
            for writer in self._writers:
                if writer.in_flight_s > least_s:
                    writer.cut()
            for readers in self._pools:
                readers.cut(least_s)

    def write_copy(self, path: Path) -> None:
        try:
            with connect(self._url) as connection:
                connection.execute("begin transaction isolation level repeatable read read only")
                check_current(connection, self._steps)
                write_file(path, PostgresRows(connection))
        except psycopg.Error as error:
            raise as_ours(error) from error

    async def replace(self, path: Path) -> None:
        await self._others.exclusive(self._replacement(lambda connection: _fill(connection, path)))

    def write_dump(self, path: Path) -> None:
        with connect(self._url) as connection:
            check_current(connection, self._steps)
        write_dump(self._url, path)

    async def replace_by_dump(self, path: Path, then: Work[None]) -> None:
        def fill(connection: Connection) -> None:
            load_dump(connection, path, [step.name for step in self._steps])
            then(PostgresTx(connection.cursor(), self._inserts))

        await self._others.exclusive(self._replacement(fill))

    def _replacement(self, fill: Callable[[Connection], object]) -> Callable[[Connection], None]:
        """Return a function that replaces all rows in the current transaction of a connection. fill: writes the new
        rows."""

        def replace(connection: Connection) -> None:
            check_current(connection, self._steps)
            connection.execute("update restores set number = number + 1")
            connection.execute("delete from prompts")  # the old rows belong to logins before the restore
            version = connection.execute("select version from config_version").fetchone()
            fill(connection)
            connection.execute("update config_version set version = greatest(version, $1) + 1", version)

        return replace

    def acknowledge(self) -> None:
        self._restores.accepted = self._restores.seen

    def close(self) -> None:
        """Close every connection."""
        for writer in self._writers:
            writer.disconnect()
        for readers in self._pools:
            readers.close()


def load(url: str, path: Path) -> int:
    """Copy all rows of a SQLite database to an empty PostgreSQL database, in one transaction. Return the number of
    rows.

    Raises SchemaError if the PostgreSQL database is not empty. Raises StoreError. After an error, the database is
    unchanged.
    """
    try:
        with connect(url) as connection, connection.transaction():
            if has_store(connection):
                raise SchemaError("the database already contains a store: name an empty database")
            migrate(connection)
            return _fill(connection, path)
    except psycopg.Error as error:
        raise as_ours(error) from error


def _fill(connection: Connection, path: Path) -> int:
    target = PostgresRows(connection)
    with closing(sqlite3.connect(path)) as copy:
        source = SqliteFile(copy)
        tables = source.tables()
        target.clear(tables)
        copied = transfer(source, target, tables)
        target.enable(tables)
    return copied


def _newest(tx: Tx, table: str) -> tuple[int, set[str]]:
    """Return the newest id of a table, and then the transactions that are writing to the table. The transactions are
    read after the id."""
    newest = tx.value(int, f"select max(id) from {table}") or 0
    return newest, _writers(tx, table)


def _writers(tx: Tx, table: str) -> set[str]:
    return {str(row[0]) for row in tx.rows(_WRITERS, table=table)}


def _limited(work: Work[T]) -> Work[T]:
    def limited(tx: Tx) -> T:
        assert isinstance(tx, PostgresTx)  # noqa: S101  a writer made it
        return work(tx.limited(WRITE_S))

    return limited


class _Readers:
    """A pool of connections for reading. Each connection serves one read at a time.

    plans_anew: whether PostgreSQL plans a statement at each execution, for its values.
    """

    def __init__(
        self, dialer: Dialer, inserts: Inserts, count: int, timeout_s: float, *, plans_anew: bool = True
    ) -> None:
        self._dialer = dialer
        self._inserts = inserts
        self._timeout_s = timeout_s
        self._begin = (
            "begin transaction isolation level repeatable read read only; "
            f"set local statement_timeout = {int(timeout_s * 1000)}{_PLANS_ANEW if plans_anew else ''}"
        )
        self._idle: list[Connection] = []
        self._busy: dict[Connection, float] = {}  # the times when their transactions began
        self._limit = trio.CapacityLimiter(count)
        self._closed = False

    async def run(self, work: Work[T]) -> T:
        """Run `work` in a read transaction. Raises StoreError if the server fails, or if `work` exceeds the time
        limit."""
        if self._closed:
            raise StoreError("the store is closed")
        async with self._limit:
            return await trio.to_thread.run_sync(self._read, work)

    def _read(self, work: Work[T]) -> T:
        connection, cursor = self._begun(self._idle.pop() if self._idle else None)
        try:
            result = work(PostgresTx(cursor, self._inserts))
            cursor.execute("commit")
            del self._busy[connection]
        except psycopg.Error as error:
            self._drop(connection)
            if error.sqlstate == _CANCELLED:
                raise TookTooLong(self._timeout_s) from error
            raise as_ours(error) from error
        except BaseException:
            self._drop(connection)
            raise
        self._idle.append(connection)
        return result

    def _drop(self, connection: Connection) -> None:
        self._busy.pop(connection, None)
        connection.close()

    def _begun(self, connection: Connection | None) -> tuple[Connection, Cursor]:
        """Begin a transaction. Open a new connection if none is given, or if the given connection was closed by the
        server."""
        if connection is not None:
            self._busy[connection] = time.monotonic()
            with suppress(psycopg.Error):
                return connection, connection.execute(self._begin)
            self._drop(connection)
        connection = self._dialer.connect()
        self._busy[connection] = time.monotonic()
        try:
            return connection, connection.execute(self._begin)
        except psycopg.Error as error:
            self._drop(connection)
            raise as_ours(error) from error

    def cut(self, least_s: float) -> None:
        """End each connection whose transaction has been running for at least `least_s` seconds."""
        for connection, since in tuple(self._busy.items()):
            if time.monotonic() - since > least_s:
                cut(connection)

    def close_idle(self) -> None:
        """Close the idle connections. A server that hangs would not answer the next read on them."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def close(self) -> None:
        self._closed = True
        self.close_idle()
