"""The connection on which a node receives the announcements of the others (`announcements`)."""

from collections import deque
from collections.abc import Callable, Collection
from contextlib import closing
from typing import Final

import psycopg
import structlog
import trio

from sallyport.base.errors import StoreError
from sallyport.store.foreign import ForeignChange
from sallyport.store.postgres.announcements import CHANNEL
from sallyport.store.postgres.connection import Connection, connect

CHECK_S: Final = 1.0
"""Seconds after which a silent connection is checked, and a lost one opened again."""
EVERYTHING: Final = ForeignChange("", 0)

log = structlog.get_logger()


class Listener:
    """Passes on the changes of other processes. own: returns the server processes of this node's connections, whose
    announcements are ignored. changed: called on the event loop; with EVERYTHING after the connection was lost, since
    announcements may be missing."""

    def __init__(self, url: str, own: Callable[[], Collection[int]], changed: Callable[[ForeignChange], None]) -> None:
        self._url = url
        self._own = own
        self._changed = changed
        self._received: deque[psycopg.Notify] = deque()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Listen until cancelled, also after the database was away."""
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
            await trio.sleep(CHECK_S)

    def _connect(self) -> Connection:
        connection = connect(self._url)
        connection.add_notify_handler(self._received.append)
        connection.execute(f"listen {CHANNEL}".encode())
        return connection

    async def _receive(self, connection: Connection) -> None:
        """Pass on announcements until the connection is lost."""
        while True:
            with trio.move_on_after(CHECK_S) as waited:
                await trio.lowlevel.wait_readable(connection.pgconn.socket)
            try:
                if waited.cancelled_caught:
                    await trio.to_thread.run_sync(connection.execute, b"select 1")
                else:
                    connection.pgconn.consume_input()
                    while found := connection.pgconn.notifies():
                        text = found.extra.decode()
                        self._received.append(psycopg.Notify(found.relname.decode(), text, found.be_pid))
            except psycopg.Error:
                return
            self._pass_on()

    def _pass_on(self) -> None:
        own = self._own()
        while self._received:
            received = self._received.popleft()
            if received.pid not in own:
                kind, domain_id, row, *_ = *received.payload.split(" "), "", ""
                self._changed(ForeignChange(kind, int(domain_id or 0), row))
