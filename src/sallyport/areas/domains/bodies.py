"""Requests and answers of the operations of domains."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, model_validator

from sallyport.areas.domains.domain import (
    DIRECTORY_TEXT,
    FALLBACK_TEXT,
    FIRST_FACTOR_TEXT,
    ISSUER_TEXT,
    LOCK_TEXT,
    MAX_AGE_H,
    MAX_AGE_TEXT,
    MAX_ISSUER_LENGTH,
    MAX_REALMS,
    MAX_REMEMBER_H,
    MODE_TEXT,
    NAMES_TEXT,
    ORDER_TEXT,
    REMEMBER_TEXT,
    STALE_TEXT,
    UNKNOWN_TEXT,
    CertificateNames,
    Domain,
    Effect,
    Fallback,
    FirstFactor,
    Mode,
    RuleOrder,
    UnknownStations,
)
from sallyport.base.errors import FieldError, Invalid, invalid_field
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.validation import Between, unfit
from sallyport.web.bodies import DomainId, Flag, InDomain, Name, PlainText, Scoped, ShortPaged, Text, TotalCount, Whole

MAX_REVERT_MINUTES: Final = 10_080
"""Maximum number of minutes until a change is reverted: one week."""


def _mode(value: object) -> object:
    text = value.casefold() if isinstance(value, str) else value
    return {"monitoring": "monitor", "enforcing": "enforce"}.get(text, text) if isinstance(text, str) else value


def _lower(value: object) -> object:
    return value.casefold() if isinstance(value, str) else value


AnyMode = Annotated[Mode, BeforeValidator(_mode), Field(description=MODE_TEXT)]
AnyFallback = Annotated[Fallback, BeforeValidator(_lower), Field(description=FALLBACK_TEXT)]
AnyFirstFactor = Annotated[FirstFactor, BeforeValidator(_lower), Field(description=FIRST_FACTOR_TEXT)]


def _realm(value: str) -> str:
    if value != value.strip() or "@" in value or "\\" in value:
        raise unfit("must be a realm without the user, such as REALM in user@REALM or REALM\\user")
    return value


def _issuer(value: str) -> str:
    if ":" in value or value != value.strip() or len(value.encode()) > MAX_ISSUER_LENGTH:
        raise unfit(
            f"must be text of at most {MAX_ISSUER_LENGTH} octets without a colon; empty means the name of the domain"
        )
    return value


Realm = Annotated[Name, AfterValidator(_realm)]
"""A realm in addition to the domain's name. A User-Name with this realm belongs to the domain."""
IssuerName = Annotated[
    PlainText,
    AfterValidator(_issuer),
    Field(json_schema_extra={"maxLength": MAX_ISSUER_LENGTH, "pattern": "^[^:]*$"}),
]
"""The issuer that authenticator apps show. A colon is not allowed, because a colon ends the issuer in the otpauth
URI."""
RevertAfter = Annotated[Whole, Between(1, MAX_REVERT_MINUTES)]
_DISCONNECT: Final = "End live sessions of users that are deleted or lose a group that a login rule names."


class GetAllDomains(Scoped, ShortPaged):
    """Request body of the operation `GetAllDomains`."""


@answer_of(Domain)
class DomainEntry(Model):
    """A domain in the list. The fields after `status` are not part of the required interface."""


class DomainList(Model):
    """Response body of the operation `GetAllDomains`."""

    domains: list[DomainEntry] = Field(description="Domains of the page, ordered by domainId.")
    totalCount: TotalCount


class AddDomain(Scoped):
    """Request body of the operation `AddDomain`."""

    domainName: Name = Field(description="Name of the domain, which is also a realm. It is unique in the tenant.")
    directoryName: Text = Field(default="", description=DIRECTORY_TEXT)
    enforcementMode: AnyMode = Mode.MONITOR
    fallbackAction: AnyFallback = Fallback.DENY
    firstFactor: AnyFirstFactor = FirstFactor.LOCAL
    realms: list[Realm] = Field(
        default_factory=list,
        max_length=MAX_REALMS,
        description="Realms that select this domain in addition to its name: REALM in user@REALM or REALM\\user.",
    )
    disconnectOnRevoke: Flag = Field(default=False, description=_DISCONNECT)
    issuerName: IssuerName = Field(default="", description=ISSUER_TEXT)


@answer_of(Domain, "domainId", "warnings")
class DomainAdded(Done):
    """Response body of the operation `AddDomain`."""


