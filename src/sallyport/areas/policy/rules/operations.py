"""HTTP operations of login rules: /ad/...LoginRule(s)."""

from sallyport.areas.policy.rules.bodies import (
    AddLoginRule,
    DeleteLoginRule,
    ListLoginRules,
    RuleAdded,
    RuleList,
    RuleUpdated,
    UpdateLoginRule,
)
from sallyport.areas.policy.rules.names import Names
from sallyport.areas.policy.rules.rule import Rule
from sallyport.areas.policy.rules.service import LoginRules
from sallyport.base.model import Done
from sallyport.base.text import counted
from sallyport.base.wire import JSON
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, READERS, Caller, Gate


def operations(service: LoginRules, names: Names, gate: Gate) -> Operations:
    """Declare the operations. Only an admin may change rules, because they decide about access."""
    rules = Operations("Login rules", gate)

    @rules.post("/ad/ListLoginRules", roles=READERS)
    async def list_login_rules(body: ListLoginRules, caller: Caller) -> Plain[RuleList]:
        """List the login rules of a domain, ordered by id. `position` tells the order in which they are read."""
        own, page = service.all_of(body.domainId), body.page()
        positions = {rule.id: number for number, rule in enumerate(sorted(own, key=lambda rule: rule.sort_key), 1)}
        needle = body.search.casefold()
        found = [rule for rule in own if needle in rule.name.casefold() and body.ruleId in (0, rule.id)]
        entries = [_entry(service, rule, positions[rule.id]) for rule in found[page.offset : page.offset + page.size]]
        return Plain({"rules": entries, "totalCount": len(found)})

    @rules.post("/ad/AddLoginRule", roles=ADMINS)
    async def add_login_rule(body: AddLoginRule, caller: Caller) -> RuleAdded:
        """Add a rule that allows logins, blocks them, or requires a second factor. It applies from the next login on.

        The rule matches if the login fits one entry of each scope that is given. A login that lacks a needed fact, such
        as a Calling-Station-Id, is not exempt. An `allow` or `block` rule without a scope decides every login of the
        domain, so it must be confirmed by `everyone`. `warnings` lists users, groups and clients that do not
        exist. They are not errors, because an import may add them.
        """
        warnings = await names.unknown(body.domainId, body)
        return RuleAdded(message="rule added", ruleId=await service.add(body.domainId, body), warnings=warnings)

    @rules.post("/ad/UpdateLoginRule", roles=ADMINS)
    async def update_login_rule(body: UpdateLoginRule, caller: Caller) -> RuleUpdated:
        """Change a login rule. An absent field keeps its value. An empty list or text clears the field.

        `before` moves the rule in the order. If the changed rule is an `allow` or `block` rule without a scope, the
        change must be confirmed by `everyone`. `warnings` lists users, groups and clients that do not exist.
        """
        warnings = await names.unknown(body.domainId, body)
        await service.update(body.domainId, body.ruleId, body, before=body.before)
        return RuleUpdated(message="rule updated", warnings=warnings)

    @rules.post("/ad/DeleteLoginRule", roles=ADMINS)
    async def delete_login_rule(body: DeleteLoginRule, caller: Caller) -> Done:
        """Remove one login rule or several. If one of them does not exist, none is removed."""
        removed = await service.delete(body.domainId, body.ruleId)
        return Done(message=f"{counted(removed, 'rule')} deleted")

    return rules


def _entry(service: LoginRules, rule: Rule, position: int) -> dict[str, JSON]:
    kept = rule.definition
    return {
        "ruleId": rule.id,
        "domainId": rule.domain_id,
        "position": position,
        **service.shown(kept),
        "exemptsAll": kept.exempts_all,
        "encoded": rule.attributes.hex(),
    }
