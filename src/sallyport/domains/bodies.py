"""Requests and answers of the operations of domains."""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, model_validator

from sallyport.base.errors import FieldError, Invalid, invalid_field
from sallyport.base.model import Model
from sallyport.base.validation import Between, unfit, unfit_because
from sallyport.domains.domain import LONGEST_ISSUER, MAX_REALMS, Effect, Fallback, FirstFactor, Mode
from sallyport.web.operation import Done
from sallyport.web.paging import ShortPaged, TotalCount
from sallyport.web.scope import DomainId, Flag, InDomain, Name, PlainText, Scoped, Text, Whole

MAX_REVERT_MINUTES: Final = 10_080
"""Maximum number of minutes: a week."""


def _mode(value: object) -> object:
    text = value.casefold() if isinstance(value, str) else value
    return {"monitoring": "monitor", "enforcing": "enforce"}.get(text, text) if isinstance(text, str) else value


def _lower(value: object) -> object:
    return value.casefold() if isinstance(value, str) else value


AnyMode = Annotated[
    Mode,
    BeforeValidator(_mode),
    Field(description="monitor records what enforce would have done; enforce asks for the second factor."),
]
AnyFallback = Annotated[
    Fallback,
    BeforeValidator(_lower),
    Field(description="Outcome of a login in enforce mode if no second factor is available: deny or allow."),
]
AnyFirstFactor = Annotated[
    FirstFactor,
    BeforeValidator(_lower),
    Field(description="First factor that checks passwords; none: the RADIUS client has checked them."),
]


def _realm(value: str) -> str:
    if value != value.strip() or "@" in value or "\\" in value:
        raise unfit("a realm as it follows user@ or precedes \\user")
    return value


def _issuer(value: str) -> str:
    if ":" in value or value != value.strip() or len(value.encode()) > LONGEST_ISSUER:
        raise unfit(f"text of at most {LONGEST_ISSUER} octets without a colon; empty: the name of the domain")
    return value


Realm = Annotated[Name, AfterValidator(_realm)]
"""A further realm. A User-Name with this realm belongs to the domain."""
Realms = Annotated[list[str], Field(description="Realms that also choose this domain: REALM of user@REALM.")]
IssuerName = Annotated[
    PlainText,
    AfterValidator(_issuer),
    Field(json_schema_extra={"maxLength": LONGEST_ISSUER, "pattern": "^[^:]*$"}),
]
"""The issuer that authenticator apps show. It must not contain a colon, because a colon ends the issuer in the otpauth
URI."""
Issuer = Annotated[str, Field(description="Issuer that authenticator apps show; empty: the name of the domain.")]
RevertAfter = Annotated[Whole, Between(1, MAX_REVERT_MINUTES)]
RevertsAt = Annotated[str, Field(description="Time when the mode is reverted, ISO 8601 UTC; empty if it stays.")]
Warnings = Annotated[list[str], Field(description="Hints on the domain's mode, such as a missing MFA provider.")]


class GetAllDomains(Scoped, ShortPaged):
    """Body of GetAllDomains."""


class DomainEntry(Model):
    """A domain in the list; the fields after `status` are additions to the interface."""

    domainId: int = Field(description="Id of the domain.")
    domainName: str = Field(description="Name of the domain; unique in the tenant.")
    enforcementMode: AnyMode
    status: str = Field(description="active.")
    fallbackAction: AnyFallback
    firstFactor: AnyFirstFactor
    realms: Realms
    revertsAt: RevertsAt
    disconnectOnRevoke: bool = Field(description="Live sessions end when a user loses access.")
    directoryName: str = Field(description="Directory of the domain, as the admin calls it.")
    issuerName: Issuer
    warnings: Warnings


class DomainList(Model):
    """Answer of GetAllDomains."""

    domains: list[DomainEntry] = Field(description="Domains of the page, ordered by domainId.")
    totalCount: TotalCount


