"""The impact of enforcing on a domain: the users and devices that would be challenged or denied, and the reasons.

`preview` computes it from recorded traffic; domains ask for it through `Foresight` before they are switched.
"""

from enum import StrEnum
from typing import Annotated, Protocol

from pydantic import Field

from sallyport.base.errors import Conflict
from sallyport.base.model import Model

DEFAULT_DAYS = 30
LONGEST_DAYS = 365


class Effect(StrEnum):
    """Outcome of logins; unknown: it depends on an enrolment that is not known."""

    ACCEPT = "accept"
    CHALLENGE = "challenge"
    REJECT = "reject"
    UNKNOWN = "unknown"


Outcome = Annotated[
    Effect, Field(description="Worst outcome of these logins; unknown: it depends on an enrolment that is not known.")
]
Reason = Annotated[str, Field(description="Reason of the outcome.")]


class UserImpact(Model):
    """A user with logins."""

    user: str = Field(description="Name of the user.")
    outcome: Outcome
    reason: Reason
    logins: int = Field(description="Number of the user's logins.")
    lastSeen: str = Field(description="Last login, ISO 8601 UTC.")  # noqa: N815
    gone: bool = Field(default=False, exclude=True)
    """The directory no longer has the user, so both modes reject the logins."""


class DeviceImpact(Model):
    """A device with logins."""

    device_id: int = Field(description="Id of the device.")
    device_name: str = Field(description="Name of the device.")
    outcome: Outcome
    reason: Reason


class Tally(Model):
    """Numbers by outcome."""

    accept: int = Field(default=0, description="Accepted.")
    challenge: int = Field(default=0, description="Challenged.")
    reject: int = Field(default=0, description="Rejected.")
    unknown: int = Field(default=0, description="Unknown, since the enrolment is not known.")


class Counts(Model):
    """Numbers of all users and devices, listed or not."""

    users: Tally = Field(description="Users by outcome.")
    devices: Tally = Field(description="Devices by outcome.")
    denied: int = Field(
        description="Users and devices that monitor accepts and enforce rejects, without users who left the directory."
    )


class Summary(Model):
    """An impact without names."""

    counts: Counts = Field(description="Numbers of users and devices.")
    logins: int = Field(description="Logins that were evaluated.")
    since: str = Field(serialization_alias="from", description="Start of the evaluated time, ISO 8601 UTC.")
    until: str = Field(serialization_alias="to", description="End of the evaluated time, ISO 8601 UTC.")


class Impact(Summary):
    """Answer of PreviewEnforcement."""

    users: list[UserImpact] = Field(description="At most 1,000 users, the worst outcomes first.")
    devices: list[DeviceImpact] = Field(description="At most 1,000 devices, the worst outcomes first.")
    policyVersion: int = Field(  # noqa: N815
        description="Version of the configuration; the same version means the same rules."
    )

    def summary(self) -> Summary:
        """Return the impact without the names."""
        return Summary(counts=self.counts, logins=self.logins, since=self.since, until=self.until)


class Foresight(Protocol):
    """Computes what enforcing would do."""

    async def impact(self, domain_id: int, *, days: int = DEFAULT_DAYS, fallback: str | None = None) -> Impact:
        """Return the impact of enforcing on the logins of the last days. fallback: replaces the domain's own.
        StoreError: it would take too long."""


class NotClean(Conflict):
    """Enforcing with requireClean would deny logins."""

    def __init__(self, impact: Impact) -> None:
        users = [each for each in impact.users if each.outcome is Effect.REJECT and not each.gone]
        devices = [each for each in impact.devices if each.outcome is Effect.REJECT]
        super().__init__(f"enforcing would deny {impact.counts.denied} user(s) or device(s)")
        self.details = {
            "users": [each.model_dump(mode="json") for each in users],
            "devices": [each.model_dump(mode="json") for each in devices],
        }
