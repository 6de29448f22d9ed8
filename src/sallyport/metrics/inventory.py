"""Metrics of devices, sessions, domains, and endpoint agents."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry

from sallyport.metrics.instruments import ReadGauge, Tally, Values


class InventoryMetrics:
    """Metrics of network devices. Label: domain, the domain's id."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.registered = Tally(
            registry, "sallyport_devices_registered", "Devices seen for the first time.", ("domain",)
        )
        self.reregistered = Tally(
            registry, "sallyport_devices_reregistered", "Devices seen again after their deletion.", ("domain",)
        )
        self.deleted = Tally(registry, "sallyport_devices_deleted", "Devices deleted by an admin.", ("domain",))
        self.refused = Tally(
            registry,
            "sallyport_inventory_refused",
            "Devices and stations that were not stored, because their tenant has reached a limit.",
            ("limit",),
        )

    def watch_domains(self, shown: Callable[[], Iterable[tuple[str, str]]]) -> None:
        """Export the numbers of registered and deleted devices with the value 0 for domains that have had no such event
        yet. shown: a function that returns (domain, mode) for each domain. It is called at a scrape."""
        for tally in (self.registered, self.reregistered, self.deleted):
            tally.expect(lambda: ((domain,) for domain, _ in shown()))

    def watch(self, read: Values) -> None:
        """Set the function that returns the number of devices of each domain. The function is called at a scrape."""
        ReadGauge(
            self._registry,
            "sallyport_devices",
            "Devices in the inventory.",
            ("domain",),
            read,
        )


class SessionMetrics:
    """Metrics of accounting. The labels of these metrics:

    status: a value of Acct-Status-Type (RFC 2866), from a closed set. domain: the domain's id.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.records = Tally(
            registry,
            "sallyport_accounting_records",
            "Accounting records stored, by Acct-Status-Type. A record that is sent again counts once.",
            ("status",),
        )

    def watch(self, read: Values) -> None:
        """Set the function that returns the number of live sessions of each domain. The function is called at a
        scrape."""
        ReadGauge(
            self._registry,
            "sallyport_sessions_live",
            "Live sessions.",
            ("domain",),
            read,
        )


class DomainMetrics:
    """Metrics of domains. Label: domain, the domain's id."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def watch(self, modes: Values, names: Values) -> None:
        """Set two functions that are called at a scrape.

        modes: returns the mode of each domain as a label; its value is 1. names: returns the name of each domain as a
        label.
        """
        ReadGauge(
            self._registry,
            "sallyport_enforcement_mode",
            "Mode of a domain: 1 for the current mode.",
            ("domain", "mode"),
            modes,
        )
        ReadGauge(
            self._registry,
            "sallyport_domain_info",
            "Name of a domain, to join with other metrics by the label domain.",
            ("domain", "name"),
            names,
        )


class AgentMetrics:
    """Metrics of endpoint agents and their messages. The labels of these metrics:

    kind: the kind of a message: poll, report, rotation or privileges. outcome: what became of the message: `ok`,
    `refused` (because it was malformed or not acceptable), or `repeated`.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.messages = Tally(
            registry,
            "sallyport_agent_messages",
            "Polls, reports, rotations and privilege statuses of endpoint agents, by outcome.",
            ("kind", "outcome"),
        )

    def watch(self, read: Callable[[], tuple[int, float]], waiting: Callable[[], int]) -> None:
        """Set the functions that are called at a scrape.

        read: returns the number of active agents, and a time in seconds. Of all active agents, one has been silent for
        the longest time; this is the time since its last message. waiting: returns the number of agents that wait for
        their next state.
        """
        ReadGauge(self._registry, "sallyport_agents", "Active endpoint agents.", (), lambda: {(): float(read()[0])})
        ReadGauge(
            self._registry,
            "sallyport_agent_last_seen_seconds",
            "Longest time since the last message of an active agent.",
            (),
            lambda: {(): read()[1]},
        )
        ReadGauge(
            self._registry,
            "sallyport_agents_waiting",
            "Agents that wait for their next state.",
            (),
            lambda: {(): float(waiting())},
        )
