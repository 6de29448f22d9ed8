"""What an API key is, and the bodies of its operations."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from sallyport.base.clock import SECOND
from sallyport.base.model import Model
from sallyport.base.validation import Between, Moment
from sallyport.web.paging import Paged
from sallyport.web.scope import Flag, Id, LongText, Many, OfDomain, PlainText, ScopedIfGiven, Text

DAY = 86_400 * SECOND
ENROLMENT_US = 30 * DAY
"""How long an enrolment key may be used unless told otherwise."""
OWN_US = 90 * DAY
"""How long an agent's own key holds; it makes a new one long before."""
KEEP_US = 365 * DAY
"""How long a key that has ended is still listed."""
MAX_USES = 1_000_000


class Agent(StrEnum):
    """Whose key it is."""

    ENDPOINT = "endpoint"
    DIRECTORY = "directory"


class Kind(StrEnum):
    """What a key is for: to give an agent its own key, or to speak for the agent."""

    ENROLMENT = "enrolment"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """What is known of a key; the key itself is not. Times are UTC microseconds.

    kind, agent: of Kind, of Agent. instance_id: None for the whole domain. uses: how many machines may use an enrolment
    key, None for any number; used: how many did. seen_at: of its last use, to the hour. successor_of: the key that ends
    when this one is first used.
    """

    id: int
    tenant_id: int
    organization: int
    tenant_number: int
    domain_id: int
    instance_id: int | None
    kind: str
    agent: str
    name: str
    uses: int | None
    used: int
    created_at: int
    expires_at: int
    revoked_at: int | None
    seen_at: int | None
    successor_of: int | None

    def status(self, now: int) -> str:
        """`active`, `expired`, `revoked` or `used up` at a time."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at <= now:
            return "expired"
        return "used up" if self.uses is not None and self.used >= self.uses else "active"

    @property
    def target(self) -> str:
        """What the audit trail calls it."""
        return f"API key {self.id} {self.name}"


@dataclass(frozen=True, slots=True)
class NewKey:
    """An enrolment key as it is asked for. expires_at: None for the usual time."""

    domain_id: int
    agent: Agent = Agent.ENDPOINT
    instance_id: int | None = None
    name: str = ""
    uses: int | None = None
    expires_at: int | None = None


Configure = Callable[[KeyRecord, str, Mapping[str, object]], str]
"""(record, key, fields of CreateKey) to the text of the configuration file that an agent starts with."""

KeyName = Annotated[PlainText, Field(max_length=64)]
Uses = Annotated[Id, Between(1, MAX_USES)]
KeyHash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 of a key, in hex."""


class CreateKey(OfDomain):
    """An enrolment key of a domain, or of an instance in it. directoryName and what follows: for the configuration file
    of a directory agent, in place of what the domain's first factor is configured with."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"domainId": 1, "name": "web servers", "uses": 20, "agent": "endpoint"}]}
    )

    instanceId: Id | None = None
    name: KeyName | None = None
    expiresAt: Moment | None = None
    uses: Uses | None = None
    agent: Agent = Agent.ENDPOINT
    directoryName: Text | None = None
    servers: Annotated[Many[LongText], Field(max_length=8)] = Field(default_factory=list)
    baseDN: LongText | None = None
    bindDN: LongText | None = None
    startTls: Flag | None = None


class KeyMade(Model):
    """The key, which is shown here and nowhere else, and the file that its agent starts with."""

    code: int = 200
    status: str = "Success"
    message: str
    keyId: int
    apiKey: str
    expiresAt: str
    configuration: str


class ListKeys(OfDomain, Paged):
    """A page of a domain's keys."""


class KeyEntry(Model):
    """A key in a list. kind: enrolment or own (an agent's). status: active, expired, revoked or used up."""

    keyId: int
    name: str
    kind: str
    agent: str
    domainId: int
    instanceId: int | None
    status: str
    uses: int | None
    used: int
    createdAt: str
    expiresAt: str
    lastSeen: str | None


class KeyList(Model):
    """A page of keys and how many there are."""

    code: int = 200
    status: str = "Success"
    message: str = "Success"
    totalCount: int
    keys: list[KeyEntry]


class RevokeKey(OfDomain):
    """A key of a domain."""

    keyId: Id


class ExchangeKey(ScopedIfGiven):
    """The SHA-256 of the key that an agent has made for itself. instanceId: which machine it is on, for an endpoint
    agent with an enrolment key of the whole domain, by which that machine was registered."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"keyHash": "0" * 64, "instanceId": 7}]})

    keyHash: KeyHash
    instanceId: Id | None = None


class RenewKey(ScopedIfGiven):
    """The SHA-256 of an agent's next key."""

    keyHash: KeyHash


class KeyKept(Model):
    """The agent's own key is known by now. renewAt: when to make the next one; now: the service's clock."""

    code: int = 200
    status: str = "Success"
    message: str
    keyId: int
    domainId: int
    instanceId: int | None
    expiresAt: str
    renewAt: str
    now: str
