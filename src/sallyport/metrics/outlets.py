"""Outlets of events: the log apart, where decisions go beside the store."""

from prometheus_client import CollectorRegistry

from sallyport.metrics.instruments import Read, Tally


class OutletMetrics:
    """outlet: its URL, as the setting has it. type: login, audit. waiting: what was not delivered yet, by (outlet,
    type)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.sent = Tally(registry, "sallyport_outlet_events", "Events delivered to an outlet.", ("outlet", "type"))
        self.waiting: dict[tuple[str, ...], float] = {}
        Read(
            registry,
            "sallyport_outlet_waiting_events",
            "Events that an outlet had not taken when it was last asked.",
            ("outlet", "type"),
            lambda: self.waiting,
        )
