"""Endpoint users in files (`sallyport apply`), without passwords, seeds, wallets and credentials.

Users that an agent has discovered, or that have enrolled as persons of a directory, have no files until a file or an
admin adds them.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from sallyport.areas.configured import Change, Fields, Kind, Mention, Stored
from sallyport.areas.users import membership
from sallyport.areas.users.accounts import repo
from sallyport.areas.users.accounts.account import LOCAL, NOT_PRIVILEGED, PASSWORD, UserChange
from sallyport.areas.users.accounts.bodies import ImportedUser
from sallyport.areas.users.accounts.service import Users
from sallyport.areas.users.groups import repo as groups_repo
from sallyport.areas.users.groups.service import Groups
from sallyport.areas.users.instances import repo as instances_repo
from sallyport.areas.users.membership import USERS_OF_GROUP, USERS_OF_INSTANCE
from sallyport.areas.users.user import name_key
from sallyport.base.errors import Conflict
from sallyport.base.text import fold
from sallyport.store.model import Tx

INSTANCES, GROUPS = "instances", "groups"
UPDATE_WALLET: Final = "/api/v1/endpointUsers/updateUserWallet"


class UserKind(Kind[ImportedUser]):
    """Endpoint users."""

    name = "user"
    body = ImportedUser
    level = 4
    key = "userName"
    refers = "domain"
    without = frozenset({"password", "motp"})
    weight = 3
    removed_first = False
    mentioned = frozenset({"instance", "group"})
    names = "select id, domain_id as owner, name from endpoint_users"
    listed_by = ("/api/v1/endpointUsers/listAllEpmUsers", "epmUsers")
    shown_by = MappingProxyType({"/api/v1/endpointUsers/getEpmUserDetail": "userId"})
    changed_by = MappingProxyType(
        {
            "/api/v1/endpointUsers/updateEpmUserInfo": "userId",
            UPDATE_WALLET: "epmUserId",
            "/api/v1/instanceGroup/assignUsersToEndpointGroup": "userIds",
            "/api/v1/instances/assignUsersToMachines": "userIds",
        }
    )
    harmless = frozenset({"password", "motp"})

    def __init__(self, service: Users, groups: Groups) -> None:
        self._service = service
        self._groups = groups
        self._changed = dict[int, list[str]]()

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        for domain_id, domain in domains.items():
            instances = membership.holder_names(tx, USERS_OF_INSTANCE, domain_id)
            groups = membership.holder_names(tx, USERS_OF_GROUP, domain_id)
            for each in repo.of_domain(tx, domain_id, LOCAL):
                fields: dict[str, object] = {"domain": domain, "userName": each.name, "userType": each.user_type}
                fields |= {"credType": each.credential_type, "privilegedUser": each.privileged_user, "did": each.did}
                fields |= {
                    "sshKey": each.ssh_key,
                    INSTANCES: instances.get(each.id, []),
                    GROUPS: groups.get(each.id, []),
                }
                yield Stored(each.id, fields)

    def identity(self, fields: Mapping[str, object]) -> str:
        return name_key(str(fields.get(self.key, "")))

    def is_changed(self, path: str, body: Fields) -> bool:
        if path == UPDATE_WALLET:  # files have neither wallets nor credentials
            is_assigned = bool(body.get("groupId") or body.get("instanceId"))
            return is_assigned or any(body.get(name) is not None for name in ("userType", "privilegedUser"))
        return body.get("action") != "remove" and super().is_changed(path, body)  # a removal revokes access

    def values(self, body: ImportedUser) -> dict[str, object]:
        return {
            "userName": body.userName,
            "userType": body.userType or LOCAL,
            "credType": body.credType or PASSWORD,
            "privilegedUser": body.privilegedUser or NOT_PRIVILEGED,
            "sshKey": body.sshKey or "",
            "did": body.did or "",
            INSTANCES: {*map(fold, filter(None, body.instances))},
            GROUPS: {*map(fold, filter(None, body.groups))},
        }

    def mentions(self, body: ImportedUser) -> Iterable[Mention]:
        instances = (Mention(INSTANCES, "instance", name) for name in body.instances if name)
        return [*instances, *(Mention(GROUPS, "group", name) for name in body.groups if name)]

    async def release(self, changes: Sequence[Change[ImportedUser]]) -> None:
        gone = dict[int, list[int]]()
        for each in changes:
            if each.before and each.body is None:
                gone.setdefault(each.domain_id, []).append(int(each.before.id))
        for domain_id, user_ids in gone.items():
            await self._service.release(domain_id, user_ids)

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[ImportedUser]]) -> None:
        for each in changes:
            names = self._changed.setdefault(each.domain_id, [])
            number = int(each.before.id) if each.before else 0
            if each.body is None:
                names.append(str(each.before.fields["userName"]) if each.before else "")
                self._service.delete_in(tx, each.domain_id, [number])
                continue
            names.append(each.body.userName)
            number = self._put(tx, each.domain_id, number, each.body)
            if each.fields & {INSTANCES, GROUPS}:
                self._assign(tx, each.domain_id, number, each.body)

    def _put(self, tx: Tx, domain_id: int, user_id: int, body: ImportedUser) -> int:
        """Add or change a user, and return the id. user_id: 0 for a new user. Raises Conflict, Invalid."""
        change = UserChange(
            body.userName,
            body.userType or "",
            body.credType or "",
            None,
            body.privilegedUser or "",
            body.sshKey or "",
            None,
            body.did or "",
        )
        if not user_id:
            return self._service.add_in(tx, domain_id, change)
        old = repo.get(tx, domain_id, user_id)
        if old is None:
            raise Conflict("the user does not exist any more")
        self._service.update_in(tx, old, change)
        return user_id

    def _assign(self, tx: Tx, domain_id: int, user_id: int, body: ImportedUser) -> None:
        """Assign a user to the instances and groups of a body, and to no others. Raises NotFound."""
        instances = instances_repo.ids_named(tx, domain_id, [name for name in body.instances if name])
        groups = groups_repo.ids_named(tx, domain_id, [name for name in body.groups if name])
        self._groups.set_groups_of_user(tx, domain_id, user_id, groups)
        self._service.assign_in(tx, domain_id, user_id, body.userName, instances)

    def written(self) -> None:
        while self._changed:
            domain_id, names = self._changed.popitem()
            self._service.forget(domain_id, names)
