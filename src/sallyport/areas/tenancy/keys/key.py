"""An API key of an agent, and its lifetimes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from sallyport.base.answer import Wire
from sallyport.base.clock import SECOND, iso

DAY = 86_400 * SECOND
ENROLMENT_US = 30 * DAY
"""Default lifetime of an enrolment key."""
OWN_US = 90 * DAY
"""Lifetime of an agent's own key. The agent renews the key long before it expires."""
KEEP_US = 365 * DAY
"""Time for which an expired or revoked key is still listed."""
MAX_USES = 1_000_000


class Agent(StrEnum):
    """The kind of agent that uses a key."""

    ENDPOINT = "endpoint"
    DIRECTORY = "directory"


class KeyKind(StrEnum):
    """The purpose of a key. An enrolment key registers an agent's own key. An own key authenticates the agent."""

    ENROLMENT = "enrolment"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A key without its secret. Times are UTC microseconds.

    successor_of: the id of the key that this key replaces. The replaced key is deleted when this key is first used.
    """

    id: Annotated[int, Wire("Id of the key.", "keyId")]
    name: Annotated[str, Wire("Name of the key.")]
    kind: Annotated[
        str, Wire("An `enrolment` key registers an agent's own key. An `own` key authenticates an agent.", kind=KeyKind)
    ]
    agent: Annotated[str, Wire("Kind of agent that uses the key.", kind=Agent)]
    tenant_id: int
    organization: int
    tenant_number: int
    domain_id: Annotated[int, Wire("Id of the key's domain.", "domainId")]
    instance_id: Annotated[
        int | None, Wire("Id of the key's instance. Null if the key is for the whole domain.", "instanceId")
    ]
    uses: Annotated[
        int | None,
        Wire("Maximum number of machines that may enrol with the key. Null if there is no limit.", after="status"),
    ]
    used: Annotated[int, Wire("Number of machines that have enrolled with the key.", after="uses")]
    created_at: Annotated[int, Wire("Time of creation, ISO 8601 UTC.", "createdAt", iso, after="used")]
    expires_at: Annotated[int, Wire("Time when the key expires, ISO 8601 UTC.", "expiresAt", iso, after="createdAt")]
    revoked_at: int | None
    seen_at: Annotated[
        int | None,
        Wire(
            "Time of the last use, exact to an hour, ISO 8601 UTC. Null if the key was never used.",
            "lastSeen",
            iso,
            after="expiresAt",
        ),
    ]
    successor_of: int | None

    @Wire("active, expired, revoked or used up.", after="instanceId")
    def status(self, now: int) -> str:
        """Return `active`, `expired`, `revoked` or `used up`, at the time `now` in microseconds."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at <= now:
            return "expired"
        return "used up" if self.uses is not None and self.used >= self.uses else "active"

    @property
    def target(self) -> str:
        """The name under which the audit trail shows the key."""
        return f"API key {self.id} {self.name}"


@dataclass(frozen=True, slots=True)
class NewKey:
    """The values of a key to create.

    instance_id: None for a key of the whole domain. expires_at: None for the default lifetime.
    """

    domain_id: int
    agent: Agent = Agent.ENDPOINT
    instance_id: int | None = None
    name: str = ""
    uses: int | None = None
    expires_at: int | None = None


Configure = Callable[[KeyRecord, str, Mapping[str, object]], str]
"""A function that returns the text of an agent's configuration file. Its arguments are the key's record, the key, and
the fields of CreateKey."""
