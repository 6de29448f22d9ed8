"""Who calls, and which bodies say where they belong.

A token belongs to one organization and one tenant. Bodies that carry orgId, tenantId or domainId must agree with it;
`Gate` compares them before an operation runs.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Protocol, TypeVar

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretBytes,
    WithJsonSchema,
    model_validator,
)
from pydantic.config import JsonDict

from sallyport.base.actor import Actor
from sallyport.base.addresses import canonical
from sallyport.base.errors import Forbidden, TooMany, Unauthenticated
from sallyport.base.fair import FairLimiter, LoopTurns
from sallyport.base.model import Model, as_given
from sallyport.base.validation import unfit
from sallyport.web.content import Answers
from sallyport.web.peer import PEER


class Role(StrEnum):
    """What a token may do within its tenant."""

    ADMIN = "admin"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    AGENT = "agent"
    DIRECTORY = "directory"
    ENROLMENT = "enrolment"
    WALLET = "wallet"


ADMINS = frozenset({Role.ADMIN})
"""May touch tokens, clients' secrets and modes."""
OPERATORS = frozenset({Role.ADMIN, Role.OPERATOR})
"""May change everything else."""
READERS = frozenset({Role.ADMIN, Role.OPERATOR, Role.AUDITOR})
"""May look at everything but secrets."""
AGENTS = frozenset({Role.AGENT})
"""An endpoint agent, for its instance."""
DIRECTORY_AGENTS = frozenset({Role.DIRECTORY})
"""A directory agent, for its domain."""
ENROLMENTS = frozenset({Role.ENROLMENT})
"""Whoever has an enrolment key, which gives an agent a key of its own and nothing else."""
WALLETS = frozenset({Role.WALLET})
"""The holder of one wallet."""
MOST_RUNNING = 128
"""Requests of one tenant's admins, operators and auditors that run at the same time; a listener has 512 connections."""
MOST_LARGE_BODIES = 32
"""Large bodies of one tenant that are in memory at the same time, of up to 1 MiB each."""
SMALL_BODIES = 16
"""Bodies that one pass of the event loop parses at most."""
_KEYS = AGENTS | DIRECTORY_AGENTS | ENROLMENTS
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # the category Cc of Unicode


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of a token. organization and tenant_number are the orgId and tenantId of bodies."""

    token_id: int
    organization: int
    tenant_number: int
    tenant_id: int
    role: Role
    name: str
    domain_id: int | None = None
    """The only domain that an agent works for; None for everyone else."""
    instance_id: int | None = None
    """The only instance that an endpoint agent works for; None for everyone else."""
    is_installation: bool = False
    """Whether this is a user of the service's machine, who acts as an admin of any tenant. No token gives it."""

    @property
    def actor(self) -> Actor:
        """Who this is to the audit trail."""
        if self.is_installation:
            return Actor("command line", self.name)
        return Actor("agent" if self.role in _KEYS else "token", self.name, self.token_id, self.tenant_id)


class Authenticator(Protocol):
    """Knows the tokens."""

    async def authenticate(self, token: str, source: str = "") -> Caller:
        """Return the holder of a token. source: the address that sent it. Unauthenticated `invalid token`; TooMany: the
        source guesses; StoreError."""


class DomainOwners(Protocol):
    """Knows which tenant a domain belongs to, from memory."""

    def tenant_of(self, domain_id: int) -> int | None:
        """Return the internal id of the tenant, or None if the domain does not exist."""


ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")


def _whole(value: object) -> object:
    if isinstance(value, bool):
        raise unfit("a whole number")
    return value


def _flag(value: object) -> object:
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    found = known.get(str(value).strip().lower()) if isinstance(value, bool | int | str) else None
    if found is None:
        raise unfit("true or false")
    return found


def plain(value: ValueT) -> ValueT:
    """Refuse text with control characters."""
    if isinstance(value, str) and _CONTROL.search(value):
        raise unfit("text without control characters")
    return value


def _not_blank(value: str) -> str:
    if value.isspace():
        raise unfit("text that is more than white space")
    return value


def _octets(value: object) -> object:
    if isinstance(value, dict) and isinstance(value.get("hex"), str):
        with suppress(ValueError):
            return bytes.fromhex(value["hex"])
    elif isinstance(value, str | int) and not isinstance(value, bool):
        return str(value).encode()
    raise unfit('text, or {"hex": octets in hex}')


