"""Second factors and their providers."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sallyport.metrics.instruments import BUCKETS


class MfaMetrics:
    """Second factors. provider: its name. result: of the conversation."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._challenges = Counter(
            "sallyport_mfa_challenges", "Second factors asked for.", ["provider", "result"], registry=registry
        )
        self._seconds = Histogram(
            "sallyport_mfa_challenge_duration_seconds",
            "Duration of second factors.",
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
            "sallyport_mfa_circuits_open", "Domains whose provider's circuit is open.", ["provider"],
            registry=registry,
        )  # fmt: skip

    def finished(self, provider: str, result: str, seconds: float) -> None:
        """Count an ended conversation. result: of a closed set."""
        self._challenges.labels(provider, result).inc()
        self._seconds.labels(provider, result).observe(seconds)

    def joined(self, provider: str) -> None:
        """Count a request that joined a waiting second factor."""
        self._joined.labels(provider).inc()

    def called(self, provider: str, call: str, result: str, seconds: float) -> None:
        """Count an ended call of a provider."""
        self._calls.labels(provider, call, result).observe(seconds)

    def circuit(self, provider: str, *, is_open: bool) -> None:
        """Note that the circuit of a domain's provider opened or closed."""
        self._open.labels(provider).inc(1 if is_open else -1)
