"""Check the rules of a translation against the RADIUS dictionary.

A condition or an attribute of the answer that the service would refuse cannot be expressed: an attribute that the
dictionary does not have, a value of the wrong type, or a secret. A rule that allows is then disabled, without that
part. A rule that blocks needs a decision.
"""

from collections.abc import Mapping

from sallyport.areas.configuration.item import Item
from sallyport.areas.migration.translation import (
    INCOMPLETE,
    OTHERWISE,
    Decision,
    Finding,
    Translation,
    UniqueNames,
    Weight,
    with_fields,
)
from sallyport.areas.policy.rules.conditions import CONDITIONS
from sallyport.areas.policy.rules.rule import Reply
from sallyport.areas.policy.rules.translation import Translation as Names
from sallyport.base.errors import Invalid


def checked(translation: Translation, names: Names, decisions: Mapping[str, Decision]) -> Translation:
    """Return a translation without the parts of rules that the service would refuse. decisions: see `Options`."""
    items, findings, taken = list[Item](), list(translation.findings), UniqueNames()
    for item in translation.items:
        problems = _problems(item, names) if item.kind == "rule" else {}
        kept: Item | None = item
        if problems:
            kept, finding = _without(item, problems, decisions.get(item.name.partition(OTHERWISE)[0]))
            findings.append(finding)
        if kept is not None and kept.kind == "rule":
            name = taken.take(str(kept.fields["name"]))
            kept = Item(kept.kind, name, {**kept.fields, "name": name}, kept.source)
        items += [kept] if kept is not None else []
    return Translation(items, findings)


def _problems(item: Item, names: Names) -> dict[str, str]:
    """Return what is wrong with the fields of a rule."""
    found = dict[str, str]()
    for condition in CONDITIONS:
        try:
            names.condition(condition.field, [str(each) for each in _list(item, condition.field)])
        except Invalid as error:
            found[condition.field] = str(error)
    vlan, replies = str(item.fields.get("vlan", "")), _list(item, "replyAttributes")
    try:
        names.replies("", [Reply(each["name"], each["value"]) for each in replies if isinstance(each, dict)])
    except Invalid as error:
        found["replyAttributes"] = str(error)
    try:
        names.vlan_attributes(vlan)
    except Invalid as error:
        found["vlan"] = str(error)
    return found


def _list(item: Item, field: str) -> list[object]:
    values = item.fields.get(field, [])
    return list(values) if isinstance(values, list | tuple) else []


def _without(item: Item, problems: Mapping[str, str], decision: Decision | None) -> tuple[Item | None, Finding]:
    """Return a rule without some fields, and the finding."""
    text = "; ".join(problems.values())
    fields = {name: value for name, value in item.fields.items() if name not in problems}
    scopes = [each.field for each in CONDITIONS if fields.get(each.field)] + (["time"] if "time" in fields else [])
    if not scopes:
        fields["everyone"] = True
    left = Item(item.kind, item.name, fields, item.source)
    if not fields.get("enabled", True) or fields["action"] == "allow":
        name = item.name.removesuffix(INCOMPLETE) + INCOMPLETE
        return with_fields(left, name=name, enabled=False), _finding(Weight.DISABLED, item, text)
    if decision is Decision.SKIP:
        return None, _finding(Weight.LEFT_OUT, item, f"{text}; left out as decided")
    if decision is Decision.BLOCK:
        return left, _finding(Weight.NOTE, item, f"{text}; blocks more than on the old server, as decided")
    name = item.name.partition(OTHERWISE)[0]
    text += f". Decide with --decide '{name}=block' or --decide '{name}=skip'"
    return with_fields(left, enabled=False), _finding(Weight.UNDECIDED, item, text)


def _finding(weight: Weight, item: Item, text: str) -> Finding:
    return Finding(weight, item.name, item.source, text)
