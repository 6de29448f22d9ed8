"""The result of reading the configuration of another server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, cast

from sallyport.areas.configuration.item import Item
from sallyport.base.wire import JSON

FIRST_PRIORITY: Final = 1000
STEP: Final = 10
"""The priority of the first rule, and the distance to the next one. Rules of an admin fit before and between them."""


OTHERWISE: Final = ": otherwise"
"""The end of the name of a rule that blocks what the policy of the rule before it does not permit."""

INCOMPLETE: Final = " (incomplete)"
"""The end of the name of a disabled rule that lacks a condition or an attribute of its policy."""


class Weight(StrEnum):
    """What a finding means: something to know, a rule that is disabled, an element that is not imported, or a decision
    that the import needs."""

    NOTE = "note"
    DISABLED = "disabled"
    LEFT_OUT = "left out"
    UNDECIDED = "undecided"


class Decision(StrEnum):
    """What to do with a policy that denies, and that cannot be expressed: block what the other conditions match, or
    leave the policy out."""

    BLOCK = "block"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Finding:
    """What an admin must know about an element of the file. name: the name of the element. source: `file:line`."""

    weight: Weight
    name: str
    source: str
    text: str

    def as_json(self) -> dict[str, JSON]:
        """Return the fields."""
        return {"weight": self.weight.value, "name": self.name, "source": self.source, "text": self.text}


@dataclass(frozen=True, slots=True)
class Options:
    """What an admin has said about an import.

    domain: the name of the domain that gets the rules. timezone: the time zone of the old server; empty if unknown.
    groups: names of groups by SID. decisions: by the name of a policy. ignores_dial_in: whether no user has a dial-in
    permission of its own. columns: the columns of a CSV file by field.
    """

    domain: str
    timezone: str = ""
    groups: Mapping[str, str] = field(default_factory=dict)
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    ignores_dial_in: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, JSON]:
        """Return the fields, for the child process."""
        return {
            "domain": self.domain,
            "timezone": self.timezone,
            "groups": dict(self.groups),
            "decisions": {name: each.value for name, each in self.decisions.items()},
            "ignores_dial_in": self.ignores_dial_in,
            "columns": dict(self.columns),
        }

    @classmethod
    def parse(cls, given: Mapping[str, JSON]) -> "Options":
        """Return the options that `as_json` has made."""
        fields = dict(given)
        decided = fields.pop("decisions")
        assert isinstance(decided, dict)  # noqa: S101  as_json has made it
        decisions = {name: Decision(str(each)) for name, each in decided.items()}
        return cls(**fields, decisions=decisions)  # type: ignore[arg-type]  # as_json has made them


@dataclass(frozen=True, slots=True)
class Translation:
    """The objects and the findings of a file."""

    items: Sequence[Item]
    findings: Sequence[Finding]

    def as_json(self) -> dict[str, JSON]:
        """Return the fields, for the process that has started the reader."""
        items: list[JSON] = [
            {"kind": each.kind, "name": each.name, "fields": cast(JSON, dict(each.fields)), "source": each.source}
            for each in self.items
        ]
        return {"items": items, "findings": [each.as_json() for each in self.findings]}

    @classmethod
    def parse(cls, given: Mapping[str, JSON]) -> "Translation":
        """Return the translation that `as_json` has made."""
        items, findings = given["items"], given["findings"]
        assert isinstance(items, list) and isinstance(findings, list)  # noqa: S101  as_json has made it
        return cls(
            [Item(**each) for each in items],  # type: ignore[arg-type]
            [Finding(**{**each, "weight": Weight(each["weight"])}) for each in findings],  # type: ignore[dict-item, arg-type, call-overload, index]
        )

    def named(self, weight: Weight) -> list[Finding]:
        """Return the findings of a weight."""
        return [each for each in self.findings if each.weight is weight]


_NUMBER: Final = len(" (100000)")


class UniqueNames:
    """Names of which no two differ only in case. most: maximum number of characters of a name.

    The search for a free number begins at the last one, so that the time does not grow with the square of the number
    of equal names.
    """

    def __init__(self, most: int = 255) -> None:
        self._most = most
        self._taken = set[str]()
        self._numbers = dict[str, int]()

    def take(self, name: str) -> str:
        """Take a name, and return it with a number behind it if it was taken."""
        start = name[: self._most - _NUMBER].casefold()  # names that are cut share their numbers
        found, number = name[: self._most], self._numbers.get(start, 1)
        while found.casefold() in self._taken:
            number += 1
            tail = f" ({number})"
            found = name[: self._most - len(tail)] + tail
        self._numbers[start] = max(number, self._numbers.get(start, 1))
        self._taken.add(found.casefold())
        return found


def listed_domain(options: Options, source: str) -> Item:
    """Return the domain that reads its rules as listed."""
    return Item("domain", options.domain, {"domainName": options.domain, "ruleOrder": "listed"}, source)


def last_rule(domain: str, name: str, priority: int, source: str) -> Item:
    """Return the rule behind all others, which blocks everyone."""
    fields = {"domain": domain, "name": name, "action": "block", "priority": priority, "everyone": True}
    return Item("rule", name, fields, source)


def with_fields(item: Item, **fields: object) -> Item:
    """Return an object with other values in some fields."""
    return replace(item, fields={**item.fields, **fields})
