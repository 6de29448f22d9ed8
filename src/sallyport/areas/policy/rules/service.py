"""The login rules of all domains, and their changes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from sallyport.areas.domains.repo import is_web
from sallyport.areas.mfa.provider import Strength
from sallyport.areas.policy.rules import repo
from sallyport.areas.policy.rules.facts import Values
from sallyport.areas.policy.rules.match import DomainRules
from sallyport.areas.policy.rules.repo import RuleTable
from sallyport.areas.policy.rules.rule import MAX_PRIORITY, UNMATCHED, Action, Definition, Given, Rule
from sallyport.areas.policy.rules.translation import Translation
from sallyport.base.clock import Clock
from sallyport.base.errors import Invalid, NotFound, invalid_field
from sallyport.base.text import fold
from sallyport.base.wire import JSON
from sallyport.radius.dictionary import Dictionary
from sallyport.store import audit
from sallyport.store.model import Tx
from sallyport.store.snapshot import Configuration

_EFFECT: Final[Mapping[Action, str]] = {
    Action.ALLOW: "would admit everyone without a second factor",
    Action.BLOCK: "would block every login of the domain",
}
"""The effect of a rule without a scope."""
_DEMANDS: Final = frozenset({"action", "provider", "strength"})
"""The fields of a rule that decide what it demands of the second factor."""


_WEB: Final = "the first factor of the domain is web"
_NOT_ALLOWED: Final = "its action must be mfa_required or block: allow would admit everybody who knows a name"


class Providers(Protocol):
    """The MFA providers that rules name."""

    def web_problem(self, tx: Tx, domain_id: int, name: str = "") -> str:
        """Return why a provider cannot confirm users whose password nobody has checked; empty if it can."""

    def check_name(self, tx: Tx, domain_id: int, name: str) -> None:
        """Raise Invalid about the field `provider` if a domain has no provider of this name."""

    def strongest(self, domain_id: int, name: str = "") -> Strength | None:
        """Return the highest strength that a provider's answers can have, or None if the provider cannot be asked.
        name: the name of the provider, or empty for the default provider of the domain."""

    def strongest_in(self, tx: Tx, domain_id: int, name: str = "") -> Strength | None:
        """Return the same of a provider that the transaction of the caller may have changed."""


class LoginRules:
    """The login rules of all domains, in memory. A change applies when its call returns.

    check_role: returns the name of a domain's role as it is stored. It raises Invalid if the domain has no such role.
    providers: the MFA providers that rules may name; set before the first change of a rule.
    """

    def __init__(
        self,
        configuration: Configuration,
        dictionary: Dictionary,
        clock: Clock,
        check_role: Callable[[Tx, int, str], str],
    ) -> None:
        self.translation = Translation(dictionary)
        self._check_role = check_role
        self.providers: Providers
        self._configuration = configuration
        self._clock = clock
        self._table = configuration.hold(self._load, RuleTable())

    def _load(self, tx: Tx) -> RuleTable:
        return repo.load(tx, self._table.value)

    def of(self, domain_id: int) -> DomainRules | None:
        """Return a domain's enabled rules, or None if no rule is enabled."""
        own = self._table.value.domains.get(domain_id)
        return None if own is None else own.enabled

    def all_of(self, domain_id: int) -> Sequence[Rule]:
        """Return a domain's rules, including disabled ones, ordered by id."""
        own = self._table.value.domains.get(domain_id)
        return () if own is None else own.rules

    async def add(self, domain_id: int, fields: Given) -> int:
        """Add a rule, and return its id. fields: the fields of the rule, at least name and action.

        Raises Invalid if a field has an invalid value. Raises Conflict if the domain has too many rules.
        """
        definition = self.defined(fields)
        self._check_demand(domain_id, definition)
        return await self._configuration.change(lambda tx: self._add(tx, domain_id, definition))

    def defined(self, fields: Given) -> Definition:
        """Return a new rule with some fields. Raises Invalid. The names of its role and provider are not checked."""
        definition = Definition("", UNMATCHED).changed(fields.given(), self._translated(fields))
        self.translation.replies(definition.vlan, definition.reply_attributes)
        _check_scope(None, definition, everyone=fields.everyone)
        return definition

    def _add(self, tx: Tx, domain_id: int, definition: Definition) -> int:
        at, checked = self._clock(), self._with_names(tx, domain_id, definition)
        attributes = self.translation.replies(definition.vlan, definition.reply_attributes)
        rule_id = repo.add(tx, domain_id, checked, attributes, at)
        _record(tx, "rule.add", domain_id, f"{rule_id} {checked.name}", at, {}, checked.as_json())
        return rule_id

    def write(self, tx: Tx, domain_id: int, rule_id: int | None, definition: Definition | None) -> None:
        """Add, replace or remove a rule in the transaction of a caller. rule_id: None adds a rule. definition: as
        `defined` returns it; None removes the rule. Raises NotFound, Conflict, Invalid."""
        if definition is None:
            self._delete(tx, domain_id, rule_id or 0)
            return
        _check_demand(definition, self.providers.strongest_in(tx, domain_id, definition.provider))
        if rule_id is None:
            self._add(tx, domain_id, definition)
            return
        kept, now = repo.get(tx, domain_id, rule_id), self._with_names(tx, domain_id, definition)
        attributes = self.translation.replies(now.vlan, now.reply_attributes)
        _update(tx, Rule(rule_id, domain_id, kept.name, kept.action, attributes, kept), now, self._clock())

    async def with_proposed(self, domain_id: int, rule_id: int | None, fields: Given) -> list[Rule]:
        """Return a domain's rules with a proposed change. The change applies to the rule `rule_id`. If `rule_id` is
        None, a rule is added. Nothing is stored. Raises NotFound, StoreError; raises Invalid as `add` does."""
        own = list(self.all_of(domain_id))
        index = next((index for index, rule in enumerate(own) if rule.id == rule_id), len(own))
        if rule_id is not None and index == len(own):
            raise NotFound(repo.NOT_FOUND)
        before = own[index].definition if index < len(own) else Definition("", UNMATCHED)
        now = before.changed(fields.given(), self._translated(fields))
        self._check_demand(domain_id, now)
        if now.role or now.provider:
            now = await self._configuration.store.read(lambda tx: self._with_names(tx, domain_id, now))
        attributes = self.translation.replies(now.vlan, now.reply_attributes)
        last = max((rule.id for rule in own), default=0)
        is_listed = any(rule.is_listed for rule in own)
        rule = Rule(
            rule_id or last + 1, domain_id, now.name, now.action, attributes, now, fold(now.role), is_listed=is_listed
        )
        own[index : index + 1] = [rule]
        return own

    async def update(self, domain_id: int, rule_id: int, fields: Given, *, before: int | None = None) -> None:
        """Change those fields of a rule that `fields` contains. before: the id of another rule; from now on, the
        changed rule is read directly before it.

        Raises NotFound if the domain has no rule with the id `rule_id`. Also raises Invalid, Conflict.
        """
        changes, conditions, at = fields.given(), self._translated(fields), self._clock()

        def transaction(tx: Tx) -> None:
            kept = repo.get(tx, domain_id, rule_id)
            definition = self._with_names(tx, domain_id, kept.changed(changes, conditions))
            if not changes.keys().isdisjoint(_DEMANDS):
                self._check_demand(domain_id, definition)
            attributes = self.translation.replies(definition.vlan, definition.reply_attributes)
            _check_scope(kept, definition, everyone=fields.everyone)
            _update(tx, Rule(rule_id, domain_id, kept.name, kept.action, attributes, kept), definition, at)
            if before is not None:
                rules = repo.all_of(tx, domain_id)
                for rule, priority in moved(rules, rule_id, before).items():
                    _update(tx, rule, rule.definition.changed({"priority": priority}), at)

        await self._configuration.change(transaction)

    async def delete(self, domain_id: int, rule_ids: Sequence[int]) -> int:
        """Delete rules, and return their number. If one of the rules does not exist, no rule is deleted and NotFound is
        raised."""
        wanted = list(dict.fromkeys(rule_ids))

        def transaction(tx: Tx) -> int:
            for rule_id in wanted:
                self._delete(tx, domain_id, rule_id)
            return len(wanted)

        return await self._configuration.change(transaction)

    def _delete(self, tx: Tx, domain_id: int, rule_id: int) -> None:
        rule = repo.get(tx, domain_id, rule_id)
        repo.delete(tx, rule_id)
        _record(tx, "rule.delete", domain_id, f"{rule_id} {rule.name}", self._clock(), rule.as_json(), {})

    def shown(self, definition: Definition) -> dict[str, JSON]:
        """Return the fields of a rule as answers have them: Service-Types have names."""
        numbers = definition.values("serviceTypes")
        names: list[JSON] = [self.translation.service_type_name(int(number)) for number in numbers]
        return {**definition.as_json(), "serviceTypes": names}

    def _with_names(self, tx: Tx, domain_id: int, definition: Definition) -> Definition:
        """Return a definition with the name of its role as it is stored. Raises Invalid if the domain has no such role,
        or no such MFA provider, or if the rule does not fit the domain's first factor."""
        if definition.provider:
            self.providers.check_name(tx, domain_id, definition.provider)
        if is_web(tx, domain_id) and (problem := self._web_problem(tx, domain_id, definition)):
            name = "provider" if definition.provider else "action"
            raise invalid_field(name, f"does not fit, since {_WEB}: {problem}")
        if not definition.role:
            return definition
        return definition.changed({"role": self._check_role(tx, domain_id, definition.role)})

    def web_problem(self, tx: Tx, domain_id: int) -> str:
        """Return why the first factor of a domain cannot be `web`: its MFA provider cannot confirm users whose password
        nobody has checked, or a rule does not ask this provider. Return an empty text if it can."""
        if problem := self.providers.web_problem(tx, domain_id):
            return f"the default MFA provider of the domain does not fit: {problem}"
        for rule in repo.all_of(tx, domain_id):
            if problem := self._web_problem(tx, domain_id, rule.definition):
                return f"rule {rule.id} {rule.name} does not fit: {problem}"
        return ""

    def _web_problem(self, tx: Tx, domain_id: int, definition: Definition) -> str:
        """Return why a rule does not fit the first factor `web`, or an empty text."""
        if not definition.enabled:
            return ""
        if definition.action is Action.ALLOW:
            return _NOT_ALLOWED
        return self.providers.web_problem(tx, domain_id, definition.provider) if definition.provider else ""

    def _check_demand(self, domain_id: int, definition: Definition) -> None:
        _check_demand(definition, self.providers.strongest(domain_id, definition.provider))

    def _translated(self, fields: Given) -> dict[str, Values]:
        """Return the values of the conditions that are present, in the form of `Definition`. Raises Invalid."""
        return {field: self.translation.condition(field, entries) for field, entries in fields.conditions().items()}


