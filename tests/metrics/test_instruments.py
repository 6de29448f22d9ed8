"""Tests of counters for hot paths, gauges that are read at a scrape, and label values whose number is limited."""

import pytest
from prometheus_client import CollectorRegistry

from sallyport.metrics import render
from sallyport.metrics.instruments import BUCKETS, MAX_NAMES, OTHER, Durations, Names, ReadCounter, ReadGauge, Tally


@pytest.fixture
def registry() -> CollectorRegistry:
    """Return an empty registry."""
    return CollectorRegistry()


def test_a_cell_is_a_counter(registry: CollectorRegistry) -> None:
    """Each combination of label values has one cell. It starts at 0 and is exposed as a counter."""
    tally = Tally(registry, "things", "Things.", ("kind",))
    tally.cell("a").count += 2
    tally.cell("a").count += 1
    tally.cell("b")
    assert registry.get_sample_value("things_total", {"kind": "a"}) == 3
    assert registry.get_sample_value("things_total", {"kind": "b"}) == 0


def test_expected_label_values_are_exposed_at_0(registry: CollectorRegistry) -> None:
    """Each scrape asks for the combinations that are expected."""
    tally = Tally(registry, "things", "Things.", ("client",))
    clients = ["a"]
    tally.expect(lambda: ((name,) for name in clients))
    assert registry.get_sample_value("things_total", {"client": "a"}) == 0
    clients.append("b")
    assert registry.get_sample_value("things_total", {"client": "b"}) == 0


def test_durations_are_a_histogram(registry: CollectorRegistry) -> None:
    """Each observation is counted in its bucket, in all higher buckets, and in the sum."""
    durations = Durations(registry, "took", "Time.", "type")
    durations.of("x").observe(0.01)
    for _ in range(2):
        durations.of("x").observe(0.3)
    buckets = {le: registry.get_sample_value("took_bucket", {"type": "x", "le": le}) for le in ("0.01", "0.25", "+Inf")}
    assert buckets == {"0.01": 1, "0.25": 1, "+Inf": 3}
    assert registry.get_sample_value("took_sum", {"type": "x"}) == pytest.approx(0.61)


def test_the_buckets_have_the_bounds_of_the_rules() -> None:
    """The buckets include the bound 1 s, because recording rules use it."""
    assert BUCKETS == (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


@pytest.mark.parametrize("label", ["client", "domain"])
def test_the_values_of_open_labels_are_bounded(registry: CollectorRegistry, label: str) -> None:
    """If a label has more than a thousand values, all further values share one value, and no count is lost."""
    tally = Tally(registry, "things", "Things.", (label, "outcome"))
    for number in range(3 * MAX_NAMES):
        tally.cell(str(number), "x").count += 1
    assert len(render(registry).splitlines()) == 2 + MAX_NAMES + 1
    assert registry.get_sample_value("things_total", {label: OTHER, "outcome": "x"}) == 2 * MAX_NAMES


def test_the_label_values_of_a_gauge_are_bounded(registry: CollectorRegistry) -> None:
    """Above the limit, the gauges of all further values are added together."""
    many = {(str(number),): 1.0 for number in range(MAX_NAMES + 5)}
    ReadGauge(registry, "things", "Things.", ("domain",), lambda: many)
    assert registry.get_sample_value("things", {"domain": OTHER}) == 5
    assert registry.get_sample_value("things", {"domain": OTHER}) == 5


def test_closed_labels_have_no_bound() -> None:
    """If the program defines the values of a label, their number is not limited.

    A metric without labels is not limited either.
    """
    names = Names(("reason",))
    assert [names.bound((str(number),)) for number in range(2000)][-1] == ("1999",)
    assert Names(()).bound(()) == ()


def test_a_counter_is_read_at_a_scrape(registry: CollectorRegistry) -> None:
    """A value that is read at a scrape is exposed as a counter."""
    ReadCounter(registry, "drops", "Drops.", ("listener",), lambda: {("auth",): 3.0})
    assert b'# TYPE drops_total counter\ndrops_total{listener="auth"} 3.0' in render(registry)
