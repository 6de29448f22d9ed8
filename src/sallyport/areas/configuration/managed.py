"""What files manage (`sallyport apply`), for the console: it names these objects, and changes them only if a person
insists, because the next `apply` undoes the change.

A kind names the operations that change its objects (`Kind.changed_by`). All other operations are never refused: those
that unlock, revoke, disconnect, or reset what was learned.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sallyport.areas.configuration import repo
from sallyport.areas.configuration.planning import identified
from sallyport.areas.configured import IDS, AnyKind
from sallyport.base.errors import Conflict
from sallyport.base.text import fold
from sallyport.store.model import Store, Tx


class ManagedByFiles(Conflict):
    """Files manage an object that is about to change."""

    def __init__(self, shown: str) -> None:
        super().__init__(f"files manage the {shown}: change it there, and run sallyport apply")


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

    async def check(self, tenant_id: int, path: str, body: Mapping[str, object]) -> None:
        """Raise ManagedByFiles if an operation would change an object that files manage. path, body: of the operation.
        Raises StoreError."""
        kinds = [kind for kind in self._kinds() if path in kind.changed_by and not _is_harmless(kind, path, body)]
        if not kinds:
            return

        def read(tx: Tx) -> list[str]:
            return [one for kind in kinds for one in _managed(tx, tenant_id, kind, body, kind.changed_by[path])]

        if found := await self._store.read(read):
            raise ManagedByFiles(found[0])

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
            return [one for kind, field in kinds for one in _managed(tx, tenant_id, kind, body, field)]

        return await self._store.read(read) if kinds else []

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


def _is_harmless(kind: AnyKind, path: str, body: Mapping[str, object]) -> bool:
    """Return whether a body has a field that is harmless, and no other beside it."""
    given = {name for name, value in body.items() if value and name not in IDS}
    return bool(given & kind.harmless) and given <= kind.harmless | {kind.changed_by[path]}


def _managed(tx: Tx, tenant_id: int, kind: AnyKind, body: Mapping[str, object], field: str) -> list[str]:
    """Return the objects of a kind that a body selects by a field, and that files manage, as texts."""
    if not repo.manages(tx, tenant_id, kind.name):
        return []
    values, domains = set(_texts(kind, body.get(field))), repo.domains(tx, tenant_id)
    domain = fold(domains.get(_number(body.get("domainId")), ""))
    if kind.refers == "domain" and (field == "domainId" or not body.get(field)):
        names = repo.managed_of_domain(tx, tenant_id, kind.name, domain)
    elif field in (kind.key, f"{kind.key}s"):
        own = [kind.identity({kind.key: value}) for value in values]
        names = [f"{domain}\n{each}" if kind.refers == "domain" else each for each in own]
    else:
        present = identified(kind, kind.read(tx, tenant_id, domains))
        names = [name for name, stored in present if str(stored.id) in values]
    managed = repo.managed_among(tx, tenant_id, kind.name, names)
    return [f"{_words(kind.name)} {'/'.join(each.strip().splitlines())}" for each in managed]


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def _texts(kind: AnyKind, value: object) -> Iterable[str]:
    """Return the texts of a field: of one object, or of several."""
    for each in value if isinstance(value, list) else [value]:
        text = each.get(kind.key) if isinstance(each, Mapping) else each
        if text not in (None, "") and "\0" not in str(text):  # PostgreSQL has no such texts
            yield str(text)


def _number(value: object) -> int:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
