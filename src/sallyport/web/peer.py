"""What the work of a request tells its connection.

    with parked():
        await changed.wait()

An address serves a limited number of connections at a time. A parked request does not count until it continues, so that
a thousand waiting agents keep no other client out. The caller of `parked` bounds how many requests may park.

A connection without an authenticated request is a stranger's: it gets less time, it is closed first at the limit, and
one address may hold only a few of them. `Peer.authenticate` ends that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Peer(Protocol):
    """The connection that the current request came in through."""

    def park(self, parks: bool) -> None:
        """Note that the request begins or ends to wait."""

    def authenticate(self) -> None:
        """Note that the request carried valid credentials."""


PEER: ContextVar[Peer | None] = ContextVar("peer", default=None)
"""None for work that did not come in over HTTP."""


@contextmanager
def parked() -> Iterator[None]:
    """Do not count the current request's connection within the block."""
    peer = PEER.get()
    if peer is None:
        yield
        return
    peer.park(True)
    try:
        yield
    finally:
        peer.park(False)
