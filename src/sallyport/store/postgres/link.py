"""The connection of a writer. A lost connection is opened again.

If the answer to a COMMIT was lost, this module finds out whether the transaction was committed. Each transaction stores
its number in the writer's row of `lanes`. The server process of the lost connection might still commit. So this server
process is ended before the row is read.

The server process may have been waiting for a synchronous standby. If it is ended then, its transaction becomes
visible, although the standby does not have the transaction. A crash of the server has the same effect. So a new
connection first commits a write of its own. When the server confirms this commit, the standby has every transaction
that was visible before.
"""

import secrets
import time
from contextlib import suppress
from typing import Final

import psycopg

from sallyport.base.errors import StoreError
from sallyport.store.postgres.connection import Connection, Cursor
from sallyport.store.postgres.dialer import Dialer, cut

SETTLE_S: Final = 3.0
"""Time in seconds to find out the result of a commit whose answer was lost. Then the callers get an error."""
END_MS: Final = 2000
"""Time in milliseconds for which a new connection waits for the end of the lost connection's server process."""
IDLE_S: Final = 3
"""Time after which the server ends a transaction that gets no further statement, and releases its locks. This happens
if the node has lost its network or its power. Other nodes may wait for these locks meanwhile."""


class Link:
    """The connection of one writer. name: the key of the writer's row in `lanes`."""

    def __init__(self, dialer: Dialer, name: str) -> None:
        self._name = name
        self._dialer = dialer
        self._connection: Connection | None = None
        self._process: tuple[int, str] | None = None  # the id and the start time of the server process
        self._batch = secrets.randbits(62)  # differs from the numbers of an earlier process

    @property
    def server_process(self) -> int:
        """Return the id of the server process of the connection. Return 0 if there is no connection."""
        connection = self._connection
        return 0 if connection is None or connection.closed else connection.info.backend_pid

    def connected(self) -> Connection:
        """Return the connection. Open it if there is none. Raises StoreError, psycopg.Error."""
        if self._connection is None or self._connection.closed:
            connection = self._connection = self._dialer.connect()
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        return self._connection

    def _prepare(self, connection: Connection) -> None:
        if self._process is not None:
            connection.execute(
                f"select pg_terminate_backend(pid, {END_MS}) from pg_stat_activity "
                "where pid = $1 and backend_start = $2::text::timestamptz",
                self._process,
            )
        row = connection.execute(
            "select pid, backend_start::text from pg_stat_activity where pid = pg_backend_pid()"
        ).fetchone()
        self._process = None if row is None else (int(str(row[0])), str(row[1]))
        connection.execute(f"set idle_in_transaction_session_timeout = '{IDLE_S}s'")
        connection.execute(
            f"insert into lanes (name, batch) values ('{self._name}', 0) on conflict (name) do update set batch = "
            "lanes.batch"  # a write that the standby confirms
        )

    def commit(self, cursor: Cursor) -> None:
        """Commit the transaction. Raises psycopg.Error or StoreError in two cases: the transaction was not committed,
        or it is still unknown after some time whether it was committed."""
        self._batch += 1
        try:
            cursor.execute(f"update lanes set batch = {self._batch} where name = '{self._name}'; commit".encode())
        except psycopg.OperationalError:
            if not cursor.connection.closed or not self._was_kept():
                raise

    def _was_kept(self) -> bool:
        until = time.monotonic() + SETTLE_S
        while True:
            try:
                row = self.connected().execute(f"select batch from lanes where name = '{self._name}'").fetchone()
                return row is not None and row[0] == self._batch
            except (psycopg.Error, StoreError):
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def roll_back(self) -> None:
        """Roll back a failed transaction, if there is one."""
        if self._connection is not None and not self._connection.closed:
            with suppress(psycopg.Error):
                self._connection.execute("rollback")

    def cut(self) -> None:
        """End the connection while another thread uses it. Call this method from a different thread."""
        cut(self._connection)

    def close(self) -> None:
        """Close the connection. No thread may use it any more."""
        if self._connection is not None:
            self._connection.close()
