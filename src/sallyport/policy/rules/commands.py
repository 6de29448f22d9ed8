"""What the command line asks: rule.add, rule.list, rule.remove, rule.update."""

from collections.abc import Callable

from pydantic import Field

from sallyport.base.command import Arguments, Command, command
from sallyport.base.wire import JSON, Row
from sallyport.policy.rules.bodies import AnyAction, RuleFields
from sallyport.policy.rules.rule import Rule
from sallyport.policy.rules.service import LoginRules
from sallyport.web.scope import Name

FindDomain = Callable[[str], int]
"""A domain's name or id to its id. NotFound."""


class AddRule(Arguments, RuleFields):
    """A rule of a domain."""

    domain: str
    name: Name
    action: AnyAction


class UpdateRule(Arguments, RuleFields):
    """None keeps a value, an empty list or text clears it."""

    domain: str
    rule: int


class ListRules(Arguments):
    """Of one domain."""

    domain: str


class RemoveRules(Arguments):
    """Some of a domain's, all or none."""

    domain: str
    rules: list[int] = Field(min_length=1)


def commands(service: LoginRules, find_domain: FindDomain) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def add(wanted: AddRule) -> JSON:
        return await service.add(find_domain(wanted.domain), wanted)

    async def update(wanted: UpdateRule) -> JSON:
        await service.update(find_domain(wanted.domain), wanted.rule, wanted)
        return None

    async def listing(wanted: ListRules) -> JSON:
        own = service.all_of(find_domain(wanted.domain))
        return [_row(service, rule) for rule in sorted(own, key=lambda rule: rule.place)]

    async def remove(wanted: RemoveRules) -> JSON:
        return await service.delete(find_domain(wanted.domain), wanted.rules)

    return {
        "rule.add": command(AddRule, add),
        "rule.list": command(ListRules, listing),
        "rule.remove": command(RemoveRules, remove),
        "rule.update": command(UpdateRule, update),
    }


def _row(service: LoginRules, rule: Rule) -> Row:
    kept = rule.definition
    names: list[JSON] = [service.translation.service_type_name(number) for number in kept.service_types]
    return {"id": rule.id, **kept.as_json(), "serviceTypes": names}
