"""Replace the SIDs of groups in rules by the names of groups."""

from collections.abc import Collection, Mapping

from sallyport.areas.configuration.item import Item
from sallyport.areas.migration.translation import (
    INCOMPLETE,
    OTHERWISE,
    Decision,
    Finding,
    Translation,
    Weight,
    with_fields,
)
from sallyport.areas.policy.rules.conditions import CONDITIONS


def sids_of(translation: Translation) -> list[str]:
    """Return the SIDs that rules name."""
    return list(dict.fromkeys(sid for item in translation.items for sid in _sids(item)))


def resolved(translation: Translation, names: Mapping[str, str], decisions: Mapping[str, Decision] = {}) -> Translation:
    """Return a translation with the names of groups. names: by SID. decisions: see `Options`.

    If a SID has no name, a rule that allows is disabled. A rule that blocks needs a decision, because without it a rule
    behind it may admit what it blocks. Only the block behind a disabled rule that allows needs none if no rule behind
    it allows.
    """
    items, findings = list[Item](), list(translation.findings)
    allowing = {
        item.name.removesuffix(INCOMPLETE) for item in translation.items if item.fields.get("action") == "allow"
    }
    last_allow = max((at for at, each in enumerate(translation.items) if _allows(each, names)), default=-1)
    for at, item in enumerate(translation.items):
        sids = _sids(item)
        if not sids:
            items.append(item)
            continue
        unknown = [sid for sid in sids if sid not in names]
        groups = [names.get(sid, sid) for sid in sids]
        given: dict[str, object] = {"groups": list(dict.fromkeys(groups))}
        if unknown and item.fields.get("enabled", True):
            policy = item.name.partition(OTHERWISE)[0]
            is_last = at > last_allow and policy != item.name and policy in allowing
            follows = item.fields["action"] == "allow" or is_last
            decision = None if follows else decisions.get(policy)
            is_open = not follows and decision is None
            findings.append(_finding(item, unknown, decision, Weight.UNDECIDED if is_open else Weight.DISABLED))
            if decision is Decision.SKIP:
                continue
            given = {"groups": []} if decision is Decision.BLOCK else {**given, "enabled": False}
            if decision is Decision.BLOCK and not _other_scopes(item):
                given["everyone"] = True
        items.append(with_fields(item, **given))
    return Translation(items, findings)


def _allows(item: Item, names: Mapping[str, str]) -> bool:
    """Return whether a rule is enabled and allows, and all its groups have names."""
    fields = item.fields
    return fields.get("action") == "allow" and bool(fields.get("enabled", True)) and names.keys() >= {*_sids(item)}


def _sids(item: Item) -> Collection[str]:
    groups = item.fields.get("groups", ())
    assert isinstance(groups, list | tuple)  # noqa: S101  a reader has made it
    return [str(each) for each in groups if str(each).startswith("S-1-")] if item.kind == "rule" else ()


def _other_scopes(item: Item) -> bool:
    return any(item.fields.get(each.field) for each in CONDITIONS if each.field != "groups") or "time" in item.fields


def _finding(item: Item, unknown: Collection[str], decision: Decision | None, weight: Weight) -> Finding:
    text = f"no group of the directory has the SID {', '.join(unknown)}"
    if decision is Decision.SKIP:
        return Finding(Weight.LEFT_OUT, item.name, item.source, f"{text}; left out as decided")
    if decision is Decision.BLOCK:
        return Finding(Weight.NOTE, item.name, item.source, f"{text}; blocks users of all groups, as decided")
    text += ": give --group 'SID=NAME'"
    if weight is Weight.UNDECIDED:
        policy = item.name.partition(OTHERWISE)[0]
        text += f", --decide '{policy}=block' (all groups) or --decide '{policy}=skip'"
    return Finding(weight, item.name, item.source, text)
