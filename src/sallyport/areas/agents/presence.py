"""The status of machines: Active, or Inactive after three missed heartbeats.

Every request of an agent is a heartbeat, and so is a waiting poll. The times are kept in memory, and are written to the
store every few seconds in short transactions. Heartbeats that agents missed while the service was down do not count:
when the service starts, each active agent gets the full time limit again.

If there are several nodes, each node knows only the agents that send requests to this node, and stores the times of
their messages. An agent that has changed to another node is not silent. Therefore only one node, the node with the
lease, sets agents to Inactive (`watch`). This node regards an agent as silent if the agent's stored time has not
changed during the time limit. This rule does not depend on the clocks of the nodes.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

import structlog
import trio

from sallyport.areas.agents import repo
from sallyport.areas.agents.states import States
from sallyport.areas.users.instances.instance import ACTIVE, INACTIVE
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.metrics import AgentMetrics
from sallyport.nodes.periodic import every
from sallyport.nodes.service import Cluster
from sallyport.store.model import Store, Tx
from sallyport.store.slices import in_batches

HEARTBEAT_S: Final = 30
MISSES: Final = 3
SWEEP_S: Final = 5.0
LIMIT_US: Final = MISSES * HEARTBEAT_S * SECOND
STORED_US: Final = LIMIT_US + int(2 * SWEEP_S * SECOND)
"""Time limit of `watch` in microseconds: an agent is silent if its stored time has not changed for this time. It is
longer than LIMIT_US, because each node stores the times of messages with a delay."""

log = structlog.get_logger()


class Presence:
    """The times of the agents' last messages. The task `run` must run. states: the service that knows which agents have
    a waiting poll."""

    def __init__(
        self, store: Store, cluster: Cluster, states: States, metrics: AgentMetrics, clock: Clock = now_us
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._waits = states.waits
        self._clock = clock
        self._seen: dict[int, int] = {}  # time of each active agent's last message
        self._fresh: set[int] = set()  # agents with a message since the last sweep
        self._stored: dict[
            int, tuple[int, int]
        ] = {}  # the stored time of each active agent, and when it was first read
        metrics.watch(self._counts, lambda: states.waiting)

    async def seen(self, instance_id: int) -> None:
        """Record a message of an agent. After this method has returned, the store contains the status Active for the
        agent's instance. Raises StoreError."""
        at, known = self._clock(), instance_id in self._seen
        self._seen[instance_id] = at
        self._fresh.add(instance_id)
        if not known:
            await self._store.write(partial(_arrived, instance_id, at))

    def seen_at(self, instance_id: int, stored: int) -> int:
        """Return the time of an agent's last message. If a poll of the agent is waiting, return the present time.

        stored: the time of the last message according to the store, in microseconds.
        """
        return self._clock() if self._waits(instance_id) else max(stored, self._seen.get(instance_id, 0))

    async def load(self) -> None:
        """Read the active agents from the store. If there are several nodes, read none, because each node knows only
        the agents that send it requests. Raises StoreError."""
        at = self._clock()
        self._seen = {} if self._cluster.is_shared else {each: at for each, _ in await self._active()}
        self._fresh.clear()
        self._stored.clear()

    async def _active(self) -> list[tuple[int, int]]:
        return await self._store.read(partial(repo.with_status, status=ACTIVE))

    async def run(self) -> None:
        """Store the times of messages, and set silent agents to Inactive, periodically until cancelled."""
        await every(SWEEP_S, self.sweep, failure="agent_presence_not_stored")

    async def sweep(self) -> None:
        """Store the times of messages, and set silent agents to Inactive, once. Raises StoreError."""
        at = self._clock()
        for instance_id in self._seen:
            if self._waits(instance_id):
                self._seen[instance_id] = at
                self._fresh.add(instance_id)
        silent = [each for each, seen in self._seen.items() if seen < at - LIMIT_US]
        heard = [(each, self._seen[each]) for each in self._fresh]
        await in_batches(self._store, heard, repo.store_seen)
        if self._cluster.is_shared:
            self._fresh.difference_update(each for each, _ in heard)
            for each in silent:
                if self._seen[each] < at - LIMIT_US:
                    del self._seen[each]
            return
        await in_batches(self._store, silent, partial(repo.set_status, status=INACTIVE, at=at))
        self._fresh.difference_update(each for each, _ in heard)
        for each in silent:
            await trio.lowlevel.checkpoint()  # each log line takes some time, so let other tasks run
            seen = self._seen.get(each)
            if seen is not None and seen < at - LIMIT_US:
                log.warning("agent_silent", instance=each)
                del self._seen[each]
            elif seen is not None:  # the agent has sent a message in the meantime
                await self._store.write(partial(_arrived, each, seen))

    async def watch(self) -> None:
        """Store the status Inactive for agents that are silent on all nodes, until cancelled. One node runs this task
        for all nodes."""
        self._stored.clear()
        if self._cluster.is_shared:
            await every(SWEEP_S, self.look, failure="agent_presence_not_stored")

    async def look(self) -> None:
        """Store the status Inactive for agents that are silent on all nodes. `watch` calls this periodically. Raises
        StoreError."""
        at, before = self._clock(), self._stored
        self._stored = {}
        for each, seen in await self._active():
            known = before.get(each)
            self._stored[each] = known if known is not None and known[0] == seen else (seen, at)
        silent = [(each, seen) for each, (seen, since) in self._stored.items() if since < at - STORED_US]

        def end(tx: Tx, agents: Iterator[tuple[int, int]]) -> None:
            self._cluster.check(tx)
            repo.set_silent(tx, agents, INACTIVE, at)

        await in_batches(self._store, silent, end)
        for each, _ in silent:
            await trio.lowlevel.checkpoint()  # because each log line takes time
            log.warning("agent_silent", instance=each)

    def _counts(self) -> tuple[int, float]:
        """Return the number of active agents, and the longest time since the last message of an agent, in seconds."""
        at, seen = self._clock(), [at for each, at in self._seen.copy().items() if not self._waits(each)]
        return len(self._seen), max((at - each for each in seen), default=0) / SECOND


def _arrived(instance_id: int, at: int, tx: Tx) -> None:
    repo.set_status(tx, [instance_id], ACTIVE, at)
    repo.store_seen(tx, [(instance_id, at)])
