"""The membership of this node in the cluster: it joins, sends heartbeats, and may hold the lease of the periodic
work."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from secrets import token_hex
from typing import Final, Protocol

import structlog
import trio

from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import LeaseLost, StartError, StoreError
from sallyport.base.secret import Secret
from sallyport.metrics import NodeMetrics
from sallyport.nodes import repo
from sallyport.nodes.node import LEASE_US, Node
from sallyport.store.foreign import CLOCKS_US
from sallyport.store.model import Engine, Store, Tx

BEAT_S: Final = 1.0
METRICS_S: Final = 15.0
MARGIN_S: Final = 1.0
"""Time in seconds between the end of the periodic work on one node and the earliest start on another node."""

log = structlog.get_logger()


class Cluster(Protocol):
    """The interface through which other packages use the cluster.

    id: the number of this node. name: the name of this node. session: a random text, new at each start. is_shared:
    whether there may be other nodes.
    """

    id: int
    name: str
    session: str
    is_shared: bool

    @property
    def has_joined(self) -> bool:
        """Return whether this process answers logins. A command does not join."""

    @property
    def leads(self) -> bool:
        """Return whether this node holds the lease of the periodic work."""

    @property
    def silent_s(self) -> float:
        """Return the time since the last heartbeat of this node, in seconds."""

    def earlier_now(self) -> int:
        """Return the time by the clock of this node or by the clock of the database, whichever is earlier, in
        microseconds. Use it to delete old rows: a node whose clock is ahead then deletes no row too early."""

    def check(self, tx: Tx) -> None:
        """Raise LeaseLost if another node holds the lease. Call this method in each transaction of the periodic
        work."""

    async def join(self) -> None:
        """Join the cluster. Raises StartError if another node has the same name, or has another master key. Raises
        StoreError."""

    async def check_key(self) -> None:
        """Check the master key without joining. Raises StartError if the other nodes have another master key. Raises
        StoreError."""

    async def run(self) -> None:
        """Send heartbeats until cancelled."""

    async def everyone(self) -> list[Node]:
        """Return all nodes, ordered by name. Raises StoreError."""

    async def forget(self, name: str) -> bool:
        """Delete a dead node. Return False if there is no dead node with this name. Raises StoreError."""


class SingleNode:
    """The implementation for the embedded database, where this node is the only one."""

    id = 0
    session = ""
    is_shared = False
    leads = True
    silent_s = 0.0

    def __init__(self, name: str, version: str, address: Callable[[], str], clock: Clock) -> None:
        self.name = name
        self._version = version
        self._address = address
        self._clock = clock
        self._started_at = 0

    @property
    def has_joined(self) -> bool:
        """Whether this process has joined."""
        return self._started_at > 0

    def earlier_now(self) -> int:
        """Return the time by the clock of this node, because there is no other clock."""
        return self._clock()

    def check(self, tx: Tx) -> None:
        """Do nothing, because no other node can do the periodic work."""

    async def join(self) -> None:
        """Record the start time. There is no second node, because this process holds the lock of the data directory."""
        self._started_at = self._clock()

    async def check_key(self) -> None:
        """Do nothing, because no other node has a master key."""

    async def run(self) -> None:
        """Do nothing."""

    async def everyone(self) -> list[Node]:
        """Return only this node, or an empty list before `join`."""
        if not self.has_joined:
            return []
        now, address = self._clock(), self._address()
        return [Node(0, self.name, "", "", self._version, 0, address, self._started_at, now, 0, leads=True)]

    async def forget(self, name: str) -> bool:
        """Return False."""
        return False


@dataclass(slots=True)
class _Held:
    lease: repo.Lease
    until: float  # time of the monotonic clock


class Nodes:
    """The implementation for PostgreSQL. `join` must be called before the first login.

    name: the name of this process. names: the names of all processes with this data directory. installation: the id of
    the data directory. keys: a function that returns the master keys by version. address: a function that returns the
    URL of the HTTP listener, which is only displayed. clock: the wall clock of this node, which each heartbeat compares
    with the clock of the database.
    """

    is_shared = True

    def __init__(
        self,
        store: Engine,
        name: str,
        installation: str,
        version: str,
        keys: Callable[[], Mapping[int, Secret]],
        address: Callable[[], str],
        *,
        names: Sequence[str] = (),
        clock: Clock = now_us,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.id = 0
        self.name = name
        self._store = store
        self._installation = installation
        self._version = version
        self._keys = keys
        self._address = address
        self._names = names or (name,)
        self._clock = clock
        self._monotonic = monotonic
        self.session = token_hex(8)
        self._held: _Held | None = None
        self._beaten_at = monotonic()
        self._seen_at: int | None = None  # the time of the last heartbeat, by the clock of the database
        self._is_clock_wrong = False

    @property
    def has_joined(self) -> bool:
        """Whether this process has joined."""
        return self.id > 0

    @property
    def silent_s(self) -> float:
        return self._monotonic() - self._beaten_at

    @property
    def leads(self) -> bool:
        return self._held is not None and self._monotonic() < self._held.until

    def earlier_now(self) -> int:
        own = self._clock()
        return own if self._seen_at is None else min(own, self._seen_at + int(self.silent_s * SECOND))

    def check(self, tx: Tx) -> None:
        if self._held is None or not repo.holds(tx, self._held.lease):
            raise LeaseLost("another node holds the lease of the periodic work")

    async def join(self) -> None:
        """Join the cluster under the name of this process. Raises StartError if a node with this name is running, or if
        the other nodes have another master key. Raises StoreError."""
        self.id = await self._store.write_aside(self._join)

    async def check_key(self) -> None:
        await self._store.write_aside(self._check_key)

    def _check_key(self, tx: Tx) -> None:
        for version, key in self._keys().items():
            own = blake2b(key.reveal(), digest_size=16, person=b"sallyport mark").hexdigest()
            if repo.mark(tx, version, own) != own:
                raise StartError(
                    f"version {version} of the master key differs from the other nodes: copy master.key from another "
                    "node, or set SALLYPORT_MASTER_KEY to the same value on all nodes"
                )

    def _join(self, tx: Tx) -> int:
        self._check_key(tx)
        before = repo.named(tx, self.name)
        # This process holds the lock of the data directory, so no other process of this installation runs.
        if before is not None and before.is_alive and before.installation != self._installation:
            raise StartError(
                f"a node named {self.name} runs already (last heartbeat {before.silent_us / SECOND:.1f} s ago): set "
                "node_name to another name, or stop that node"
            )
        repo.forget_former(tx, self._installation, self._names)
        return repo.join(
            tx,
            self.name,
            self.session,
            self._installation,
            self._version,
            self._store.schema,
            max(self._keys()),
        )

    async def run(self) -> None:
        """Send heartbeats until cancelled. Raises StartError if another process has joined under the name of this node.
        Also raises StartError if a newer version of the service has migrated the database."""
        try:
            while True:
                try:
                    await self._beat()
                except StoreError as error:
                    log.warning("heartbeat_failed", node=self.name, error=str(error))
                await trio.sleep(BEAT_S)
        finally:
            with trio.move_on_after(BEAT_S, shield=True):
                await self._leave()

    async def _beat(self) -> None:
        began, before = self._monotonic(), self._clock()

        def transaction(tx: Tx) -> tuple[int, repo.Lease | None]:
            seen_at = repo.beat(tx, self.id, self.session, self._address())
            if seen_at is None:
                raise StartError(
                    f"another process has joined as the node {self.name}, or a newer version has migrated the database:"
                    " this node stops"
                )
            return seen_at, repo.renew(tx, self.id)

        led, held = self.leads, self._held is not None
        seen_at, lease = await self._store.write_aside(transaction)
        self._seen_at, self._beaten_at = seen_at, self._monotonic()
        self._compare_clocks(max(0, before - seen_at) or min(0, self._clock() - seen_at))
        self._held = None if lease is None else _Held(lease, began + LEASE_US / SECOND - MARGIN_S)
        if self.leads and not led:
            log.info("lease_taken", node=self.name)
        elif held and not self.leads:  # after a pause, the lease has ended before this heartbeat
            log.info("lease_lost", node=self.name)

    def _compare_clocks(self, ahead_us: int) -> None:
        """Log when the clock of this node begins to differ too much from the clock of the database, and when it agrees
        again. ahead_us: the time by which this node's clock is certainly ahead; negative if it is behind."""
        is_wrong = abs(ahead_us) > CLOCKS_US
        if is_wrong and not self._is_clock_wrong:
            log.error("node_clock_wrong", node=self.name, ahead_s=round(ahead_us / SECOND))
        elif self._is_clock_wrong and not is_wrong:
            log.info("node_clock_right", node=self.name)
        self._is_clock_wrong = is_wrong

    async def _leave(self) -> None:
        self._held = None
        try:
            await self._store.write_aside(lambda tx: repo.leave(tx, self.id, self.session))
        except StoreError as error:
            log.warning("heartbeat_failed", node=self.name, error=str(error))

    async def everyone(self) -> list[Node]:
        """Return all nodes, ordered by name. Raises StoreError."""
        return await self._store.read(repo.everyone)

    async def forget(self, name: str) -> bool:
        """Delete a dead node. Return False if there is no dead node with this name. Raises StoreError."""
        return await self._store.write(lambda tx: repo.forget(tx, name))


class NodeMetricsTask:
    """A task that reads the table of nodes every METRICS_S seconds and updates the metrics of the nodes and of the
    database's replication."""

    def __init__(self, cluster: Cluster, store: Store, metrics: NodeMetrics) -> None:
        self._cluster = cluster
        self._store = store
        self._metrics = metrics
        metrics.watch(lambda: cluster.leads, lambda: cluster.silent_s)

    async def run(self) -> None:
        """Update the metrics until cancelled."""
        while True:
            try:
                await self.update()
            except StoreError as error:
                log.debug("nodes_not_read", error=str(error))
            await trio.sleep(METRICS_S)

    async def update(self) -> None:
        """Update the metrics once. Raises StoreError."""
        nodes = await self._cluster.everyone()
        alive = sum(each.is_alive for each in nodes)
        self._metrics.seen(alive, len(nodes) - alive, led=any(each.leads for each in nodes))
        if self._cluster.is_shared:
            found = await self._store.read(repo.replication)
            self._metrics.replicated(found.standbys, synchronous=found.is_synchronous)