class UpdateDomain(InDomain):
    """Request body of the operation `UpdateDomain`. An absent field keeps its value. An empty text clears the field."""

    domainName: Name | None = Field(
        default=None,
        description="New name of the domain. The former name stays as a realm. The name is unique in the tenant.",
    )
    directoryName: Text | None = Field(default=None, description=DIRECTORY_TEXT)
    addRealms: list[Realm] = Field(
        default_factory=list, max_length=MAX_REALMS, description="Realms to add; the domain has at most 64."
    )
    removeRealms: list[Realm] = Field(default_factory=list, max_length=MAX_REALMS, description="Realms to remove.")
    disconnectOnRevoke: Flag | None = Field(default=None, description=_DISCONNECT)
    issuerName: IssuerName | None = Field(default=None, description=ISSUER_TEXT)
    unknownStations: Annotated[UnknownStations, BeforeValidator(_lower)] | None = Field(
        default=None, description=UNKNOWN_TEXT
    )
    ruleOrder: Annotated[RuleOrder, BeforeValidator(_lower)] | None = Field(default=None, description=ORDER_TEXT)
    directoryMaxAgeHours: Annotated[Whole, Between(1, MAX_AGE_H)] | None = Field(default=None, description=MAX_AGE_TEXT)
    staleDirectoryAction: AnyFallback | None = Field(default=None, description=STALE_TEXT)
    certificateNames: Annotated[CertificateNames, BeforeValidator(_lower)] | None = Field(
        default=None, description=NAMES_TEXT
    )
    rememberHours: Annotated[Whole, Between(0, MAX_REMEMBER_H)] | None = Field(default=None, description=REMEMBER_TEXT)
    lockOnNotMe: Flag | None = Field(default=None, description=LOCK_TEXT)


@answer_of(
    Domain, "domainId", "domainName", "directoryName", "realms", "disconnectOnRevoke", "issuerName", "unknownStations",
    "ruleOrder", "directoryMaxAgeHours", "staleDirectoryAction", "certificateNames", "lockOnNotMe", "rememberHours",
)  # fmt: skip
class DomainUpdated(Done):
    """Response body of the operation `UpdateDomain`: the state that is stored."""


class RemoveDomain(InDomain):
    """Request body of the operation `RemoveDomain`."""

    dryRun: Flag = Field(default=False, description="Only list what would be deleted.")


class Deletion(Model):
    """The rows of one kind that are deleted with a domain."""

    kind: str = Field(description="Kind of the rows, such as network devices.")
    count: int = Field(description="Number of rows. 100,000 means at least 100,000 rows.")


@answer_of(Domain, "domainId", "domainName")
class RemovedDomain(Done):
    """A domain in the answer to its removal."""


class DomainRemoved(RemovedDomain):
    """Response body of the operation `RemoveDomain`."""

    deleted: list[Deletion] = Field(
        description="Rows that are deleted with the domain; kinds without rows are left out."
    )


class UpdateDomainEnforcement(Scoped):
    """Request body of the operation `updateDomainEnforcement`."""

    domainId: DomainId = Field(validation_alias=AliasChoices("domainId", "adId"))
    enforcementMode: AnyMode | None = Field(
        default=None, description="New mode: monitor or enforce. It is required unless confirm is set."
    )
    fallbackAction: AnyFallback | None = Field(
        default=None, description="New outcome of a login if no second factor is available: deny or allow."
    )
    requireClean: Flag = Field(
        default=False,
        description="Enforce only if the MFA provider works and enforcing would deny no recent login.",
    )
    acceptUnknown: Flag = Field(
        default=False, description="With requireClean: enforce although enrolments of users are unknown."
    )
    revertAfterMinutes: RevertAfter | None = Field(
        default=None,
        description="Minutes until the change is reverted, unless it is confirmed. Without it, the change stays.",
    )
    confirm: Flag = Field(default=False, description="Keep a change that waits for its confirmation.")

    @model_validator(mode="before")
    @classmethod
    def _has_a_mode(cls, values: object) -> object:
        """Raise Invalid if the body contains a mode that is null. The field `confirm` does not change this."""
        if isinstance(values, dict) and "enforcementMode" in values and values["enforcementMode"] is None:
            raise invalid_field("enforcementMode", "must be monitor or enforce")
        return values

    @model_validator(mode="after")
    def _says_what_to_do(self) -> "UpdateDomainEnforcement":
        if self.enforcementMode is None and not self.confirm:
            raise Invalid(
                "missing enforcementMode", (FieldError("enforcementMode", "is missing: give monitor or enforce"),)
            )
        if self.confirm and self.revertAfterMinutes is not None:
            raise unfit("revertAfterMinutes and confirm exclude each other", "revertAfterMinutes", "confirm")
        return self

    def claimed_domains(self) -> Sequence[int]:
        return (self.domainId,)


Outcome = Annotated[
    Effect, Field(description="Worst outcome of these logins. It is unknown if it depends on an unknown enrolment.")
]
Reason = Annotated[str, Field(description="Reason of the outcome.")]


