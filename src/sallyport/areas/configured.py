"""The kinds of objects that files may describe (`sallyport apply`), such as RADIUS clients.

An area declares its kinds in `Area.configured`, and `areas.configuration` reads, plans and writes them. A file has the
fields of the body that adds such an object, with the same names, types and defaults. Domains have their names instead
of their ids.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel

from sallyport.base.text import fold
from sallyport.store.model import Tx

IDS: Final = frozenset({"orgId", "tenantId", "domainId", "domainIds"})
"""Fields of bodies that a file does not have, because the folder and the names of domains say the same."""
REMOVE_DOMAIN: Final = "/ad/RemoveDomain"
"""The operation that removes a domain with all objects that belong to it."""
Fields = Mapping[str, object]
BodyT = TypeVar("BodyT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as the store has it.

    id: the key of its row. fields: its fields as a file has them, with all values. A secret is {"hex": octets}.
    is_implied: whether it is there without having been added. Then an export leaves it out, and it is never removed.
    """

    id: int | str
    fields: Fields
    is_implied: bool = False


@dataclass(frozen=True, slots=True)
class Change(Generic[BodyT]):
    """The change of an object.

    before: None for a new object. body: the validated fields; None if the object is removed. fields: the names of the
    fields that change. domains: the ids of the domains that the object names, in this order.
    """

    before: Stored | None
    body: BodyT | None
    fields: frozenset[str] = frozenset()
    domains: tuple[int, ...] = ()

    @property
    def domain_id(self) -> int:
        """The id of the domain of an object that belongs to one."""
        return self.domains[0]


@dataclass(frozen=True, slots=True)
class Mention:
    """The name of an object in a field of another one, of the same domain if it belongs to one."""

    field: str
    kind: str
    name: str


