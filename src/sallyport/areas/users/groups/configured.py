"""Endpoint groups in files (`sallyport apply`). The users of a group name it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Protocol

from sallyport.areas.configured import Change, Fields, Kind, Mention, Stored
from sallyport.areas.users import membership
from sallyport.areas.users.groups import repo
from sallyport.areas.users.groups.bodies import ConfiguredGroup, ConfiguredPolicy
from sallyport.areas.users.groups.group import SETTINGS, CredentialPolicy, Group
from sallyport.areas.users.groups.service import Groups
from sallyport.areas.users.instances import repo as instances_repo
from sallyport.areas.users.membership import GROUPS_OF_INSTANCE
from sallyport.base.answer import answer
from sallyport.base.errors import NotFound
from sallyport.base.text import fold
from sallyport.store.model import Tx

INSTANCES, POLICY = "instances", "credentialPolicy"
_MENTION: Final = f"{POLICY}.policy"


class PolicyNames(Protocol):
    """The interface to the names of password policies."""

    def names(self, tx: Tx, tenant_id: int) -> Mapping[int, str]:
        """Return the names of a tenant's policies, by id."""


class GroupKind(Kind[ConfiguredGroup]):
    """Endpoint groups, with their credential policies."""

    name = "group"
    body = ConfiguredGroup
    level = 3
    key = "groupName"
    refers = "domain"
    without = frozenset({"instanceIds"})
    weight = 3
    removed_first = False
    mentioned = frozenset({"instance", "password_policy"})
    names = "select id, domain_id as owner, name from endpoint_groups"
    listed_by = ("/api/v1/instanceGroup/listEndpointGroup", "groups")
    shown_by = MappingProxyType({"/api/v1/instanceGroup/fetchInstanceGroupDetail": "groupId"})
    changed_by = MappingProxyType(
        {
            "/api/v1/epmGroupManagement/editEPMGroupStatus": "groupId",
            "/api/v1/instanceGroup/updateInstanceGroupStatus": "groupId",
            "/api/v1/instanceGroup/addAuthFlowToInstanceGroup": "groupId",
            "/api/v1/instanceGroup/deleteEndpointGroup": "id",
            "/api/v1/instances/assignGroupToMachines": "groupId",
            "/api/v1/instances/updateCredentialPolicyToEndpointGroup": "groupId",
            "/api/v1/instances/deleteCredentialPolicyToEndpointGroup": "groupId",
        }
    )

    def __init__(self, service: Groups, policies: PolicyNames) -> None:
        self._service = service
        self._policies = policies
        self._changed = set[int]()

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        names = self._policies.names(tx, tenant_id)
        for domain_id, domain in domains.items():
            groups = repo.of_domain(tx, domain_id)
            policies = repo.credential_policies(tx, [each.id for each in groups])
            instances = membership.holder_names(tx, GROUPS_OF_INSTANCE, domain_id)
            for each in groups:
                shown, policy = answer(each), policies.get(each.id)
                fields: dict[str, object] = {"domain": domain, **{name: shown[name] for name in SETTINGS}}
                fields |= {INSTANCES: instances.get(each.id, []), POLICY: _shown(policy, names) if policy else None}
                yield Stored(each.id, fields)

    def is_changed(self, path: str, body: Fields) -> bool:
        return body.get("action") != "remove" and super().is_changed(path, body)  # a removal revokes access

    def values(self, body: ConfiguredGroup) -> dict[str, object]:
        policy = body.credentialPolicy
        own = None if policy is None else {**policy.model_dump(), "policy": fold(policy.policy)}
        return {**super().values(body), INSTANCES: {*map(fold, body.instances)}, POLICY: own}

    def mentions(self, body: ConfiguredGroup) -> Iterable[Mention]:
        policy = body.credentialPolicy.policy if body.credentialPolicy else ""
        named = [Mention(_MENTION, "password_policy", policy)] if policy else []
        return [*(Mention(INSTANCES, "instance", name) for name in body.instances), *named]

    def releases(self, change: Change[ConfiguredGroup]) -> bool:
        return change.body is None or (change.before is not None and "status" in change.fields)

    async def release(self, changes: Sequence[Change[ConfiguredGroup]]) -> None:
        for each in changes:
            group_id = int(each.before.id) if each.before else 0
            if each.body is None:
                await self._service.release(each.domain_id, [group_id])
            else:
                await self._service.revoke_before(each.domain_id, group_id, _fields(each.body))

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[ConfiguredGroup]]) -> None:
        for each in changes:
            self._changed.add(each.domain_id)
            group_id = int(each.before.id) if each.before else 0
            if each.body is None:
                self._service.delete_in(tx, each.domain_id, [group_id])
                continue
            instances = instances_repo.ids_named(tx, each.domain_id, each.body.instances)
            if each.before:
                self._service.edit_in(tx, each.domain_id, group_id, _fields(each.body), instances)
            else:
                new = replace(Group(each.body.groupName), **_fields(each.body))  # type: ignore[arg-type]
                group_id = self._service.add_in(tx, each.domain_id, new, instances)
            if POLICY in each.fields and each.body.credentialPolicy:
                values = self._policy_fields(tx, tenant_id, each.body.credentialPolicy)
                self._service.set_policy_in(tx, each.domain_id, group_id, values)
            elif POLICY in each.fields:
                self._service.delete_policy_in(tx, each.domain_id, group_id)

    def _policy_fields(self, tx: Tx, tenant_id: int, policy: ConfiguredPolicy) -> dict[str, object]:
        """Return the values of a credential policy by the fields of `CredentialPolicy`. Raises NotFound."""
        ids = {fold(name): number for number, name in self._policies.names(tx, tenant_id).items()}
        if policy.policy and fold(policy.policy) not in ids:
            raise NotFound(f"there is no password policy {policy.policy}")
        return {
            "ttl_user": policy.ttlUser,
            "privileged_user": policy.priviligedUser,
            "policy_id": ids[fold(policy.policy)] if policy.policy else None,
            "home_dir": policy.homeDir,
        }

    def written(self) -> None:
        while self._changed:
            self._service.forget(self._changed.pop())


def _fields(body: ConfiguredGroup) -> dict[str, str]:
    return {SETTINGS[name]: getattr(body, name) for name in SETTINGS}


def _shown(policy: CredentialPolicy, names: Mapping[int, str]) -> dict[str, object]:
    return {
        "ttlUser": policy.ttl_user,
        "priviligedUser": policy.privileged_user,
        "policy": names.get(policy.policy_id or 0, ""),
        "homeDir": policy.home_dir,
    }
