"""The senders without an answer of all nodes.

Each node counts its senders in memory (`listen.senders`). It also writes the latest of them into the table
`node_senders`, a few seconds after a change, so that every node can list the senders of all nodes. There is one row for
each node, and its size is limited. The datagrams themselves are not written.
"""

import json
from collections.abc import Callable, Sequence
from typing import Final, Protocol, cast

from sallyport.base.wire import Row
from sallyport.nodes import repo
from sallyport.nodes.periodic import every
from sallyport.nodes.service import Cluster
from sallyport.store.model import Engine

EVERY_S: Final = 5.0
MAX_SENDERS: Final = 200
"""Maximum number of senders that a node writes."""


class NodeSenders(Protocol):
    """The interface for the senders of other nodes."""

    async def run(self) -> None:
        """Write the senders of this node while the service runs, until cancelled."""

    async def elsewhere(self) -> list[Row]:
        """Return the senders of the nodes on other machines. Raises StoreError."""


class NoOtherNodes:
    """The implementation for the embedded database, where this node is the only one."""

    async def run(self) -> None:
        """Do nothing."""

    async def elsewhere(self) -> list[Row]:
        """Return an empty list."""
        return []


class SharedSenders:
    """The implementation for PostgreSQL.

    own: the names of all processes on this machine, which list their senders without the database. changes: a function
    that returns a number that grows with each change of this node's senders. rows: a function that returns this node's
    latest senders, at most as many as its argument.
    """

    def __init__(
        self,
        store: Engine,
        cluster: Cluster,
        own: Sequence[str],
        changes: Callable[[], int],
        rows: Callable[[int], list[Row]],
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._own = own
        self._changes = changes
        self._rows = rows
        self._written = -1  # the first write replaces the senders of an earlier process of this node

    async def run(self) -> None:
        await every(EVERY_S, self.write, failure="senders_not_written")

    async def write(self) -> None:
        """Write the senders of this node, unless they are unchanged since the last call. Raises StoreError."""
        changes = self._changes()
        if changes == self._written:
            return
        listed = json.dumps(self._rows(MAX_SENDERS))
        await self._store.write_aside(lambda tx: repo.put_senders(tx, self._cluster.id, listed))
        self._written = changes

    async def elsewhere(self) -> list[Row]:
        found = await self._store.read(lambda tx: repo.senders_elsewhere(tx, self._cluster.id, self._own))
        return [cast(Row, row) for listed in found for row in json.loads(listed)]
