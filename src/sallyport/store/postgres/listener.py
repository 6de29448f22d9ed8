"""The connection on which a node receives the announcements of other nodes (see `announcements`)."""

from collections.abc import Callable, Collection
from contextlib import closing
from random import uniform
from typing import Final

import psycopg
import structlog
import trio
from psycopg.pq.abc import PGconn

from sallyport.base.errors import StoreError
from sallyport.store.foreign import ForeignChange
from sallyport.store.postgres.announcements import CHANNEL
from sallyport.store.postgres.connection import Connection, as_ours, connect

CHECK_S: Final = 1.0
"""Time in seconds without a message after which the connection is tested."""
ANSWER_S: Final = 5.0
"""Time in seconds after which a connection without an answer is closed."""
MAX_NUMBER_LENGTH: Final = 19
"""Maximum number of digits of a domain's id."""
EVERYTHING: Final = ForeignChange("", 0)

log = structlog.get_logger()


class Listener:
    """Reports the changes of other processes.

    own: a function that returns the server processes of this node's connections; announcements of these processes are
    ignored. changed: a function that is called on the event loop with each change. After a lost connection, `changed`
    is called with EVERYTHING, because announcements may be missing.
    """

    def __init__(self, url: str, own: Callable[[], Collection[int]], changed: Callable[[ForeignChange], None]) -> None:
        self._url = url
        self._own = own
        self._changed = changed

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Report changes until cancelled. After an outage of the database, connect again."""
        is_first = True
        while True:
            try:
                connection = await trio.to_thread.run_sync(self._connect)
            except StoreError as error:
                if is_first:
                    raise
                log.debug("listener_not_connected", error=str(error))
            else:
                with closing(connection):
                    if is_first:
                        task_status.started()
                    else:
                        self._changed(EVERYTHING)
                    is_first = False
                    await self._receive(connection)
            await trio.sleep(uniform(0.5, 1.5) * CHECK_S)  # noqa: S311  so that not all nodes connect at once

    def _connect(self) -> Connection:
        """Return a new connection that gets announcements. Raises StoreError."""
        connection = connect(self._url)
        try:
            connection.execute(f"listen {CHANNEL}".encode())
        except psycopg.Error as error:  # the database has ended in between
            connection.close()
            raise as_ours(error) from error
        return connection

    async def _receive(self, connection: Connection) -> None:
        """Report announcements until the connection is lost."""
        server = connection.pgconn
        try:
            while True:
                with trio.move_on_after(CHECK_S) as waited:
                    await trio.lowlevel.wait_readable(server.socket)
                if waited.cancelled_caught:
                    with trio.fail_after(ANSWER_S):
                        await _ask(server)
                else:
                    server.consume_input()
                self._pass_on(server)
        except (psycopg.Error, OSError, trio.TooSlowError) as error:
            log.debug("listener_lost", error=str(error))

    def _pass_on(self, server: PGconn) -> None:
        own = self._own()
        while received := server.notifies():
            if received.be_pid not in own and (change := change_of(received.extra)) is not None:
                self._changed(change)


def change_of(payload: bytes) -> ForeignChange | None:
    """Return the change that an announcement describes. Return None if no node of this program sends such an
    announcement, because every user of the database may send any text."""
    kind, domain_id, row, *_ = *payload.split(b" "), b"", b""
    is_number = domain_id.isdigit() and len(domain_id) <= MAX_NUMBER_LENGTH
    if not (kind and is_number and payload.isascii()):
        return None
    return ForeignChange(kind.decode(), int(domain_id), row.decode())


async def _ask(server: PGconn) -> None:
    """Wait until the server has answered a query. Raises psycopg.Error if the connection is lost."""
    server.send_query(b"select 1")
    while True:
        server.flush()
        await trio.lowlevel.wait_readable(server.socket)
        server.consume_input()
        while not server.is_busy():
            if server.get_result() is None:
                return
