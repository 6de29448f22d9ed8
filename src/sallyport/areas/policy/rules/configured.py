"""Login rules in files (`sallyport apply`)."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from sallyport.areas.configured import Change, Kind, Mention, Stored
from sallyport.areas.policy.rules import repo
from sallyport.areas.policy.rules.bodies import AddLoginRule
from sallyport.areas.policy.rules.service import LoginRules
from sallyport.base.text import fold
from sallyport.store.model import Tx


class RuleKind(Kind[AddLoginRule]):
    """Login rules. Of several rules with one name in a domain, the first in the file is the one with the lowest id."""

    name = "rule"
    body = AddLoginRule
    level = 2
    weight = 3
    refers = "domain"
    mentioned = frozenset({"role", "provider"})
    names = "select id, domain_id as owner, name from login_rules"
    listed_by = ("/ad/ListLoginRules", "rules")
    changed_by = MappingProxyType({"/ad/UpdateLoginRule": "ruleId", "/ad/DeleteLoginRule": "ruleId"})

    def __init__(self, service: LoginRules) -> None:
        self._service = service

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        for domain_id, domain in domains.items():
            for rule in repo.all_of(tx, domain_id):
                shown = self._service.shown(rule.definition)
                time = {} if shown["time"] is None else {"time": shown["time"]}
                del shown["time"]
                everyone = rule.definition.decides_all
                yield Stored(rule.id, {"domain": domain, **shown, **time, "everyone": everyone})

    def values(self, body: AddLoginRule) -> dict[str, object]:
        definition = self._service.defined(body)
        return {**definition.as_json(), "role": fold(definition.role)}

    def mentions(self, body: AddLoginRule) -> Iterable[Mention]:
        given = {"role": body.role, "provider": body.provider}
        return [Mention(kind, kind, name.strip()) for kind, name in given.items() if name and name.strip()]

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[AddLoginRule]]) -> None:
        for each in changes:
            rule_id = int(each.before.id) if each.before else None
            definition = None if each.body is None else self._service.defined(each.body)
            self._service.write(tx, each.domain_id, rule_id, definition)
