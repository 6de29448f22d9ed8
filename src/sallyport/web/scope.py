"""The caller of a request, and the ids of organization, tenant and domain that a body claims.

A token belongs to one tenant of one organization. If a body contains orgId, tenantId or domainId, these ids must belong
to the token's tenant. `Gate` checks this before an operation runs.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from typing import Annotated, Protocol, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretBytes,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)
from pydantic.config import JsonDict

from sallyport.base.actor import Actor
from sallyport.base.addresses import canonical
from sallyport.base.errors import Forbidden, Invalid, TooMany, Unauthenticated
from sallyport.base.model import SentModel, as_given
from sallyport.base.tags import MAX_NOTE, MAX_TAG, MAX_TAGS, canonical_tag
from sallyport.base.text import trimmed
from sallyport.base.validation import one_or_several, unfit
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
MOST_RUNNING = 128
"""Maximum number of concurrent requests of one tenant's admins, operators and auditors. A listener has 512
connections."""
MOST_LARGE_BODIES = 32
"""Maximum number of large bodies of one tenant in memory at the same time. Each has up to 1 MiB."""
SMALL_BODIES = 2
"""Maximum number of requests whose small body is parsed in one pass of the event loop. A request then runs for about a
millisecond until it first waits, and the logins wait for all requests of the pass. With 16, the p99 of logins beside 16
busy connections was 40 ms instead of 22 ms, and no more requests were answered."""
_KEYS = AGENTS | DIRECTORY_AGENTS | ENROLMENTS
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # all control characters (Unicode category Cc)


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


ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")


def _whole(value: object) -> object:
    if isinstance(value, bool):
        raise unfit("must be a whole number")
    return value


def _flag(value: object) -> object:
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    found = known.get(str(value).strip().lower()) if isinstance(value, bool | int | str) else None
    if found is None:
        raise unfit("must be true or false")
    return found


def plain(value: ValueT) -> ValueT:
    """Return the text. Raise a validation error if it contains control characters."""
    if isinstance(value, str) and _CONTROL.search(value):
        raise unfit("must be text without control characters")
    return value


def _not_blank(value: str) -> str:
    if value.isspace():
        raise unfit("must not consist of white space only")
    return value


def _tag(value: str, *, may_be_empty: bool = False) -> str:
    try:
        return canonical_tag(value, may_be_empty=may_be_empty)
    except Invalid as error:
        raise unfit(error.fields[0].message) from None


def _octets(value: object) -> object:
    if isinstance(value, dict) and isinstance(value.get("hex"), str):
        with suppress(ValueError):
            return bytes.fromhex(value["hex"])
    elif isinstance(value, str | int) and not isinstance(value, bool):
        return str(value).encode()
    raise unfit('must be text, or an object {"hex": ...} with octets in hexadecimal digits')


def _many(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    if isinstance(value, list) and len(value) > MOST_OF_MANY:
        raise unfit(f"must have at most {MOST_OF_MANY} entries")
    return one_or_several(value, handler)


def _most_of_many(schema: JsonDict) -> None:
    schema.setdefault("maxItems", MOST_OF_MANY)


MAX_MEMBERS = 500


def few_members(values: dict[str, object]) -> dict[str, object]:
    """Return the object. Raise a validation error if it is too large.

    The limit MAX_MEMBERS applies to the sum of all members and entries, including those of inner objects and inner
    arrays.
    """
    count, inner = 0, list[Collection[object]]([values])
    while inner:
        each = inner.pop()
        count += len(each)
        if count > MAX_MEMBERS:
            raise unfit(f"must have at most {MAX_MEMBERS} members, including the members of inner objects and arrays")
        held = each.values() if isinstance(each, dict) else each
        inner += [value for value in held if isinstance(value, dict | list)]
    return values


MOST_OF_MANY = 10_000
"""Maximum number of entries of an array. A declaration as max_length would override a smaller max_length of a field."""

Whole = Annotated[int, BeforeValidator(_whole)]
"""A whole number of any size. It may also be a string, but never a boolean."""
Id = Annotated[int, Field(ge=-(2**63), le=2**63 - 1), BeforeValidator(_whole)]
"""An identifier: a whole number of at most 64 bits, which the store can hold."""
Flag = Annotated[bool, BeforeValidator(_flag)]
"""A truth value: true, yes, 1 or false, no, 0, as text, number or boolean. Text is case-insensitive."""
PlainText = Annotated[str, AfterValidator(plain)]
"""Text without control characters. White space at its ends is kept. Set a maximum length with Field(max_length=)."""
Text = Annotated[str, Field(max_length=255), AfterValidator(plain)]
"""A short text, which may be empty."""
AddressOrText = Annotated[Text, AfterValidator(canonical)]
"""A short text, which may be empty. An IP address is converted to its canonical form."""
Name = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(plain), AfterValidator(_not_blank)]
"""A name, which must not be empty or blank."""
NameOrNone = Annotated[Text, AfterValidator(_not_blank)]
"""A name. An empty text means that there is no name."""
LongText = Annotated[str, Field(max_length=4096), AfterValidator(plain)]
"""A long text, such as a description, a URL or a path."""
Members = Annotated[dict[str, object], AfterValidator(few_members)]
"""An object of limited size. The operation validates its members with another model."""
Octets = Annotated[
    SecretBytes,
    BeforeValidator(_octets),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "password", "writeOnly": True},
                {"type": "object", "properties": {"hex": {"type": "string"}}, "required": ["hex"]},
            ]
        }
    ),
]
"""A secret: a text, or an object {"hex": ...} with the octets in hex if the secret is not UTF-8."""
Many = Annotated[list[ItemT], WrapValidator(_many), Field(json_schema_extra=_most_of_many)]
"""An array, or a single value as an array of one: `Many[Id]`, `Many[Text]`."""
TagText = Annotated[str, Field(max_length=MAX_TAG), AfterValidator(_tag)]
"""A tag `key=value`, in canonical form; see `base.tags`."""
NewTags = Annotated[
    Many[Annotated[str, Field(max_length=MAX_TAG), AfterValidator(partial(_tag, may_be_empty=True))]],
    Field(
        max_length=MAX_TAGS,
        description="Tags to set, each KEY=VALUE. A tag replaces the one with its key, and `KEY=` removes it. An empty "
        "array removes all tags.",
    ),
]
"""A change of tags. `base.tags.changed_tags` applies it."""
Note = Annotated[str, Field(max_length=MAX_NOTE), AfterValidator(plain), AfterValidator(trimmed)]
"""A note of an admin, which may be empty."""
OrgId = Annotated[Whole, Field(description="Number of the token's organization.")]
TenantId = Annotated[Whole, Field(description="Number of the token's tenant.")]
DomainId = Annotated[Whole, Field(description="Id of the domain, as GetAllDomains gives it.")]


class Body(SentModel):
    """The base class of all request bodies. Numbers and strings are converted.

    If a field has a default other than null, the value null has the same meaning as an absent field.
    """

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        coerce_numbers_to_str=True,
        validate_by_name=True,
        validate_by_alias=True,
        allow_inf_nan=False,
    )

    @model_validator(mode="before")
    @classmethod
    def _says_each_field_once(cls, values: object) -> object:
        """Raise a validation error if the body contains a field under several names with different values.

        If one of the values is an array, no error is raised, and the value under the first name is used.
        """
        if isinstance(values, dict):
            if None in values.values():
                values = as_given(cls, values)
            for choices in _several_spellings(cls):
                given = {name: values[name] for name in choices if name in values}
                several = len({str(value) for value in given.values()}) > 1
                if several and not any(isinstance(value, list) for value in given.values()):
                    raise unfit(f"{' and '.join(given)} have different values: send only one of them", *given)
        return values

    def claimed_scope(self) -> tuple[int, int] | None:
        """Return the orgId and tenantId that the body contains, or None. The gate compares them with the ids of the
        token."""
        return None

    def claimed_domains(self) -> Sequence[int]:
        """Return every domainId that the body contains. Each domain must belong to the token's tenant."""
        return ()

    def claimed_key(self) -> str | None:
        """Return the API key that the body contains, or None. The key takes precedence over the token of the
        request."""
        return None


