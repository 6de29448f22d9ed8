"""Request and response bodies of /ad/...LoginRule(s)."""

import re
import zoneinfo
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, cast

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
    model_validator,
)

from sallyport.areas.mfa.provider import Strength
from sallyport.areas.policy.rules.conditions import CONDITIONS
from sallyport.areas.policy.rules.facts import AccountKind, Condition
from sallyport.areas.policy.rules.rule import (
    DEFAULT_PRIORITY,
    MAX_PRIORITY,
    MAX_REPLY_OCTETS,
    MAX_SESSIONS,
    Action,
    OverLimit,
    Reply,
)
from sallyport.areas.policy.rules.window import DAYS, END_OF_DAY, MIDNIGHT, Window, minutes
from sallyport.base.model import Done, Model, SentModel
from sallyport.base.validation import Between, one_or_several, unfit
from sallyport.web.bodies import DomainId, Flag, Id, InDomain, Many, Name, Paged, PlainText, Text, TotalCount, Whole

MAX_ENTRIES: Final = 1000
MAX_DELETED: Final = 200
"""Maximum number of rules in one delete request. Each rule takes up to 0.1 ms, and logins wait for the transaction."""
_CLOCK: Final = re.compile(r"([01]?[0-9]|2[0-4]):([0-5][0-9])")
_FULL: Final[Mapping[str, str]] = dict(
    zip(DAYS, ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"), strict=True)
)


def _lower(value: object) -> object:
    return value.strip().casefold().replace("-", "_") if isinstance(value, str) else value


def _entries(value: object, handler: ValidatorFunctionWrapHandler) -> object:
    """Validate a list field. A single value becomes a list with one entry, and an empty text becomes an empty list."""
    return one_or_several([] if isinstance(value, str) and not value.strip() else value, handler)


def _entry(value: str) -> str:
    if not value.strip():
        raise unfit("must not be empty")
    return value.strip()


def _day(value: str) -> str:
    day = value.strip().casefold()
    found = [known for known in DAYS if day.startswith(known) and _FULL[known].startswith(day)]
    if not found:
        raise unfit("must be a day such as mon or monday")
    return found[0]


def _clock(value: str) -> str:
    match = _CLOCK.fullmatch(value.strip())
    if match is None or minutes(match[0]) > 1440:
        raise unfit("must be a time of day from 00:00 to 24:00, such as 08:30")
    return f"{int(match[1]):02}:{match[2]}"


def _zone(value: str) -> str:
    try:
        return zoneinfo.ZoneInfo(value).key
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise unfit("must be a time zone such as Europe/Berlin") from None


def _cleared(value: object) -> object:
    return {} if value in ("", []) else value


Entry = Annotated[PlainText, Field(max_length=255), AfterValidator(_entry)]
Entries = Annotated[list[Entry], Field(max_length=MAX_ENTRIES), WrapValidator(_entries)]
Kinds = Annotated[list[Annotated[AccountKind, BeforeValidator(_lower)]], WrapValidator(_entries)]
_TYPES: Final[Mapping[str, Any]] = {"kinds": Kinds}
"""The types of conditions in a request. The others are `Entries`."""
AnyOverLimit = Annotated[OverLimit, BeforeValidator(_lower)]
AnyStrength = Annotated[Strength, BeforeValidator(_lower)]
AnyAction = Annotated[Action, BeforeValidator(_lower)]
Priority = Annotated[Whole, Between(0, MAX_PRIORITY)]
Clock = Annotated[str, AfterValidator(_clock)]

RULE_ID: Final = "Id of the rule, as AddLoginRule has returned it."
NAME: Final = "Name of the rule."
ACTION: Final = "Action for a login that matches the rule and has passed its first factor."
PRIORITY: Final = (
    "Within each kind of rule (with users, groups, OUs, none of them), lower priorities are read first. In a domain "
    "with ruleOrder listed, the priority alone counts."
)
BEFORE: Final = (
    "Id of the rule before which this rule is read from now on. Both rules must have the same kind of identity (users, "
    "groups, OUs, none), unless the domain has ruleOrder listed. The priorities of rules change as far as needed."
)
ENABLED: Final = "Whether the rule is used. A disabled rule is only stored."
TIME: Final = "Time of day at which the rule applies."
VLAN: Final = "VLAN for an Access-Accept: a number from 1 to 4094, or a name. If it is empty, no VLAN is set."
ROLE: Final = (
    "Role of the domain that the login gets: its reply attributes for the product of the NAS are sent. The rule's own "
    "VLAN and reply attributes replace those of the role that have the same type."
)
MAX_PARALLEL: Final = (
    "Maximum number of parallel sessions of each user whose login the rule admits, over all devices of the tenant. 0 "
    "sets no limit. It is not applied at devices that send no interim updates."
)
OVER_LIMIT: Final = (
    "What happens above the limit. reject: the login is rejected. end_oldest: the devices are asked to end the oldest "
    "sessions."
)
PROVIDER: Final = (
    "MFA provider of the domain that the rule asks, such as duo. If it is empty, the rule asks the domain's default "
    "provider. Only for the action mfa_required."
)
STRENGTH: Final = (
    "Minimum strength of the second factor: any, two_channels or phishing_resistant. A user without such a factor, and "
    "an answer that is weaker, are refused. Only for the action mfa_required."
)
EVERYONE: Final = "Confirms that an allow or block rule without a scope decides every login of the domain."
WARNINGS: Final = "Users, groups and clients that do not exist yet, each with the most similar existing name."
REPLIES: Final = (
    f"Attributes for the Access-Accept. Together with the VLAN, they have at most {MAX_REPLY_OCTETS} octets."
)
WINDOW_DAYS: Final = "Days on which the time starts: mon to sun. An empty list means every day."
WINDOW_FROM: Final = "Start, HH:MM."
WINDOW_UNTIL: Final = "End (exclusive), HH:MM up to 24:00. If it is before the start, the time ends on the next day."
WINDOW_ZONE: Final = "Time zone, a name of the IANA database such as Europe/Berlin."


class GivenWindow(SentModel):
    """A time of day on certain days, as a request contains it. If the times and days cover the whole week, the rule has
    no time condition."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, hide_input_in_errors=True, coerce_numbers_to_str=True)

    days: Annotated[list[Annotated[str, AfterValidator(_day)]], WrapValidator(_entries)] = Field(
        default=[], max_length=len(DAYS), description=WINDOW_DAYS
    )
    start: Clock = Field(default=MIDNIGHT, validation_alias=AliasChoices("from", "start"), description=WINDOW_FROM)
    until: Clock = Field(default=END_OF_DAY, description=WINDOW_UNTIL)
    timezone: Annotated[str, AfterValidator(_zone)] = Field(default="UTC", description=WINDOW_ZONE)

    @model_validator(mode="after")
    def _lasts(self) -> "GivenWindow":
        if minutes(self.start) == minutes(self.until) or self.start == END_OF_DAY:
            raise unfit("from and until must be different times, and from must be before 24:00", "from", "until")
        return self

    def window(self) -> Window | None:
        """Return the time as a `Window`, or None if it covers the whole week."""
        window = Window(tuple(self.days), self.start, self.until, self.timezone)
        return None if window.always else window


class ReplyAttribute(SentModel):
    """An attribute for the Access-Accept."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True, hide_input_in_errors=True)

    name: Name = Field(description="Name of the attribute in the RADIUS dictionary, with `:TAG` if it takes a tag.")
    value: Annotated[PlainText, Field(max_length=1024)] = Field(
        description="Value: text, a number, an address, a name that the dictionary defines, or octets as 0x..."
    )


Time = Annotated[GivenWindow, BeforeValidator(_cleared)]
Replies = Annotated[list[ReplyAttribute], Field(max_length=MAX_ENTRIES), WrapValidator(_entries)]


def replies(attributes: Iterable[ReplyAttribute]) -> tuple[Reply, ...]:
    """Return reply attributes as `Reply` values."""
    return tuple(Reply(each.name, each.value) for each in attributes)


class _RuleHead(SentModel):
    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True, hide_input_in_errors=True)

    name: Name | None = Field(default=None, description=NAME)
    action: AnyAction | None = Field(default=None, description=ACTION)
    priority: Priority | None = Field(
        default=None, description=f"{PRIORITY} The default for a new rule is {DEFAULT_PRIORITY}."
    )
    enabled: Flag | None = Field(default=None, description=f"{ENABLED} A new rule is used by default.")


