"""Directories, and the credentials and presentations of their users."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram

from sallyport.metrics.instruments import MAX_NAMES, Read, Tally

_BUCKETS = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 150.0, 300.0, 600.0, 1800.0, 3600.0)


class DirectoryMetrics:
    """Imports. domain: the domain's id. kind: of the directory. state: DONE, FAILED, CANCELLED. result: of an entry:
    added, updated, removed, skipped, failed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._jobs = Tally(registry, "sallyport_import_jobs", "Imports that are over.", ("domain", "state"))
        self._entries = Tally(
            registry,
            "sallyport_directory_sync_entries",
            "Entries of imports by what became of them.",
            ("domain", "result"),
        )
        self._seconds = Histogram(
            "sallyport_directory_sync_duration_seconds",
            "Imports that were done, from their begin to their end.",
            ["kind"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._last: dict[tuple[str, ...], float] = {}
        Read(
            registry,
            "sallyport_directory_sync_last_success_timestamp_seconds",
            "When the last import of the domain was done.",
            ("domain",),
            lambda: self._last,
        )

    def watch_domains(self, shown: Callable[[], Iterable[tuple[str, str]]]) -> None:
        """Count from 0 on for these domains, given with their modes."""
        self._jobs.expect(lambda: ((domain, state) for domain, _ in shown() for state in ("DONE", "FAILED")))

    def ended(self, domain_id: int, state: str) -> None:
        """An import is over."""
        self._jobs.cell(str(domain_id), state).count += 1

    def done(self, domain_id: int, kind: str, seconds: float, entries: Mapping[str, int]) -> None:
        """An import was done. entries: by result."""
        self._seconds.labels(kind).observe(seconds)
        for result, number in entries.items():
            self._entries.cell(str(domain_id), result).count += number

    def succeeded(self, domain_id: int, at: float) -> None:
        """The last import of a domain that was done. at: seconds since 1970."""
        if len(self._last) < MAX_NAMES or (str(domain_id),) in self._last:
            self._last[str(domain_id),] = at

    def forget(self, domain_id: int) -> None:
        """A domain has no directory any more: nobody waits for its next import."""
        self._last.pop((str(domain_id),), None)


class CredentialMetrics:
    """Credentials issued and revoked."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._issued = Counter("sallyport_credentials_issued", "Credentials issued.", registry=registry)
        self._revoked = Counter("sallyport_credentials_revoked", "Credentials revoked.", registry=registry)

    def issued(self) -> None:
        """One was issued."""
        self._issued.inc()

    def revoked(self) -> None:
        """One was revoked."""
        self._revoked.inc()


class PresentationMetrics:
    """Presentations. result: accepted, declined, over (the request was), or why one was refused: malformed, signature,
    issuer, holder, claims, expired, not_yet_valid, revoked, status, nonce, audience, unresolved, definition."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._results = Tally(registry, "sallyport_presentations", "Presentations by result.", ("result",))

    def presented(self, result: str) -> None:
        """One more."""
        self._results.cell(result).count += 1
