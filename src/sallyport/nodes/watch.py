"""The metrics about all nodes and about the replication of the database."""

import structlog
import trio

from sallyport.base.errors import StoreError
from sallyport.metrics import NodeMetrics
from sallyport.nodes import repo
from sallyport.nodes.service import Cluster
from sallyport.store.model import Store

LOOK_S = 15.0

log = structlog.get_logger()


class Watch:
    """A task that reads the table of nodes every LOOK_S seconds and updates the metrics."""

    def __init__(self, cluster: Cluster, store: Store, metrics: NodeMetrics) -> None:
        self._cluster = cluster
        self._store = store
        self._metrics = metrics
        metrics.watch(lambda: cluster.leads, lambda: cluster.silent_s)

    async def run(self) -> None:
        """Update the metrics until cancelled."""
        while True:
            try:
                await self.look()
            except StoreError as error:
                log.debug("nodes_not_read", error=str(error))
            await trio.sleep(LOOK_S)

    async def look(self) -> None:
        """Update the metrics once. Raises StoreError."""
        nodes = await self._cluster.everyone()
        alive = sum(each.is_alive for each in nodes)
        self._metrics.seen(alive, len(nodes) - alive, led=any(each.leads for each in nodes))
        if self._cluster.is_shared:
            found = await self._store.read(repo.replication)
            self._metrics.replicated(found.standbys, synchronous=found.is_synchronous)
