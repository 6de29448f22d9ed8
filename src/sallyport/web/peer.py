"""The interface of an operation to the connection of its request.

    with parked():
        await changed.wait()

An address serves a limited number of connections at the same time. While a request is parked, its connection does not
count. Otherwise a thousand waiting agents could keep other clients out. The caller of `parked` must limit the number of
parked requests.

A connection without an authenticated request is a stranger. A stranger has less time, and is closed first if the limit
of connections is reached. One address may have only a few strangers. After `Peer.authenticate` the connection is no
longer a stranger.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Peer(Protocol):
    """The connection of the current request."""

    def park(self, parks: bool) -> None:
        """Record that the request starts to wait, or has stopped waiting. parks: whether the request waits."""

    def authenticate(self) -> None:
        """Record that the request has valid credentials."""


PEER: ContextVar[Peer | None] = ContextVar("peer", default=None)
"""The connection of the current request; None for work that is not an HTTP request."""


@contextmanager
def parked() -> Iterator[None]:
    """Exclude the current connection from the limit of connections during the block. Use this while the request
    waits."""
    peer = PEER.get()
    if peer is None:
        yield
        return
    peer.park(True)
    try:
        yield
    finally:
        peer.park(False)
