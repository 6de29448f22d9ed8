"""New connections after a connection was lost. Only one attempt is made at a time. The pauses between attempts grow,
and are different on each node."""

import os
import socket
import time
from contextlib import suppress
from random import uniform
from threading import Lock
from typing import Final

import psycopg

from sallyport.base.errors import StoreError
from sallyport.store.postgres.connection import Connection, connect

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 1.5


class Dialer:
    """Opens connections for several threads. After a failed attempt there is a pause, and calls during the pause fail
    at once. So a server that starts again does not get connections from all nodes at the same moment."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._attempt = Lock()
        self._pause_s = FIRST_PAUSE_S
        self._due = 0.0
        self._failure = ""

    def connect(self) -> Connection:
        """Return a new connection. Raises StoreError if the server cannot be reached, or during the pause after a
        failed attempt."""
        with self._attempt:
            if time.monotonic() < self._due:
                raise StoreError(self._failure)
            try:
                connection = connect(self._url)
            except StoreError as error:
                self._failure = str(error)
                self._due = time.monotonic() + uniform(0.5, 1) * self._pause_s  # noqa: S311  no secret
                self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
                raise
            self._pause_s = FIRST_PAUSE_S
            return connection


def cut(connection: Connection | None) -> None:
    """End a connection while another thread waits for an answer on it. The other thread gets
    psycopg.OperationalError."""
    if connection is not None:
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.pgconn.socket)) as copy:
            copy.shutdown(socket.SHUT_RDWR)