def _check_demand(definition: Definition, strongest: Strength | None) -> None:
    """Raise Invalid if a rule that asks for no second factor names a provider or a strength. Also raise it if the
    provider can never reach the strength, because all logins of the rule would be refused. strongest: the highest
    strength of the provider, or None if it is unknown."""
    if definition.action is not Action.MFA_REQUIRED:
        if definition.provider or definition.strength > Strength.ANY:
            name = "provider" if definition.provider else "strength"
            raise invalid_field(name, f"needs the action {Action.MFA_REQUIRED}: clear it for other actions")
        return
    if strongest is not None and strongest < definition.strength:
        named = definition.provider or "the default MFA provider of the domain"
        raise invalid_field("strength", f"must be at most {strongest}, the highest strength that {named} can reach")


def moved(rules: Sequence[Rule], rule_id: int, before: int) -> dict[Rule, int]:
    """Return the new priorities that a rule, and possibly others, must get so that the rule is read directly before the
    rule `before`. The order of the other rules does not change.

    Raises Invalid if the two rules have different kinds of identity.
    """
    known = {rule.id: rule for rule in rules}
    rule, other = known[rule_id], known.get(before)
    if other is None or other is rule or other.sort_key[0] != rule.sort_key[0]:
        raise Invalid.about(
            "before must be another rule of the domain with the same kind of identity: rules with users are read "
            "first, then rules with groups, then rules with OUs, then the others, unless the domain has ruleOrder "
            "listed",
            "before",
        )
    same = sorted((each for each in rules if each.sort_key[0] == rule.sort_key[0] and each is not rule), key=_sort_key)
    same.insert(same.index(other), rule)
    changes, last = dict[Rule, int](), (-1, 0)
    for each in same:
        priority = (
            min(each.definition.priority, other.definition.priority) if each is rule else each.definition.priority
        )
        priority = max(priority, last[0] + (each.id < last[1]))
        if priority > MAX_PRIORITY:
            raise Invalid.about(f"a priority would exceed {MAX_PRIORITY}: give the rules smaller priorities", "before")
        if priority != each.definition.priority:
            changes[each] = priority
        last = (priority, each.id)
    return changes


