"""The process itself."""

from prometheus_client import CollectorRegistry, Gauge


class ProcessMetrics:
    """The process itself."""

    def __init__(self, registry: CollectorRegistry, version: str) -> None:
        Gauge("sallyport_build_info", "The running version.", ["version"], registry=registry).labels(version).set(1)
        self.loop_lag = Gauge(
            "sallyport_event_loop_lag_seconds", "How late the event loop wakes up.", registry=registry
        )
        self.reloaded = Gauge(
            "sallyport_config_last_reload_success_timestamp_seconds", "Last reload.", registry=registry
        )
        self.backed_up = Gauge("sallyport_backup_last_success_timestamp_seconds", "Last backup.", registry=registry)