def _many(value: object) -> object:
    if isinstance(value, list) and len(value) > MOST_OF_MANY:
        raise unfit(f"at most {MOST_OF_MANY} entries")
    return value if isinstance(value, list) or value is None else [value]


def _most_of_many(schema: JsonDict) -> None:
    schema.setdefault("maxItems", MOST_OF_MANY)


MAX_MEMBERS = 500


def few_members(values: dict[str, object]) -> dict[str, object]:
    """Refuse an object with over MAX_MEMBERS members and entries, those of its inner objects and arrays included."""
    count, inner = 0, list[Collection[object]]([values])
    while inner:
        each = inner.pop()
        count += len(each)
        if count > MAX_MEMBERS:
            raise unfit(f"an object with at most {MAX_MEMBERS} members")
        held = each.values() if isinstance(each, dict) else each
        inner += [value for value in held if isinstance(value, dict | list)]
    return values


MOST_OF_MANY = 10_000
"""Entries of an array. Not a max_length, which would replace the smaller one of a field (`= Field(max_length=200)`)."""

Whole = Annotated[int, BeforeValidator(_whole)]
"""A whole number of any size, also as a string; never a boolean."""
Id = Annotated[int, Field(ge=-(2**63), le=2**63 - 1), BeforeValidator(_whole)]
"""An identifier: a whole number that the store can hold."""
Flag = Annotated[bool, BeforeValidator(_flag)]
"""true, yes, 1 or false, no, 0 in any case, as text, number or boolean."""
PlainText = Annotated[str, AfterValidator(plain)]
"""Text without NUL or any other control character; nothing is stripped. Give it a length with Field(max_length=)."""
Text = Annotated[str, Field(max_length=255), AfterValidator(plain)]
"""A short value, which may be empty."""
AddressOrText = Annotated[Text, AfterValidator(canonical)]
"""A short value, which may be empty. An IP address takes its canonical form."""
Name = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(plain), AfterValidator(_not_blank)]
"""A name."""
NameOrNone = Annotated[Text, AfterValidator(_not_blank)]
"""A name, or nothing."""
LongText = Annotated[str, Field(max_length=4096), AfterValidator(plain)]
"""A description, a URL, a path."""
Members = Annotated[dict[str, object], AfterValidator(few_members)]
"""An object whose members another model judges."""
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
"""A secret: text, or its octets in hex if it has another encoding than UTF-8."""
Many = Annotated[list[ItemT], BeforeValidator(_many), Field(json_schema_extra=_most_of_many)]
"""An array; a single value stands for an array of one. `Many[Id]`, `Many[Text]`."""
OrgId = Annotated[Whole, Field(description="Number of the token's organization.")]
TenantId = Annotated[Whole, Field(description="Number of the token's tenant.")]
DomainId = Annotated[Whole, Field(description="Id of the domain, as GetAllDomains gives it.")]


class Body(Model):
    """The root of all request bodies: unknown fields are ignored, numbers may be strings and the other way round, and
    null is as good as nothing where a field has a default."""

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
        """A field that has several spellings may come in all of them with one value; where one is an array, the first
        spelling counts."""
        if isinstance(values, dict):
            if None in values.values():
                values = as_given(cls, values)
            for choices in _several_spellings(cls):
                given = {name: values[name] for name in choices if name in values}
                several = len({str(value) for value in given.values()}) > 1
                if several and not any(isinstance(value, list) for value in given.values()):
                    raise unfit(f"{' and '.join(given)} differ: send one of them", *given)
        return values

    def claimed_scope(self) -> tuple[int, int] | None:
        """The orgId and tenantId that the body carries, to be compared with the token's."""
        return None

    def claimed_domains(self) -> Sequence[int]:
        """Every domainId that the body carries; each must belong to the token's tenant."""
        return ()

    def claimed_key(self) -> str | None:
        """The API key that the body carries: it authorizes the request, with a token beside it and without."""
        return None


@cache
def _several_spellings(model: type[Body]) -> list[list[str]]:
    """Return the spellings of each field that has several."""
    aliases = [field.validation_alias for field in model.model_fields.values()]
    several = [alias.choices for alias in aliases if isinstance(alias, AliasChoices)]
    return [[name for name in choices if isinstance(name, str)] for choices in several]


