"""Counters and histograms for code that runs at each login, and gauges that are read at a scrape.

At each login, only plain integers are incremented (0.04 µs). A scrape converts the integers to metrics. The counters of
`prometheus_client` would take 0.24 µs or more.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from prometheus_client import CollectorRegistry, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

disable_created_metrics()  # type: ignore[no-untyped-call]

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

OPEN = frozenset({"client", "domain", "tag"})
"""Labels whose values admins create, so that they are not a closed set. Such a label must be the first label of its
metric. A metric exports at most a thousand values of the label; further values are counted as `other`."""
MAX_NAMES = 1000
OTHER = "other"

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""The content type of the format that has exemplars."""
TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of the text format of Prometheus."""

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

    def forget(self) -> None:
        """Drop all cells."""
        self._cells.clear()

    def collect(self) -> Iterator[CounterMetricFamily]:
        name, help, labels = self._family
        family = CounterMetricFamily(name, help, labels=labels)
        for values in self._expected():
            self.cell(*values)
        for values, cell in tuple(self._cells.items()):
            family.add_metric(values, cell.count)
        yield family


class LoginPlace(NamedTuple):
    """What identifies a login before its event has an id. at: the arrival of its request, in microseconds."""

    domain_id: int
    at: int


class Buckets:
    """The counts of one histogram, by bucket, and the last login of each bucket."""

    __slots__ = ("_bounds", "_counts", "_exemplars", "_last", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self._last: dict[int, tuple[LoginPlace, float]] = {}
        self._exemplars: dict[int, Exemplar] = {}
        self.sum = 0.0

    def observe(self, value: float, login: LoginPlace | None = None) -> None:
        """Count an observation. login: the login that was observed, if it has an event."""
        index = bisect_left(self._bounds, value)
        self._counts[index] += 1
        self.sum += value
        if login is not None:
            self._last[index] = login, value

    def take_logins(self) -> list["Observed"]:
        """Return the last login of each bucket since the last call."""
        taken, self._last = self._last, {}
        return [Observed(self, index, login, value) for index, (login, value) in taken.items()]

    def show(self, observed: "Observed", event_id: int) -> None:
        """Make a login the exemplar of its bucket."""
        at = observed.login.at / 1_000_000
        labels = {"event_id": str(event_id), "domain": str(observed.login.domain_id)}
        self._exemplars[observed.position] = Exemplar(labels, observed.value, at)

    def cumulated(self) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
        """Return for each bucket: the upper bound, the number of all observations that are not greater than this bound,
        and its exemplar, if it has one. Prometheus expects this form."""
        found: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
        bounds, counts = (*map(str, self._bounds), "+Inf"), accumulate(map(float, self._counts))
        for position, (bound, count) in enumerate(zip(bounds, counts, strict=True)):
            exemplar = self._exemplars.get(position)
            found.append((bound, count) if exemplar is None else (bound, count, exemplar))
        return found


class Observed(NamedTuple):
    """A login in a bucket of a histogram. position: that of the bucket."""

    buckets: Buckets
    position: int
    login: LoginPlace
    value: float


class Durations(Collector):
    """A histogram of durations in seconds, for code that runs at each login."""

    def __init__(self, registry: CollectorRegistry, name: str, help: str, *labels: str) -> None:
        self._family = (name, help, labels)
        self._buckets: dict[tuple[str, ...], Buckets] = {}
        registry.register(self)

    def of(self, *labels: str) -> Buckets:
        """Return the buckets for values of the labels. After this call, each scrape exports them."""
        return self._buckets.get(labels) or self._buckets.setdefault(labels, Buckets(BUCKETS))

    def take_logins(self) -> list[Observed]:
        """Return the last login of each bucket since the last call."""
        return [each for buckets in self._buckets.values() for each in buckets.take_logins()]

    def collect(self) -> Iterator[HistogramMetricFamily]:
        name, help, labels = self._family
        family = HistogramMetricFamily(name, help, labels=labels)
        for values, buckets in tuple(self._buckets.items()):
            family.add_metric(values, buckets.cumulated(), buckets.sum)
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


def render(registry: CollectorRegistry, kind: str = TEXT) -> bytes:
    """Return all metrics. Call this function in a worker thread. kind: OPENMETRICS or TEXT."""
    encode: Callable[[CollectorRegistry], bytes] = generate_openmetrics if kind == OPENMETRICS else generate_latest
    return encode(registry)


def format_for(accept: str) -> str:
    """Return OPENMETRICS for a client that accepts it in any version, and otherwise TEXT. accept: the header Accept."""
    kinds = [each.partition(";")[0].strip().lower() for each in accept.split(",")]
    return OPENMETRICS if "application/openmetrics-text" in kinds else TEXT
