"""Metrics of the nodes that share a database, and of the database's replication."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge

ALIVE, SILENT = "alive", "silent"


class NodeMetrics:
    """Metrics of the nodes as this node sees them. state: alive or silent."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._nodes = Gauge("sallyport_nodes", "Nodes that use the database.", ["state"], registry=registry)
        self._leads = Gauge(
            "sallyport_node_leads", "Set to 1 on the node that does the periodic work for all.", registry=registry
        )
        self._silent = Gauge(
            "sallyport_node_heartbeat_age_seconds", "Time since the last heartbeat of this node.", registry=registry
        )
        self._led = Gauge(
            "sallyport_lease_held", "Set to 1 if a node holds the lease of the periodic work.", registry=registry
        )
        self._standbys = Gauge(
            "sallyport_database_standbys",
            "Standby servers of the database: connected ones, or replication slots if there are more.",
            registry=registry,
        )
        self._synchronous = Gauge(
            "sallyport_database_synchronous",
            "Set to 1 if a commit waits for a standby server, so that a failover loses no answer.",
            registry=registry,
        )
        self._led.set(1)  # until the nodes are read for the first time

    def watch(self, leads: Callable[[], bool], silent_s: Callable[[], float]) -> None:
        """Set the functions that return whether this node leads, and the seconds since its last heartbeat."""
        self._leads.set_function(leads)
        self._silent.set_function(silent_s)

    def seen(self, alive: int, silent: int, *, led: bool) -> None:
        """Store the number of nodes, and whether one of them holds the lease."""
        self._nodes.labels(ALIVE).set(alive)
        self._nodes.labels(SILENT).set(silent)
        self._led.set(led)

    def replicated(self, standbys: int, *, synchronous: bool) -> None:
        """Store the state of the replication."""
        self._standbys.set(standbys)
        self._synchronous.set(synchronous)