class Kind(ABC, Generic[BodyT]):
    """A kind of objects that files may describe.

    name: the name of the kind and of its file. body: the model of its fields. key: the field that names an object.
    refers: the field with the name of its domain, or with the names of its domains. is_ordered: whether the order of
    the domains matters. without: fields of the body that a file does not have. keeps: fields that keep their values if
    a file does not have them. texts: fields whose values may be texts of files (`file:`), such as certificates.
    has_text_secrets: whether the model takes secrets as texts. destinations: fields that say where a secret beside them
    is sent. If one of them changes, the secret must be given again, so that an author of files cannot obtain it. parts:
    models of objects within the body that its schema does not have. removed_first: whether objects are removed before
    others are added, so that addresses and names are free. Otherwise, they are removed at the end, when nothing refers
    to them. level: kinds with a lower level are written first, because others refer to their objects. mentioned: the
    names of the kinds whose objects a body names, apart from domains (`mentions`). weight: the time that a change
    takes, in units of that of a RADIUS client. changed_by: the operations that change present objects, with the field
    of their body that selects the objects: by id, by `key`, or all of a domain (`domainId`). Of several paths of an
    operation, it has the first. has_nameless: whether a domain has an object with an empty name, which a body selects
    that names none. names: SQL of the id, the owner (the domain, or the tenant) and the name of each
    object, if these operations select objects by id. harmless: fields of these operations that change nothing that a
    file has; files never stop them. listed_by: the operation that lists the objects, and the field of its answer that
    has them. shown_by: the operations that answer one object, with the field of their body that selects it, as for
    `changed_by`.
    """

    name: ClassVar[str]
    body: type[BodyT]
    key: ClassVar[str] = "name"
    refers: ClassVar[Literal["", "domain", "domains"]] = ""
    without: ClassVar[frozenset[str]] = frozenset()
    keeps: ClassVar[frozenset[str]] = frozenset()
    removed_first: ClassVar[bool] = True
    is_ordered: ClassVar[bool] = True
    texts: ClassVar[frozenset[str]] = frozenset()
    has_text_secrets: ClassVar[bool] = False
    destinations: ClassVar[frozenset[str]] = frozenset()
    parts: Sequence[type[BaseModel]] = ()
    level: ClassVar[int] = 1
    weight: ClassVar[int] = 1
    mentioned: ClassVar[frozenset[str]] = frozenset()
    changed_by: ClassVar[Mapping[str, str]] = MappingProxyType({})
    has_nameless: ClassVar[bool] = False
    listed_by: ClassVar[tuple[str, str]] = ("", "")
    shown_by: ClassVar[Mapping[str, str]] = MappingProxyType({})
    names: ClassVar[str] = ""
    harmless: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        """Return the objects of a tenant. domains: the names of its domains, by id."""

    @abstractmethod
    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[BodyT]]) -> None:
        """Write changes, first those that remove an object. Raises Refused."""

    def selector(self, path: str, body: Fields) -> str:
        """Return the field of the body of an operation of `changed_by` that selects the objects. REMOVE_DOMAIN selects
        all objects of the domain."""
        return self.changed_by.get(path, "domainId")

    def is_changed(self, path: str, body: Fields) -> bool:
        """Return whether an operation of `changed_by` changes something that a file has. body: its given fields."""
        if path == REMOVE_DOMAIN:
            return not body.get("dryRun")
        given = {name for name, value in body.items() if name not in IDS and (value or name not in self.harmless)}
        return not given & self.harmless or not given <= self.harmless | {self.changed_by[path]}

    def values(self, body: BodyT) -> dict[str, object]:
        """Return the values of a validated body, by field. Two bodies with equal values describe the same."""
        return {name: getattr(body, name) for name in self.fields()}

    def identity(self, fields: Fields) -> str:
        """Return the form for comparison of the name of an object. fields: as a file has them, not validated."""
        return fold(str(fields.get(self.key, "")))

    def check(self, body: BodyT, before: Stored | None) -> None:
        """Raise Invalid if a new or changed body cannot be stored. before: the present object, or None."""

    async def admit(self, body: BodyT, tenant_id: int, domain_id: int) -> None:
        """Raise Refused if the service cannot do what a body demands. domain_id: the id of its domain; 0 for a new
        one."""

    def mentions(self, body: BodyT) -> Iterable[Mention]:
        """Yield the objects that a body names, apart from domains."""
        return ()

    async def release(self, changes: Sequence[Change[BodyT]]) -> None:
        """Do what takes several short transactions before changes are written, such as the deletion of the many rows
        that depend on objects. changes: those with `releases`."""

    def releases(self, change: Change[BodyT]) -> bool:
        """Return whether a change needs `release`. By default, removals do."""
        return change.body is None

    def verify(self, tx: Tx, tenant_id: int) -> None:
        """Raise Conflict if the objects of a tenant do not fit each other after all changes of all kinds."""

    def written(self) -> None:
        """React to changes that are committed."""

    @property
    def needs_domains(self) -> bool:
        """Whether an object must have one of several domains."""
        return self.refers == "domains" and self.body.model_fields["domainIds"].is_required()

    def fields(self) -> list[str]:
        """Return the names of the fields of the body that a file may have."""
        return [name for name in self.body.model_fields if name not in IDS and name not in self.without]

    def all_fields(self) -> list[str]:
        """Return the names of all fields of a file."""
        return [self.refers, *self.fields()] if self.refers else self.fields()


AnyChange: TypeAlias = Change[Any]
AnyKind: TypeAlias = Kind[Any]


def as_text(value: object) -> object:
    """Return a value in which each secret {"hex": octets} is text. For models whose secrets are texts."""
    if isinstance(value, Mapping):
        octets = value.get("hex")
        if len(value) == 1 and isinstance(octets, str):
            return bytes.fromhex(octets).decode(errors="replace")
        return {name: as_text(each) for name, each in value.items()}
    return [as_text(each) for each in value] if isinstance(value, list) else value
