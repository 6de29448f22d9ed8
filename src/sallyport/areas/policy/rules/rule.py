"""A login rule and its parts. `conditions` has the conditions."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from sallyport.areas.mfa.provider import Strength
from sallyport.areas.policy.rules.comparisons import split_attribute
from sallyport.areas.policy.rules.conditions import CONDITIONS
from sallyport.areas.policy.rules.facts import Values
from sallyport.areas.policy.rules.patterns import cost, folded_pattern
from sallyport.areas.policy.rules.window import Window
from sallyport.base.wire import JSON

MAX_RULES: Final = 1000
MAX_CHARACTERS: Final = 2 << 20
"""Maximum number of characters in all rules of a domain. A thread needs some seconds to prepare rules with 2 MiB of
accented letters."""
MAX_REPLY_OCTETS: Final = 2048
DEFAULT_PRIORITY: Final = 100
MAX_SESSIONS: Final = 100
"""The highest limit of parallel sessions."""
MAX_PRIORITY: Final = 1_000_000


class Action(StrEnum):
    """The actions of a rule on a login that has passed its first factor."""

    ALLOW = "allow"
    BLOCK = "block"
    MFA_REQUIRED = "mfa_required"


class OverLimit(StrEnum):
    """What happens to a login if its user has too many parallel sessions: the login is rejected, or the oldest sessions
    end."""

    REJECT = "reject"
    END_OLDEST = "end_oldest"


IDENTITIES: Final = ("users", "groups", "ous")
"""The conditions about the identity of a user. They decide which rules are read first."""
MFA_REQUIRED: Final = Action.MFA_REQUIRED
ANY: Final = Strength.ANY
_MOST_STRICT: Final = 1 + len(Strength)
UNMATCHED: Final = MFA_REQUIRED
"""The action for a login that no rule matches."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply attribute. name: the name in the RADIUS dictionary, with `:TAG` if the attribute takes a tag."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A rule as an admin has written it, with two exceptions. Service-Types are numbers. Media are the names that the
    inventory uses.

    conditions: (field, values) of each condition that the rule has, in the order of `CONDITIONS`. role: the name of a
    role of the domain; empty for none. max_sessions: the maximum number of parallel sessions of each user whose login
    the rule admits, or 0 for no limit. provider: the name of the MFA provider that is asked; empty for the default
    provider of the domain. strength: the minimum strength of the second factor.
    """

    name: str
    action: Action
    priority: int = DEFAULT_PRIORITY
    enabled: bool = True
    conditions: tuple[tuple[str, Values], ...] = ()
    time: Window | None = None
    vlan: str = ""
    reply_attributes: tuple[Reply, ...] = ()
    role: str = ""
    max_sessions: int = 0
    over_limit: OverLimit = OverLimit.REJECT
    provider: str = ""
    strength: Strength = Strength.ANY

    @classmethod
    def parse(cls, text: str) -> "Definition":
        """Parse the JSON text of a definition that `as_json` has made. An earlier release may have made it, which did
        not know all conditions."""
        kept = json.loads(text)
        time = kept["time"]
        return cls(
            name=kept["name"],
            action=Action(kept["action"]),
            priority=kept["priority"],
            enabled=kept["enabled"],
            time=None if time is None else Window(tuple(time["days"]), time["from"], time["until"], time["timezone"]),
            vlan=kept["vlan"],
            reply_attributes=tuple(Reply(each["name"], each["value"]) for each in kept["replyAttributes"]),
            role=kept.get("role", ""),
            max_sessions=kept.get("maxSessions", 0),
            over_limit=OverLimit(kept.get("overLimit", OverLimit.REJECT)),
            provider=kept.get("provider", ""),
            strength=Strength(kept.get("strength", Strength.ANY)),
        ).changed({}, {each.field: tuple(kept.get(each.field, ())) for each in CONDITIONS})

    def values(self, field: str) -> Values:
        """Return the values of a condition. They are empty if the rule does not have the condition."""
        return next((values for own, values in self.conditions if own == field), ())

    def as_json(self) -> dict[str, JSON]:
        """Return the fields by their names in the API, the store and the audit trail."""
        return {
            "name": self.name,
            "action": self.action.value,
            "priority": self.priority,
            "enabled": self.enabled,
            **{each.field: list(self.values(each.field)) for each in CONDITIONS},
            "time": None if self.time is None else self.time.as_json(),
            "vlan": self.vlan,
            "replyAttributes": [{"name": each.name, "value": each.value} for each in self.reply_attributes],
            "role": self.role,
            "maxSessions": self.max_sessions,
            "overLimit": self.over_limit.value,
            "provider": self.provider,
            "strength": self.strength.value,
        }

    @property
    def scopes(self) -> tuple[str, ...]:
        """The fields of the conditions that the rule has. They are empty if the rule applies to every login."""
        return (*(field for field, _ in self.conditions), *(("time",) if self.time else ()))

    @property
    def pattern_places(self) -> int:
        """The number of places that the rule's patterns take in the automata of `patterns`."""
        attributes = map(split_attribute, map(str, self.values("attributes")))
        patterns = [*map(str, self.values("ports")), *(wanted for _, sign, wanted in attributes if sign == "~")]
        return sum(cost(folded_pattern(pattern)) for pattern in patterns)

    @property
    def exempts_all(self) -> bool:
        """Whether the rule, if it is enabled, allows every login without a second factor. The result is the same if the
        rule is disabled."""
        return self.action is Action.ALLOW and not self.scopes

    @property
    def strictness(self) -> int:
        """The rank of what the rule demands: `allow` is the least, `block` is the most."""
        if self.action is Action.MFA_REQUIRED:
            return 1 + sum(self.strength > each for each in Strength)
        return 0 if self.action is Action.ALLOW else _MOST_STRICT

    @property
    def decides_all(self) -> bool:
        """Whether the rule, if it is enabled, allows or blocks every login."""
        return self.action in (Action.ALLOW, Action.BLOCK) and not self.scopes

    def changed(self, changes: Mapping[str, object], conditions: Mapping[str, Values] = {}) -> "Definition":
        """Return a copy with other values in some fields. changes: the new values by field name. conditions: the new
        values of conditions."""
        values = {**dict(self.conditions), **conditions}
        kept = tuple((each.field, values[each.field]) for each in CONDITIONS if values.get(each.field))
        return replace(self, conditions=kept, **changes)  # type: ignore[arg-type]  # fields of this class


