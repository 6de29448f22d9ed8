"""What holders show."""

from prometheus_client import CollectorRegistry

from sallyport.metrics.instruments import Tally


class PresentationMetrics:
    """Presentations. result: accepted, declined, over (the request was), or why one was refused: malformed, signature,
    issuer, holder, claims, expired, not_yet_valid, revoked, status, nonce, audience, unresolved, definition."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._results = Tally(registry, "sallyport_presentations", "Presentations by result.", ("result",))

    def presented(self, result: str) -> None:
        """One more."""
        self._results.cell(result).count += 1
