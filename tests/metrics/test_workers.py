"""The metrics of several workers, at one address."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from sallyport.metrics import OPENMETRICS, Durations, LoginPlace, render
from sallyport.metrics.workers import ADDED, LOWEST, merged
from tests.metrics.everything import collected

NAME = 'a "quoted} # {name\u2028 of two lines'


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


def test_openmetrics_of_two_workers() -> None:
    """The exemplars of both workers stay, and the text ends as OpenMetrics demands. A text in a label may look like an
    exemplar."""

    def told(event_id: int) -> str:
        registry = CollectorRegistry()
        durations = Durations(registry, "sallyport_t_seconds", "Times.", "type")
        buckets = durations.of(NAME)
        buckets.observe(0.2, LoginPlace(3, 1_000_000))
        (observed,) = durations.take_logins()
        buckets.show(observed, event_id)
        Gauge("sallyport_locked_out", "Gauge.", registry=registry).set(event_id)
        return render(registry, OPENMETRICS).decode()

    text = merged({1: told(7), 2: told(8)})
    assert text.endswith("\n# EOF\n") and text.count("# EOF") == 1
    times, locked = openmetrics_families(text)
    shown = [(each, each.exemplar) for each in times.samples if each.exemplar is not None]
    exemplars = [
        (each.labels["worker"], each.labels["type"], exemplar.labels, exemplar.value, float(exemplar.timestamp or 0))
        for each, exemplar in shown
    ]
    assert exemplars == [
        (str(worker), NAME, {"event_id": str(event_id), "domain": "3"}, 0.2, 1.0)
        for worker, event_id in ((1, 7), (2, 8))
    ]
    assert [each.value for each in locked.samples] == [8]


def test_gauges_of_workers_exist() -> None:
    """Each gauge with a rule of its own is a gauge of the service."""
    assert {each.name for each in collected() if each.type == "gauge"} >= ADDED | LOWEST
