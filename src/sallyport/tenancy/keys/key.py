"""What an API key is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from sallyport.base.clock import SECOND

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
