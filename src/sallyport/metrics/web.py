"""HTTP operations."""

from prometheus_client import CollectorRegistry, Histogram

from sallyport.metrics.instruments import BUCKETS


class HttpMetrics:
    """HTTP operations. route: the path as a template."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "sallyport_http_request_duration_seconds",
            "HTTP requests.",
            ["method", "route", "code"],
            buckets=BUCKETS,
            registry=registry,
        )

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """One answered request; the label holds the class of the status, such as 4xx."""
        self._seconds.labels(method, route, f"{status // 100}xx").observe(seconds)
