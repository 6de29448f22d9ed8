"""Metrics of decisions about logins, second factors, lock-outs, event outlets, and upstream RADIUS servers."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sallyport.metrics.instruments import BUCKETS, Durations, LoginPlace, ReadGauge, Tally, Values

FROM_THE_START = {"monitor": ("allow", "deny", "would_deny"), "enforce": ("allow", "deny", "bypass", "error")}
"""Decisions of each mode that are exported with the value 0 before their first event."""
FAILURES = ("unreachable", "unreadable", "unavailable")
"""Why a first factor could not check a login: its servers do not answer, its stored configuration cannot be read, or it
has none."""


class LoginMetrics:
    """Metrics of the decisions about logins, and of deleted events."""

    def __init__(self, registry: CollectorRegistry, tag_key: str = "") -> None:
        """tag_key: the key of the tag whose values are labels; empty if there is none."""
        self.tag_key = tag_key
        self.decisions = Tally(
            registry, "sallyport_mfa_decisions", "Decisions on logins.", ("domain", "mode", "decision")
        )
        self.tagged = Tally(
            registry,
            "sallyport_tagged_decisions",
            "Decisions on logins by the value of the tag that the setting metrics_tag names; `none` without the tag.",
            ("tag", "decision"),
        )
        self.first_failures = Tally(
            registry,
            "sallyport_first_factor_failures",
            "Logins that the domain's first factor could not check, by reason: unreachable, unreadable, unavailable.",
            ("domain", "reason"),
        )
        self.purged = Tally(
            registry,
            "sallyport_events_purged",
            "Events, accounting records and past sessions deleted because of their age or size.",
            ("table", "reason"),
        )

    def use_tag(self, key: str) -> None:
        """Count by another tag. The counts of the former tag are dropped."""
        if key != self.tag_key:
            self.tag_key = key
            self.tagged.forget()

    def watch_domains(self, shown: Callable[[], Iterable[tuple[str, str]]]) -> None:
        """Export the numbers of decisions and failures with the value 0 for domains that have had none yet. shown: a
        function that returns (domain, mode) for each domain. It is called at a scrape."""
        self.first_failures.expect(lambda: ((domain, reason) for domain, _ in shown() for reason in FAILURES))
        self.decisions.expect(
            lambda: ((domain, mode, each) for domain, mode in shown() for each in FROM_THE_START.get(mode, ()))
        )


class MfaMetrics:
    """Metrics of second factors. Label provider: the name of the MFA provider. Label result: how the second factor
    ended."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._challenges = Counter(
            "sallyport_mfa_challenges", "Second factors requested.", ["provider", "result"], registry=registry
        )
        self.seconds = Durations(
            registry, "sallyport_mfa_challenge_duration_seconds", "Duration of second factors.", "provider", "result"
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
        self._refused = Counter(
            "sallyport_mfa_repeated_refusals", "Users who have refused several prompts within an hour.",
            registry=registry,
        )  # fmt: skip
        self._open = Gauge(
            "sallyport_mfa_circuits_open", "Domains whose provider has failed and is not called now.", ["provider"],
            registry=registry,
        )  # fmt: skip

    def finished(self, provider: str, result: str, seconds: float, login: LoginPlace) -> None:
        """Record the end of a second factor. result: how the second factor ended, from a closed set. seconds: the
        duration. login: the last request that waited for it."""
        self._challenges.labels(provider, result).inc()
        self.seconds.of(provider, result).observe(seconds, login)

    def joined(self, provider: str) -> None:
        """Count a request that joined a second factor that was already pending."""
        self._joined.labels(provider).inc()

    def refused_again(self) -> None:
        """Count a user with several refused prompts within an hour."""
        self._refused.inc()

    def called(self, provider: str, call: str, result: str, seconds: float) -> None:
        """Record an ended call of a provider. call: the kind of call. seconds: the duration of the call."""
        self._calls.labels(provider, call, result).observe(seconds)

    def circuit(self, provider: str, *, is_open: bool) -> None:
        """Record that the circuit breaker of a domain's provider has opened or closed."""
        self._open.labels(provider).inc(1 if is_open else -1)


class PauseMetrics:
    """Metrics of pauses of prompts. Label: reason, `not_me` or `unanswered`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pauses = Counter(
            "sallyport_mfa_prompt_pauses",
            "Users who got no more prompts for ten minutes: after a denied login (`not_me`), or without answers.",
            ["reason"],
            registry=registry,
        )
        for reason in ("not_me", "unanswered"):
            self._pauses.labels(reason)

    def paused(self, reason: str) -> None:
        """Count a pause. reason: `not_me` or `unanswered`."""
        self._pauses.labels(reason).inc()


class StepUpMetrics:
    """Metrics of the pages of step-ups: the codes that browsers send, and the proofs. Labels: result, `wrong`,
    `address_limit` or `total_limit`; factor, the name of a factor; strength, that of a proof."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._codes = Counter(
            "sallyport_stepup_code_failures",
            "Codes at /mfa that were wrong, that came from an address after too many wrong codes (`address_limit`), or "
            "that came while all addresses together had sent too many (`total_limit`).",
            ["result"],
            registry=registry,
        )
        for result in ("wrong", "address_limit", "total_limit"):
            self._codes.labels(result)
        self._proofs = Counter(
            "sallyport_stepup_proofs",
            "Logins that their person has confirmed on a page, by factor and strength of the proof.",
            ["factor", "strength"],
            registry=registry,
        )

    def proved(self, factor: str, strength: str) -> None:
        """Count a proof on a page."""
        self._proofs.labels(factor, strength).inc()

    def failed(self, result: str) -> None:
        """Count a code. result: `wrong`, `address_limit` or `total_limit`."""
        self._codes.labels(result).inc()


