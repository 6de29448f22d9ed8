"""Every metric that the service registers, with its labels, before any event was counted."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from sallyport import metrics


def registered() -> CollectorRegistry:
    """Return a registry with one instance of each class of metrics."""
    registry = CollectorRegistry()
    radius = metrics.RadiusMetrics(registry)
    radius.watch_listeners(dict, dict)
    radius.watch_radsec(dict)
    metrics.AgentMetrics(registry).watch(lambda: (0, 0.0), lambda: 0)
    metrics.DirectoryMetrics(registry)
    metrics.LoginMetrics(registry)
    metrics.LockoutMetrics(registry).watch(dict)
    metrics.PauseMetrics(registry)
    metrics.StepUpMetrics(registry)
    metrics.MfaMetrics(registry)
    metrics.UpstreamMetrics(registry)
    metrics.InventoryMetrics(registry).watch(dict)
    metrics.SessionMetrics(registry).watch(dict)
    metrics.DynamicMetrics(registry)
    metrics.PresentationMetrics(registry)
    metrics.DomainMetrics(registry).watch(dict, dict)
    metrics.CredentialMetrics(registry)
    metrics.NodeMetrics(registry).watch(lambda: True, lambda: 0.0)
    store = metrics.StoreMetrics(registry)
    store.watch_queue(lambda: 0)
    store.watch_files(Path("no such file"))
    metrics.CertificateMetrics(registry, dict)
    metrics.RevocationMetrics(registry)
    metrics.OutletMetrics(registry)
    metrics.SpanMetrics(registry)
    metrics.SpoolMetrics(registry).watch(lambda: 0, lambda: 0)
    metrics.HttpMetrics(registry)
    metrics.ConfigurationMetrics(registry)
    metrics.MailMetrics(registry).watch(lambda: 0)
    metrics.ProcessMetrics(registry, "0")
    return registry


def collected() -> Iterator[Metric]:
    """Yield each metric as it is in a scrape."""
    yield from registered().collect()


def labelled() -> Iterator[tuple[Metric, Sequence[str]]]:
    """Yield each metric with the names of its labels. A metric without samples does not show these names."""
    for collector in registered()._collector_to_names:
        for metric in collector.collect():
            yield metric, getattr(collector, "_labelnames", ()) or getattr(metric, "_labelnames", ())