@cache
def _several_spellings(model: type[Body]) -> list[list[str]]:
    """Return the accepted names of each field that has more than one name."""
    aliases = [field.validation_alias for field in model.model_fields.values()]
    several = [alias.choices for alias in aliases if isinstance(alias, AliasChoices)]
    return [[name for name in choices if isinstance(name, str)] for choices in several]


class ScopedIfGiven(Body):
    """A body with optional orgId and tenantId. If a body contains these ids, they must be equal to the ids of the
    token's tenant."""

    orgId: Whole | None = Field(  # noqa: N815
        default=None, description="Number of the token's organization; requires tenantId."
    )
    tenantId: Whole | None = Field(  # noqa: N815
        default=None, description="Number of the token's tenant; requires orgId."
    )

    def claimed_scope(self) -> tuple[int, int] | None:
        given = (self.orgId, self.tenantId)
        # A missing id becomes 0, which no organization or tenant has.
        return None if given == (None, None) else (self.orgId or 0, self.tenantId or 0)


class OfDomain(ScopedIfGiven):
    """A body with a domainId, for endpoint and identity operations."""

    domainId: DomainId  # noqa: N815

    def claimed_domains(self) -> Sequence[int]:
        return (self.domainId,)


class Scoped(Body):
    """A body with orgId and tenantId, for radius and domain operations."""

    orgId: OrgId  # noqa: N815
    tenantId: TenantId  # noqa: N815

    def claimed_scope(self) -> tuple[int, int] | None:
        return self.orgId, self.tenantId


