"""Credentials and presentations."""

from prometheus_client import CollectorRegistry, Counter

from sallyport.metrics.instruments import Tally


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
