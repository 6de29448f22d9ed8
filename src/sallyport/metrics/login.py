"""Metrics of decisions on logins, second factors, lock-outs, event outlets, and upstream RADIUS servers."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sallyport.metrics.instruments import BUCKETS, ReadGauge, Tally, Values

FROM_THE_START = {"monitor": ("allow", "deny", "would_deny"), "enforce": ("allow", "deny", "bypass", "error")}
"""Decisions of each mode that are exported with the value 0 before their first event."""


class LoginMetrics:
    """Metrics of decisions on logins, and of purged events."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.decisions = Tally(
            registry, "sallyport_mfa_decisions", "Decisions on logins.", ("domain", "mode", "decision")
        )
        self.purged = Tally(
            registry,
            "sallyport_events_purged",
            "Events, accounting records and past sessions deleted because of their age or size.",
            ("table", "reason"),
        )

    def watch_domains(self, shown: Callable[[], Iterable[tuple[str, str]]]) -> None:
        """Export the decisions of these domains with the value 0 before their first event. shown: returns (domain,
        mode) of each domain."""
        self.decisions.expect(
            lambda: ((domain, mode, each) for domain, mode in shown() for each in FROM_THE_START.get(mode, ()))
        )


class MfaMetrics:
    """Metrics of second factors. provider: the name of the provider. result: the result of the second factor."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._challenges = Counter(
            "sallyport_mfa_challenges", "Second factors requested.", ["provider", "result"], registry=registry
        )
        self._seconds = Histogram(
            "sallyport_mfa_challenge_duration_seconds",
            "Duration of second factors.",
            ["provider", "result"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._joined = Counter(
            "sallyport_mfa_joined_retransmits", "Requests that joined a pending second factor.", ["provider"],
            registry=registry,
        )  # fmt: skip

        self._calls = Histogram(
            "sallyport_mfa_call_duration_seconds",
            "Duration of the calls to a provider.",
            ["provider", "call", "result"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._open = Gauge(
            "sallyport_mfa_circuits_open", "Domains whose provider has failed and is not called for now.", ["provider"],
            registry=registry,
        )  # fmt: skip

    def finished(self, provider: str, result: str, seconds: float) -> None:
        """Count a second factor that has ended. result: a value of a closed set."""
        self._challenges.labels(provider, result).inc()
        self._seconds.labels(provider, result).observe(seconds)

    def joined(self, provider: str) -> None:
        """Count a request that joined a pending second factor."""
        self._joined.labels(provider).inc()

    def called(self, provider: str, call: str, result: str, seconds: float) -> None:
        """Count an ended call of a provider."""
        self._calls.labels(provider, call, result).observe(seconds)

    def circuit(self, provider: str, *, is_open: bool) -> None:
        """Record that the circuit breaker of a domain's provider opened or closed."""
        self._open.labels(provider).inc(1 if is_open else -1)


class LockoutMetrics:
    """Metrics of lock-outs. kind: user or station."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._lockouts = Counter("sallyport_lockouts", "Lock-outs after failures.", ["kind"], registry=registry)

    def locked(self, kind: str) -> None:
        """Count a lock-out."""
        self._lockouts.labels(kind).inc()

    def watch(self, read: Values) -> None:
        """Set the function that returns the number of locked names; it is called at a scrape."""
        ReadGauge(
            self._registry,
            "sallyport_locked_out",
            "Users and stations that are locked out now.",
            ("kind",),
            read,
        )


class OutletMetrics:
    """Metrics of events sent to outlets. outlet: the outlet's URL in the settings. type: login, audit.

    waiting: the number of events that were not delivered yet, by (outlet, type).
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.sent = Tally(
            registry,
            "sallyport_outlet_events",
            "Decisions (login) and entries of the audit trail (audit) delivered to an outlet.",
            ("outlet", "type"),
        )
        self.waiting: dict[tuple[str, ...], float] = {}
        ReadGauge(
            registry,
            "sallyport_outlet_waiting_events",
            "Decisions and entries of the audit trail that wait for an outlet.",
            ("outlet", "type"),
            lambda: self.waiting,
        )

    def forget(self, outlet: str) -> None:
        """Remove the number of waiting events, because another node delivers the events."""
        self.waiting = {labels: count for labels, count in self.waiting.items() if labels[0] != outlet}


class SpoolMetrics:
    """Metrics of accounting records that wait on local disk. outcome: spooled, delivered, dropped."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.records = Tally(
            registry,
            "sallyport_accounting_spooled_records",
            "Accounting records for the spool, by outcome: spooled, delivered, dropped.",
            ("outcome",),
        )
        self.records.expect(lambda: (("spooled",), ("delivered",), ("dropped",)))

    def watch(self, records: Callable[[], int], octets: Callable[[], int]) -> None:
        """Set the functions that return the number of waiting records and of their octets. They are called at a
        scrape."""
        for name, help, read in (
            ("sallyport_accounting_spool_waiting_records", "Accounting records that wait on local disk.", records),
            ("sallyport_accounting_spool_bytes", "Size of the accounting spool.", octets),
        ):
            Gauge(name, help, registry=self._registry).set_function(read)


class UpstreamMetrics:
    """Metrics of RADIUS servers that check logins. domain: the domain's id. outcome: outcome of a forwarded login."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Tally(
            registry,
            "sallyport_upstream_requests",
            "Logins forwarded to RADIUS servers, by outcome: accept, reject, challenge, none (no answer), malformed.",
            ("domain", "outcome"),
        )
        self.repeats = Tally(
            registry,
            "sallyport_upstream_repeats",
            "Requests forwarded again: to the same server (again), or to another one (moved).",
            ("domain", "kind"),
        )
        self.discards = Tally(
            registry,
            "sallyport_upstream_discards",
            "Datagrams of these servers that were dropped, by reason.",
            ("domain", "reason"),
        )
        self.servers: dict[tuple[str, ...], float] = {}  # by (domain, state)
        ReadGauge(
            registry,
            "sallyport_upstream_servers",
            "RADIUS servers that check logins, by state: alive, zombie, dead.",
            ("domain", "state"),
            lambda: dict(self.servers),
        )

    def moved(self, domain: str, before: str, after: str) -> None:
        """Record a change of a server's state. before, after: the states. `before` is empty for a new server, `after`
        for a removed one."""
        for state, change in ((before, -1), (after, 1)):
            if state:
                self.servers[domain, state] = self.servers.get((domain, state), 0) + change