class InDomain(Scoped):
    """A body with orgId, tenantId and the id of one domain."""

    domainId: DomainId  # noqa: N815

    def claimed_domains(self) -> Sequence[int]:
        return (self.domainId,)


class Gate:
    """The checks before an operation: authentication, claims of bodies, roles, and the limits of a tenant.

    large_bodies: a limiter. Only one large body is parsed at a time, and a pause follows. The tenants take turns. To
    parse a large body, the parser holds the interpreter lock for 15 to 60 ms. Without this limit, 40 parsing threads
    blocked the event loop for seconds.

    small_bodies: a limiter by tenant. In each pass of the event loop, small bodies are parsed for at most a few
    milliseconds, and the tenants take turns. Without this limit, 400 simultaneous bodies of 60 KB blocked the event
    loop for 2 s.
    """

    def __init__(self, tokens: Authenticator, domains: DomainOwners) -> None:
        # here, because the command line imports the bodies, but no event loop and no web framework
        from sallyport.base.fair import FairLimiter, LoopTurns
        from sallyport.web.content import LargeAnswers

        self._tokens = tokens
        self._domains = domains
        self.large_bodies: FairLimiter[int] = FairLimiter(1)
        self.small_bodies = defaultdict[int, LoopTurns](LoopTurns(SMALL_BODIES).for_tenant)
        self.answers = LargeAnswers()
        self._running = Counter[int]()
        self._large = Counter[int]()

    async def caller(self, token: str | None, source: str = "") -> Caller:
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

    def running(self, caller: Caller) -> AbstractContextManager[None]:
        """Return a context manager that counts a running request of the caller's tenant. Raises TooMany.

        Requests of agents and wallets do not count, because they are many and short.
        """
        if caller.role not in READERS:
            return nullcontext()
        return _Counted(self._running, caller.tenant_id, MOST_RUNNING, "requests")

    def large_body(self, caller: Caller) -> AbstractContextManager[None]:
        """Return a context manager that counts a large body of the caller's tenant while the body is read and parsed.
        Raises TooMany."""
        return _Counted(self._large, caller.tenant_id, MOST_LARGE_BODIES, "large bodies")

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
            raise TooMany(f"the tenant has {self._most} {self._what} in progress: try again later")
        self._counter[self._tenant_id] += 1

    def __exit__(self, *_: object) -> None:
        self._counter[self._tenant_id] -= 1
