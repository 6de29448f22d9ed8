"""The SQL of login rules. A row has the definition as JSON, the columns that are searched and sorted, and the reply
attributes in octets, so that a changed dictionary does not change the replies of a rule."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sallyport.base.errors import Conflict, NotFound
from sallyport.base.text import fold
from sallyport.policy.rules.match import DomainRules
from sallyport.policy.rules.rule import MAX_CHARACTERS, MAX_RULES, Action, Definition, Rule
from sallyport.store.model import Tx

NOT_FOUND = "rule not found"
_COLUMNS = "id, domain_id, name, action, definition, attributes"


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    domain_id: int
    name: str
    action: str
    definition: str
    attributes: bytes


@dataclass(frozen=True, slots=True)
class OfDomain:
    """The rules of a domain: all of them ordered by id, and the enabled ones ready to match; None if there are none."""

    rules: tuple[Rule, ...]
    enabled: DomainRules | None


@dataclass(slots=True)
class Known:
    """The rows of the last load: a reload prepares only changed rules and domains."""

    rules: dict[int, tuple[_Row, Rule]] = field(default_factory=dict)
    domains: dict[int, OfDomain] = field(default_factory=dict)


def load(tx: Tx, known: Known) -> Mapping[int, OfDomain]:
    """Return the rules of all domains that have rules."""
    # Two reloads may overlap in two threads: each works on its own objects and stores them at the end.
    before, old_domains = known.rules, known.domains
    read: dict[int, tuple[_Row, Rule]] = {}
    rules: dict[int, list[Rule]] = {}
    for row in tx.all(_Row, f"select {_COLUMNS} from login_rules order by domain_id, id"):
        old = before.get(row.id)
        rule = old[1] if old is not None and old[0] == row else _rule(row)
        read[row.id] = (row, rule)
        rules.setdefault(row.domain_id, []).append(rule)
    domains = {domain_id: _of_domain(tuple(own), old_domains.get(domain_id)) for domain_id, own in rules.items()}
    known.rules, known.domains = read, domains
    return domains


def _of_domain(rules: tuple[Rule, ...], before: OfDomain | None) -> OfDomain:
    if before is not None and len(before.rules) == len(rules) and all(map(_same, before.rules, rules)):
        return before
    enabled = [rule for rule in rules if rule.definition.enabled]
    return OfDomain(rules, DomainRules(enabled) if enabled else None)


def _same(one: Rule, other: Rule) -> bool:
    return one is other


def _rule(row: _Row) -> Rule:
    definition = Definition.parse(row.definition)
    return Rule(row.id, row.domain_id, row.name, Action(row.action), row.attributes, definition)


def get(tx: Tx, domain_id: int, rule_id: int) -> Definition:
    """A rule's definition. NotFound, also for another domain's."""
    row = tx.one(
        _Row, f"select {_COLUMNS} from login_rules where domain_id = :domain and id = :id", domain=domain_id, id=rule_id
    )
    if row is None:
        raise NotFound(NOT_FOUND)
    return Definition.parse(row.definition)


def add(tx: Tx, domain_id: int, definition: Definition, attributes: bytes, at: int) -> int:
    """The new rule's id. Conflict: the domain has as many as it may."""
    count = tx.value(int, "select count(*) from login_rules where domain_id = :domain", domain=domain_id) or 0
    if count >= MAX_RULES:
        raise Conflict(f"a domain has at most {MAX_RULES} login rules")
    rule_id = tx.value(
        int,
        "insert into login_rules (domain_id, name, priority, enabled, action, definition, attributes, created_at, "
        "updated_at) values (:domain, :name, :priority, :enabled, :action, :definition, :attributes, :at, :at) "
        "returning id",
        domain=domain_id,
        name=definition.name,
        priority=definition.priority,
        enabled=int(definition.enabled),
        action=definition.action,
        definition=json.dumps(definition.as_json()),
        attributes=attributes,
        at=at,
    )
    assert rule_id is not None  # noqa: S101  an insert returns its row
    _must_fit(tx, domain_id)
    return rule_id


def _must_fit(tx: Tx, domain_id: int) -> None:
    """All rules of all tenants are in memory."""
    sql = "select sum(length(definition)) from login_rules where domain_id = :domain"
    if (tx.value(int, sql, domain=domain_id) or 0) > MAX_CHARACTERS:
        raise Conflict(f"the login rules of a domain have at most {MAX_CHARACTERS} characters in all")


def update(tx: Tx, domain_id: int, rule_id: int, definition: Definition, attributes: bytes, at: int) -> None:
    """Keep what a domain's rule is now. Conflict: the domain's rules have grown too large."""
    tx.execute(
        "update login_rules set name = :name, priority = :priority, enabled = :enabled, action = :action, "
        "definition = :definition, attributes = :attributes, updated_at = :at where id = :id",
        name=definition.name,
        priority=definition.priority,
        enabled=int(definition.enabled),
        action=definition.action,
        definition=json.dumps(definition.as_json()),
        attributes=attributes,
        at=at,
        id=rule_id,
    )
    _must_fit(tx, domain_id)


def delete(tx: Tx, rule_id: int) -> None:
    """Remove a rule."""
    tx.execute("delete from login_rules where id = :id", id=rule_id)


# --- known names ----------------------------------------------------------------------------------------------------


def has_endpoint_user(tx: Tx, domain_id: int, key: str) -> bool:
    """Whether a domain has an endpoint user. key: the folded name."""
    return bool(tx.rows("select 1 from endpoint_users where domain_id = :d and name_key = :key", d=domain_id, key=key))


def users_like(tx: Tx, domain_id: int, key: str, length: int, limit: int, *, local: bool) -> Iterator[str]:
    """Yield folded names of imported users, and with `local` of endpoint users, which are about as long as a folded
    name and begin with its first `length` characters."""
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
    """Return the groups of a domain, of its endpoints and of its directories, by folded name."""
    sql = (
        "select name from endpoint_groups where domain_id = :d union select name from directory_groups "
        "where domain_id = :d"
    )
    return {fold(str(name)): str(name) for (name,) in tx.rows(sql, d=domain_id)}
