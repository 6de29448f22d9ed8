"""Every metric of the service, one class for each area. Names and labels are an API: grafana/ reads them.

Labels are closed sets, never a user or an address. What is counted for each packet is counted in plain integers
(0.04 µs) and turned into metrics when somebody scrapes; `prometheus_client`'s own counters take 0.24 µs and more.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

disable_created_metrics()  # type: ignore[no-untyped-call]

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
MAX_CLIENTS = 1000
OTHER = "other"


class Cell:
    """One number of a Tally: `cell.count += 1` is all that a hot path does."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Tally(Collector):
    """A counter for hot paths: keep the cell of a combination of labels, and add to it."""

    def __init__(self, registry: CollectorRegistry, name: str, help: str, labels: Sequence[str]) -> None:
        self._cells: dict[tuple[str, ...], Cell] = {}
        self._family = (name, help, tuple(labels))
        registry.register(self)

    def cell(self, *labels: str) -> Cell:
        """The cell of some label values; a new combination begins at 0."""
        return self._cells.get(labels) or self._cells.setdefault(labels, Cell())

    def collect(self) -> Iterator[CounterMetricFamily]:
        name, help, labels = self._family
        family = CounterMetricFamily(name, help, labels=labels)
        for values, cell in tuple(self._cells.items()):
            family.add_metric(values, cell.count)
        yield family


class Buckets:
    """The counts of one histogram."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, count: int) -> None:
        """Count `count` observations of a value."""
        self._counts[bisect_left(self._bounds, value)] += count
        self.sum += value * count

    def cumulated(self) -> list[tuple[str, float]]:
        """(bound, observations up to it), as Prometheus has them."""
        return list(zip((*map(str, self._bounds), "+Inf"), accumulate(map(float, self._counts)), strict=True))


class Durations(Collector):
    """A histogram of seconds for hot paths, with one label."""

    def __init__(self, registry: CollectorRegistry, name: str, help: str, label: str) -> None:
        self._family = (name, help, (label,))
        self._buckets: dict[str, Buckets] = {}
        registry.register(self)

    def observe(self, label: str, seconds: float, count: int = 1) -> None:
        """Count `count` requests that took `seconds` each."""
        buckets = self._buckets.get(label)
        if buckets is None:
            buckets = self._buckets[label] = Buckets(BUCKETS)
        buckets.observe(seconds, count)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        name, help, labels = self._family
        family = HistogramMetricFamily(name, help, labels=labels)
        for label, buckets in tuple(self._buckets.items()):
            family.add_metric((label,), buckets.cumulated(), buckets.sum)
        yield family


class CommitDurations(Collector):
    """The store's transactions: how long they take and how many callers share one."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Buckets(BUCKETS)
        self._callers = Buckets((1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0))
        registry.register(self)

    def observe(self, seconds: float, callers: int) -> None:
        """One transaction."""
        self._seconds.observe(seconds, 1)
        self._callers.observe(callers, 1)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        for name, help, buckets in (
            ("sallyport_store_commit_duration_seconds", "One shared transaction.", self._seconds),
            ("sallyport_store_batch_rows", "Callers that share a transaction.", self._callers),
        ):
            family = HistogramMetricFamily(name, help)
            family.add_metric((), buckets.cumulated(), buckets.sum)
            yield family


class _Read(Collector):
    """A gauge or counter whose values are read when somebody scrapes."""

    def __init__(
        self,
        registry: CollectorRegistry,
        family: Callable[[], GaugeMetricFamily | CounterMetricFamily],
        read: Callable[[], dict[tuple[str, ...], float]],
    ) -> None:
        self._make = family
        self._read = read
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        family = self._make()
        for labels, value in self._read().items():
            family.add_metric(labels, value)
        yield family


