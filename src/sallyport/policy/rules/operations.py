"""The HTTP operations of login rules: /ad/...LoginRule(s)."""

from sallyport.base.wire import JSON
from sallyport.policy.rules.bodies import (
    AddLoginRule,
    DeleteLoginRule,
    ListLoginRules,
    RuleAdded,
    RuleList,
    UpdateLoginRule,
)
from sallyport.policy.rules.rule import Rule
from sallyport.policy.rules.service import LoginRules
from sallyport.web.operation import Done, Operations, Plain
from sallyport.web.scope import ADMINS, READERS, Caller, Gate


def operations(service: LoginRules, gate: Gate) -> Operations:
    """The operations of this slice. Rules decide who gets in, so changing them is the admin's."""
    rules = Operations("Login rules", gate)

    @rules.post("/ad/ListLoginRules", roles=READERS)
    async def list_login_rules(body: ListLoginRules, caller: Caller) -> Plain[RuleList]:
        """The login rules of a domain, ordered by id; `position` is the order in which they are read."""
        own, page = service.all_of(body.domainId), body.page()
        positions = {rule.id: place for place, rule in enumerate(sorted(own, key=lambda rule: rule.place), 1)}
        needle = body.search.casefold()
        found = [rule for rule in own if needle in rule.name.casefold()]
        entries = [_entry(service, rule, positions[rule.id]) for rule in found[page.offset : page.offset + page.size]]
        return Plain({"rules": entries, "totalCount": len(found)})

    @rules.post("/ad/AddLoginRule", roles=ADMINS)
    async def add_login_rule(body: AddLoginRule, caller: Caller) -> RuleAdded:
        """Allow, block, or ask for a second factor, by who logs in, from where and when. It holds for the next login.

        Every scope that is given must hold, by any of its entries; what a login does not tell is no exemption.
        """
        return RuleAdded(message="rule added", ruleId=await service.add(body.domainId, body))

    @rules.post("/ad/UpdateLoginRule", roles=ADMINS)
    async def update_login_rule(body: UpdateLoginRule, caller: Caller) -> Done:
        """Change a login rule. What is absent keeps its value, an empty list or text clears it."""
        await service.update(body.domainId, body.ruleId, body)
        return Done(message="rule updated")

    @rules.post("/ad/DeleteLoginRule", roles=ADMINS)
    async def delete_login_rule(body: DeleteLoginRule, caller: Caller) -> Done:
        """Remove one login rule or several, all or none."""
        removed = await service.delete(body.domainId, body.ruleId)
        return Done(message=f"{removed} rule(s) deleted")

    return rules


def _entry(service: LoginRules, rule: Rule, position: int) -> dict[str, JSON]:
    """Return a `RuleEntry`."""
    kept = rule.definition
    return {
        "ruleId": rule.id,
        "domainId": rule.domain_id,
        "position": position,
        **kept.as_json(),
        "serviceTypes": [service.translation.service_type_name(number) for number in kept.service_types],
        "encoded": rule.attributes.hex(),
    }
