"""Counters for hot paths, gauges that are read at a scrape, and bounded names."""

import pytest
from prometheus_client import CollectorRegistry

from sallyport.metrics import render
from sallyport.metrics.instruments import BUCKETS, MAX_NAMES, OTHER, Durations, Names, ReadCounter, ReadGauge, Tally


@pytest.fixture
def registry() -> CollectorRegistry:
    """An empty one."""
    return CollectorRegistry()


def test_a_cell_is_a_counter(registry: CollectorRegistry) -> None:
    """A combination of labels has one cell, is there from 0 on, and is shown as a counter."""
    tally = Tally(registry, "things", "Things.", ("kind",))
    tally.cell("a").count += 2
    tally.cell("a").count += 1
    tally.cell("b")
    assert registry.get_sample_value("things_total", {"kind": "a"}) == 3
    assert registry.get_sample_value("things_total", {"kind": "b"}) == 0


def test_what_is_expected_is_shown_before_it_happens(registry: CollectorRegistry) -> None:
    """Expected combinations are shown from 0 on, and are asked for at each scrape."""
    tally = Tally(registry, "things", "Things.", ("client",))
    clients = ["a"]
    tally.expect(lambda: ((name,) for name in clients))
    assert registry.get_sample_value("things_total", {"client": "a"}) == 0
    clients.append("b")
    assert registry.get_sample_value("things_total", {"client": "b"}) == 0


def test_durations_are_a_histogram(registry: CollectorRegistry) -> None:
    """Each observation counts in its bucket and all above, and in the sum."""
    durations = Durations(registry, "took", "Time.", "type")
    durations.of("x").observe(0.01)
    for _ in range(2):
        durations.of("x").observe(0.3)
    buckets = {le: registry.get_sample_value("took_bucket", {"type": "x", "le": le}) for le in ("0.01", "0.25", "+Inf")}
    assert buckets == {"0.01": 1, "0.25": 1, "+Inf": 3}
    assert registry.get_sample_value("took_sum", {"type": "x"}) == pytest.approx(0.61)


def test_the_buckets_are_the_agreed_ones() -> None:
    """Recording rules name a bucket's bound: 1 s must be one."""
    assert BUCKETS == (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


@pytest.mark.parametrize("label", ["client", "domain"])
def test_open_labels_are_bounded(registry: CollectorRegistry, label: str) -> None:
    """However many names there are, a thousand are shown; the rest is one, and nothing is lost."""
    tally = Tally(registry, "things", "Things.", (label, "outcome"))
    for number in range(3 * MAX_NAMES):
        tally.cell(str(number), "x").count += 1
    assert len(render(registry).splitlines()) == 2 + MAX_NAMES + 1
    assert registry.get_sample_value("things_total", {label: OTHER, "outcome": "x"}) == 2 * MAX_NAMES


def test_what_is_read_is_bounded_too(registry: CollectorRegistry) -> None:
    """A gauge of more domains than there are names adds the rest up."""
    many = {(str(number),): 1.0 for number in range(MAX_NAMES + 5)}
    ReadGauge(registry, "things", "Things.", ("domain",), lambda: many)
    assert registry.get_sample_value("things", {"domain": OTHER}) == 5
    assert registry.get_sample_value("things", {"domain": OTHER}) == 5


def test_closed_labels_are_as_they_are() -> None:
    """A label whose values the program makes needs no bound, nor does a metric without labels."""
    names = Names(("reason",))
    assert [names.bound((str(number),)) for number in range(2000)][-1] == ("1999",)
    assert Names(()).bound(()) == ()


def test_a_counter_can_be_read(registry: CollectorRegistry) -> None:
    """What the kernel counts is a counter to Prometheus as well."""
    ReadCounter(registry, "drops", "Drops.", ("listener",), lambda: {("auth",): 3.0})
    assert b'# TYPE drops_total counter\ndrops_total{listener="auth"} 3.0' in render(registry)
