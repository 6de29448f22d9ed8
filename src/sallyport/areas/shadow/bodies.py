"""Request and response bodies of the operations about shadow logins."""

from typing import Annotated, Final, Literal

from pydantic import Field

from sallyport.areas.shadow.report import MAX_CASES, SHOWN
from sallyport.areas.shadow.shadow_login import (
    MAX_AT_ONCE,
    MAX_ATTRIBUTES,
    Cause,
    ShadowCase,
)
from sallyport.base.model import Done, Model, SentModel, answer_of
from sallyport.base.validation import Between, Moment
from sallyport.web.bodies import AddressOrText, Flag, InDomain, Name, Text, Whole

DEVICE: Final = (
    "Only logins of this NAS or RADIUS client: the address of the NAS, or the name or address of the client."
)
USER: Final = "Only logins of this user name, as the device has sent it."


class OldServerLogin(SentModel):
    """A login that another server has decided."""

    at: Moment = Field(description="Time of the login, ISO 8601.")
    user: Name = Field(description="User name as the device has sent it.")
    answer: Literal["accept", "reject"] = Field(description="Answer of the other server.")
    client: AddressOrText = Field(default="", description="Address or name of the RADIUS client.")
    attributes: Annotated[list[Text], Field(max_length=MAX_ATTRIBUTES)] = Field(
        default=[],
        description="Attributes of the request, such as `Calling-Station-Id=02-00-00-00-00-01`. Unknown ones and "
        "credentials are ignored.",
    )
    method: Annotated[Text, Field(max_length=32)] = Field(
        default="", description="Authentication method as in events, such as `mschapv2`. Empty: not known."
    )
    cause: Cause = Field(
        default=Cause.UNKNOWN,
        description="Why the other server refused: `first factor` (password, certificate or account), `policy`, or "
        "empty if it is not known.",
    )
    reason: Text = Field(default="", description="Reason of the other server for a refusal.")
    policy: Text = Field(default="", description="Policy of the other server that decided.")
    place: Text = Field(default="", description="Place of the record, such as a file and a line.")
    replyAttributes: Annotated[list[Text], Field(max_length=MAX_ATTRIBUTES)] | None = Field(
        default=None,
        description="Attributes of the Access-Accept, such as `Tunnel-Private-Group-Id=20`. Those that a policy sets "
        "are compared. Absent: not known.",
    )


class RecordShadowLogins(InDomain):
    """Request body of the operation `RecordShadowLogins`."""

    logins: Annotated[list[OldServerLogin], Field(min_length=1, max_length=MAX_AT_ONCE)] = Field(
        description="Logins that another server has decided."
    )


class ShadowLoginsRecorded(Done):
    """Response body of the operation `RecordShadowLogins`."""

    recorded: int = Field(
        description="Number of logins that are new. A login that is known already is not new, and one that gives a "
        "copy its answer is not new either."
    )


class CompareShadowLogins(InDomain):
    """Request body of the operation `CompareShadowLogins`."""

    device: AddressOrText = Field(default="", description=DEVICE)
    user: Text = Field(default="", description=USER)
    result: Literal["", "same", "stricter", "laxer", "reply", "unknown"] = Field(
        default="", description="List only logins with this result. Empty: all that are not the same."
    )
    reason: Text | None = Field(
        default=None, description="List only logins with this reason. Empty: those without a reason."
    )
    rule: Text | None = Field(
        default=None, description="List only logins that this login rule decides. Empty: those that no rule decides."
    )
    oldReason: Text | None = Field(
        default=None, description="List only logins with this reason of the other server. Empty: those without one."
    )
    oldPolicy: Text | None = Field(
        default=None, description="List only logins that this policy of the other server decided. Empty: those of none."
    )
    cases: Annotated[Whole, Between(0, MAX_CASES)] = Field(
        default=SHOWN, description="Maximum number of logins that are listed."
    )
    kept: Flag = Field(
        default=False,
        description="Return the last answer to the same question, if the service still has it. Otherwise, and by "
        "default, all logins are decided now.",
    )


class DeleteShadowLogins(InDomain):
    """Request body of the operation `DeleteShadowLogins`."""


@answer_of(ShadowCase)
class ShadowCaseEntry(Model):
    """A shadow login with the result of the comparison."""


class ShadowCounts(Model):
    """The number of logins with each result."""

    same: int = Field(description="Logins with the same decision.")
    stricter: int = Field(
        description="Logins that the other server accepted, and this service would refuse or challenge."
    )
    laxer: int = Field(
        description="Logins that the other server refused, and this service would accept or challenge if the password "
        "was right."
    )
    reply: int = Field(description="Logins that both accept, with another VLAN, role or other policy attribute.")
    unknown: int = Field(description="Logins that cannot be compared. Their reasons are in `groups`.")


class ShadowGroup(Model):
    """The logins with the same result for the same cause."""

    result: str = Field(description="`stricter`, `laxer`, `reply` or `unknown`.")
    reason: str = Field(description="Reason for the decision of this service, or why a comparison is not possible.")
    rule: str = Field(description="Name of the login rule that decides; empty if none does.")
    oldReason: str = Field(description="Reason of the other server for a refusal.")
    oldPolicy: str = Field(description="Policy of the other server that decided.")
    logins: int = Field(description="Number of logins.")
    users: int = Field(description="Number of users.")
    devices: int = Field(description="Number of NAS.")
    lastSeen: str = Field(description="Time of the last of these logins, ISO 8601 UTC.")
    examples: list[ShadowCaseEntry] = Field(description="Up to 3 of these logins.")


class ShadowName(ShadowCounts):
    """The results of one user or one NAS."""

    name: str = Field(description="User name, or the address of the NAS.")


class ShadowComparison(Model):
    """Response body of the operation `CompareShadowLogins`."""

    logins: int = Field(description="Number of logins that were compared.")
    differing: int = Field(description="Number of logins whose result is not `same`.")
    counts: ShadowCounts = Field(description="Number of these logins with each result.")
    groups: list[ShadowGroup] = Field(
        description="The logins that are not the same, by cause: laxer ones first, then stricter and unknown ones."
    )
    users: list[ShadowName] = Field(description="Up to 1,000 users, those with the most differing logins first.")
    devices: list[ShadowName] = Field(description="Up to 1,000 NAS, those with the most differing logins first.")
    cases: list[ShadowCaseEntry] = Field(description="The listed logins, the last recorded first.")
    since: str = Field(description="Time of the first login, ISO 8601 UTC; empty without logins.")
    until: str = Field(description="Time of the last login, ISO 8601 UTC; empty without logins.")
    decidedAt: str = Field(description="Time of the decisions, ISO 8601 UTC.")
    warnings: list[str] = Field(description="What limits the comparison.")


class ShadowLoginsDeleted(Done):
    """Response body of the operation `DeleteShadowLogins`."""

    deleted: int = Field(description="Number of deleted shadow logins.")
