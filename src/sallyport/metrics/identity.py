"""Metrics of directory imports, issued credentials, and presentations of wallets."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram

from sallyport.metrics.instruments import MAX_NAMES, ReadGauge, Tally

_RESULTS = (
    "Presentations of wallets: accepted, declined, over (the request had ended), malformed, signature, issuer, holder, "
    "claims, expired, not_yet_valid, revoked, status, nonce, audience, unresolved, definition."
)
_BUCKETS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 150.0, 300.0, 600.0, 1800.0, 3600.0)


class DirectoryMetrics:
    """Metrics of directory imports. The labels of these metrics:

    domain: the domain's id. kind: the kind of the directory. state: how an import has ended: DONE, FAILED or CANCELLED.
    result: what an import has done with an entry: added, updated, removed, skipped or failed.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._jobs = Tally(
            registry,
            "sallyport_import_jobs",
            "Finished imports, by state: DONE, FAILED, CANCELLED.",
            ("domain", "state"),
        )
        self._entries = Tally(
            registry,
            "sallyport_directory_sync_entries",
            "Entries of imports, by result: added, updated, removed, skipped, failed.",
            ("domain", "result"),
        )
        self._seconds = Histogram(
            "sallyport_directory_sync_duration_seconds",
            "Duration of successful imports, by the kind of directory.",
            ["kind"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._last: dict[tuple[str, ...], float] = {}
        ReadGauge(
            registry,
            "sallyport_directory_sync_last_success_timestamp_seconds",
            "Time of the domain's last successful import.",
            ("domain",),
            lambda: self._last,
        )

        self._data: dict[tuple[str, ...], float] = {}
        self._expiry: dict[tuple[str, ...], float] = {}
        ReadGauge(
            registry,
            "sallyport_directory_data_timestamp_seconds",
            "Time of the oldest data of the domain's cloud directories.",
            ("domain",),
            lambda: self._data,
        )
        ReadGauge(
            registry,
            "sallyport_directory_data_expiry_timestamp_seconds",
            "Time when the oldest data of the domain's cloud directories become too old for logins by certificate.",
            ("domain",),
            lambda: self._expiry,
        )

    def aged(self, data: Mapping[int, tuple[float, float]]) -> None:
        """Set the ages of data. data: the time of the oldest data of each domain, and the time when they become too
        old, in seconds since 1970."""
        kept = list(data.items())[:MAX_NAMES]
        self._data = {(str(domain_id),): at for domain_id, (at, _) in kept}
        self._expiry = {(str(domain_id),): until for domain_id, (_, until) in kept}

    def watch_domains(self, shown: Callable[[], Iterable[tuple[str, str]]]) -> None:
        """Export the numbers of successful and failed imports with the value 0 for domains that had no import yet.
        shown: a function that returns (domain, mode) for each domain. It is called at a scrape."""
        self._jobs.expect(lambda: ((domain, state) for domain, _ in shown() for state in ("DONE", "FAILED")))

    def ended(self, domain_id: int, state: str) -> None:
        """Count an import that has ended. state: DONE, FAILED or CANCELLED."""
        self._jobs.cell(str(domain_id), state).count += 1

    def done(self, domain_id: int, kind: str, seconds: float, entries: Mapping[str, int]) -> None:
        """Record a successful import. kind: the kind of the directory. seconds: the duration. entries: the number of
        entries by result."""
        self._seconds.labels(kind).observe(seconds)
        for result, number in entries.items():
            self._entries.cell(str(domain_id), result).count += number

    def succeeded(self, domain_id: int, at: float) -> None:
        """Set the time of a domain's last successful import. at: seconds since 1970."""
        if len(self._last) < MAX_NAMES or (str(domain_id),) in self._last:
            self._last[str(domain_id),] = at

    def forget(self, domain_id: int) -> None:
        """Stop exporting the time of a domain's last import, because the domain has no directory any more."""
        self._last.pop((str(domain_id),), None)


class CredentialMetrics:
    """Metrics of credentials: how many were issued and revoked."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._issued = Counter("sallyport_credentials_issued", "Credentials issued.", registry=registry)
        self._revoked = Counter("sallyport_credentials_revoked", "Credentials revoked.", registry=registry)

    def issued(self) -> None:
        """Count an issued credential."""
        self._issued.inc()

    def revoked(self) -> None:
        """Count a revoked credential."""
        self._revoked.inc()


class PresentationMetrics:
    """Metrics of the presentations that wallets have sent."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._results = Tally(registry, "sallyport_presentations", _RESULTS, ("result",))

    def presented(self, result: str) -> None:
        """Count a presentation. result: `accepted`, or why it was not accepted."""
        self._results.cell(result).count += 1