class RadiusMetrics:
    """The RADIUS listeners. listener: auth, acct or radsec. type: a packet's name (RFC 2865)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.requests = Tally(registry, "sallyport_radius_requests", "Requests accepted.", ("listener", "type"))
        self.responses = Tally(registry, "sallyport_radius_responses", "Replies sent.", ("listener", "type"))
        self.discards = Tally(
            registry, "sallyport_radius_discards", "Datagrams not answered, by reason.", ("listener", "reason")
        )
        self.rounds = Tally(
            registry, "sallyport_radius_rounds", "Requests that decided nothing and have no event.", ("listener",)
        )
        self.seconds = Durations(
            registry, "sallyport_radius_request_duration_seconds", "Time from receipt to reply.", "type"
        )
        self.clients = Tally(
            registry, "sallyport_client_requests", "Requests of each RADIUS client, by outcome.", ("client", "outcome")
        )
        self._client_names: set[str] = set()

    def client_label(self, name: str) -> str:
        """The label of a RADIUS client: its name, or `other` past the first thousand."""
        if name in self._client_names or len(self._client_names) < MAX_CLIENTS:
            self._client_names.add(name)
            return name
        return OTHER

    def watch_listeners(
        self, in_flight: Callable[[], dict[tuple[str, ...], float]], drops: Callable[[], dict[tuple[str, ...], float]]
    ) -> None:
        """Read what waits, and what the kernel dropped for want of buffer, when somebody scrapes."""
        _Read(
            self._registry,
            lambda: GaugeMetricFamily(
                "sallyport_radius_inflight_requests", "Requests that wait for their answer.", labels=("listener",)
            ),
            in_flight,
        )
        _Read(
            self._registry,
            lambda: CounterMetricFamily(
                "sallyport_udp_receive_drops", "Datagrams dropped by the kernel.", labels=("listener",)
            ),
            drops,
        )

    def watch_radsec(self, connections: Callable[[], dict[tuple[str, ...], float]]) -> None:
        """Read how many RadSec connections there are when somebody scrapes."""
        _Read(
            self._registry,
            lambda: GaugeMetricFamily("sallyport_radsec_connections", "RADIUS servers and devices connected over TLS."),
            connections,
        )


class LoginMetrics:
    """What was decided."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.decisions = Tally(
            registry, "sallyport_mfa_decisions", "Decisions on logins.", ("domain", "mode", "decision")
        )
        self.purged = Tally(
            registry,
            "sallyport_events_purged",
            "Events deleted: their time or their room was over.",
            ("table", "reason"),
        )


