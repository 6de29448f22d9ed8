"""The metrics of several workers, at one address."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.parser import text_string_to_metric_families

from sallyport.metrics import render
from sallyport.metrics.workers import ADDED, LOWEST, merged
from tests.metrics.everything import collected


def worker(count: float) -> str:
    """Return the metrics of a worker that has counted `count` times."""
    registry = CollectorRegistry()
    Counter("sallyport_x", "Count.", ["name"], registry=registry).labels('a "quoted} name').inc(count)
    Histogram("sallyport_h", "Times.", buckets=[1.0], registry=registry).observe(count)
    for name in (
        "sallyport_store_queue_depth", "sallyport_locked_out", "sallyport_config_last_reload_success_timestamp_seconds"
    ):  # fmt: skip
        Gauge(name, "Gauge.", registry=registry).set(count)
    return render(registry).decode()


def test_metrics_of_two_workers() -> None:
    """Counters and histograms have the worker as a label; of a gauge there is one value, by its kind."""
    families = {each.name: each for each in text_string_to_metric_families(merged({1: worker(1), 2: worker(4)}))}
    shown = {
        (each.name, *sorted(each.labels.items())): each.value for family in families.values() for each in family.samples
    }
    name = ("name", 'a "quoted} name')
    assert shown == {
        ("sallyport_x_total", name, ("worker", "1")): 1,
        ("sallyport_x_total", name, ("worker", "2")): 4,
        ("sallyport_h_bucket", ("le", "1.0"), ("worker", "1")): 1,
        ("sallyport_h_bucket", ("le", "1.0"), ("worker", "2")): 0,
        ("sallyport_h_bucket", ("le", "+Inf"), ("worker", "1")): 1,
        ("sallyport_h_bucket", ("le", "+Inf"), ("worker", "2")): 1,
        ("sallyport_h_count", ("worker", "1")): 1,
        ("sallyport_h_count", ("worker", "2")): 1,
        ("sallyport_h_sum", ("worker", "1")): 1,
        ("sallyport_h_sum", ("worker", "2")): 4,
        ("sallyport_store_queue_depth",): 5,
        ("sallyport_locked_out",): 4,
        ("sallyport_config_last_reload_success_timestamp_seconds",): 1,
    }
    assert {each.name: each.type for each in families.values()}["sallyport_x"] == "counter"


def test_gauges_of_workers_exist() -> None:
    """Each gauge with a rule of its own is a gauge of the service."""
    assert {each.name for each in collected() if each.type == "gauge"} >= ADDED | LOWEST