class ScopedIfGiven(Body):
    """A body that needs no orgId and tenantId; those that it has must be the token's."""

    orgId: Whole | None = Field(  # noqa: N815
        default=None, description="Number of the token's organization; needs tenantId beside it."
    )
    tenantId: Whole | None = Field(  # noqa: N815
        default=None, description="Number of the token's tenant; needs orgId beside it."
    )

    def claimed_scope(self) -> tuple[int, int] | None:
        given = (self.orgId, self.tenantId)
        # Half a scope agrees with no token: no organization or tenant has the number 0.
        return None if given == (None, None) else (self.orgId or 0, self.tenantId or 0)


class OfDomain(ScopedIfGiven):
    """A body with a domainId, as the endpoint and identity operations have it."""

    domainId: DomainId  # noqa: N815

    def claimed_domains(self) -> Sequence[int]:
        return (self.domainId,)


class Scoped(Body):
    """A body with orgId and tenantId, as the radius and domain operations have it."""

    orgId: OrgId  # noqa: N815
    tenantId: TenantId  # noqa: N815

    def claimed_scope(self) -> tuple[int, int] | None:
        return self.orgId, self.tenantId


class InDomain(Scoped):
    """A scoped body that acts on one domain."""

    domainId: DomainId  # noqa: N815

    def claimed_domains(self) -> Sequence[int]:
        return (self.domainId,)


class Gate:
    """The checks before an operation: authentication, claims of bodies, roles, limits of a tenant.

    large_bodies: one is parsed at a time, of each tenant in turn, with a pause behind it. The parser holds the
    interpreter lock for 15 to 60 ms, and 40 threads that parse leave the event loop waiting for seconds.
    small_bodies: by tenant. Some are parsed in each pass of the event loop, of each tenant in turn, until they have
    taken a few milliseconds. 400 bodies of 60 KB that arrived at once held the event loop for 2 s.
    """

    def __init__(self, tokens: Authenticator, domains: DomainOwners) -> None:
        self._tokens = tokens
        self._domains = domains
        self.large_bodies: FairLimiter[int] = FairLimiter(1)
        self.small_bodies = defaultdict[int, LoopTurns](LoopTurns(SMALL_BODIES).for_tenant)
        self.answers = Answers()
        self._running = Counter[int]()
        self._large = Counter[int]()

    async def caller(self, token: str | None, source: str = "") -> Caller:
        """Return the holder of a token. source: the address that sent it. Unauthenticated: `missing token`, `invalid
        token`; TooMany."""
        if not token:
            raise Unauthenticated("missing token")
        caller = await self._tokens.authenticate(token, source)
        if (peer := PEER.get()) is not None:
            peer.authenticate()
        return caller

    def admit(self, caller: Caller, bodies: Sequence[Body], roles: frozenset[Role]) -> None:
        """Scope, then domain, then role. Forbidden: `scope mismatch`, `domain not in tenant`, `role not allowed`."""
        scope = (caller.organization, caller.tenant_number)
        if any(body.claimed_scope() not in (None, scope) for body in bodies):
            raise Forbidden("scope mismatch")
        if not all(self._owns(caller, domain) for body in bodies for domain in body.claimed_domains()):
            raise Forbidden("domain not in tenant")
        if caller.role not in roles:
            raise Forbidden("role not allowed")

    def running(self, caller: Caller) -> AbstractContextManager[None]:
        """Count a request within the block. Agents and wallets are not counted: many of them ask at the same time, for
        nothing that takes long. TooMany."""
        if caller.role not in READERS:
            return nullcontext()
        return _Counted(self._running, caller.tenant_id, MOST_RUNNING, "requests")

    def large_body(self, caller: Caller) -> AbstractContextManager[None]:
        """Count a large body that is read and parsed within the block. TooMany."""
        return _Counted(self._large, caller.tenant_id, MOST_LARGE_BODIES, "large bodies")

    def _owns(self, caller: Caller, domain: int) -> bool:
        if caller.domain_id is not None and domain != caller.domain_id:
            return False
        return self._domains.tenant_of(domain) == caller.tenant_id


class _Counted(AbstractContextManager[None]):
    """The time of a block, counted for a tenant. TooMany."""

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
