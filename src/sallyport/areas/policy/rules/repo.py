"""SQL for login rules.

A row has the rule as JSON, and columns for searching and sorting. It also has the encoded reply attributes. Therefore a
stored rule sends the same attributes even after the RADIUS dictionary has changed.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sallyport.areas.domains.domain import RuleOrder
from sallyport.areas.policy.rules.match import DomainRules
from sallyport.areas.policy.rules.patterns import MAX_PLACES
from sallyport.areas.policy.rules.rule import MAX_CHARACTERS, MAX_RULES, Action, Definition, Rule
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.text import fold
from sallyport.store.model import Tx

NOT_FOUND = "rule not found"
_RULES = (
    "select r.id, r.domain_id, r.name, r.action, r.definition, r.attributes, d.rule_order "
    "from login_rules r join domains d on d.id = r.domain_id"
)


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    domain_id: int
    name: str
    action: str
    definition: str
    attributes: bytes
    rule_order: str


@dataclass(frozen=True, slots=True)
class _Naming:
    """A rule that names something. named: the case-folded name of a role, or the name of an MFA provider."""

    named: str
    id: int
    name: str


@dataclass(frozen=True, slots=True)
class RulesOfDomain:
    """The rules of a domain. rules: all rules, ordered by id. enabled: the enabled rules, prepared for `match`, or None
    if all are disabled."""

    rules: tuple[Rule, ...]
    enabled: DomainRules | None


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The rules of all domains. domains: by domain id; domains without rules are absent. read: by rule id, each row
    with its rule, so that a reload prepares only the rules that have changed."""

    domains: Mapping[int, RulesOfDomain] = field(default_factory=dict)
    read: Mapping[int, tuple[_Row, Rule]] = field(default_factory=dict)


def load(tx: Tx, before: RuleTable) -> RuleTable:
    """Return the rules of all domains. before: an earlier result, which is not changed; rules and domains that it has
    are not prepared again."""
    read: dict[int, tuple[_Row, Rule]] = {}
    rules: dict[int, list[Rule]] = {}
    for row in tx.all(_Row, f"{_RULES} order by r.domain_id, r.id"):
        old = before.read.get(row.id)
        rule = old[1] if old is not None and old[0] == row else _rule(row)
        read[row.id] = (row, rule)
        rules.setdefault(row.domain_id, []).append(rule)
    domains = {
        domain_id: _rules_of_domain(tuple(own), before.domains.get(domain_id)) for domain_id, own in rules.items()
    }
    return RuleTable(domains, read)


def _rules_of_domain(rules: tuple[Rule, ...], before: RulesOfDomain | None) -> RulesOfDomain:
    if before is not None and len(before.rules) == len(rules) and all(map(_same, before.rules, rules)):
        return before
    enabled = [rule for rule in rules if rule.definition.enabled]
    return RulesOfDomain(rules, DomainRules(enabled) if enabled else None)


def _same(one: Rule, other: Rule) -> bool:
    return one is other


def _rule(row: _Row) -> Rule:
    definition = Definition.parse(row.definition)
    return Rule(
        row.id,
        row.domain_id,
        row.name,
        Action(row.action),
        row.attributes,
        definition,
        fold(definition.role),
        is_listed=row.rule_order == RuleOrder.LISTED,
    )


def get(tx: Tx, domain_id: int, rule_id: int) -> Definition:
    """Return the definition of a domain's rule. Raises NotFound if the domain has no such rule."""
    row = tx.one(_Row, f"{_RULES} where r.domain_id = :domain and r.id = :id", domain=domain_id, id=rule_id)
    if row is None:
        raise NotFound(NOT_FOUND)
    return Definition.parse(row.definition)


def all_of(tx: Tx, domain_id: int) -> list[Rule]:
    """Return a domain's rules, ordered by id."""
    return [_rule(row) for row in tx.all(_Row, f"{_RULES} where r.domain_id = :domain order by r.id", domain=domain_id)]


def add(tx: Tx, domain_id: int, definition: Definition, attributes: bytes, at: int) -> int:
    """Insert a rule, and return its id. Raises Conflict if the domain would have too many rules, or too many characters
    in all its rules."""
    count = tx.value(int, "select count(*) from login_rules where domain_id = :domain", domain=domain_id) or 0
    if count >= MAX_RULES:
        raise Conflict(f"a domain has at most {MAX_RULES} login rules: remove some first")
    rule_id = tx.value(
        int,
        "insert into login_rules (domain_id, name, priority, enabled, action, definition, attributes, role, provider, "
        "created_at, updated_at) values (:domain, :name, :priority, :enabled, :action, :definition, :attributes, "
        ":role, :provider, :at, :at) returning id",
        domain=domain_id,
        name=definition.name,
        priority=definition.priority,
        enabled=int(definition.enabled),
        action=definition.action,
        definition=json.dumps(definition.as_json()),
        attributes=attributes,
        role=fold(definition.role),
        provider=definition.provider,
        at=at,
    )
    assert rule_id is not None  # noqa: S101  an insert returns its row
    _must_fit(tx, domain_id, definition)
    return rule_id


