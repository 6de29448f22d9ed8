"""The process and its HTTP operations."""

from collections import deque

from prometheus_client import CollectorRegistry, Gauge, Histogram, ProcessCollector

from sallyport.metrics.instruments import BUCKETS

LAG_SAMPLES = 240


class ProcessMetrics:
    """The process: its version, memory, descriptors and CPU time, and how the event loop keeps up."""

    def __init__(self, registry: CollectorRegistry, version: str) -> None:
        ProcessCollector(namespace="sallyport", registry=registry)
        Gauge("sallyport_build_info", "The running version.", ["version"], registry=registry).labels(version).set(1)
        self._lags: deque[float] = deque([0.0], maxlen=LAG_SAMPLES)
        Gauge(
            "sallyport_event_loop_lag_seconds", "How late the event loop woke up, at worst, lately.", registry=registry
        ).set_function(lambda: max(tuple(self._lags)))
        self.reloaded = Gauge(
            "sallyport_config_last_reload_success_timestamp_seconds", "Last reload.", registry=registry
        )
        self.backed_up = Gauge("sallyport_backup_last_success_timestamp_seconds", "Last backup.", registry=registry)

    def lag(self, seconds: float) -> None:
        """Note the delay of an event loop wake-up. Four a second give the maximum of the last minute."""
        self._lags.append(seconds)


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
        """Count an answered request; the label has the class of the status, such as 4xx."""
        self._seconds.labels(method, route, f"{status // 100}xx").observe(seconds)
