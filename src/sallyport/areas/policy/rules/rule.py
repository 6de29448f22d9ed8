"""A login rule and its parts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Final, Protocol, cast

from sallyport.base.wire import JSON, camel, encode

MAX_RULES: Final = 1000
MAX_CHARACTERS: Final = 2 << 20
"""Maximum number of characters in all rules of a domain. A thread needs some seconds to prepare rules with 2 MiB of
accented letters."""
MAX_REPLY_OCTETS: Final = 2048
DEFAULT_PRIORITY: Final = 100
MAX_PRIORITY: Final = 1_000_000
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MIDNIGHT: Final = "00:00"
END_OF_DAY: Final = "24:00"
SCOPES: Final = ("users", "groups", "ous", "kinds", "clients", "products", "media", "stations", "service_types", "time")
"""The fields of a rule that limit the logins to which it applies."""


class Action(StrEnum):
    """The actions of a rule on a login that has passed its first factor."""

    ALLOW = "allow"
    BLOCK = "block"
    MFA_REQUIRED = "mfa_required"


class AccountKind(StrEnum):
    """A kind of account: a person, a computer with its own account or certificate, or a station. The station is
    admitted by its MAC address."""

    USER = "user"
    MACHINE = "machine"
    STATION = "station"


MFA_REQUIRED: Final = Action.MFA_REQUIRED
UNMATCHED: Final = MFA_REQUIRED
"""The action for a login that no rule matches."""


def minutes(clock: str) -> int:
    """Return a time `HH:MM` as minutes since midnight."""
    hours, _, rest = clock.partition(":")
    return int(hours) * 60 + int(rest)


@dataclass(frozen=True, slots=True)
class Window:
    """A time of day on certain days. If `until` is not later than `start`, the window ends on the next day.

    days: the entries of DAYS, the days on which the window starts. If `days` is empty, the window starts every day.
    start, until: the times as `HH:MM`; `until` is exclusive. timezone: a name of the IANA database.
    """

    days: tuple[str, ...] = ()
    start: str = MIDNIGHT
    until: str = END_OF_DAY
    timezone: str = "UTC"

    @property
    def always(self) -> bool:
        """Whether the window covers every minute of the week."""
        return len(self.days) in (0, len(DAYS)) and minutes(self.start) == 0 and minutes(self.until) == 1440

    def as_json(self) -> dict[str, JSON]:
        """Return the fields by their API names."""
        return {"days": list(self.days), "from": self.start, "until": self.until, "timezone": self.timezone}


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply attribute. name: the name in the RADIUS dictionary, with `:TAG` if the attribute takes a tag."""

    name: str
    value: str


def _tuple(value: JSON) -> object:
    return tuple(value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Definition:
    """A rule as an admin has written it, with two exceptions. service_types are numbers. media are the names that the
    inventory uses."""

    name: str
    action: Action
    priority: int = DEFAULT_PRIORITY
    enabled: bool = True
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    ous: tuple[str, ...] = ()
    kinds: tuple[AccountKind, ...] = ()
    clients: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    media: tuple[str, ...] = ()
    stations: tuple[str, ...] = ()
    service_types: tuple[int, ...] = ()
    time: Window | None = None
    vlan: str = ""
    reply_attributes: tuple[Reply, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Definition":
        """Parse the JSON text of a definition that `as_json` has made."""
        stored = json.loads(text)
        kept = {each.name: _tuple(stored[camel(each.name)]) for each in fields(cls)}
        time = stored["time"]
        special = {
            "action": Action(stored["action"]),
            "kinds": tuple(map(AccountKind, stored["kinds"])),
            "time": time and Window(tuple(time["days"]), time["from"], time["until"], time["timezone"]),
            "reply_attributes": tuple(Reply(**each) for each in stored["replyAttributes"]),
        }
        return cls(**kept | special)  # type: ignore[arg-type]  # the fields of this class

    def as_json(self) -> dict[str, JSON]:
        """Return the fields by their names in the API, the store and the audit trail."""
        values = {camel(each.name): cast(JSON, encode(getattr(self, each.name))) for each in fields(self)}
        return {**values, "time": None if self.time is None else self.time.as_json()}

    @property
    def scopes(self) -> tuple[str, ...]:
        """The API names of the scopes that the rule has. It is empty if the rule applies to every login."""
        return tuple(camel(name) for name in SCOPES if getattr(self, name))

    @property
    def exempts_all(self) -> bool:
        """Whether the rule, if it is enabled, allows every login without a second factor. The result is the same if the
        rule is disabled."""
        return self.action is Action.ALLOW and not self.scopes

    @property
    def decides_all(self) -> bool:
        """Whether the rule, if it is enabled, allows or blocks every login."""
        return self.action in (Action.ALLOW, Action.BLOCK) and not self.scopes

    def changed(self, changes: Mapping[str, object]) -> "Definition":
        """Return a copy with other values in some fields. changes: the new values by field name."""
        return replace(self, **changes)  # type: ignore[arg-type]  # fields of this class


class Given(Protocol):
    """A protocol for the fields of a rule in a request."""

    @property
    def serviceTypes(self) -> Sequence[str] | None:  # noqa: N802  the interface's spelling
        """Names and numbers of Service-Types; None if absent."""

    @property
    def media(self) -> Sequence[str] | None:
        """Names of media, and names and numbers of NAS-Port-Types; None if absent."""

    @property
    def clients(self) -> Sequence[str] | None:
        """Names, addresses and networks of RADIUS clients; None if absent."""

    @property
    def everyone(self) -> bool:
        """Whether the admin has confirmed an `allow` or `block` rule without a scope."""

    def given(self) -> dict[str, object]:
        """Return the fields that are present, except serviceTypes and media, by the names of `Definition`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A login rule with its id. attributes: encoded attributes for the Access-Accept."""

    id: int
    domain_id: int
    name: str
    action: Action
    attributes: bytes
    definition: Definition

    @property
    def place(self) -> tuple[int, int, int]:
        """The sort key for the order in which rules are read. Rules with users come first, then rules with groups, then
        rules with OUs, then all others. Within each of these four kinds, rules are ordered by priority, then by id."""
        kept = self.definition
        identities = (kept.users, kept.groups, kept.ous)
        specific = next((rank for rank, entries in enumerate(identities) if entries), len(identities))
        return specific, kept.priority, self.id
