"""Requests that wait for something to happen, such as an agent's for its next state: they take no place of the others.

    with parked():
        await changed.wait()

An address serves so many connections at a time. A request that is parked gives its place back, so that a thousand of
them keep nobody out, and takes it again before it goes on. Who lets requests park bounds how many there are.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Park = Callable[[bool], None]
"""Told that the request of this context waits (True), and that it goes on (False)."""


def _nowhere(_parks: bool) -> None:
    """Not within a connection."""


PARK: ContextVar[Park] = ContextVar("park", default=_nowhere)


@contextmanager
def parked() -> Iterator[None]:
    """The request of this context waits in the block."""
    tell = PARK.get()
    tell(True)
    try:
        yield
    finally:
        tell(False)