def _must_fit(tx: Tx, domain_id: int, definition: Definition) -> None:
    """Raise Conflict if a domain's rules are too long together, because all rules are in memory, or if their patterns
    take too much time. definition: the rule that was stored."""
    if definition.pattern_places and sum(each.definition.pattern_places for each in all_of(tx, domain_id)) > MAX_PLACES:
        raise Conflict(
            f"the login rules of a domain have at most {MAX_PLACES} characters in patterns that are neither a start "
            "(TEXT*) nor an end (*TEXT): simplify some first"
        )
    sql = "select sum(length(definition)) from login_rules where domain_id = :domain"
    if (tx.value(int, sql, domain=domain_id) or 0) > MAX_CHARACTERS:
        raise Conflict(
            f"the login rules of a domain have at most {MAX_CHARACTERS} characters in all: remove some first"
        )


def update(tx: Tx, domain_id: int, rule_id: int, definition: Definition, attributes: bytes, at: int) -> None:
    """Update a domain's rule. Raises Conflict if the domain's rules would be too long together."""
    tx.execute(
        "update login_rules set name = :name, priority = :priority, enabled = :enabled, action = :action, "
        "definition = :definition, attributes = :attributes, role = :role, provider = :provider, updated_at = :at "
        "where id = :id",
        name=definition.name,
        priority=definition.priority,
        enabled=int(definition.enabled),
        action=definition.action,
        definition=json.dumps(definition.as_json()),
        attributes=attributes,
        role=fold(definition.role),
        provider=definition.provider,
        at=at,
        id=rule_id,
    )
    _must_fit(tx, domain_id, definition)


def roles_in_use(tx: Tx, domain_id: int) -> dict[str, list[str]]:
    """Return the rules of a domain that have a role, as `rule ID NAME`, by the case-folded name of the role."""
    return _in_use(tx, "role", domain_id)


def providers_in_use(tx: Tx, domain_id: int) -> dict[str, list[str]]:
    """Return the rules of a domain that name an MFA provider, as `rule ID NAME`, by the name of the provider."""
    return _in_use(tx, "provider", domain_id)


def _in_use(tx: Tx, column: str, domain_id: int) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    sql = (
        f"select {column} as named, id, name from login_rules where domain_id = :domain and {column} <> '' order by id"
    )
    for row in tx.all(_Naming, sql, domain=domain_id):
        found.setdefault(row.named, []).append(f"rule {row.id} {row.name}")
    return found


def delete(tx: Tx, rule_id: int) -> None:
    tx.execute("delete from login_rules where id = :id", id=rule_id)


# --- known names ----------------------------------------------------------------------------------------------------


def has_endpoint_user(tx: Tx, domain_id: int, key: str) -> bool:
    """Return whether a domain has an endpoint user. key: the case-folded name."""
    return bool(tx.rows("select 1 from endpoint_users where domain_id = :d and name_key = :key", d=domain_id, key=key))


def users_like(tx: Tx, domain_id: int, key: str, length: int, limit: int, *, local: bool) -> Iterator[str]:
    """Yield case-folded user names of similar length that begin with the first `length` characters of `key`.

    The names of imported users are always included. local: whether to include the names of endpoint users too.
    """
    for table, extra in (("directory_names", "and is_alias = 0"), ("endpoint_users", "")):
        if local or extra:
            sql = (
                f"select name_key from {table} where domain_id = :d and name_key >= :low and name_key < :high "
                f"and length(name_key) between :least and :most {extra} limit :limit"
            )
            rows = tx.rows(
                sql,
                d=domain_id,
                low=key[:length],
                high=f"{key[:length]}\U0010ffff",
                least=len(key) - 2,
                most=len(key) + 2,
                limit=limit,
            )
            yield from (str(name) for (name,) in rows)


def groups(tx: Tx, domain_id: int) -> dict[str, str]:
    """Return the names of a domain's endpoint groups and imported groups, by case-folded name."""
    sql = (
        "select name from endpoint_groups where domain_id = :d union select name from directory_groups "
        "where domain_id = :d"
    )
    return {fold(str(name)): str(name) for (name,) in tx.rows(sql, d=domain_id)}
