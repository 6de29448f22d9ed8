"""What enforcing does to a domain, as it is told: who would be challenged or denied, and why.

`preview` finds it out from recorded traffic; domains ask it through `Foresight` before they are switched.
"""

from enum import StrEnum
from typing import Protocol

from pydantic import Field

from sallyport.base.errors import Conflict
from sallyport.base.model import Model

DEFAULT_DAYS = 30
LONGEST_DAYS = 365


class Effect(StrEnum):
    """What becomes of logins; unknown where the enrolment decides and is not known."""

    ACCEPT = "accept"
    CHALLENGE = "challenge"
    REJECT = "reject"
    UNKNOWN = "unknown"


class UserImpact(Model):
    """A user who logged in. logins: of all kinds; outcome, reason: of those that fare worst; lastSeen: ISO 8601."""

    user: str
    outcome: Effect
    reason: str
    logins: int
    lastSeen: str  # noqa: N815
    gone: bool = Field(default=False, exclude=True)
    """The directory does not have the user any more: rejected in both modes."""


class DeviceImpact(Model):
    """A device that users logged in through. outcome, reason: of its logins that fare worst, whoever logs in."""

    device_id: int
    device_name: str
    outcome: Effect
    reason: str


class Tally(Model):
    """How many there are of each outcome."""

    accept: int = 0
    challenge: int = 0
    reject: int = 0
    unknown: int = 0


class Counts(Model):
    """All users and devices, also those that are not named.

    denied: users and devices that monitoring lets in and enforcing would not; a user whom the directory does not have
    any more is rejected in both modes, and is not counted.
    """

    users: Tally
    devices: Tally
    denied: int


class Summary(Model):
    """An impact without names. logins: how many it rests on; from, to: their time, ISO 8601."""

    counts: Counts
    logins: int
    since: str = Field(serialization_alias="from")
    until: str = Field(serialization_alias="to")


class Impact(Summary):
    """Answer of PreviewEnforcement: at most 1,000 users and devices, the worst outcomes first.

    policyVersion: grows with every change of the configuration; the same version means the same rules.
    """

    users: list[UserImpact]
    devices: list[DeviceImpact]
    policyVersion: int  # noqa: N815

    def summary(self) -> Summary:
        """Without the names."""
        return Summary(counts=self.counts, logins=self.logins, since=self.since, until=self.until)


class Foresight(Protocol):
    """Knows what enforcing would do."""

    async def impact(self, domain_id: int, *, days: int = DEFAULT_DAYS, fallback: str | None = None) -> Impact:
        """What enforcing would do to the logins of the last days. fallback: in the place of the domain's own.
        StoreError: it would take too long."""


class NotClean(Conflict):
    """Enforcing would deny somebody, and was to be done only where it denies nobody."""

    def __init__(self, impact: Impact) -> None:
        users = [each for each in impact.users if each.outcome is Effect.REJECT and not each.gone]
        devices = [each for each in impact.devices if each.outcome is Effect.REJECT]
        super().__init__(f"enforcing would deny {impact.counts.denied} user(s) or device(s)")
        self.details = {
            "users": [each.model_dump(mode="json") for each in users],
            "devices": [each.model_dump(mode="json") for each in devices],
        }