def _sort_key(rule: Rule) -> tuple[int, int, int]:
    return rule.sort_key


def _update(tx: Tx, rule: Rule, now: Definition, at: int) -> None:
    """Store the new definition `now` and the reply attributes of `rule`, and record the changes of the definition."""
    before = rule.definition
    repo.update(tx, rule.domain_id, rule.id, now, rule.attributes, at)
    if now != before:
        _record(tx, "rule.update", rule.domain_id, f"{rule.id} {before.name}", at, before.as_json(), now.as_json())


def _check_scope(before: Definition | None, now: Definition, *, everyone: bool) -> None:
    """Raise Invalid if a rule allows or blocks every login, and the admin has not confirmed it.

    If the stored rule already does the same, the change needs no confirmation, unless it enables the rule.
    """
    if everyone and now.scopes:
        raise Invalid.about(
            f"everyone confirms a rule without a scope, but this rule has the scopes {', '.join(now.scopes)}; omit "
            "everyone, or clear these scopes",
            "everyone",
        )
    stays = before is not None and before.decides_all and before.action is now.action and before.enabled >= now.enabled
    if now.decides_all and not everyone and not stays:
        raise Invalid.about(
            f"the rule {_EFFECT[now.action]}: give a scope such as users, groups or clients, or confirm it with "
            "everyone: true",
            "everyone",
        )


def _record(
    tx: Tx, action: str, domain_id: int, rule: str, at: int, before: dict[str, JSON], after: dict[str, JSON]
) -> None:
    audit.record_in(tx, action, domain_id, f"rule {rule}", audit.changed(before, after), at=at)