NO_DEMAND: Final = Definition("", UNMATCHED)
"""The demand of a login that no rule matches: the default provider, and any strength."""


class Given(Protocol):
    """A protocol for the fields of a rule in a request."""

    @property
    def everyone(self) -> bool:
        """Whether the admin has confirmed an `allow` or `block` rule without a scope."""

    def given(self) -> dict[str, object]:
        """Return the fields that are present, except conditions with values, by the names of `Definition`."""

    def conditions(self) -> dict[str, tuple[str, ...]]:
        """Return the values of each condition that is present, by its field. They are as the admin has written them."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A login rule with its id. attributes: encoded attributes for the Access-Accept. role: the case-folded name of its
    role, whose attributes are sent too; empty if it has none. is_listed: whether the domain reads its rules by priority
    alone."""

    id: int
    domain_id: int
    name: str
    action: Action
    attributes: bytes
    definition: Definition
    role: str = ""
    is_listed: bool = False

    @property
    def sort_key(self) -> tuple[int, int, int]:
        """The sort key for the order in which rules are read. Rules with users come first, then rules with groups, then
        rules with OUs, then all others. Within each of these four kinds, rules are ordered by priority, then by id. In
        a domain that reads its rules as listed, all rules are of one kind."""
        kept = self.definition
        if self.is_listed:
            return 0, kept.priority, self.id
        specific = next((rank for rank, field in enumerate(IDENTITIES) if kept.values(field)), len(IDENTITIES))
        return specific, kept.priority, self.id
