"""What a login rule is, in the service, in the store and in the interface."""

import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, AliasChoices, BeforeValidator, ConfigDict, Field, model_validator

from sallyport.base.model import Model
from sallyport.base.validation import Between, unfit
from sallyport.web.paging import Paged
from sallyport.web.scope import Flag, Id, InDomain, Many, Name, PlainText, Text, Whole

MAX_RULES: Final = 1000
MAX_ENTRIES: Final = 1000
MAX_CHARACTERS: Final = 2 << 20
"""Of all rules of a domain. They are prepared in a reader's thread: 2 MiB of accented letters take some seconds."""
MAX_REPLY_OCTETS: Final = 2048
MAX_DELETED: Final = 200
"""Rules of one request: logins wait for its transaction, up to 0.1 ms for each."""
DEFAULT_PRIORITY: Final = 100
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MIDNIGHT: Final = "00:00"
END_OF_DAY: Final = "24:00"
_CLOCK: Final = re.compile(r"([01]?[0-9]|2[0-4]):([0-5][0-9])")


class Action(StrEnum):
    """What a rule does with a login that passed its first factor."""

    ALLOW = "allow"
    BLOCK = "block"
    MFA_REQUIRED = "mfa_required"


class Kind(StrEnum):
    """Who logs in: a person, a computer by its own account or certificate, or a station by its MAC address."""

    USER = "user"
    MACHINE = "machine"
    STATION = "station"


MFA_REQUIRED: Final = Action.MFA_REQUIRED
UNMATCHED: Final = MFA_REQUIRED
"""What holds for a login that no rule matches, in a domain with an MFA provider."""


def minutes(clock: str) -> int:
    """Minutes since midnight of `HH:MM`."""
    hours, _, rest = clock.partition(":")
    return int(hours) * 60 + int(rest)


class Window(Model):
    """A time of day. days: of mon to sun, none means every day; start (`from`) up to but without until, which may be
    of the day after: then the days are those on which it begins. timezone: a name of the IANA database."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, hide_input_in_errors=True)

    days: tuple[str, ...] = ()
    start: str = Field(default=MIDNIGHT, alias="from")
    until: str = END_OF_DAY
    timezone: str = "UTC"

    @property
    def always(self) -> bool:
        """Whether it excludes nothing."""
        return len(self.days) in (0, len(DAYS)) and minutes(self.start) == 0 and minutes(self.until) == 1440


class ReplyAttribute(Model):
    """An attribute of the answer, by its name in the dictionary, with `:TAG` where it takes one."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True, hide_input_in_errors=True)

    name: Name
    value: Annotated[PlainText, Field(max_length=1024)]


class Definition(Model):
    """A rule as it is kept. Every entry is as it was given; serviceTypes are numbers, media the service's words."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    action: Action
    priority: int = DEFAULT_PRIORITY
    enabled: bool = True
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    ous: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    clients: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    media: tuple[str, ...] = ()
    stations: tuple[str, ...] = ()
    serviceTypes: tuple[int, ...] = ()
    time: Window | None = None
    vlan: str = ""
    replyAttributes: tuple[ReplyAttribute, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as the login path sees it. attributes: for an Access-Accept, in octets."""

    id: int
    domain_id: int
    name: str
    action: Action
    attributes: bytes
    definition: Definition

    @property
    def place(self) -> tuple[int, int, int]:
        """Where it stands among its domain's rules: the most specific identity first, then priority, then id."""
        kept = self.definition
        identities = (kept.users, kept.groups, kept.ous)
        specific = next((rank for rank, entries in enumerate(identities) if entries), len(identities))
        return specific, kept.priority, self.id


def _lower(value: object) -> object:
    return value.strip().casefold().replace("-", "_") if isinstance(value, str) else value


def _entries(value: object) -> object:
    """An empty text stands for an empty list, any other single value for a list of one."""
    if isinstance(value, str) and not value.strip():
        return []
    return value if isinstance(value, list) or value is None else [value]


def _entry(value: str) -> str:
    if not value.strip():
        raise unfit("text that is not empty")
    return value.strip()


def _day(value: str) -> str:
    day = value.strip().casefold()
    found = [known for known in DAYS if day.startswith(known) and _FULL[known].startswith(day)]
    if not found:
        raise unfit("a day such as mon or monday")
    return found[0]


