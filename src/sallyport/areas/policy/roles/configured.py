"""Roles in files (`sallyport apply`)."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from sallyport.areas.configured import Change, Kind, Stored
from sallyport.areas.policy.roles import repo
from sallyport.areas.policy.roles.bodies import WholeRole
from sallyport.areas.policy.roles.repo import RoleTable
from sallyport.areas.policy.roles.role import Role
from sallyport.areas.policy.roles.service import Roles
from sallyport.base.errors import invalid_field
from sallyport.store.model import Tx


class RoleKind(Kind[WholeRole]):
    """Roles."""

    name = "role"
    body = WholeRole
    key = "role"
    refers = "domain"
    removed_first = False
    listed_by = ("/ad/ListRoles", "roles")
    shown_by = MappingProxyType({"/ad/ShowRole": "role"})
    changed_by = MappingProxyType({"/ad/SetRole": "role", "/ad/RemoveRole": "role"})

    def __init__(self, service: Roles) -> None:
        self._service = service

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        found = repo.load(tx, RoleTable()).domains
        return [
            Stored(role.name, {"domain": name, "role": role.name, "sets": [each.as_json() for each in role.sets]})
            for domain_id, name in domains.items()
            for role in found.get(domain_id, {}).values()
        ]

    def values(self, body: WholeRole) -> dict[str, object]:
        return {"sets": Role(0, "", (each.reply_set() for each in body.sets)).as_json()}

    def check(self, body: WholeRole, before: Stored | None) -> None:
        if len({each.reply_set().key for each in body.sets}) < len(body.sets):
            raise invalid_field("sets", "must have one set for each product, tag, and default")
        self._service.encoded([each.reply_set() for each in body.sets])

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[WholeRole]]) -> None:
        for each in changes:
            sets = None if each.body is None else [one.reply_set() for one in each.body.sets]
            name = str(each.before.id) if each.before else each.body.role if each.body else ""
            self._service.write(tx, each.domain_id, name, sets)