class LockoutMetrics:
    """Metrics of lock-outs. Label: kind, `user` or `station`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._lockouts = Counter("sallyport_lockouts", "Lock-outs after failures.", ["kind"], registry=registry)

    def locked(self, kind: str) -> None:
        """Count a new lock-out. kind: `user` or `station`."""
        self._lockouts.labels(kind).inc()

    def watch(self, read: Values) -> None:
        """Set the function that returns the number of locked users and stations. The function is called at a scrape."""
        ReadGauge(
            self._registry,
            "sallyport_locked_out",
            "Users and stations that are locked out now.",
            ("kind",),
            read,
        )


class OutletMetrics:
    """Metrics of the events that are sent to outlets. The labels of these metrics:

    outlet: the outlet's URL in the settings. type: `login` or `audit`.
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
        """Stop exporting how many events wait for an outlet. Another node now delivers the events to this outlet."""
        self.waiting = {labels: count for labels, count in self.waiting.items() if labels[0] != outlet}


class SpanMetrics:
    """Metrics of the export of spans. Label: result, `sent`, `failed` or `dropped`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._logins = Counter(
            "sallyport_exported_logins",
            "Logins whose spans the collector has taken (sent) or not taken (failed), or that found the queue full "
            "(dropped).",
            ["result"],
            registry=registry,
        )
        for result in ("sent", "failed", "dropped"):
            self._logins.labels(result)

    def exported(self, logins: int, *, is_taken: bool) -> None:
        """Count the logins of a request to the collector."""
        self._logins.labels("sent" if is_taken else "failed").inc(logins)

    def dropped(self, logins: int) -> None:
        """Count logins that found the queue full."""
        self._logins.labels("dropped").inc(logins)


class SpoolMetrics:
    """Metrics of the accounting records that wait on the local disk while PostgreSQL cannot be reached. Label: outcome,
    which is `spooled`, `delivered` or `dropped`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.records = Tally(
            registry,
            "sallyport_accounting_spooled_records",
            "Accounting records written to the spool on disk, by outcome: spooled, delivered, dropped.",
            ("outcome",),
        )
        self.records.expect(lambda: (("spooled",), ("delivered",), ("dropped",)))

    def watch(self, records: Callable[[], int], octets: Callable[[], int]) -> None:
        """Set the functions that return the number of waiting records and their size in octets. The functions are
        called at a scrape."""
        for name, help, read in (
            ("sallyport_accounting_spool_waiting_records", "Accounting records that wait on local disk.", records),
            ("sallyport_accounting_spool_bytes", "Size of the accounting spool.", octets),
        ):
            Gauge(name, help, registry=self._registry).set_function(read)


class UpstreamMetrics:
    """Metrics of the RADIUS servers to which the service forwards logins. Label domain: the domain's id. Label outcome:
    how a forwarded login ended."""

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
            "Requests forwarded again: to the same server (again), or to another server (moved).",
            ("domain", "kind"),
        )
        self.discards = Tally(
            registry,
            "sallyport_upstream_discards",
            "Datagrams from upstream RADIUS servers that were dropped, by reason.",
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
        """Record that a server has changed its state. before: the old state, or an empty text if the server is new.
        after: the new state, or an empty text if the server was removed."""
        for state, change in ((before, -1), (after, 1)):
            if state:
                self.servers[domain, state] = self.servers.get((domain, state), 0) + change
