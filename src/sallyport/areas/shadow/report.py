"""The report: the number of logins with each result, by cause, user and device, and examples of them. The last reports
are kept in memory, so that a page that is shown again decides nothing again."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sallyport.areas.shadow.shadow_login import ORDER, Comparison, ShadowCase
from sallyport.base.bounded import BoundedMap
from sallyport.base.wire import Row

EXAMPLES: Final = 3
MAX_GROUPS: Final = 1000
MAX_NAMED: Final = 50_000
"""Maximum number of users, of devices and of causes that are counted apart."""
MAX_CASES: Final = 1000
SHOWN: Final = 100
MAX_ANSWERS: Final = 16
"""Maximum number of answers in memory. Each has up to some megabytes."""

GroupKey = tuple[Comparison, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which logins a report lists one by one. result: empty for all that differ. cases: the maximum number of them. The
    other fields are those of the logins; None for all."""

    result: str = ""
    reason: str | None = None
    rule: str | None = None
    old_reason: str | None = None
    old_policy: str | None = None
    cases: int = SHOWN

    def has(self, case: ShadowCase) -> bool:
        """Return whether a login is listed."""
        chosen = (
            (self.reason, case.reason),
            (self.rule, case.rule),
            (self.old_reason, case.old_reason),
            (self.old_policy, case.old_policy),
        )
        if not self.result and case.result is Comparison.SAME and all(wanted is None for wanted, _ in chosen):
            return False
        return self.result in ("", case.result.value) and all(wanted in (None, present) for wanted, present in chosen)


@dataclass(slots=True)
class Group:
    """The logins with the same result for the same cause. users, devices: how many there are, at most MAX_NAMED."""

    logins: int = 0
    last_at: int = 0
    users: set[str] = field(default_factory=set)
    devices: set[str] = field(default_factory=set)
    examples: list[ShadowCase] = field(default_factory=list)


@dataclass(slots=True)
class ShadowReport:
    """The results of a domain's shadow logins.

    counts: the logins with each result. groups: by result, reason, rule, and reason and policy of the other server.
    users, devices: the logins with each result. cases: the logins that are wanted, the last recorded first. is_whole:
    whether all causes, users and devices were counted apart. hashed: the logins whose password was not sent itself.
    """

    wanted: Wanted
    logins: int = 0
    first_at: int = 0
    last_at: int = 0
    counts: Counter[Comparison] = field(default_factory=Counter)
    groups: dict[GroupKey, Group] = field(default_factory=dict)
    users: dict[str, Counter[Comparison]] = field(default_factory=lambda: defaultdict(Counter))
    devices: dict[str, Counter[Comparison]] = field(default_factory=lambda: defaultdict(Counter))
    cases: list[ShadowCase] = field(default_factory=list)
    is_whole: bool = True
    hashed: int = 0

    def note(self, case: ShadowCase, method: str) -> None:
        """Add a login. method: its authentication method."""
        self.hashed += "chap" in method
        self.logins += 1
        self.first_at = min(self.first_at or case.at, case.at)
        self.last_at = max(self.last_at, case.at)
        self.counts[case.result] += 1
        for named, name in ((self.users, case.user), (self.devices, case.device)):
            if name in named or len(named) < MAX_NAMED:
                named[name][case.result] += 1
            else:
                self.is_whole = False
        if case.result is not Comparison.SAME:
            self._note_group(case)
        if len(self.cases) < self.wanted.cases and self.wanted.has(case):
            self.cases.append(case)

    def _note_group(self, case: ShadowCase) -> None:
        key = (case.result, case.reason, case.rule, case.old_reason, case.old_policy)
        group = self.groups.get(key)
        if group is None:
            if len(self.groups) >= MAX_NAMED:
                self.is_whole = False
                return
            group = self.groups[key] = Group()
        group.logins += 1
        group.last_at = max(group.last_at, case.at)
        group.users.add(case.user)
        group.devices.add(case.device)
        if len(group.examples) < EXAMPLES:
            group.examples.append(case)

    @property
    def differing(self) -> int:
        """The number of logins whose result is not `same`."""
        return self.logins - self.counts[Comparison.SAME]

    def ordered_groups(self) -> Sequence[tuple[GroupKey, Group]]:
        """Return the groups that need attention first, those with the most logins first."""
        return sorted(self.groups.items(), key=lambda each: (ORDER[each[0][0]], -each[1].logins))[:MAX_GROUPS]


class LastReports:
    """The last answers of each domain, by what was asked: at most MAX_ANSWERS. A tenant with many loses its own
    first."""

    def __init__(self) -> None:
        self._answers = BoundedMap[tuple[int, Hashable], tuple[int, Row]](MAX_ANSWERS)

    def find(self, domain_id: int, asked: Hashable, generation: int) -> Row | None:
        """Return the last answer to a question about a domain, or None. generation: the present one (see `keep`). If
        it differs from that of the answer, the answers about the domain are dropped."""
        kept = self._answers.get((domain_id, asked))
        if kept is None:
            return None
        if kept[0] == generation:
            return kept[1]
        self.forget(domain_id)
        return None

    def keep(
        self, domain_id: int, asked: Hashable, answer: Row, tenant_id: int, generation: int, *, is_new: bool
    ) -> None:
        """Keep an answer. generation: that of the shadow logins before the first one was read (`repo.generation`).
        is_new: whether earlier answers about the domain are outdated."""
        if is_new:
            self.forget(domain_id)
        self._answers.put((domain_id, asked), (generation, answer), tenant_id)

    def forget(self, domain_id: int | None = None) -> None:
        """Drop the answers about a domain, or all of them."""
        for key in [key for key in self._answers if domain_id in (None, key[0])]:
            self._answers.pop(key)


def most_differing(named: dict[str, Counter[Comparison]]) -> Sequence[tuple[str, Counter[Comparison]]]:
    """Return the users or devices with the most logins that differ first."""
    return sorted(named.items(), key=lambda each: (each[1][Comparison.SAME] - each[1].total(), each[0]))[:MAX_GROUPS]