class UserImpact(Model):
    """The impact of enforcing on a user with recent logins."""

    user: str = Field(description="Name of the user.")
    outcome: Outcome
    reason: Reason
    logins: int = Field(description="Number of the user's logins.")
    lastSeen: str = Field(description="Last login, ISO 8601 UTC.")
    gone: bool = Field(default=False, exclude=True)
    """Whether a local user no longer exists. Both modes then reject the user's logins. With another first factor, this
    is not known."""


class DeviceImpact(Model):
    """The impact of enforcing on a device with recent logins."""

    device_id: int = Field(description="Id of the device.")
    device_name: str = Field(description="Name of the device.")
    outcome: Outcome
    reason: Reason


class RoleImpact(Model):
    """The logins that get a role at NAS of one product."""

    product: str = Field(description="Product of the NAS, or `Unknown`.")
    source: Literal["tag", "product", "default", "none"] = Field(
        description="Why the NAS gets its set of the role: its `tag`, its `product`, or `default`. `none`: none."
    )
    logins: int = Field(description="Number of the logins.")


class RuleImpact(Model):
    """The logins that one login rule decides, or the logins that no rule matches."""

    ruleId: int | None = Field(description="Id of the rule; null for the logins that no rule matches.")
    name: str = Field(description="Name of the rule; empty for no rule.")
    action: str = Field(description="Action for these logins.")
    logins: int = Field(description="Number of the logins.")
    users: int = Field(description="Number of their users.")
    lastSeen: str = Field(description="Last of the logins, ISO 8601 UTC.")
    role: str = Field(description="Role that the rule gives; empty for none.")
    roleSets: list[RoleImpact] = Field(description="Products of the NAS that get the role, the most logins first.")
    maxSessions: int = Field(default=0, description="Limit of parallel sessions; 0 for no limit. It is not previewed.")
    unlimitedDevices: list[str] = Field(
        default=[],
        description="Names of devices of these logins at which the limit is not applied, because they send no interim "
        "updates; at most 100.",
    )
    claimed: int = Field(
        description="Number of further logins that the rule does not exempt, because they match it only by claims of "
        "the sender: their requests were not signed, or came from a RADIUS client with an address range."
    )


class Tally(Model):
    """The number of users or devices for each outcome."""

    accept: int = Field(default=0, description="Accepted.")
    challenge: int = Field(default=0, description="Challenged.")
    reject: int = Field(default=0, description="Rejected.")
    unknown: int = Field(
        default=0, description="Outcome unknown, because the service does not know whether the user is enrolled."
    )


class Counts(Model):
    """The numbers of users and devices. Users and devices that the lists leave out are counted too."""

    users: Tally = Field(description="Users by outcome.")
    devices: Tally = Field(description="Devices by outcome.")
    denied: int = Field(
        description=(
            "Number of users and devices that enforce mode would reject and monitor mode does not. With the first "
            "factor `local`, users that no longer exist do not count. With other first factors, all users count."
        )
    )


class Summary(Model):
    """The impact of enforcing, without the names of users and devices."""

    counts: Counts = Field(description="Numbers of users and devices.")
    logins: int = Field(description="Number of evaluated logins.")
    since: str = Field(serialization_alias="from", description="Time from which logins were evaluated, ISO 8601 UTC.")
    until: str = Field(serialization_alias="to", description="Time until which logins were evaluated, ISO 8601 UTC.")


class Impact(Summary):
    """Response body of the operation `PreviewEnforcement`."""

    users: list[UserImpact] = Field(description="At most 1,000 users, the worst outcomes first.")
    devices: list[DeviceImpact] = Field(description="At most 1,000 devices, the worst outcomes first.")
    rules: list[RuleImpact] = Field(description="Logins by the rule that decides them, the most logins first.")
    policyVersion: int = Field(
        description="Version of the configuration. Previews with the same version used the same rules."
    )

    isWhole: bool = Field(
        default=True,
        description="Whether all logins of the days were decided. If not, `from` is later than the days begin.",
    )

    def summary(self) -> Summary:
        """Return the impact without the names."""
        return Summary(counts=self.counts, logins=self.logins, since=self.since, until=self.until)


class Survey(Model):
    """The progress of looking up whether users are enrolled at the MFA provider."""

    users: int = Field(description="Number of users with recent logins who need a second factor.")
    left: int = Field(description="Number of users whose enrolment is not known yet.")


@answer_of(
    Domain,
    *("domainId", "domainName", "enforcementMode", "fallbackAction", "warnings", "revertsAt", "breakGlass"),
)
class DomainMode(Done):
    """The stored mode of a domain."""


class EnforcementUpdated(DomainMode):
    """Response body of the operation `updateDomainEnforcement`: the state that is stored. breakGlass: as in
    `GetAllDomains`."""

    preview: Summary | None = Field(
        description="Effect of enforcing on recent logins, after a switch to enforce. Null if it is unknown."
    )
