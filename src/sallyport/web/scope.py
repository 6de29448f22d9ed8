"""The caller of a request with its role, and `Gate`: authentication, scope, roles and limits before an operation runs.

A token belongs to one tenant of one organization. If a body claims orgId, tenantId or domainId (see `bodies`), these
ids must belong to the token's tenant.
"""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from sallyport.base.actor import Actor, Overrides, acting, acting_as
from sallyport.base.errors import Forbidden, TooManyAtOnce, Unauthenticated
from sallyport.web.bodies import Body, given_fields
from sallyport.web.connections import PEER


class Role(StrEnum):
    """The role of a token within its tenant."""

    ADMIN = "admin"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    AGENT = "agent"
    DIRECTORY = "directory"
    ENROLMENT = "enrolment"
    WALLET = "wallet"
    INSTALLATION = "installation"
    """The role of an administrator of the whole installation, in the console. No token has it."""


ADMINS = frozenset({Role.ADMIN})
"""Roles that may change tokens, clients' secrets and enforcement modes."""
OPERATORS = frozenset({Role.ADMIN, Role.OPERATOR})
"""Roles that may change everything except tokens, clients' secrets and enforcement modes."""
READERS = frozenset({Role.ADMIN, Role.OPERATOR, Role.AUDITOR})
"""Roles that may read everything except secrets."""
AGENTS = frozenset({Role.AGENT})
"""The role of an endpoint agent. It is valid only for the agent's instance."""
DIRECTORY_AGENTS = frozenset({Role.DIRECTORY})
"""The role of a directory agent. It is valid only for the agent's domain."""
ENROLMENTS = frozenset({Role.ENROLMENT})
"""The role of an enrolment key, with which an agent can only register its own key."""
WALLETS = frozenset({Role.WALLET})
"""The role of a wallet's holder."""
INSTALLATIONS = frozenset({Role.INSTALLATION})
"""The role for pages of the console whose data belong to no tenant."""
MAX_RUNNING = 128
"""Maximum number of concurrent requests of one tenant's admins, operators and auditors. A listener has 512
connections."""
MAX_LARGE_BODIES = 32
"""Maximum number of large bodies of one tenant in memory at the same time. Each has up to 1 MiB."""
SMALL_BODIES = 2
"""Maximum number of requests whose small body is parsed in one pass of the event loop. A request then runs for about a
millisecond until it first waits, and the logins wait for all requests of the pass. With 16, the p99 of logins beside 16
busy connections was 40 ms instead of 22 ms, and no more requests were answered."""
_KEYS = AGENTS | DIRECTORY_AGENTS | ENROLMENTS


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a token. organization: the orgId of its organization. tenant_number: the tenantId of its tenant."""

    token_id: int
    organization: int
    tenant_number: int
    tenant_id: int
    role: Role
    name: str
    domain_id: int | None = None
    """The only domain that an agent may act on; None for other callers."""
    instance_id: int | None = None
    """The only instance that an endpoint agent may act on; None for other callers."""
    is_installation: bool = False
    """Whether the caller may act as admin of any tenant: a user of the command line on the service's host, or an
    installation administrator in the console."""
    person: str = ""
    """The kind of a person who has signed in to the console without a token: `administrator` for a local administrator,
    `identity` for a person of an identity provider. Empty for all other callers."""

    @property
    def actor(self) -> Actor:
        """The caller in the form in which the audit trail stores actors."""
        if self.person:
            tenant_id = self.tenant_id or None
            return Actor(self.person, self.name, tenant_id=tenant_id, is_installation=self.is_installation)
        if self.is_installation:
            return Actor("command line", self.name)
        return Actor("agent" if self.role in _KEYS else "token", self.name, self.token_id, self.tenant_id)


def not_allowed(role: Role, needed: frozenset[Role]) -> Forbidden:
    """Return the error for a caller whose role is not one of the needed roles. The message names the roles."""
    names = " or ".join(each.value for each in Role if each in needed)
    return Forbidden(f"role not allowed: needs {names}, not {role}")


class Authenticator(Protocol):
    """A service that finds the owner of a token."""

    async def authenticate(self, token: str, source: str = "") -> Caller:
        """Return the owner of a token. source: the sender's address.

        Raises Unauthenticated, with the message `invalid token`. Raises TooMany if the source has sent too many unknown
        tokens. Raises StoreError.
        """


class DomainOwners(Protocol):
    """A function that returns the tenant of a domain. The function finds the tenant in memory, without a query to the
    store."""

    def tenant_of(self, domain_id: int) -> int | None:
        """Return the internal id of the domain's tenant, or None if the domain does not exist."""


