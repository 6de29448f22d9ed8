"""The values of sign-ins: an administrator, an identity, a session, and a signed-in person."""

import json
from dataclasses import dataclass

from sallyport.web.scope import Caller, Role


@dataclass(frozen=True, slots=True)
class Administrator:
    """A local administrator without secrets.

    organization, tenant_number: the orgId and the tenantId of the tenant; 0 for an installation administrator.
    """

    id: int
    name: str
    role: str
    tenant_id: int | None
    organization: int
    tenant_number: int
    created_at: int

    @property
    def target(self) -> str:
        """The administrator as target in the audit trail."""
        return f"administrator {self.id} {self.name}"


@dataclass(frozen=True, slots=True)
class Identity:
    """A person of an identity provider, with the role of the latest sign-in. organization, tenant_number: the orgId and
    the tenantId of the tenant; 0 for an installation administrator. Times are in microseconds."""

    id: int
    issuer: str
    subject: str
    name: str
    role: str
    tenant_id: int | None
    organization: int
    tenant_number: int
    created_at: int
    signed_in_at: int

    @property
    def target(self) -> str:
        """The identity as target in the audit trail."""
        return f"identity {self.id} {self.name} ({self.subject})"


@dataclass(frozen=True, slots=True)
class Session:
    """A session with its token, administrator or identity. An identity is a person of an identity provider. Times are
    in microseconds.

    name, role: the name and the role of the token, administrator or identity. tenant_id: the tenant in which the
    session acts; None if an installation administrator has not chosen a tenant. source: the address from which the
    person has signed in. agent: the browser, as its request describes it. ends_at: the time at which the session
    ends even if it is in use. issuer, subject: the identity. member_of: the groups of the identity at its latest
    sign-in, as JSON. id_token: the sealed ID token.
    """

    id: int
    token_id: int | None
    administrator_id: int | None
    identity_id: int | None
    name: str
    role: str
    tenant_id: int | None
    organization: int
    tenant_number: int
    source: str
    agent: str
    created_at: int
    seen_at: int
    ends_at: int
    token_expires_at: int | None
    token_revoked_at: int | None
    issuer: str | None
    subject: str | None
    member_of: str | None
    id_token: bytes | None

    def is_live(self, now: int, idle_us: int) -> bool:
        """Return whether the session is valid. idle_us: the time without a request after which a session ends."""
        if self.token_id is not None and self.token_revoked_at is not None:
            return False
        ends = [self.ends_at, self.seen_at + idle_us]
        if self.token_expires_at is not None:
            ends.append(self.token_expires_at)
        return now < min(ends)

    @property
    def kind(self) -> str:
        """Return `token`, `administrator` or `identity`."""
        if self.identity_id is not None:
            return "identity"
        return "administrator" if self.token_id is None else "token"

    @property
    def owner_id(self) -> int | None:
        """The id of the token, administrator or identity."""
        return next(
            (each for each in (self.token_id, self.administrator_id, self.identity_id) if each is not None), None
        )

    @property
    def groups(self) -> frozenset[str]:
        """The groups of an identity at its latest sign-in."""
        return frozenset(json.loads(self.member_of or "[]"))

    @property
    def target(self) -> str:
        """The token, administrator or identity of the session as target in the audit trail."""
        return f"{self.kind} {self.owner_id} {self.name}"


@dataclass(frozen=True, slots=True)
class Person:
    """The person of a valid session."""

    session: Session

    @property
    def is_installation(self) -> bool:
        """Return whether the person is an installation administrator."""
        return self.session.role == Role.INSTALLATION

    @property
    def roles(self) -> frozenset[Role]:
        """Return the roles whose pages the person may open. An installation administrator is an admin in the tenant
        that the session acts in."""
        role = Role(self.session.role)
        if role is not Role.INSTALLATION:
            return frozenset({role})
        return frozenset({role} if self.session.tenant_id is None else {role, Role.ADMIN})

    @property
    def caller(self) -> Caller:
        """Return the person as a caller of operations, in the tenant of the session. If the session has no tenant, the
        caller's tenant_id is 0, and no data belongs to tenant 0."""
        each = self.session
        return Caller(
            token_id=each.token_id or 0,
            organization=each.organization,
            tenant_number=each.tenant_number,
            tenant_id=each.tenant_id or 0,
            role=Role.ADMIN if self.is_installation else Role(each.role),
            name=each.name if each.subject is None else f"{each.name} ({each.subject})",
            is_installation=self.is_installation,
            person="" if each.kind == "token" else each.kind,
        )
