"""Domains and their modes."""

from prometheus_client import CollectorRegistry

from sallyport.metrics.instruments import Read, Values


class DomainMetrics:
    """Domains. domain: the domain's id."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def watch(self, modes: Values, names: Values) -> None:
        """Read each domain's mode (1 for the one in force) and its name when somebody scrapes."""
        Read(
            self._registry,
            "sallyport_enforcement_mode",
            "Mode of a domain: 1 for the one in force.",
            ("domain", "mode"),
            modes,
        )
        Read(self._registry, "sallyport_domain_info", "What a domain is called.", ("domain", "name"), names)