class LockoutMetrics:
    """Users and stations that are locked out. kind: user or station."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._lockouts = Counter("sallyport_lockouts", "Lock-outs after failures.", ["kind"], registry=registry)

    def locked(self, kind: str) -> None:
        """One was locked out."""
        self._lockouts.labels(kind).inc()

    def watch(self, read: Callable[[], dict[tuple[str, ...], float]]) -> None:
        """Read how many are locked out when somebody scrapes."""
        _Read(
            self._registry,
            lambda: GaugeMetricFamily("sallyport_locked_out", "Locked out now.", labels=("kind",)),
            read,
        )


class MfaMetrics:
    """Second factors. provider: its name. result: how the conversation with it ended."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._challenges = Counter(
            "sallyport_mfa_challenges", "Second factors asked for.", ["provider", "result"], registry=registry
        )
        self._seconds = Histogram(
            "sallyport_mfa_challenge_duration_seconds",
            "From asking for a second factor to its end.",
            ["provider", "result"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._joined = Counter(
            "sallyport_mfa_joined_retransmits", "Requests that joined a waiting second factor.", ["provider"],
            registry=registry,
        )  # fmt: skip

        self._calls = Histogram(
            "sallyport_mfa_call_duration_seconds",
            "Calls of a provider.",
            ["provider", "call", "result"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._open = Gauge(
            "sallyport_mfa_circuits_open", "Domains whose provider is not asked for now.", ["provider"],
            registry=registry,
        )  # fmt: skip

    def finished(self, provider: str, result: str, seconds: float) -> None:
        """A conversation has ended. result: of a closed set."""
        self._challenges.labels(provider, result).inc()
        self._seconds.labels(provider, result).observe(seconds)

    def joined(self, provider: str) -> None:
        """A request joined one that waits."""
        self._joined.labels(provider).inc()

    def called(self, provider: str, call: str, result: str, seconds: float) -> None:
        """A call of a provider has ended."""
        self._calls.labels(provider, call, result).observe(seconds)

    def circuit(self, provider: str, *, is_open: bool) -> None:
        """The circuit before one domain's provider opened or closed."""
        self._open.labels(provider).inc(1 if is_open else -1)


class UpstreamMetrics:
    """RADIUS servers that logins are passed on to. domain: the domain's id. outcome: what a login got from them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Tally(
            registry, "sallyport_upstream_requests", "Logins passed on to home servers.", ("domain", "outcome")
        )
        self.repeats = Tally(
            registry, "sallyport_upstream_repeats", "Requests sent again, or to another server.", ("domain", "kind")
        )
        self.discards = Tally(
            registry, "sallyport_upstream_discards", "Datagrams of home servers dropped.", ("domain", "reason")
        )
        self.servers: dict[tuple[str, ...], float] = {}  # by (domain, state)
        _Read(
            registry,
            lambda: GaugeMetricFamily(
                "sallyport_upstream_servers", "Home servers in each state.", labels=("domain", "state")
            ),
            lambda: dict(self.servers),
        )

    def moved(self, domain: str, before: str, after: str) -> None:
        """A server is in another state; empty: it was not there, or is there no more."""
        for state, change in ((before, -1), (after, 1)):
            if state:
                self.servers[domain, state] = self.servers.get((domain, state), 0) + change


class InventoryMetrics:
    """Devices. domain: the domain's id."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.registered = Counter(
            "sallyport_devices_registered", "Devices seen for the first time.", ["domain"], registry=registry
        )
        self.reregistered = Counter(
            "sallyport_devices_reregistered", "Devices seen again after their deletion.", ["domain"], registry=registry
        )
        self.deleted = Counter(
            "sallyport_devices_deleted", "Devices deleted by an admin.", ["domain"], registry=registry
        )

    def watch(self, read: Callable[[], dict[tuple[str, ...], float]]) -> None:
        """Read the number of devices of each domain when somebody scrapes."""
        _Read(
            self._registry,
            lambda: GaugeMetricFamily("sallyport_devices", "Devices in the inventory.", labels=("domain",)),
            read,
        )


class SessionMetrics:
    """Accounting. status: of Acct-Status-Type (RFC 2866), of a closed set. domain: the domain's id."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.records = Tally(registry, "sallyport_accounting_records", "Accounting records kept.", ("status",))

    def watch(self, read: Callable[[], dict[tuple[str, ...], float]]) -> None:
        """Read the number of live sessions of each domain when somebody scrapes."""
        _Read(
            self._registry,
            lambda: GaugeMetricFamily("sallyport_sessions_live", "Sessions that go on.", labels=("domain",)),
            read,
        )


class DynamicMetrics:
    """What NASes are asked about their sessions (RFC 5176). kind: disconnect, change. outcome: ack, nak, timeout,
    unreachable, unknown client."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Tally(
            registry, "sallyport_dynamic_requests", "Disconnect and CoA requests by outcome.", ("kind", "outcome")
        )


class DomainMetrics:
    """Domains. domain: the domain's id."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def watch(self, read: Callable[[], dict[tuple[str, ...], float]]) -> None:
        """Read each domain's mode when somebody scrapes: 1 for the one in force."""
        _Read(
            self._registry,
            lambda: GaugeMetricFamily(
                "sallyport_enforcement_mode", "Mode of a domain: 1 for the one in force.", labels=("domain", "mode")
            ),
            read,
        )


class StoreMetrics:
    """The store. op: what failed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.commits = CommitDurations(registry)
        self.errors = Counter(
            "sallyport_store_errors", "Transactions that the engine refused.", ["op"], registry=registry
        )

    def watch_queue(self, depth: Callable[[], int]) -> None:
        """Read how many callers wait when somebody scrapes."""
        Gauge(
            "sallyport_store_queue_depth", "Callers that wait for the next transaction.", registry=self._registry
        ).set_function(depth)

    def watch_files(self, database: Path) -> None:
        """Read the sizes of the database and its log when somebody scrapes."""
        for name, help, path in (
            ("sallyport_store_bytes", "Size of the database.", database),
            ("sallyport_store_wal_bytes", "Size of the database's log.", Path(f"{database}-wal")),
        ):
            Gauge(name, help, registry=self._registry).set_function(partial(_size, path))


class HttpMetrics:
    """HTTP operations. route: the path as a template."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "sallyport_http_request_duration_seconds",
            "HTTP requests.",
            ["method", "route", "code"],
            buckets=BUCKETS,
            registry=registry,
        )

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """One answered request; the label holds the class of the status, such as 4xx."""
        self._seconds.labels(method, route, f"{status // 100}xx").observe(seconds)


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


def _size(path: Path) -> float:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def render(registry: CollectorRegistry) -> bytes:
    """All metrics in Prometheus' text format; run it in a worker thread."""
    return generate_latest(registry)
