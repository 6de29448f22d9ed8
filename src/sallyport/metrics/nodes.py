"""Metrics of the nodes that share a database, and of the replication of the database."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge

ALIVE, SILENT = "alive", "silent"


class NodeMetrics:
    """Metrics of the nodes, as this node sees them. Label: state, `alive` or `silent`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._nodes = Gauge("sallyport_nodes", "Nodes that use the database.", ["state"], registry=registry)
        self._leads = Gauge(
            "sallyport_node_leads", "Set to 1 on the node that does the periodic work for all nodes.", registry=registry
        )
        self._silent = Gauge(
            "sallyport_node_heartbeat_age_seconds", "Time since the last heartbeat of this node.", registry=registry
        )
        self._led = Gauge(
            "sallyport_lease_held", "Set to 1 if a node holds the lease of the periodic work.", registry=registry
        )
        self._standbys = Gauge(
            "sallyport_database_standbys",
            "Standby servers of the database: connected servers, or replication slots if there are more slots.",
            registry=registry,
        )
        self._synchronous = Gauge(
            "sallyport_database_synchronous",
            "Set to 1 if a commit waits for a standby server, so that a failover loses no answer.",
            registry=registry,
        )
        self._led.set(1)  # until the nodes are read for the first time

    def watch(self, leads: Callable[[], bool], silent_s: Callable[[], float]) -> None:
        """Set the functions that are called at a scrape.

        leads: returns whether this node holds the lease of the periodic work. silent_s: returns the seconds since the
        last heartbeat of this node.
        """
        self._leads.set_function(leads)
        self._silent.set_function(silent_s)

    def seen(self, alive: int, silent: int, *, led: bool) -> None:
        """Record the numbers of alive and of silent nodes, and whether a node holds the lease of the periodic work."""
        self._nodes.labels(ALIVE).set(alive)
        self._nodes.labels(SILENT).set(silent)
        self._led.set(led)

    def replicated(self, standbys: int, *, synchronous: bool) -> None:
        """Record the number of standby servers, and whether commits wait for a standby server."""
        self._standbys.set(standbys)
        self._synchronous.set(synchronous)
