"""What a credential is to a wallet."""

from dataclasses import dataclass

from sallyport.did.credentials.model import Status
from sallyport.did.crypto import jws


@dataclass(frozen=True, slots=True)
class HeldCredential:
    """A credential as its wallet knows it. wallet_id: None before it is assigned. Times in microseconds."""

    id: int
    domain_id: int
    issuer_id: int
    schema_id: int
    name: str
    issuer_did: str
    issuer_name: str
    holder_did: str
    epm_username: str
    wallet_id: int | None
    status: str
    jwt: str
    issued_at: int
    expires_at: int | None

    @property
    def is_revoked(self) -> bool:
        """For good."""
        return self.status == Status.REVOKED

    @property
    def is_ignored(self) -> bool:
        """By its wallet's person."""
        return self.status == Status.IGNORED

    @property
    def schema_url(self) -> str:
        """Where its schema was published when it was issued, as its document says."""
        document = jws.parse(self.jwt).payload.get("vc")
        schema = document.get("credentialSchema") if isinstance(document, dict) else None
        return str(schema.get("id", "")) if isinstance(schema, dict) else ""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who can show a credential: a wallet and its DID. username: as the credential has it, empty for none. credential:
    the one to show, by its `urn:uuid:`; empty for any."""

    wallet_id: int
    holder_did: str
    username: str
    credential: str = ""
