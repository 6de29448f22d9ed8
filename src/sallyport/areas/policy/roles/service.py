"""The roles of all domains, and their changes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from sallyport.areas.clients.client import Client
from sallyport.areas.devices.device import Device
from sallyport.areas.devices.rows import UNKNOWN
from sallyport.areas.policy.roles import repo
from sallyport.areas.policy.roles.repo import RoleTable
from sallyport.areas.policy.roles.role import MAX_SET_OCTETS, MAX_SETS, GivenRole, ReplySet, Role, RoleSource
from sallyport.areas.policy.rules.translation import Translation
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict, NotFound, invalid_field
from sallyport.base.tags import NO_TAGS, Tags
from sallyport.base.text import existing, fold
from sallyport.base.wire import JSON
from sallyport.radius.dictionary import Dictionary
from sallyport.store import audit
from sallyport.store.model import Tx
from sallyport.store.snapshot import Configuration

NOT_FOUND: Final = "role not found"
MAX_NAMED: Final = 10
"""Maximum number of users of a role that an error names."""
Uses = Mapping[str, list[str]]
"""What uses the roles of a domain, such as `rule 3 printers`, by the case-folded name of the role."""
_NO_ROLES: Final[Mapping[str, Role]] = MappingProxyType({})


class Roles:
    """The roles of all domains, in memory. A change applies when its call returns.

    used_by: functions that return what uses the roles of a domain. The areas that refer to roles register them. A role
    that is used is not removed.
    """

    def __init__(self, configuration: Configuration, dictionary: Dictionary, clock: Clock = now_us) -> None:
        self.translation = Translation(dictionary)
        self.used_by: list[Callable[[Tx, int], Uses]] = []
        self._configuration = configuration
        self._clock = clock
        self._table = configuration.hold(self._load, RoleTable())

    def _load(self, tx: Tx) -> RoleTable:
        return repo.load(tx, RoleTable() if self._configuration.is_outdated else self._table.value)

    def of(self, domain_id: int) -> Mapping[str, Role]:
        """Return a domain's roles by case-folded name, in the order of the names."""
        return self._table.value.domains.get(domain_id, _NO_ROLES)

    def present(self, domain_id: int, name: str) -> Role:
        """Return a domain's role. Case is ignored. Raises NotFound if there is no such role."""
        found = self.of(domain_id).get(fold(name))
        if found is None:
            raise NotFound(NOT_FOUND)
        return found

    def given(self, domain_id: int, name: str, nas: Device, client: Client) -> GivenRole:
        """Return the role that a login at a NAS gets, with the encoded attributes to send.

        name: the case-folded name of the role. nas, client: the device of the login, and its RADIUS client. The tags of
        the device, or else its product decide which set is sent. If its product is unknown, the product that is
        configured for the client counts.
        """
        role = self.of(domain_id).get(name)
        tags = nas.tags if role is not None and role.has_tags else NO_TAGS
        return self.given_to(domain_id, name, product_of(nas.nas_device_type, client.product), tags)

    def given_to(self, domain_id: int, name: str, product: str, tags: Tags = NO_TAGS) -> GivenRole:
        """Return the role that a login at a NAS of this product, with these tags, gets. name: the case-folded name of
        the role."""
        role = self.of(domain_id).get(name)
        if role is None:  # the role was removed while the login was decided
            return GivenRole(name, RoleSource.NONE)
        return role.given(product, tags)

    @staticmethod
    def check(tx: Tx, domain_id: int, name: str) -> str:
        """Return the name of a role as it is stored. Raises Invalid about the field `role` if the domain has no such
        role."""
        found = repo.get(tx, domain_id, name)
        if found is None:
            raise invalid_field("role", f"must be a role of the domain{existing(name, repo.names(tx, domain_id))}")
        return found.name

    async def set(self, domain_id: int, name: str, given: ReplySet) -> None:
        """Replace or add a set of a role. If the domain has no role of this name, the role is added. given: the set,
        not encoded. Raises Invalid, Conflict."""
        (new,), at = self.encoded([given]), self._clock()

        def transaction(tx: Tx) -> None:
            before = repo.get(tx, domain_id, name)
            role = (before or Role(domain_id, name, ())).with_set(new)
            if len(role.sets) > MAX_SETS:
                raise Conflict(f"a role has at most {MAX_SETS} sets: remove some first")
            repo.put(tx, role, at)
            _record(tx, "role.set", role, at, {} if before is None else before.as_json(), role.as_json())

        await self._configuration.change(transaction)

    async def remove(self, domain_id: int, name: str, key: tuple[str, str] | None = None) -> None:
        """Remove a role, or only its set for a tag and product.

        Raises NotFound if the domain has no such role, or the role no such set. Raises Conflict if something uses the
        role; the message names it.
        """
        at = self._clock()

        def transaction(tx: Tx) -> None:
            role = repo.get(tx, domain_id, name)
            if role is None:
                raise NotFound(NOT_FOUND)
            if key is not None:
                rest = role.without(key)
                if len(rest.sets) == len(role.sets):
                    raise NotFound(f"the role {role.name} has no such set")
                repo.put(tx, rest, at)
                return _record(tx, "role.set", role, at, role.as_json(), rest.as_json())
            return self._remove(tx, role, at)

        await self._configuration.change(transaction)

    def _remove(self, tx: Tx, role: Role, at: int) -> None:
        if users := self._uses(tx, role.domain_id).get(fold(role.name)):
            more = f" and {len(users) - MAX_NAMED} more" if len(users) > MAX_NAMED else ""
            raise Conflict(f"the role {role.name} is used by {', '.join(users[:MAX_NAMED])}{more}: change them first")
        repo.delete(tx, role)
        _record(tx, "role.remove", role, at, role.as_json(), {})

    def write(self, tx: Tx, domain_id: int, name: str, sets: Sequence[ReplySet] | None) -> None:
        """Add or replace a role with all its sets, in the transaction of a caller. sets: not encoded; None removes the
        role. Raises Conflict as `set` and `remove` do; Invalid."""
        before, at = repo.get(tx, domain_id, name), self._clock()
        if sets is None:
            if before is not None:
                self._remove(tx, before, at)
            return
        role = Role(domain_id, name if before is None else before.name, self.encoded(sets))
        repo.put(tx, role, at)
        _record(tx, "role.set", role, at, {} if before is None else before.as_json(), role.as_json())

    def encoded(self, sets: Iterable[ReplySet]) -> list[ReplySet]:
        """Return sets with their encoded attributes. Raises Invalid."""
        return [
            replace(each, attributes=self.translation.replies(each.vlan, each.reply_attributes, MAX_SET_OCTETS))
            for each in sets
        ]

    async def uses(self, domain_id: int) -> Uses:
        """Return what uses the roles of a domain. Raises StoreError."""
        return await self._configuration.store.read(lambda tx: self._uses(tx, domain_id))

    def _uses(self, tx: Tx, domain_id: int) -> Uses:
        found = dict[str, list[str]]()
        for used_by in self.used_by:
            for key, users in used_by(tx, domain_id).items():
                found.setdefault(key, []).extend(users)
        return found


def product_of(nas: str, client: str) -> str:
    """Return the product that decides on a set. nas: the product of the NAS in the inventory. client: the product that
    is configured for the RADIUS client; it decides if that of the NAS is unknown. Both may be empty."""
    return client if nas in ("", UNKNOWN) else nas


def _record(tx: Tx, action: str, role: Role, at: int, before: dict[str, JSON], after: dict[str, JSON]) -> None:
    audit.record_in(tx, action, role.domain_id, f"role {role.name}", audit.changed(before, after), at=at)
