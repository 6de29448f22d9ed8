"""Take over the jobs of nodes that have stopped.

If a job of a stopped node reads a directory, another node runs the job again. If the job needs a file (an upload, or
the entries of an agent), only the stopped node has this file. If this node does not start again soon, the job fails.

The handover is also needed on a single node, because the database of this node may be a copy of a database that several
nodes have used.
"""

from functools import partial
from typing import Final

from sallyport.areas.directory.imports import repo
from sallyport.areas.directory.imports.job import JobState
from sallyport.areas.directory.imports.service import Jobs
from sallyport.base.clock import SECOND
from sallyport.nodes.node import Node
from sallyport.nodes.periodic import every
from sallyport.nodes.service import Cluster
from sallyport.store.model import Store, Tx

LOOK_S: Final = 5.0
RESTART_US: Final = 300 * SECOND
"""Time in microseconds. If a node sends no heartbeat for this time, the imports of its files fail."""


class Handover:
    """Moves jobs from nodes that have stopped to other nodes. Only the leader of the nodes does so. store: a store that
    refuses writes if this node is not the leader."""

    def __init__(self, store: Store, cluster: Cluster, jobs: Jobs) -> None:
        self._store = store
        self._cluster = cluster
        self._jobs = jobs

    async def run(self) -> None:
        """Hand over the jobs of nodes that have stopped, repeatedly until cancelled."""
        await every(LOOK_S, self.hand_over, failure="imports_not_handed_over")

    async def hand_over(self) -> None:
        """Hand over the jobs of nodes that have stopped, once. Raises StoreError."""
        nodes = {each.id: each for each in await self._cluster.everyone()}
        alive = [each.id for each in nodes.values() if each.is_alive]
        if await self._store.read(partial(repo.of_other_nodes, alive=alive)):
            await self._store.write(partial(self._hand_over, nodes=nodes, alive=alive))
            self._jobs.wake()

    def _hand_over(self, tx: Tx, nodes: dict[int, Node], alive: list[int]) -> None:
        for job in repo.of_other_nodes(tx, alive):
            node = nodes.get(job.node_id)
            if not job.needs_file:
                repo.release(tx, job.id)
            elif node is None or node.silent_us >= RESTART_US:
                name = "that received it" if node is None else node.name
                self._jobs.end(tx, job, JobState.FAILED, f"the file was lost with the node {name}: send it again")
