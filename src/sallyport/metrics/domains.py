"""Domains and their modes."""

from prometheus_client import CollectorRegistry

from sallyport.metrics.instruments import Read, Values


class DomainMetrics:
    """Domains. domain: the domain's id."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def watch(self, read: Values) -> None:
        """Read each domain's mode when somebody scrapes: 1 for the one in force."""
        Read(
            self._registry,
            "sallyport_enforcement_mode",
            "Mode of a domain: 1 for the one in force.",
            ("domain", "mode"),
            read,
        )