def _optional(condition: Condition) -> tuple[object, object]:
    return _TYPES.get(condition.field, Entries) | None, Field(default=None, description=condition.description)


_WithConditions = create_model(
    "_WithConditions", __base__=_RuleHead, **cast(dict[str, Any], {each.field: _optional(each) for each in CONDITIONS})
)


class RuleFields(_WithConditions):
    """The fields of a rule in a request. None means that the request does not have the field. An empty list or text
    clears the field."""

    time: Time | None = Field(default=None, description=f"{TIME} Empty: always.")
    vlan: Annotated[PlainText, Field(max_length=64)] | None = Field(default=None, description=VLAN)
    replyAttributes: Replies | None = Field(default=None, description=REPLIES)
    everyone: Flag = Field(default=False, description=EVERYONE)
    role: Annotated[PlainText, Field(max_length=64)] | None = Field(default=None, description=ROLE)
    maxSessions: Annotated[Whole, Between(0, MAX_SESSIONS)] | None = Field(default=None, description=MAX_PARALLEL)
    overLimit: AnyOverLimit | None = Field(default=None, description=f"{OVER_LIMIT} A new rule has reject.")
    provider: Annotated[PlainText, Field(max_length=64)] | None = Field(default=None, description=PROVIDER)
    strength: AnyStrength | None = Field(default=None, description=f"{STRENGTH} A new rule has any.")

    def given(self) -> dict[str, object]:
        """Return the fields that the request contains, except conditions with values. The keys are the names in
        `Definition`."""
        found = {name: getattr(self, name) for name in _RuleHead.model_fields}
        values: dict[str, object] = {name: value for name, value in found.items() if value is not None}
        if self.time is not None:
            values["time"] = self.time.window()
        if self.vlan is not None:
            values["vlan"] = self.vlan.strip()
        if self.role is not None:
            values["role"] = self.role.strip()
        if self.replyAttributes is not None:
            values["reply_attributes"] = replies(self.replyAttributes)
        if self.maxSessions is not None:
            values["max_sessions"] = self.maxSessions
        if self.overLimit is not None:
            values["over_limit"] = self.overLimit
        if self.provider is not None:
            values["provider"] = self.provider.strip().casefold()
        if self.strength is not None:
            values["strength"] = self.strength
        return values

    def conditions(self) -> dict[str, tuple[str, ...]]:
        """Return the values of each condition that the request contains, by its field."""
        found = {each.field: getattr(self, each.field) for each in CONDITIONS}
        return {field: tuple(values) for field, values in found.items() if values is not None}


