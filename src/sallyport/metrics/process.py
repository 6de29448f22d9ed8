"""Metrics of the process, the certificates, the HTTP operations, and the store: transactions, their queue, errors, and
files."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from sallyport.base.clock import is_synchronized
from sallyport.host import disk
from sallyport.metrics.instruments import BUCKETS, Buckets, ReadGauge, Tally, Values

LAG_SAMPLES = 240


class ProcessMetrics:
    """Metrics of the process: version, memory, file descriptors, CPU time, and delays of the event loop."""

    def __init__(self, registry: CollectorRegistry, version: str) -> None:
        ProcessCollector(namespace="sallyport", registry=registry)
        Gauge("sallyport_build_info", "The running version.", ["version"], registry=registry).labels(version).set(1)
        self._lags: deque[float] = deque([0.0], maxlen=LAG_SAMPLES)
        Gauge(
            "sallyport_event_loop_lag_seconds",
            "Longest delay of the event loop within the last minute.",
            registry=registry,
        ).set_function(lambda: max(tuple(self._lags)))
        self.reloaded = Gauge(
            "sallyport_config_last_reload_success_timestamp_seconds",
            "Time of the last successful reload of the settings.",
            registry=registry,
        )
        self.backed_up = Gauge(
            "sallyport_backup_last_success_timestamp_seconds", "Time of the last successful backup.", registry=registry
        )
        Gauge(
            "sallyport_clock_synchronized",
            "Set to 1 if the kernel reports a synchronized clock, 0 if it does not, NaN if its state is unknown.",
            registry=registry,
        ).set_function(_clock)

    def loaded(self) -> None:
        """Record the time at which the settings were loaded."""
        self.reloaded.set(time.time())

    def lag(self, seconds: float) -> None:
        """Record a delay of the event loop: how many seconds too late it has woken up. This method is called four times
        a second. The metric shows the greatest delay of the last minute."""
        self._lags.append(seconds)


class CertificateMetrics:
    """Metrics of the expiry of certificates. The labels of these metrics:

    use: `api`, `eap` (EAP and RadSec), `authority`, `revocation_list` or `external_revocation_list`; for a domain
    `directory`, `first_factor` or `server_certificate`. domain: the domain's id.

    files: a function that returns the expiry of the service's own files by (use,). It is called at a scrape.
    of_domains: the expiry of the certificates in the configurations of domains, by (domain, use).
    """

    def __init__(self, registry: CollectorRegistry, files: Values) -> None:
        self.of_domains: dict[tuple[str, ...], float] = {}
        ReadGauge(
            registry,
            "sallyport_certificate_expiry_timestamp_seconds",
            "Time when the first certificate of a file of the service expires.",
            ("use",),
            files,
        )
        ReadGauge(
            registry,
            "sallyport_domain_certificate_expiry_timestamp_seconds",
            "Time when the first certificate in the configuration of a domain's directories or first factor expires.",
            ("domain", "use"),
            lambda: self.of_domains,
        )


class MailMetrics:
    """Metrics of mail to people. Label result: `sent` (the SMTP server has accepted it), `failed`, `late` (it waited
    too long), or `full` (the queue had no room)."""

    RESULTS = ("sent", "failed", "late", "full")

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._mails = Tally(registry, "sallyport_mails", "Mails to people, by result.", ("result",))
        self._mails.expect(lambda: ((each,) for each in self.RESULTS))

    def watch(self, waiting: Callable[[], int]) -> None:
        """Set the function that returns the number of waiting mails. The function is called at a scrape."""
        Gauge("sallyport_mail_waiting", "Mails that wait for the SMTP server.", registry=self._registry).set_function(
            waiting
        )

    def ended(self, result: str) -> None:
        """Count a mail."""
        self._mails.cell(result).count += 1


class ConfigurationMetrics:
    """Metric of the folder of the setting `apply`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._failed = Gauge(
            "sallyport_configuration_not_applied",
            "Whether the folder of the setting `apply` could not be applied: 1 or 0.",
            registry=registry,
        )

    def applied(self, *, succeeded: bool) -> None:
        """Store whether the folder was applied."""
        self._failed.set(not succeeded)


class HttpMetrics:
    """Metrics of HTTP operations. Label method: the HTTP method. Label route: the path with placeholders. Label code:
    the class of the status, such as 4xx."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "sallyport_http_request_duration_seconds",
            "Duration of HTTP requests.",
            ["method", "route", "code"],
            buckets=BUCKETS,
            registry=registry,
        )

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Record an HTTP request that was answered. The status is shown only by its class, such as 4xx."""
        self._seconds.labels(method, route, f"{status // 100}xx").observe(seconds)


class CommitDurations(Collector):
    """Metrics of the store's transactions: their duration, and the number of callers that share a transaction."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.seconds = Buckets(BUCKETS)
        self.callers = Buckets((1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0))
        registry.register(self)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        for name, help, buckets in (
            (
                "sallyport_store_commit_duration_seconds",
                "Duration of a transaction. Several callers share a transaction.",
                self.seconds,
            ),
            ("sallyport_store_batch_rows", "Callers that share a transaction.", self.callers),
        ):
            family = HistogramMetricFamily(name, help)
            family.add_metric((), buckets.cumulated(), buckets.sum)
            yield family


class StoreMetrics:
    """Metrics of the store. Label: op, the operation that failed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.commits = CommitDurations(registry)
        self.errors = Counter(
            "sallyport_store_errors", "Transactions that failed in the database.", ["op"], registry=registry
        )
        self.errors.labels("commit")  # exported as 0, so that the first error is an increase

    def watch_queue(self, depth: Callable[[], int]) -> None:
        """Set the function that returns the number of waiting callers. The function is called at a scrape."""
        Gauge(
            "sallyport_store_queue_depth", "Callers waiting for the next transaction.", registry=self._registry
        ).set_function(depth)

    def watch_files(self, database: Path) -> None:
        """Export the size of the database, the size of the database's write-ahead log, and the free disk space. At each
        scrape, these values are read again."""
        for name, help, path in (
            ("sallyport_store_bytes", "Size of the database.", database),
            ("sallyport_store_wal_bytes", "Size of the write-ahead log of the database.", Path(f"{database}-wal")),
        ):
            Gauge(name, help, registry=self._registry).set_function(partial(_size, path))
        Gauge(
            "sallyport_store_free_bytes",
            "Free space of the file system that contains the database.",
            registry=self._registry,
        ).set_function(partial(_free, database.parent))


def _clock() -> float:
    is_right = is_synchronized()
    return math.nan if is_right is None else float(is_right)


def _size(path: Path) -> float:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _free(directory: Path) -> float:
    try:
        return disk.free(directory)
    except OSError:
        return math.nan
