"""The store: transactions, their queue, their errors, and files."""

import math
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from sallyport.metrics.instruments import BUCKETS, Buckets


class CommitDurations(Collector):
    """The store's transactions: how long they take and how many callers share one."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Buckets(BUCKETS)
        self._callers = Buckets((1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0))
        registry.register(self)

    def observe(self, seconds: float, callers: int) -> None:
        """Count a transaction."""
        self._seconds.observe(seconds)
        self._callers.observe(callers)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        for name, help, buckets in (
            ("sallyport_store_commit_duration_seconds", "One shared transaction.", self._seconds),
            ("sallyport_store_batch_rows", "Callers that share a transaction.", self._callers),
        ):
            family = HistogramMetricFamily(name, help)
            family.add_metric((), buckets.cumulated(), buckets.sum)
            yield family


class StoreMetrics:
    """The store. op: what failed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.commits = CommitDurations(registry)
        self.errors = Counter("sallyport_store_errors", "Failed transactions.", ["op"], registry=registry)
        self.errors.labels("commit")  # shown from 0 on, so that the first one is seen as an increase

    def watch_queue(self, depth: Callable[[], int]) -> None:
        """Read the number of waiting callers at a scrape."""
        Gauge(
            "sallyport_store_queue_depth", "Callers waiting for the next transaction.", registry=self._registry
        ).set_function(depth)

    def watch_files(self, database: Path) -> None:
        """Read the sizes of the database and its log, and the free space, at a scrape."""
        for name, help, path in (
            ("sallyport_store_bytes", "Size of the database.", database),
            ("sallyport_store_wal_bytes", "Size of the database's log.", Path(f"{database}-wal")),
        ):
            Gauge(name, help, registry=self._registry).set_function(partial(_size, path))
        Gauge(
            "sallyport_store_free_bytes", "Free space of the database's file system.", registry=self._registry
        ).set_function(partial(_free, database.parent))


def _size(path: Path) -> float:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _free(directory: Path) -> float:
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return math.nan