class AddLoginRule(InDomain, RuleFields):
    """Request body of the operation `AddLoginRule`."""

    name: Name = Field(description=NAME)
    action: AnyAction = Field(description=ACTION)


class RuleAdded(Done):
    """Response body of the operation `AddLoginRule`."""

    ruleId: int = Field(description="Id of the new rule.")
    warnings: list[str] = Field(description=WARNINGS)


class RuleUpdated(Done):
    """Response body of the operation `UpdateLoginRule`."""

    warnings: list[str] = Field(description=WARNINGS)


class UpdateLoginRule(InDomain, RuleFields):
    """Request body of the operation `UpdateLoginRule`. An absent field keeps its value. An empty list or text clears
    the field.

    `time` and each list replace the previous value as a whole.
    """

    ruleId: Id = Field(description=RULE_ID)
    before: Id | None = Field(default=None, description=BEFORE)


class DeleteLoginRule(InDomain):
    """Request body of the operation `DeleteLoginRule`."""

    ruleId: Annotated[Many[Id], Field(min_length=1, max_length=MAX_DELETED)] = Field(
        description="One rule id or several. If one of them does not exist, no rule is deleted."
    )


class ListLoginRules(InDomain, Paged):
    """Request body of the operation `ListLoginRules`."""

    search: Text = Field(
        default="",
        description="Text that the name must contain; case is ignored. If it is empty, all rules are listed.",
    )
    ruleId: Id = Field(default=0, description="Id of the only rule to list. 0 lists all rules.")


class TimeEntry(Model):
    """The time condition of a rule."""

    days: list[str] = Field(description=WINDOW_DAYS)
    start: str = Field(serialization_alias="from", description=WINDOW_FROM)
    until: str = Field(description=WINDOW_UNTIL)
    timezone: str = Field(description=WINDOW_ZONE)


class _EntryHead(Model):
    ruleId: int = Field(description="Id of the rule.")
    domainId: DomainId
    position: int = Field(description="Position of the rule in the order in which rules are read, from 1.")
    name: str = Field(description=NAME)
    action: Action = Field(description=ACTION)
    priority: int = Field(description=PRIORITY)
    enabled: bool = Field(description=ENABLED)


def _shown(condition: Condition) -> tuple[object, object]:
    kind = list[AccountKind] if condition.field == "kinds" else list[str]
    return kind, Field(description=condition.description)


_EntryWithConditions = create_model(
    "_EntryWithConditions",
    __base__=_EntryHead,
    **cast(dict[str, Any], {each.field: _shown(each) for each in CONDITIONS}),
)


class RuleEntry(_EntryWithConditions):
    """A login rule."""

    time: TimeEntry | None = Field(description=f"{TIME} null: always.")
    vlan: str = Field(description=VLAN)
    replyAttributes: list[ReplyAttribute] = Field(description=REPLIES)
    exemptsAll: bool = Field(description="Whether the rule allows every login of the domain without a second factor.")
    encoded: str = Field(
        description="Own reply attributes as sent, in hexadecimal; the attributes of the VLAN come first."
    )
    role: str = Field(description=f"{ROLE} Empty: none.")
    maxSessions: int = Field(description=MAX_PARALLEL)
    overLimit: OverLimit = Field(description=OVER_LIMIT)
    provider: str = Field(description=PROVIDER)
    strength: Strength = Field(description=STRENGTH)


class RuleList(Model):
    """Response body of the operation `ListLoginRules`."""

    rules: list[RuleEntry] = Field(description="Rules of the page, ordered by id.")
    totalCount: TotalCount
