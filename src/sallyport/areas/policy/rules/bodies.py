"""Request and response bodies of /ad/...LoginRule(s)."""

import re
import zoneinfo
from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from sallyport.areas.policy.rules.rule import (
    DAYS,
    DEFAULT_PRIORITY,
    END_OF_DAY,
    MAX_PRIORITY,
    MAX_REPLY_OCTETS,
    MIDNIGHT,
    AccountKind,
    Action,
    Reply,
    Window,
    minutes,
)
from sallyport.base.model import Done, Model, SentModel
from sallyport.base.validation import Between, one_or_several, unfit
from sallyport.web.paging import Paged, TotalCount
from sallyport.web.scope import DomainId, Flag, Id, InDomain, Many, Name, PlainText, Text, Whole

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
AnyAction = Annotated[Action, BeforeValidator(_lower)]
Priority = Annotated[Whole, Between(0, MAX_PRIORITY)]
Clock = Annotated[str, AfterValidator(_clock)]

RULE_ID: Final = "Id of the rule, as AddLoginRule has returned it."
NAME: Final = "Name of the rule."
ACTION: Final = "Action for a login that matches the rule and has passed its first factor."
PRIORITY: Final = "Within each kind of rule (with users, groups, OUs, none of them), lower priorities are read first."
BEFORE: Final = (
    "Id of the rule before which this rule is read from now on. Both rules must have the same kind of identity (users, "
    "groups, OUs, none). The priorities of rules change as far as needed."
)
ENABLED: Final = "Whether the rule is used. A disabled rule is only stored."
USERS: Final = "User names without a realm. An empty list matches every user."
GROUPS: Final = "Names of groups that the user belongs to. An empty list matches every user."
OUS: Final = "Organizational units of the user. An empty list matches every user."
KINDS: Final = "Kinds of account: a person, a computer, or a station by its MAC address. An empty list matches all."
CLIENTS: Final = "RADIUS clients by name, or senders and NAS by address or network (CIDR). An empty list matches all."
PRODUCTS: Final = "Products of the sender or of the NAS, as ListDevices names them. An empty list matches all."
MEDIA: Final = "Media of the NAS port, such as Ethernet, Wireless or Virtual. An empty list matches all."
STATIONS: Final = "Calling-Station-Ids; a MAC address may be in any notation. An empty list matches all."
SERVICE_TYPES: Final = "Service-Types by name or number (RFC 2865 section 5.6). An empty list matches all."
TIME: Final = "Time of day at which the rule applies."
VLAN: Final = "VLAN for an Access-Accept: a number from 1 to 4094, or a name. If it is empty, no VLAN is set."
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


class RuleFields(SentModel):
    """The fields of a rule in a request. None means that the request does not have the field. An empty list or text
    clears the field."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True, hide_input_in_errors=True)

    name: Name | None = Field(default=None, description=NAME)
    action: AnyAction | None = Field(default=None, description=ACTION)
    priority: Priority | None = Field(
        default=None, description=f"{PRIORITY} The default for a new rule is {DEFAULT_PRIORITY}."
    )
    enabled: Flag | None = Field(default=None, description=f"{ENABLED} A new rule is used by default.")
    users: Entries | None = Field(default=None, description=USERS)
    groups: Entries | None = Field(default=None, description=GROUPS)
    ous: Entries | None = Field(default=None, description=OUS)
    kinds: Kinds | None = Field(default=None, description=KINDS)
    clients: Entries | None = Field(default=None, description=CLIENTS)
    products: Entries | None = Field(default=None, description=PRODUCTS)
    media: Entries | None = Field(default=None, description=MEDIA)
    stations: Entries | None = Field(default=None, description=STATIONS)
    serviceTypes: Entries | None = Field(default=None, description=SERVICE_TYPES)
    time: Time | None = Field(default=None, description=f"{TIME} Empty: always.")
    vlan: Annotated[PlainText, Field(max_length=64)] | None = Field(default=None, description=VLAN)
    replyAttributes: Replies | None = Field(default=None, description=REPLIES)
    everyone: Flag = Field(default=False, description=EVERYONE)

    def given(self) -> dict[str, object]:
        """Return the fields that the request contains, except serviceTypes and media. The keys are the names in
        `Definition`."""
        found = {name: getattr(self, name) for name in _AS_GIVEN}
        values: dict[str, object] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in found.items()
            if value is not None
        }
        if self.time is not None:
            values["time"] = self.time.window()
        if self.vlan is not None:
            values["vlan"] = self.vlan.strip()
        if self.replyAttributes is not None:
            values["reply_attributes"] = replies(self.replyAttributes)
        return values


_AS_GIVEN: Final = RuleFields.model_fields.keys() - {
    "serviceTypes", "media", "time", "vlan", "replyAttributes", "everyone",
}  # fmt: skip


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


class RuleEntry(Model):
    """A login rule."""

    ruleId: int = Field(description="Id of the rule.")
    domainId: DomainId
    position: int = Field(description="Position of the rule in the order in which rules are read, from 1.")
    name: str = Field(description=NAME)
    action: Action = Field(description=ACTION)
    priority: int = Field(description=PRIORITY)
    enabled: bool = Field(description=ENABLED)
    users: list[str] = Field(description=USERS)
    groups: list[str] = Field(description=GROUPS)
    ous: list[str] = Field(description=OUS)
    kinds: list[AccountKind] = Field(description=KINDS)
    clients: list[str] = Field(description=CLIENTS)
    products: list[str] = Field(description=PRODUCTS)
    media: list[str] = Field(description=MEDIA)
    stations: list[str] = Field(description=STATIONS)
    serviceTypes: list[str] = Field(description=SERVICE_TYPES)
    time: TimeEntry | None = Field(description=f"{TIME} null: always.")
    vlan: str = Field(description=VLAN)
    replyAttributes: list[ReplyAttribute] = Field(description=REPLIES)
    exemptsAll: bool = Field(description="Whether the rule allows every login of the domain without a second factor.")
    encoded: str = Field(description="Reply attributes as sent, in hexadecimal; the attributes of the VLAN come first.")


class RuleList(Model):
    """Response body of the operation `ListLoginRules`."""

    rules: list[RuleEntry] = Field(description="Rules of the page, ordered by id.")
    totalCount: TotalCount
