"""New connections after a connection was lost. Only one attempt is made at a time. The pauses between attempts grow,
and are different on each node."""

import os
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

import psycopg

from sallyport.base.clock import BackOff
from sallyport.base.errors import StoreError
from sallyport.store.postgres.connection import Connection, connect

FIRST_PAUSE_S: Final = 0.1
MAX_PAUSE_S: Final = 1.5


@dataclass(slots=True)
class Pause:
    """The pause after a failed attempt. All dialers of a node share it: as soon as one of them has a connection, the
    others need not wait for the end of the pause.

    due: the time at which the current pause ends, in seconds of the monotonic clock. failure: the error of the last
    attempt.
    """

    back_off: BackOff = field(default_factory=lambda: BackOff(first_s=FIRST_PAUSE_S, most_s=MAX_PAUSE_S))
    due: float = 0.0
    failure: str = ""


class Dialer:
    """Opens connections for several threads, one at a time. After a failed attempt there is a pause, and calls during
    the pause fail at once. So a server that starts again does not get connections from all nodes at the same moment."""

    def __init__(self, url: str, pause: Pause) -> None:
        self._url = url
        self._pause = pause
        self._attempt = Lock()

    def connect(self) -> Connection:
        """Return a new connection. Raises StoreError if the server cannot be reached, or during the pause after a
        failed attempt."""
        pause = self._pause
        with self._attempt:
            if time.monotonic() < pause.due:
                raise StoreError(pause.failure)
            try:
                connection = connect(self._url)
            except StoreError as error:
                pause.failure = str(error)
                pause.due = time.monotonic() + pause.back_off.failed()
                raise
            pause.back_off.worked()
            pause.due = 0.0
            return connection


def cut(connection: Connection | None) -> None:
    """End a connection while another thread waits for an answer on it. The other thread gets
    psycopg.OperationalError."""
    if connection is not None:
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.pgconn.socket)) as copy:
            copy.shutdown(socket.SHUT_RDWR)
