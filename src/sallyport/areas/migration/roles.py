"""Turn the attributes of the answer of rules into roles.

Policies that send the same attributes share a role, which has the name of the first of them. Other servers send the
same to every product, so a role has only its default set; an admin can add sets for products.
"""

import json
from collections.abc import Mapping
from typing import Final

from sallyport.areas.configuration.item import Item
from sallyport.areas.migration.translation import INCOMPLETE, Translation, UniqueNames
from sallyport.areas.policy.roles.role import MAX_NAME, MAX_ROLES, MAX_SET_OCTETS
from sallyport.areas.policy.rules.rule import Reply
from sallyport.areas.policy.rules.translation import Translation as Names
from sallyport.base.errors import Invalid

_ANSWER: Final = ("vlan", "replyAttributes")


def with_roles(translation: Translation, names: Names) -> Translation:
    """Return a translation whose rules have roles. A rule keeps its attributes if they are too many for a role, or if
    there are MAX_ROLES roles."""
    items, roles, taken = list[Item](), dict[tuple[str, str], Item](), dict[str, UniqueNames]()
    for item in translation.items:
        answer = {name: item.fields[name] for name in _ANSWER if item.kind == "rule" and item.fields.get(name)}
        domain = str(item.fields.get("domain", ""))
        key = (domain, json.dumps(answer, sort_keys=True))
        if answer and key not in roles and len(roles) < MAX_ROLES and _fits(answer, names):
            roles[key] = _role(item, domain, answer, taken.setdefault(domain, UniqueNames(MAX_NAME)))
        if answer and key in roles:
            fields = {name: value for name, value in item.fields.items() if name not in _ANSWER}
            item = Item(item.kind, item.name, {**fields, "role": roles[key].name}, item.source)  # noqa: PLW2901
        items.append(item)
    return Translation([*items, *roles.values()], translation.findings)


def _fits(answer: Mapping[str, object], names: Names) -> bool:
    given = answer.get("replyAttributes", [])
    replies = [Reply(each["name"], each["value"]) for each in given if isinstance(each, dict)]  # type: ignore[attr-defined]
    try:
        names.replies(str(answer.get("vlan", "")), replies, MAX_SET_OCTETS)
    except Invalid:
        return False
    return True


def _role(rule: Item, domain: str, answer: Mapping[str, object], taken: UniqueNames) -> Item:
    name = taken.take(rule.name.removesuffix(INCOMPLETE)[:MAX_NAME].strip())
    return Item("role", name, {"domain": domain, "role": name, "sets": [answer]}, rule.source)
