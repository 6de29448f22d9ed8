"""Counters and histograms for code that runs at each login, and gauges that are read at a scrape.

At each login, only plain integers are incremented (0.04 µs). A scrape converts the integers to metrics. The counters of
`prometheus_client` would take 0.24 µs or more.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TypeAlias

from prometheus_client import CollectorRegistry, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

disable_created_metrics()  # type: ignore[no-untyped-call]

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

OPEN = frozenset({"client", "domain", "tag"})
"""Labels whose values admins create, so that they are not a closed set. Such a label must be the first label of its
metric. A metric exports at most a thousand values of the label; further values are counted as `other`."""
MAX_NAMES = 1000
OTHER = "other"

Values: TypeAlias = Callable[[], dict[tuple[str, ...], float]]
"""A function that returns the values of a metric by label values. It is called at a scrape."""


class Cell:
    """One number of a Tally. Code that runs at each login only executes `cell.count += 1`."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Names:
    """The values of the first label of a metric. If admins create these values, at most a thousand of them are
    exported. Events of all other values are counted under the value `other`."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._is_open = bool(labels) and labels[0] in OPEN
        self._known: set[str] = set()

    def bound(self, values: tuple[str, ...]) -> tuple[str, ...]:
        """Return the label values to export. If too many values of the first label are known, the first value becomes
        `other`."""
        if not self._is_open or values[0] in self._known:
            return values
        if len(self._known) < MAX_NAMES:
            self._known.add(values[0])
            return values
        return (OTHER, *values[1:])


class Tally(Collector):
    """A counter for code that runs at each login. Once for each combination of label values, the caller gets a cell. At
    each event, the caller increments the cell."""

    def __init__(self, registry: CollectorRegistry, name: str, help: str, labels: Sequence[str]) -> None:
        self._cells: dict[tuple[str, ...], Cell] = {}
        self._names = Names(labels)
        self._family = (name, help, tuple(labels))
        self._expected: Callable[[], Iterable[tuple[str, ...]]] = tuple
        registry.register(self)

    def expect(self, combinations: Callable[[], Iterable[tuple[str, ...]]]) -> None:
        """Export these combinations of label values with the value 0 before their first event. Without this, Prometheus
        would not count the first event, because it sees no increase.

        combinations: a function that returns the combinations. It is called at each scrape.
        """
        self._expected = combinations

    def cell(self, *labels: str) -> Cell:
        """Return the cell for a combination of label values. A new cell starts at 0."""
        return self._cells.get(labels) or self._cells.setdefault(self._names.bound(labels), Cell())

    def collect(self) -> Iterator[CounterMetricFamily]:
        name, help, labels = self._family
        family = CounterMetricFamily(name, help, labels=labels)
        for values in self._expected():
            self.cell(*values)
        for values, cell in tuple(self._cells.items()):
            family.add_metric(values, cell.count)
        yield family


class Buckets:
    """The counts of one histogram, by bucket."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count an observation."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def cumulated(self) -> list[tuple[str, float]]:
        """Return a pair for each bucket: the upper bound, and the number of all observations that are not greater than
        this bound. Prometheus expects this form."""
        return list(zip((*map(str, self._bounds), "+Inf"), accumulate(map(float, self._counts)), strict=True))


class Durations(Collector):
    """A histogram of durations in seconds with one label, for code that runs at each login."""

    def __init__(self, registry: CollectorRegistry, name: str, help: str, label: str) -> None:
        self._family = (name, help, (label,))
        self._buckets: dict[str, Buckets] = {}
        registry.register(self)

    def of(self, label: str) -> Buckets:
        """Return the buckets for a value of the label. After this call, each scrape exports the value."""
        return self._buckets.get(label) or self._buckets.setdefault(label, Buckets(BUCKETS))

    def collect(self) -> Iterator[HistogramMetricFamily]:
        name, help, labels = self._family
        family = HistogramMetricFamily(name, help, labels=labels)
        for label, buckets in tuple(self._buckets.items()):
            family.add_metric((label,), buckets.cumulated(), buckets.sum)
        yield family


class ReadGauge(Collector):
    """A gauge whose values are read at a scrape. The scrape runs in another thread than the code that changes the
    values."""

    def __init__(self, registry: CollectorRegistry, name: str, help: str, labels: Sequence[str], read: Values) -> None:
        self._names = Names(labels)
        self._family = (name, help, tuple(labels))
        self._read = read
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        name, help, labels = self._family
        family = self._make(name, help, labels)
        values: dict[tuple[str, ...], float] = {}
        for each, value in tuple(self._read().items()):
            shown = self._names.bound(each)
            values[shown] = values.get(shown, 0.0) + value
        for each, value in values.items():
            family.add_metric(each, value)
        yield family

    def _make(self, name: str, help: str, labels: Sequence[str]) -> GaugeMetricFamily | CounterMetricFamily:
        return GaugeMetricFamily(name, help, labels=labels)


class ReadCounter(ReadGauge):
    """A counter whose values are read at a scrape."""

    def _make(self, name: str, help: str, labels: Sequence[str]) -> GaugeMetricFamily | CounterMetricFamily:
        return CounterMetricFamily(name, help, labels=labels)


def render(registry: CollectorRegistry) -> bytes:
    """Return all metrics in the text format of Prometheus. Call this function in a worker thread."""
    return generate_latest(registry)
