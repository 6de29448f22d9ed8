"""What is issued and revoked."""

from prometheus_client import CollectorRegistry, Counter


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
