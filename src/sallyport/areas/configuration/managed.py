"""The objects that files manage (`sallyport apply`). An operation of the API changes them only if its caller insists
(`override`), because the next `apply` undoes the change. The console names these objects.

A kind names the operations that change its objects (`Kind.changed_by`). All other operations are never refused: those
that unlock, revoke, disconnect, or reset what was learned. `apply` changes objects without operations.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final, cast

from pydantic import BaseModel

from sallyport.areas.configuration import repo
from sallyport.areas.configuration.files import SUFFIX
from sallyport.areas.configuration.planning import identified, identity_of
from sallyport.areas.configured import REMOVE_DOMAIN, AnyKind, Fields
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
            for path in (*kind.changed_by, *([REMOVE_DOMAIN] if kind.refers == "domain" else ())):
                found[path].append(kind)
        return dict(found)

    def concerns(self, path: str) -> bool:
        """Return whether an operation changes objects that files may manage."""
        return path in self._changed_by

    async def check(self, tenant_id: int, path: str, bodies: Sequence[Fields], *, override: bool) -> str:
        """Return the objects of files that an operation changes, for the audit trail. path, bodies: of the operation.
        Raises ManagedByFiles if there are some, unless `override` is set. Raises StoreError."""
        kinds = [(kind, [body for body in bodies if kind.is_changed(path, body)]) for kind in self._changed_by[path]]

        def read(tx: Tx) -> list[tuple[str, str]]:
            return [
                (kind.name, shown)
                for kind, own in kinds
                if own
                for shown in _managed(tx, tenant_id, kind, [(kind.selector(path, body), body) for body in own])
            ]

        found = await self._store.read(read) if any(own for _, own in kinds) else []
        if found and not override:
            raise ManagedByFiles(*found[0])
        return few([shown for _, shown in found])

    @cached_property
    def _listed_by(self) -> Mapping[str, AnyKind]:
        return {kind.listed_by[0]: kind for kind in self._kinds() if kind.listed_by[0]}

    def list_in(self, path: str) -> str:
        """Return the field with the listed objects in the answer of an operation; empty if it lists none."""
        kind = self._listed_by.get(path)
        return kind.listed_by[1] if kind else ""

    async def marked(
        self, tenant_id: int, path: str, domain_id: object, content: Mapping[str, object]
    ) -> Mapping[str, object]:
        """Return the answer of a list, in which each object that files manage has the field MANAGED_BY. Several rules
        with one name all have it. Without a store, none has it, because some lists are answered from memory."""
        kind, field = self._listed_by[path], self.list_in(path)
        rows = cast(Sequence[Row], content[field])

        def mark(tx: Tx) -> Sequence[Row]:
            if not rows or not repo.manages(tx, tenant_id, kind.name):
                return rows
            domains = repo.domains(tx, tenant_id)
            names = list[str]()
            for row in rows:
                domain = domains.get(_number(row.get("domainId", domain_id)), "")
                names.append(identity_of(kind, {kind.key: row[kind.key], "domain": domain}))
            known = set(repo.managed_among(tx, tenant_id, kind.name, names))
            pairs = zip(rows, names, strict=True)
            return [{**row, MANAGED_BY: "file"} if name in known else row for row, name in pairs]

        with suppress(StoreError):
            return {**content, field: await self._store.read(mark)}
        return content

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
            return [one for kind, field in kinds for one in _managed(tx, tenant_id, kind, [(field, body)])]

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


def _managed(tx: Tx, tenant_id: int, kind: AnyKind, selections: Iterable[tuple[str, Fields]]) -> list[str]:
    """Return the objects of a kind that bodies select, and that files manage, as texts. selections: the field that
    selects the objects, and the body."""
    if not repo.manages(tx, tenant_id, kind.name):
        return []
    domains, names, ids = repo.domains(tx, tenant_id), list[str](), set[str]()
    for field, body in selections:
        values = set(_texts(kind, body.get(field)))
        domain = fold(domains.get(_number(body.get("domainId")), ""))
        if kind.has_nameless and not body.get(field) and field != "domainId":
            names.append(identity_of(kind, {"domain": domain}))
        elif kind.refers == "domain" and (field == "domainId" or not body.get(field)):
            names += repo.managed_of_domain(tx, tenant_id, kind.name, domain)
        elif field in (kind.key, f"{kind.key}s"):
            own = [kind.identity({kind.key: value}) for value in values]
            names += [f"{domain}\n{each}" if kind.refers == "domain" else each for each in own]
        else:
            ids |= values
    if ids and kind.names:
        names += _names_of(tx, tenant_id, kind, domains, {_number(each) for each in ids})
    elif ids:
        present = identified(kind, kind.read(tx, tenant_id, domains))
        names += [name for name, stored in present if str(stored.id) in ids]
    managed = repo.managed_among(tx, tenant_id, kind.name, names)
    return [shown(kind, each) for each in managed]


def shown(kind: AnyKind, identity: str) -> str:
    """Return an object that files manage as text. identity: the form for comparison of its name."""
    return f"{_words(kind.name)} {'/'.join(identity.strip().splitlines())}"


def few(names: Sequence[str]) -> str:
    """Return the first of many objects as one text, for the audit trail."""
    return ", ".join([*names[:NAMED], *([f"{len(names) - NAMED} more"] if len(names) > NAMED else [])])


def _names_of(tx: Tx, tenant_id: int, kind: AnyKind, domains: Mapping[int, str], ids: Iterable[int]) -> Iterator[str]:
    """Yield the form for comparison of the names of objects. Of several rules with one name, files that manage one of
    them manage the first, so that the name is enough."""
    for owner, name in repo.named(tx, kind.names, ids):
        fields = {kind.key: name}
        if kind.refers == "domain" and owner in domains:
            yield identity_of(kind, {**fields, "domain": domains[owner]})
        elif kind.refers != "domain" and owner == tenant_id:
            yield kind.identity(fields)


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
