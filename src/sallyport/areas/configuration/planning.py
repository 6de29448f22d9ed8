"""The plan: what the objects of files change in the store of a tenant.

A body that is validated decides, so that different notations of a value are equal. The objects of the store are
validated in the same way.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast

from pydantic import BaseModel, SecretBytes, SecretStr, ValidationError

from sallyport.areas.configuration.item import KEEP, Item, Plan, Prune, Sign, Step
from sallyport.areas.configuration.schemas import secret_names
from sallyport.areas.configured import IDS, AnyKind, Change, Fields, Stored, as_text
from sallyport.base.errors import MISSING, Invalid, invalid_field
from sallyport.base.model import FieldCheck, Unknown
from sallyport.base.text import counted, existing, fold
from sallyport.base.validation import refusal
from sallyport.base.wire import JSON
from sallyport.store import audit

MAX_PROBLEMS: Final = 20
"""Maximum number of problems that an error lists."""
FEW: Final = 3
"""Part of the objects of a kind that `--prune` may remove: one of three."""
_PLACEHOLDERS: Final = {"orgId": 0, "tenantId": 0, "domainId": 0, "domainIds": [0]}


@dataclass(frozen=True, slots=True)
class Present:
    """What the store has of a tenant. objects, managed: by kind. mentioned: the kinds whose objects others name."""

    version: int
    domains: Mapping[int, str]
    objects: Mapping[str, Sequence[Stored]]
    managed: Mapping[str, Collection[str]]
    mentioned: Sequence[AnyKind] = ()


@dataclass(slots=True)
class _Problems:
    """The problems of the files, so that an admin sees all of them at once."""

    found: list[str] = field(default_factory=list)

    def add(self, item: Item, text: str) -> None:
        self.add_at(item.source, item.kind, item.name, text)

    def add_at(self, source: str, kind: str, name: str, text: str) -> None:
        self.found.append(f"{source}: {kind} {name}: {text}")

    def add_error(self, item: Item, error: Invalid) -> None:
        for each in error.errors:
            self.add(item, each.about(each.field))

    def check(self) -> None:
        """Raise Invalid if there are problems."""
        if self.found:
            more = len(self.found) - MAX_PROBLEMS
            raise Invalid("\n".join([*self.found[:MAX_PROBLEMS], *([f"and {more} more"] if more > 0 else [])]))


@dataclass(frozen=True, slots=True)
class _Object:
    """A validated object. values: as `Kind.values` returns them, with the names of its domains."""

    body: BaseModel
    values: Mapping[str, object]
    domains: tuple[str, ...]


def plan(
    tenant_id: int, kinds: Sequence[AnyKind], items: Iterable[Item], present: Present, prune: Prune, *, part: bool
) -> Plan:
    """Return the plan. kinds: the kinds to plan, those that others refer to first. part: whether they are not all
    kinds. Then items of other kinds are left out. Raises Invalid that lists all problems."""
    problems = _Problems()
    by_kind = _by_kind(kinds, items, problems, part=part)
    names = {fold(name): name for name in present.domains.values()}
    names |= {fold(str(each.fields.get("domainName", ""))): each.name for each in by_kind.get("domain", ())}
    steps, managed, released = list[Step](), dict[str, Sequence[str]](), dict[str, Sequence[str]]()
    for kind in kinds:
        planner = _Planner(kind, present, names, problems)
        own = planner.steps(by_kind.get(kind.name, ()))
        files = {each.identity for each in own}
        gone = [each for each in planner.others(files) if each.identity in present.managed.get(kind.name, ())]
        if prune is not Prune.NOTHING:
            if not problems.found:  # a wrong object of the files is not missing
                _check_few(kind, gone, len(present.objects.get(kind.name, ())), prune)
            own += gone
            released[kind.name] = [each for each in present.managed.get(kind.name, ()) if each not in files]
        managed[kind.name] = [each for each in files if each not in present.managed.get(kind.name, ())]
        steps += own
    _check_mentions(steps, present, problems)
    problems.check()
    return Plan(tenant_id, present.version, steps, managed, {kind: each for kind, each in released.items() if each})


def undoing(
    tenant_id: int,
    kinds: Sequence[AnyKind],
    before: Mapping[str, Mapping[str, Fields | None]],
    present: Present,
    action: str,
) -> Plan:
    """Return the plan that restores objects. before: what they were, by kind and the form for comparison of their
    names; None for those that must not exist, which files do not manage any more. action: see `Plan`. Raises
    Invalid."""
    problems, steps, released = _Problems(), list[Step](), dict[str, Sequence[str]]()
    names = {fold(name): name for name in present.domains.values()}
    for kind in kinds:
        own = before.get(kind.name, {})
        planner = _Planner(kind, present, names, problems)
        items = [Item(kind.name, shown_name(kind, fields), fields, "undo") for fields in own.values() if fields]
        gone = {identity for identity, fields in own.items() if fields is None}
        released[kind.name] = sorted(gone)
        steps += [*planner.steps(items), *(each for each in planner.others(()) if each.identity in gone)]
    problems.check()
    return Plan(tenant_id, present.version, steps, {}, released, action=action)


def _by_kind(
    kinds: Sequence[AnyKind], items: Iterable[Item], problems: _Problems, *, part: bool
) -> dict[str, list[Item]]:
    found = dict[str, list[Item]]({kind.name: [] for kind in kinds})
    for item in items:
        if item.kind in found:
            found[item.kind].append(item)
        elif not part:
            problems.add(item, f"no such kind{existing(item.kind, found)}")
    return found


def _check_mentions(steps: Sequence[Step], present: Present, problems: _Problems) -> None:
    """Add a problem for each name of an object that neither the store nor the files have."""
    kinds = {kind.name: kind for kind in present.mentioned}
    known = dict[str, set[str]]()
    for name, kind in kinds.items():
        known[name] = {identity_of(kind, each.fields) for each in present.objects[name]}
    for step in steps:
        own = known.setdefault(step.kind.name, set())
        (own.discard if step.sign is Sign.REMOVED else own.add)(step.identity)
    for step in steps:
        body = step.change.body if step.change else None
        for each in step.kind.mentions(body) if body is not None else ():
            kind, fields = kinds[each.kind], {kinds[each.kind].key: each.name}
            if kind.refers == "domain":
                fields["domain"] = step.domains[0]
            if identity_of(kind, fields) not in known[kind.name]:
                text = f"{each.field}: there is no {kind.name} {shown_name(kind, fields)}"
                problems.add_at(step.source, step.kind.name, step.name, text)


def _check_few(kind: AnyKind, gone: Sequence[Step], count: int, prune: Prune) -> None:
    """Raise Invalid if the files would remove all objects of a kind, or more than a third of them."""
    if gone and prune is Prune.MANAGED and (len(gone) == count or len(gone) * FEW > count):
        few = ", ".join(each.name for each in gone[:5]) + ("..." if len(gone) > 5 else "")
        raise Invalid(
            f"--prune would remove {counted(len(gone), kind.name)} of {count}: {few}: if intended, give --prune=all"
        )


class _Planner:
    """The plan of one kind. domains: the names of all domains, also of new ones, by their form for comparison."""

    def __init__(self, kind: AnyKind, present: Present, domains: Mapping[str, str], problems: _Problems) -> None:
        self._kind = kind
        self._domains = domains
        self._problems = problems
        self._present: dict[str, tuple[_Object | None, Stored]] = {}
        for identity, stored in identified(kind, present.objects.get(kind.name, ())):
            found: _Object | None = None
            try:
                found = validated(kind, stored.fields)
            except Invalid:  # an earlier release has stored it
                found = None
            self._present[identity] = (found, stored)

    def steps(self, items: Sequence[Item]) -> list[Step]:
        """Return a step for each item."""
        found = dict[str, Step]()
        for item in items:
            try:
                step = self._step(item, found)
            except Invalid as error:
                self._problems.add_error(item, error)
                continue
            if step is not None:
                found[step.identity] = step
        return list(found.values())

    def _step(self, item: Item, taken: Collection[str]) -> Step | None:
        kind = self._kind
        identity = _free(taken, identity_of(kind, item.fields))
        before, stored = self._present.get(identity, (None, None))
        missing = list[str]()
        fields = _merged(_with_keeps(kind, item.fields, stored), stored.fields if stored else {}, kind, missing)
        for name in missing:
            self._problems.add(item, f"{name}: give a file: or an env: reference")
        if missing:
            return None
        wanted = validated(kind, {**_kept(kind, stored), **fields})
        if unknown := [name for name in wanted.domains if fold(name) not in self._domains]:
            known = existing(unknown[0], self._domains.values())
            self._problems.add(item, f"{kind.refers}: no domain named {unknown[0]}{known}")
            return None
        changes = _changes(before.values if before else {}, wanted.values)
        if changes or stored is None:
            kind.check(wanted.body, stored)
        sign = Sign.ADDED if stored is None else Sign.CHANGED if changes else Sign.UNCHANGED
        change = Change(stored, wanted.body, frozenset(changes))
        return Step(sign, kind, item.name, item.source, identity, changes, wanted.domains, change)

    def others(self, files: Collection[str]) -> list[Step]:
        """Return a step that removes each stored object that is not in the files."""
        return [
            Step(
                Sign.REMOVED,
                self._kind,
                shown_name(self._kind, stored.fields),
                "",
                identity,
                {},
                domains_of(self._kind, stored.fields),
                Change(stored, None),
            )
            for identity, (_, stored) in self._present.items()
            if identity not in files and not stored.is_implied
        ]


def validated(kind: AnyKind, fields: Fields) -> _Object:
    """Return the validated fields of an object. Raises Invalid."""
    own = {name: value for name, value in fields.items() if name != kind.refers}
    if kind.has_text_secrets:
        own = cast(dict[str, object], as_text(own))
    if unknown := [name for name in own if name in IDS or name in kind.without]:
        raise Invalid.about("is not a field of a file", *unknown)
    domains = domains_of(kind, fields)
    if (kind.refers == "domain" and len(domains) != 1) or (kind.needs_domains and not domains):
        raise invalid_field(kind.refers, MISSING)
    given = {name: value for name, value in _PLACEHOLDERS.items() if name in kind.body.model_fields}
    try:
        body = kind.body.model_validate({**own, **given}, context=FieldCheck(Unknown.REFUSED))
    except ValidationError as error:
        raise refusal(error) from None
    values = kind.values(body)
    if kind.refers:
        values[kind.refers] = [fold(name) for name in domains] if kind.is_ordered else {*map(fold, domains)}
    return _Object(body, values, domains)


def domains_of(kind: AnyKind, fields: Fields) -> tuple[str, ...]:
    """Return the names of the domains that an object names."""
    names = fields.get(kind.refers) if kind.refers else None
    return tuple(map(str, names)) if isinstance(names, list | tuple) else (str(names),) if names else ()


def identity_of(kind: AnyKind, fields: Fields) -> str:
    """Return the form for comparison of an object's name, after that of its domain if it belongs to one."""
    own = kind.identity(fields)
    return "\n".join([*map(fold, domains_of(kind, fields)), own]) if kind.refers == "domain" else own