_FULL: Final[Mapping[str, str]] = dict(
    zip(DAYS, ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"), strict=True)
)


def _clock(value: str) -> str:
    match = _CLOCK.fullmatch(value.strip())
    if match is None or minutes(match[0]) > 1440:
        raise unfit("a time of day such as 08:30, up to 24:00")
    return f"{int(match[1]):02}:{match[2]}"


def _zone(value: str) -> str:
    try:
        return zoneinfo.ZoneInfo(value).key
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise unfit("a time zone such as Europe/Berlin") from None


def _cleared(value: object) -> object:
    return {} if value in ("", []) else value


Entry = Annotated[PlainText, Field(max_length=255), AfterValidator(_entry)]
Entries = Annotated[list[Entry], Field(max_length=MAX_ENTRIES), BeforeValidator(_entries)]
Kinds = Annotated[list[Annotated[Kind, BeforeValidator(_lower)]], BeforeValidator(_entries)]
AnyAction = Annotated[Action, BeforeValidator(_lower)]
Priority = Annotated[Whole, Between(0, 1_000_000)]
Clock = Annotated[str, AfterValidator(_clock)]


class GivenWindow(Window):
    """A time of day as bodies give it. One that excludes nothing is no condition."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    days: Annotated[tuple[Annotated[str, AfterValidator(_day)], ...], BeforeValidator(_entries)] = Field(
        default=(), max_length=len(DAYS)
    )
    start: Clock = Field(default=MIDNIGHT, validation_alias=AliasChoices("from", "start"))
    until: Clock = END_OF_DAY
    timezone: Annotated[str, AfterValidator(_zone)] = "UTC"

    @model_validator(mode="after")
    def _lasts(self) -> "GivenWindow":
        if minutes(self.start) == minutes(self.until) or self.start == END_OF_DAY:
            raise unfit("a time that ends at another minute than it begins", "from", "until")
        return self

    def kept(self) -> Window:
        """The window without what bodies need."""
        return Window(days=self.days, start=self.start, until=self.until, timezone=self.timezone)


Time = Annotated[GivenWindow, BeforeValidator(_cleared)]
Replies = Annotated[list[ReplyAttribute], Field(max_length=MAX_ENTRIES), BeforeValidator(_entries)]


class RuleFields(Model):
    """What a rule can be made of: None is not given, an empty list or text clears."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True, hide_input_in_errors=True)

    name: Name | None = None
    action: AnyAction | None = None
    priority: Priority | None = None
    enabled: Flag | None = None
    users: Entries | None = None
    groups: Entries | None = None
    ous: Entries | None = None
    kinds: Kinds | None = None
    clients: Entries | None = None
    products: Entries | None = None
    media: Entries | None = None
    stations: Entries | None = None
    serviceTypes: Entries | None = None
    time: Time | None = None
    vlan: Annotated[PlainText, Field(max_length=64)] | None = None
    replyAttributes: Replies | None = None

    def given(self) -> dict[str, object]:
        """The fields that are given, by name."""
        found = {name: getattr(self, name) for name in RuleFields.model_fields}
        return {name: value for name, value in found.items() if value is not None}


class AddLoginRule(InDomain, RuleFields):
    """Body of AddLoginRule."""

    name: Name
    action: AnyAction


class RuleAdded(Model):
    """Answer of AddLoginRule."""

    code: int = 200
    status: str = "Success"
    message: str
    ruleId: int


class UpdateLoginRule(InDomain, RuleFields):
    """Body of UpdateLoginRule: an absent field keeps its value, an empty list or text clears it; `time` and each list
    are replaced as a whole."""

    ruleId: Id


class DeleteLoginRule(InDomain):
    """Body of DeleteLoginRule: one rule or several, all or none."""

    ruleId: Annotated[Many[Id], Field(min_length=1, max_length=MAX_DELETED)]


class ListLoginRules(InDomain, Paged):
    """Body of ListLoginRules."""

    search: Text = ""


class TimeEntry(Model):
    """A rule's time of day."""

    days: list[str]
    start: str = Field(serialization_alias="from")
    until: str
    timezone: str


class RuleEntry(Model):
    """A login rule. position: its place among the domain's rules, from 1, in the order in which they are read.
    encoded: the reply attributes, the VLAN's among them, as octets in hex."""

    ruleId: int
    domainId: int
    position: int
    name: str
    action: Action
    priority: int
    enabled: bool
    users: list[str]
    groups: list[str]
    ous: list[str]
    kinds: list[Kind]
    clients: list[str]
    products: list[str]
    media: list[str]
    stations: list[str]
    serviceTypes: list[str]
    time: TimeEntry | None
    vlan: str
    replyAttributes: list[ReplyAttribute]
    encoded: str


class RuleList(Model):
    """Answer of ListLoginRules."""

    rules: list[RuleEntry]
    totalCount: int
