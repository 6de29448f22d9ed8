"""What an import needs of the store: fields that present objects have beside those of a file, and rules that are read
before those of a file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

from sallyport.areas.configuration.item import Item
from sallyport.areas.migration.translation import FIRST_PRIORITY, Finding, Translation, Weight
from sallyport.areas.policy.rules.rule import DEFAULT_PRIORITY
from sallyport.base.text import fold
from sallyport.base.wire import JSON, Row

FEW: Final = 5
"""Maximum number of rules that a finding names."""
_KEYS: Final = {"domain": "domainName", "bypass": "station", "role": "role"}
_MERGED: Final = frozenset({"domain", "client", "bypass", "role"})
Present = Mapping[str, Sequence[Row]]
"""The objects of the store by kind, as `sallyport export` writes them."""


def present_kinds(found: Translation) -> list[str]:
    """Return the kinds of objects that `merged` needs of the store."""
    return sorted({each.kind for each in found.items} & {*_MERGED, "rule"})


def merged(found: Translation, domain: str, present: Present) -> Translation:
    """Return the translation for the present store. domain: the name of the domain that gets the rules.

    An object keeps the fields that a present object of the same name has beside those of the file. The tags of a client
    stay, if the file has no tag with the same key, and so do the realms of a domain. A finding names the rules that are
    read before the imported ones.
    """
    known = {
        (kind, *_name(kind, each)): each for kind, objects in present.items() if kind in _MERGED for each in objects
    }
    items = [_merged(each, known.get((each.kind, *_name(each.kind, each.fields)), {})) for each in found.items]
    return Translation(items, [*found.findings, *_read_before(found, domain, present.get("rule", ()))])


def admitting(found: Translation) -> int:
    """Return the number of enabled rules that admit logins without a second factor."""
    return sum(each.fields.get("action") == "allow" and bool(each.fields.get("enabled", True)) for each in found.items)


def row_of(item: Item) -> Row:
    """Return an object as an argument of configuration.apply."""
    return {"kind": item.kind, "name": item.name, "fields": cast(Row, dict(item.fields)), "source": item.source}


def _name(kind: str, fields: Mapping[str, object]) -> tuple[str, str]:
    return fold(str(fields.get("domain", ""))), fold(str(fields.get(_KEYS.get(kind, "name"), "")))


def _merged(item: Item, before: Row) -> Item:
    if item.kind == "user":
        return item
    tags = _tags(before.get("tags"), item.fields.get("tags"))
    realms = _texts(before.get("realms"))
    present = {fold(each) for each in realms}
    realms += [each for each in _texts(item.fields.get("realms")) if fold(each) not in present]
    whole = {"tags": tags, "realms": realms}
    return replace(item, fields={**before, **item.fields, **{name: each for name, each in whole.items() if each}})


def _texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _tags(before: JSON, now: object) -> list[JSON]:
    new = _texts(now)
    keys = {each.partition("=")[0] for each in new}
    given = [f"{key}={value}" for key, value in before.items()] if isinstance(before, dict) else before
    return [*(each for each in _texts(given) if each.partition("=")[0] not in keys), *new]


def _read_before(found: Translation, domain: str, rules: Sequence[Row]) -> list[Finding]:
    """Return a finding if the domain has enabled rules of its own that are read before the imported ones."""
    imported = {fold(each.name) for each in found.items if each.kind == "rule"}
    names = [
        str(each["name"])
        for each in rules
        if fold(str(each["domain"])) == fold(domain)
        and int(str(each.get("priority", DEFAULT_PRIORITY))) <= FIRST_PRIORITY
        and each.get("enabled", True)
        and fold(str(each["name"])) not in imported
    ]
    if not names or not imported:
        return []
    text = f"these rules of the domain are read before the imported ones: {', '.join(names[:FEW])}"
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return [Finding(Weight.NOTE, domain, "", f"{text}{more}: disable them if the old server has no such rules")]
