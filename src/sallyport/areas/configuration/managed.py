"""The objects that files manage (`sallyport apply`). An operation of the API changes them only if its caller insists
(`override`), because the next `apply` undoes the change. The console names these objects.

A kind names the operations that change its objects (`Kind.changed_by`). All other operations are never refused: those
that unlock, revoke, disconnect, or reset what was learned. `apply` changes objects without operations.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, cast

from pydantic import BaseModel

from sallyport.areas.configuration import repo
from sallyport.areas.configuration.files import SUFFIX
from sallyport.areas.configuration.planning import domains_of, identified, identity_of
from sallyport.areas.configured import REMOVE_DOMAIN, AnyKind, Fields
from sallyport.base.actor import Overrides
from sallyport.base.errors import Conflict, StoreError
from sallyport.base.text import fold
from sallyport.base.wire import Row
from sallyport.store.model import Store, Tx
from sallyport.web.scope import MANAGED_BY

NAMED: Final = 5
"""Maximum number of objects in an entry of the audit trail."""


class ManagedByFiles(Conflict):
    """Files manage an object that is about to change. reason: the message without the ways to insist."""

    def __init__(self, kind: str, shown: str) -> None:
        self.reason = f"{kind}{SUFFIX} manages the {shown}: change it there, and run sallyport apply"
        super().__init__(f"{self.reason}; or insist: ?override=true in the API, `sallyport --override` in a terminal")


@dataclass(frozen=True, slots=True)
class ManagedObject:
    """An object that files manage. domain: empty if it belongs to none. domain, name: in the form for comparison."""

    kind: str
    domain: str
    name: str


class ManagedObjects:
    """The objects that files manage. kinds: returns all kinds."""

    def __init__(self, store: Store, kinds: Callable[[], Sequence[AnyKind]]) -> None:
        self._store = store
        self._kinds = kinds

    @cached_property
    def _changed_by(self) -> Mapping[str, Sequence[AnyKind]]:
        """The kinds whose objects an operation changes, by its path."""
        found = defaultdict[str, list[AnyKind]](list)
        for kind in self._kinds():
            for path in (*kind.changed_by, *([REMOVE_DOMAIN] if kind.refers else ())):
                found[path].append(kind)
        return dict(found)

    def concerns(self, path: str) -> bool:
        """Return whether an operation changes objects that files may manage."""
        return path in self._changed_by

    async def check(self, tenant_id: int, path: str, bodies: Sequence[Fields], *, override: bool) -> Overrides | None:
        """Return the objects of files that an operation changes, if there are some. path, bodies: of the operation.
        Files manage an object that the operation renames under its new name. Raises ManagedByFiles if there are such
        objects, unless `override` is set. Raises StoreError."""
        kinds = [(kind, [body for body in bodies if kind.is_changed(path, body)]) for kind in self._changed_by[path]]

        def read(tx: Tx) -> list[_Found]:
            return [
                found
                for kind, own in kinds
                if own
                for found in _managed(tx, tenant_id, kind, [(kind.selector(path, body), body) for body in own])
            ]

        found = await self._store.read(read) if any(own for _, own in kinds) else []
        if not found:
            return None
        if not override:
            raise ManagedByFiles(found[0].kind.name, found[0].shown)
        return Overrides(few([each.shown for each in found]), partial(_follow, tenant_id=tenant_id, before=found))

    async def follow(self, overridden: Overrides) -> None:
        """Let files manage objects under their present names. overridden: of `check`. Raises StoreError."""
        await self._store.write(overridden.follow)

    @cached_property
    def _listed_by(self) -> Mapping[str, AnyKind]:
        return {kind.listed_by[0]: kind for kind in self._kinds() if kind.listed_by[0]}

    @cached_property
    def _shown_by(self) -> Mapping[str, AnyKind]:
        return {path: kind for kind in self._kinds() for path in kind.shown_by}

    def shown_in(self, path: str) -> str | None:
        """Return the field with the listed objects in the answer of an operation, an empty text if the answer is one
        object, or None if it has none that files may manage."""
        if path in self._shown_by:
            return ""
        kind = self._listed_by.get(path)
        return kind.listed_by[1] if kind else None

    async def marked(self, tenant_id: int, path: str, body: Fields, content: Fields) -> Fields:
        """Return the answer of an operation of `shown_in`, in which each object that files manage has the field
        MANAGED_BY. body: the given fields of the request. Several rules with one name all have it. Without a store,
        none has it, because some operations are answered from memory."""
        mark = self._marked_one if path in self._shown_by else self._marked_list
        with suppress(StoreError):
            return await self._store.read(lambda tx: mark(tx, tenant_id, path, body, content))
        return content

    def _marked_one(self, tx: Tx, tenant_id: int, path: str, body: Fields, content: Fields) -> Fields:
        kind = self._shown_by[path]
        field = kind.shown_by[path]
        selected = {**body, field: body.get(field) or content.get(field)}  # the default provider has its name there
        return {**content, MANAGED_BY: "file"} if _managed(tx, tenant_id, kind, [(field, selected)]) else content

    def _marked_list(self, tx: Tx, tenant_id: int, path: str, body: Fields, content: Fields) -> Fields:
        kind = self._listed_by[path]
        field = kind.listed_by[1]
        rows = cast(Sequence[Row], content[field])
        if not rows or not repo.manages(tx, tenant_id, kind.name):
            return content
        domains, names = repo.domains(tx, tenant_id), list[str]()
        for row in rows:
            domain = domains.get(_number(row.get("domainId", body.get("domainId"))), "")
            names.append(identity_of(kind, {kind.key: row[kind.key], "domain": domain}))
        known = set(repo.managed_among(tx, tenant_id, kind.name, names))
        pairs = zip(rows, names, strict=True)
        return {**content, field: [{**row, MANAGED_BY: "file"} if name in known else row for row, name in pairs]}

    async def named(
        self, tenant_id: int, domain_id: int | str, path: Mapping[str, str], query: Mapping[str, str]
    ) -> list[str]:
        """Return the objects that files manage among those in the address of a page, such as `client vpn`. domain_id:
        the domain of the page. path, query: the parameters of the address: an id by the name of a kind, or a name by
        its `key`. Raises StoreError."""
        body = {**query, **path, "domainId": domain_id}
        kinds = [(kind, field) for kind in self._kinds() for field in {kind.name, kind.key} if field in path]
        kinds += [(kind, kind.key) for kind in self._kinds() if kind.key == kind.name and query.get(kind.key)]

        def read(tx: Tx) -> list[str]:
            return [one.shown for kind, field in kinds for one in _managed(tx, tenant_id, kind, [(field, body)])]

        return await self._store.read(read) if kinds else []

    def rename_domain(self, tx: Tx, tenant_id: int, before: str, after: str) -> None:
        """Let files manage a domain and its objects as before, after it has another name. before, after: the forms for
        comparison of its names."""
        kinds = [kind.name for kind in self._kinds() if kind.refers == "domain"]
        repo.rename_domain(tx, tenant_id, kinds, before, after)

    async def listed(self, tenant_id: int) -> list[ManagedObject]:
        """Return all objects that files manage, in order. Raises StoreError."""
        refers = {kind.name: kind.refers for kind in self._kinds()}
        managed = await self._store.read(lambda tx: repo.managed(tx, tenant_id))
        found = list[ManagedObject]()
        for kind, names in sorted(managed.items()):
            for identity in sorted(names):
                domain, _, own = identity.partition("\n") if refers.get(kind) == "domain" else ("", "", identity)
                found.append(ManagedObject(_words(kind), domain, own))
        return found


@dataclass(frozen=True, slots=True)
class _Found:
    """An object that files manage. id: 0 if it was not selected by its id, or has none that `Kind.names` knows."""

    kind: AnyKind
    name: str
    id: int = 0

    @property
    def shown(self) -> str:
        """The object as text."""
        return shown(self.kind, self.name)


def _managed(tx: Tx, tenant_id: int, kind: AnyKind, selections: Iterable[tuple[str, Fields]]) -> list[_Found]:
    """Return the objects of a kind that bodies select, and that files manage. selections: the field that selects the
    objects, and the body."""
    if not repo.manages(tx, tenant_id, kind.name):
        return []
    domains, names, ids = repo.domains(tx, tenant_id), dict[str, int](), set[str]()
    for field, body in selections:
        values = set(_texts(kind, body.get(field)))
        domain, own = fold(domains.get(_number(body.get("domainId")), "")), list[str]()
        if kind.has_nameless and not body.get(field) and field != "domainId":
            own = [identity_of(kind, {"domain": domain})]
        elif kind.refers == "domain" and (field == "domainId" or not body.get(field)):
            own = repo.managed_of_domain(tx, tenant_id, kind.name, domain)
        elif kind.refers == "domains" and field == "domainId":
            present = identified(kind, kind.read(tx, tenant_id, domains))
            own = [name for name, stored in present if domain in map(fold, domains_of(kind, stored.fields))]
        elif field in (kind.key, f"{kind.key}s"):
            own = [kind.identity({kind.key: value}) for value in values]
            own = [f"{domain}\n{each}" if kind.refers == "domain" else each for each in own]
        else:
            ids |= values
        names |= dict.fromkeys(own, 0)
    if ids and kind.names:
        numbers = {_number(each) for each in ids}
        names |= {name: id_ for id_, name in _names_of(tx, tenant_id, kind, domains, numbers)}
    elif ids:
        present = identified(kind, kind.read(tx, tenant_id, domains))
        names |= {name: 0 for name, stored in present if str(stored.id) in ids}
    managed = repo.managed_among(tx, tenant_id, kind.name, list(names))
    return [_Found(kind, each, names[each]) for each in managed]


def _follow(tx: Tx, *, tenant_id: int, before: Sequence[_Found]) -> None:
    """Let files manage objects under their present names. before: the objects with the names that they had."""
    domains = repo.domains(tx, tenant_id)
    for kind in {each.kind for each in before if each.id and each.kind.name != "domain"}:  # see `rename_domain`
        own = {each.id: each.name for each in before if each.kind is kind and each.id}
        for id_, now in _names_of(tx, tenant_id, kind, domains, own):
            if now != own[id_]:
                repo.rename(tx, tenant_id, kind.name, own[id_], now)


def shown(kind: AnyKind, identity: str) -> str:
    """Return an object that files manage as text. identity: the form for comparison of its name."""
    return f"{_words(kind.name)} {'/'.join(identity.strip().splitlines())}"


def few(names: Sequence[str]) -> str:
    """Return the first of many objects as one text, for the audit trail."""
    return ", ".join([*names[:NAMED], *([f"{len(names) - NAMED} more"] if len(names) > NAMED else [])])


def _names_of(
    tx: Tx, tenant_id: int, kind: AnyKind, domains: Mapping[int, str], ids: Iterable[int]
) -> Iterator[tuple[int, str]]:
    """Yield the ids of objects, and the forms for comparison of their names. Of several rules with one name, files that
    manage one of them manage the first, so that the name is enough."""
    for id_, owner, name in repo.named(tx, kind.names, ids):
        fields = {kind.key: name}
        if kind.refers == "domain" and owner in domains:
            yield id_, identity_of(kind, {**fields, "domain": domains[owner]})
        elif kind.refers != "domain" and owner == tenant_id:
            yield id_, kind.identity(fields)


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def _texts(kind: AnyKind, value: object) -> Iterable[str]:
    """Return the texts of a field: of one object, or of several."""
    for each in value if isinstance(value, list) else [value]:
        text = getattr(each, kind.key) if isinstance(each, BaseModel) else each
        if text not in (None, "") and "\0" not in str(text):  # PostgreSQL has no such texts
            yield str(text)


def _number(value: object) -> int:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
