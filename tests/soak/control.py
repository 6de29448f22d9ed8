"""A control for the promises about times: what the machine itself takes at the same moments, without the service.

A process of its own wakes up every 50 ms, asks another process for an octet, and with PostgreSQL commits a row to
another database of the same server. The time from the moment at which it should have woken up to the end is its delay.
"""

import subprocess
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final

import psycopg

from tests.measuring import Measuring

EVERY_S: Final = 0.05
DATABASE: Final = "control"
Sample = tuple[float, float, float]
"""The monotonic time of a measurement, the delay in seconds, and the part of the delay without the commit."""


class Control(Measuring[Sample]):
    """A control that measures until the block ends.

    url: the address of the database, or None.
    """

    def __init__(self, url: str | None = None) -> None:
        super().__init__(_run, url)


def prepare(url: str) -> None:
    """Create the database of the control. url: the address of any database of the server."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"create database {DATABASE}")
    with psycopg.connect(url, dbname=DATABASE) as connection:
        connection.execute("create table turns (number integer)")
        connection.execute("insert into turns values (0)")


def _run(pipe: Connection, url: str | None) -> None:
    samples, database = list[Sample](), _Database(url)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as echo:
        assert echo.stdin is not None
        assert echo.stdout is not None
        ended = time.monotonic()
        pipe.send("ready")
        while not (samples and pipe.poll()):
            due = ended + EVERY_S
            time.sleep(EVERY_S)
            echo.stdin.write(b"x")
            echo.stdout.read(1)
            stalled_s = time.monotonic() - due
            database.commit()
            ended = time.monotonic()
            samples.append((due, ended - due, stalled_s))
        pipe.send(samples)
        echo.stdin.close()


class _Database:
    """A connection for commits. It is opened again after an error."""

    def __init__(self, url: str | None) -> None:
        self._url = url
        self._connection: psycopg.Connection | None = None

    def commit(self) -> None:
        if self._url is None:
            return
        try:
            if self._connection is None:
                self._connection = psycopg.connect(self._url, dbname=DATABASE, autocommit=True, connect_timeout=2)
            self._connection.execute("update turns set number = number + 1")
        except psycopg.Error:
            if self._connection is not None:
                with suppress(psycopg.Error):
                    self._connection.close()
            self._connection = None