def identified(kind: AnyKind, objects: Iterable[Stored]) -> Iterator[tuple[str, Stored]]:
    """Yield stored objects with their names in the form for comparison."""
    taken = set[str]()
    for stored in objects:
        identity = _free(taken, identity_of(kind, stored.fields))
        taken.add(identity)
        yield identity, stored


def _free(taken: Collection[str], identity: str) -> str:
    """Return an identity with a number, if another object has it already."""
    number, free = 1, identity
    while free in taken:
        number += 1
        free = f"{identity}\n#{number}"
    return free


def shown_name(kind: AnyKind, fields: Fields) -> str:
    """Return the name of an object for messages, such as `corp/staff`."""
    own = str(fields.get(kind.key, ""))
    return "/".join([*domains_of(kind, fields), own]) if kind.refers == "domain" else own


def _with_keeps(kind: AnyKind, fields: Fields, stored: Stored | None) -> Fields:
    """Return fields with KEEP for each stored secret that a file may leave out."""
    left_out = (kind.keeps & secret_names(kind)) - fields.keys()
    return {**{name: KEEP for name in left_out if stored and stored.fields.get(name)}, **fields}


def _kept(kind: AnyKind, stored: Stored | None) -> Fields:
    """Return the stored values of the fields that a file may leave out."""
    return {name: stored.fields[name] for name in kind.keeps if name in stored.fields} if stored else {}