class AddDomain(Scoped):
    """Body of AddDomain."""

    domainName: Name = Field(description="Name of the domain; it is also a realm. Unique in the tenant.")
    directoryName: Text = Field(default="", description="Directory of the domain, for people.")
    enforcementMode: AnyMode = Mode.MONITOR
    fallbackAction: AnyFallback = Fallback.DENY
    firstFactor: AnyFirstFactor = FirstFactor.LOCAL
    realms: list[Realm] = Field(
        default_factory=list,
        max_length=MAX_REALMS,
        description="Realms that also choose this domain: REALM of user@REALM or REALM\\user.",
    )
    disconnectOnRevoke: Flag = Field(
        default=False,
        description="End live sessions of users that are deleted or lose a group that a login rule names.",
    )
    issuerName: IssuerName = Field(
        default="", description="Issuer that authenticator apps show. Empty: the name of the domain."
    )


class DomainAdded(Done):
    """Answer of AddDomain."""

    domainId: int = Field(description="Id of the new domain.")
    warnings: Warnings


class UpdateDomain(InDomain):
    """Body of UpdateDomain. An absent field keeps its value; an empty text clears it."""

    domainName: Name | None = Field(
        default=None, description="New name of the domain; the former one stays as a realm. Unique in the tenant."
    )
    directoryName: Text | None = Field(default=None, description="Directory of the domain, for people.")
    addRealms: list[Realm] = Field(
        default_factory=list, max_length=MAX_REALMS, description="Realms to add; the domain has at most 64."
    )
    removeRealms: list[Realm] = Field(default_factory=list, max_length=MAX_REALMS, description="Realms to remove.")
    disconnectOnRevoke: Flag | None = Field(
        default=None,
        description="End live sessions of users that are deleted or lose a group that a login rule names.",
    )
    issuerName: IssuerName | None = Field(
        default=None, description="Issuer that authenticator apps show. Empty: the name of the domain."
    )


class DomainUpdated(Done):
    """Answer of UpdateDomain: the state that is stored."""

    domainId: int = Field(description="Id of the domain.")
    domainName: str = Field(description="Name of the domain.")
    directoryName: str = Field(description="Directory of the domain, for people.")
    realms: Realms
    disconnectOnRevoke: bool = Field(description="Live sessions end when a user loses access.")
    issuerName: Issuer


class RemoveDomain(InDomain):
    """Body of RemoveDomain."""

    dryRun: Flag = Field(default=False, description="Only list what would be deleted.")


class Deletion(Model):
    """The rows of one kind."""

    kind: str = Field(description="Kind of the rows, such as network devices.")
    count: int = Field(description="Number of rows; 100,000 means 100,000 or more.")


class DomainRemoved(Done):
    """Answer of RemoveDomain."""

    domainId: int = Field(description="Id of the domain.")
    domainName: str = Field(description="Name of the domain.")
    deleted: list[Deletion] = Field(
        description="Rows that are deleted with the domain; kinds without rows are left out."
    )


class UpdateDomainEnforcement(Scoped):
    """Body of the operation `updateDomainEnforcement`."""

    domainId: DomainId = Field(validation_alias=AliasChoices("domainId", "adId"))
    enforcementMode: AnyMode | None = Field(
        default=None, description="New mode: monitor or enforce; needed without confirm."
    )
    fallbackAction: AnyFallback | None = Field(
        default=None, description="New outcome of a login if no second factor is available: deny or allow."
    )
    requireClean: Flag = Field(
        default=False,
        description="Enforce only if the provider works, no recent login would be denied and all enrolments are known.",
    )
    acceptUnknown: Flag = Field(
        default=False, description="With requireClean: enforce although enrolments of users are unknown."
    )
    revertAfterMinutes: RevertAfter | None = Field(
        default=None, description="Minutes until the change is reverted, unless it is confirmed; absent: it stays."
    )
    confirm: Flag = Field(default=False, description="Keep a change that waits for its confirmation.")

    @model_validator(mode="before")
    @classmethod
    def _has_a_mode(cls, values: object) -> object:
        """Refuse a mode that is null, even if `confirm` is set."""
        if isinstance(values, dict) and "enforcementMode" in values and values["enforcementMode"] is None:
            raise invalid_field("enforcementMode", "monitor or enforce")
        return values

    @model_validator(mode="after")
    def _says_what_to_do(self) -> "UpdateDomainEnforcement":
        if self.enforcementMode is None and not self.confirm:
            raise Invalid("missing enforcementMode", (FieldError("enforcementMode", "monitor or enforce"),))
        if self.confirm and self.revertAfterMinutes is not None:
            raise unfit_because("revertAfterMinutes and confirm exclude each other", "revertAfterMinutes", "confirm")
        return self

    def claimed_domains(self) -> Sequence[int]:
        return (self.domainId,)


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
    lastSeen: str = Field(description="Last login, ISO 8601 UTC.")
    gone: bool = Field(default=False, exclude=True)
    """The directory no longer has the user, so both modes reject the logins."""


