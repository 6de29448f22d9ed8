"""What a tenant and an access token are."""

from dataclasses import dataclass

from sallyport.web.scope import Role


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant: `id` is internal; organization and number are what bodies call orgId and tenantId."""

    id: int
    organization: int
    number: int


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """What is known of a token; the token itself is not. Times are UTC microseconds."""

    id: int
    organization: int
    tenant_number: int
    tenant_id: int
    name: str
    role: Role
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    def status(self, now: int) -> str:
        """`active`, `expired` or `revoked` at a time."""
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"