def _merged(fields: Fields, stored: object, kind: AnyKind, missing: list[str], path: str = "") -> Fields:
    """Return fields in which each secret that is KEEP has its stored value. missing: gets the paths of secrets that are
    not stored, or that would be sent to another place, each with the reason."""
    before = stored if isinstance(stored, Mapping) else {}
    secrets, found = secret_names(kind), dict[str, object]()
    for name, value in fields.items():
        here = f"{path}{name}"
        if name in secrets and value == KEEP:
            found[name] = before.get(name)
            moved = sorted(each for each in kind.destinations if (fields.get(each) or "") != (before.get(each) or ""))
            if not found[name]:
                missing.append(f"{here}: is `{KEEP}`, but nothing is stored")
            elif moved:
                missing.append(f"{here}: is `{KEEP}`, but {moved[0]} changes, so that it would be sent elsewhere")
        elif isinstance(value, Mapping):
            found[name] = _merged(value, before.get(name), kind, missing, f"{here}.")
        elif isinstance(value, list):
            found[name] = _merged_list(value, before.get(name), kind, missing, here)
        else:
            found[name] = value
    return found


def _merged_list(
    entries: Sequence[object], stored: object, kind: AnyKind, missing: list[str], path: str
) -> list[object]:
    before = stored if isinstance(stored, Sequence) else ()
    return [
        _merged(each, before[index] if index < len(before) else None, kind, missing, f"{path}[{index}].")
        if isinstance(each, Mapping)
        else each
        for index, each in enumerate(entries)
    ]


def _changes(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, list[JSON]]:
    return {
        name: [shown(before.get(name)), shown(value)]
        for name, value in after.items()
        if name not in before or before[name] != value
    }


def shown(value: object) -> JSON:
    """Return a value for a plan. A secret is hidden."""
    if isinstance(value, SecretBytes | SecretStr | bytes):
        return audit.HIDDEN if value else ""
    if isinstance(value, BaseModel):
        value = {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(name): shown(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [shown(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(map(shown, value), key=str)
    return value if isinstance(value, bool | int | float | None) else str(value)