MANAGED_BY: Final = "managedBy"
"""The field of an answered object that files manage. Its value is `file`."""


class ManagedCheck(Protocol):
    """The check of the objects that files manage (`sallyport apply`)."""

    def concerns(self, path: str) -> bool:
        """Return whether an operation changes objects that files may manage. path: the first path of the operation."""

    async def check(
        self, tenant_id: int, path: str, bodies: Sequence[Mapping[str, object]], *, override: bool
    ) -> Overrides | None:
        """Return the objects of files that an operation changes, if there are some. bodies: the given fields of its
        body, or of each entry. Raises Conflict if there are such objects, unless `override` is set. Raises
        StoreError."""

    async def follow(self, overridden: Overrides) -> None:
        """Let files manage objects under their present names. Raises StoreError."""

    def shown_in(self, path: str) -> str | None:
        """Return the field with the listed objects in the answer of an operation, an empty text if the answer is one
        object, or None if it has none that files may manage. path: the first path of the operation."""

    async def marked(
        self, tenant_id: int, path: str, body: Mapping[str, object], content: Mapping[str, object]
    ) -> Mapping[str, object]:
        """Return the answer of such an operation, in which objects of files have the field MANAGED_BY. body: the given
        fields of the request."""


class NothingManaged:
    """The check without files."""

    def concerns(self, path: str) -> bool:
        return False

    async def check(
        self, tenant_id: int, path: str, bodies: Sequence[Mapping[str, object]], *, override: bool
    ) -> Overrides | None:
        return None

    async def follow(self, overridden: Overrides) -> None:
        pass

    def shown_in(self, path: str) -> str | None:
        return None

    async def marked(
        self, tenant_id: int, path: str, body: Mapping[str, object], content: Mapping[str, object]
    ) -> Mapping[str, object]:
        return content


NOTHING_MANAGED: Final[ManagedCheck] = NothingManaged()


@asynccontextmanager
async def acting_on(
    managed: ManagedCheck, tenant_id: int, path: str, bodies: Sequence[Mapping[str, object]], *, override: bool
) -> AsyncIterator[None]:
    """An asynchronous context manager in which the acting person changes many objects as operations would. Files manage
    renamed objects under their new names afterwards: to look after each object would take the square of the time. path,
    bodies, override: as for `ManagedCheck.check`, whose errors it raises."""
    overridden = await managed.check(tenant_id, path, bodies, override=override)
    with acting_as(replace(acting(), overrides=Overrides(overridden.names) if overridden else None)):
        yield
    if overridden:
        await managed.follow(overridden)