class DeviceImpact(Model):
    """A device with logins."""

    device_id: int = Field(description="Id of the device.")
    device_name: str = Field(description="Name of the device.")
    outcome: Outcome
    reason: Reason


class RuleImpact(Model):
    """A login rule, or no rule, and the logins that it decides."""

    ruleId: int | None = Field(description="Id of the rule; null for the logins that no rule matches.")
    name: str = Field(description="Name of the rule; empty for no rule.")
    action: str = Field(description="Action for these logins.")
    logins: int = Field(description="Number of the logins.")
    users: int = Field(description="Number of their users.")
    lastSeen: str = Field(description="Last of the logins, ISO 8601 UTC.")


class Tally(Model):
    """The number of users or devices for each outcome."""

    accept: int = Field(default=0, description="Accepted.")
    challenge: int = Field(default=0, description="Challenged.")
    reject: int = Field(default=0, description="Rejected.")
    unknown: int = Field(default=0, description="Unknown, since the enrolment is not known.")


class Counts(Model):
    """The numbers of all users and devices, including those that are not listed."""

    users: Tally = Field(description="Users by outcome.")
    devices: Tally = Field(description="Devices by outcome.")
    denied: int = Field(
        description="Users and devices that monitor accepts and enforce rejects, without users who left the directory."
    )


class Summary(Model):
    """The impact of enforcing, without names of users and devices."""

    counts: Counts = Field(description="Numbers of users and devices.")
    logins: int = Field(description="Logins that were evaluated.")
    since: str = Field(serialization_alias="from", description="Start of the evaluated time, ISO 8601 UTC.")
    until: str = Field(serialization_alias="to", description="End of the evaluated time, ISO 8601 UTC.")


class Impact(Summary):
    """Answer of PreviewEnforcement."""

    users: list[UserImpact] = Field(description="At most 1,000 users, the worst outcomes first.")
    devices: list[DeviceImpact] = Field(description="At most 1,000 devices, the worst outcomes first.")
    rules: list[RuleImpact] = Field(description="Logins by the rule that decides them, the most logins first.")
    policyVersion: int = Field(description="Version of the configuration; the same version means the same rules.")

    def summary(self) -> Summary:
        """Return the impact without the names."""
        return Summary(counts=self.counts, logins=self.logins, since=self.since, until=self.until)


class Survey(Model):
    """The progress of looking up enrolments."""

    users: int = Field(description="Users of recent logins who need a second factor.")
    left: int = Field(description="Users whose enrolment is not known yet; 0: all are known.")


class EnforcementUpdated(Done):
    """Answer of updateDomainEnforcement: the state that is stored."""

    domainId: int = Field(description="Id of the domain.")
    domainName: str = Field(description="Name of the domain.")
    enforcementMode: AnyMode
    fallbackAction: AnyFallback
    warnings: Warnings
    revertsAt: RevertsAt
    preview: Summary | None = Field(
        description="Effect of enforcing on recent logins, after a switch to enforce; null if it is not known."
    )
