"""What an API key is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from sallyport.base.clock import SECOND

DAY = 86_400 * SECOND
ENROLMENT_US = 30 * DAY
"""Default lifetime of an enrolment key."""
OWN_US = 90 * DAY
"""Lifetime of an agent's own key; the agent renews it long before."""
KEEP_US = 365 * DAY
"""Time for which a key is listed after its end."""
MAX_USES = 1_000_000


class Agent(StrEnum):
    """The kind of agent that a key is for."""

    ENDPOINT = "endpoint"
    DIRECTORY = "directory"


class KeyKind(StrEnum):
    """Purpose of a key: to give an agent its own key, or to authenticate the agent."""

    ENROLMENT = "enrolment"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key without its secret. Times are UTC microseconds.

    kind, agent: of KeyKind, of Agent. instance_id: None for the whole domain. uses: number of machines that may use an
    enrolment key, None for any; used: number that did. seen_at: last use, to the hour. successor_of: the key that ends
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
        """Name in the audit trail."""
        return f"API key {self.id} {self.name}"


@dataclass(frozen=True, slots=True)
class NewKey:
    """A requested enrolment key. expires_at: None for the default lifetime."""

    domain_id: int
    agent: Agent = Agent.ENDPOINT
    instance_id: int | None = None
    name: str = ""
    uses: int | None = None
    expires_at: int | None = None


Configure = Callable[[KeyRecord, str, Mapping[str, object]], str]
"""(record, key, fields of CreateKey) to the text of the configuration file that an agent starts with."""