class Gate:
    """The checks before an operation: authentication, claims of bodies, roles, and the limits of a tenant.

    large_bodies: a limiter. Only one large body is parsed at a time, and a pause follows. The tenants take turns. To
    parse a large body, the parser holds the interpreter lock for 15 to 60 ms. Without this limit, 40 parsing threads
    blocked the event loop for seconds.

    small_bodies: a limiter by tenant. In each pass of the event loop, small bodies are parsed for at most a few
    milliseconds, and the tenants take turns. Without this limit, 400 simultaneous bodies of 60 KB blocked the event
    loop for 2 s.

    managed: the check of the objects that files manage.
    """

    def __init__(self, tokens: Authenticator, domains: DomainOwners, managed: ManagedCheck = NOTHING_MANAGED) -> None:
        # here, because the command line imports the bodies, but no event loop and no web framework
        from sallyport.base.fair import FairLimiter, LoopTurns
        from sallyport.web.content import LargeAnswers

        self._tokens = tokens
        self._domains = domains
        self.managed = managed
        self.large_bodies: FairLimiter[int] = FairLimiter(1)
        self.small_bodies = defaultdict[int, LoopTurns](LoopTurns(SMALL_BODIES).for_tenant)
        self.answers = LargeAnswers()
        self._running = Counter[int]()
        self._large = Counter[int]()

    async def caller(self, token: str | None, source: str) -> Caller:
        """Return the owner of a token. source: the sender's address.

        Raises Unauthenticated, with the message `missing token` or `invalid token`. Raises TooMany if the source has
        sent too many unknown tokens.
        """
        if not token:
            raise Unauthenticated("missing token")
        caller = await self._tokens.authenticate(token, source)
        if (peer := PEER.get()) is not None:
            peer.authenticate()
        return caller

    def admit(self, caller: Caller, bodies: Sequence[Body], roles: frozenset[Role]) -> None:
        """Check scope, domain and role of a request, in this order.

        Raises Forbidden, with the message `scope mismatch`, `domain not in tenant`, or that of `not_allowed`.
        """
        scope = (caller.organization, caller.tenant_number)
        if any(body.claimed_scope() not in (None, scope) for body in bodies):
            raise Forbidden("scope mismatch")
        if not all(self._owns(caller, domain) for body in bodies for domain in body.claimed_domains()):
            raise Forbidden("domain not in tenant")
        if caller.role not in roles:
            raise not_allowed(caller.role, roles)

    async def acting(self, caller: Caller, path: str, bodies: Sequence[Body], *, override: bool) -> acting_as:
        """Return the context manager in which an operation runs: it sets the caller as the actor of changes.

        path: the first path of the operation. override: whether the operation may change objects that files manage.
        Otherwise it raises Conflict for them. Raises StoreError.
        """
        if not self.managed.concerns(path):
            return acting_as(caller.actor)
        given = [given_fields(body) for body in bodies]
        overridden = await self.managed.check(caller.tenant_id, path, given, override=override)
        return acting_as(replace(caller.actor, overrides=overridden))

    def running(self, caller: Caller) -> AbstractContextManager[None]:
        """Return a context manager that counts a running request of the caller's tenant. Raises TooMany.

        Requests of agents and wallets do not count, because they are many and short.
        """
        if caller.role not in READERS:
            return nullcontext()
        return _Counted(self._running, caller.tenant_id, MAX_RUNNING, "requests")

    def large_body(self, caller: Caller) -> AbstractContextManager[None]:
        """Return a context manager that counts a large body of the caller's tenant while the body is read and parsed.
        Raises TooMany."""
        return _Counted(self._large, caller.tenant_id, MAX_LARGE_BODIES, "large bodies")

    def _owns(self, caller: Caller, domain: int) -> bool:
        if caller.domain_id is not None and domain != caller.domain_id:
            return False
        return self._domains.tenant_of(domain) == caller.tenant_id


class _Counted(AbstractContextManager[None]):
    """A context manager that counts an activity of a tenant while its block runs. Raises TooMany if the tenant has
    reached the limit."""

    __slots__ = ("_counter", "_most", "_tenant_id", "_what")

    def __init__(self, counter: Counter[int], tenant_id: int, most: int, what: str) -> None:
        self._counter = counter
        self._tenant_id = tenant_id
        self._most = most
        self._what = what

    def __enter__(self) -> None:
        if self._counter[self._tenant_id] >= self._most:
            raise TooManyAtOnce(f"the tenant has {self._most} {self._what} in progress: try again later")
        self._counter[self._tenant_id] += 1

    def __exit__(self, *_: object) -> None:
        self._counter[self._tenant_id] -= 1
