"""Endpoint instances in files (`sallyport apply`). Addresses and host names that an agent has reported stay if a file
does not have them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Protocol

from sallyport.areas.configured import Change, Kind, Mention, Stored
from sallyport.areas.users.instances import repo
from sallyport.areas.users.instances.bodies import ConfiguredInstance
from sallyport.areas.users.instances.instance import SETTINGS, Instance
from sallyport.areas.users.instances.service import Instances
from sallyport.base.answer import answer
from sallyport.base.errors import Conflict
from sallyport.base.text import fold
from sallyport.store.model import Tx

POLICIES: Final = "passwordPolicies"


class PolicyAssignments(Protocol):
    """The interface to the assignments of password policies to instances."""

    def of_instances(self, tx: Tx, tenant_id: int) -> Mapping[int, list[str]]:
        """Return the names of the policies of each instance of a tenant, by the id of the instance."""

    def assign_exactly(self, tx: Tx, tenant_id: int, instance_id: int, names: Collection[str]) -> None:
        """Assign these policies to an instance, and no others. Raises NotFound."""


class InstanceKind(Kind[ConfiguredInstance]):
    """Endpoint instances."""

    name = "instance"
    body = ConfiguredInstance
    level = 2
    key = "instanceName"
    refers = "domain"
    removed_first = False
    keeps = frozenset({"osId", "publicIp", "privateIp", "hostName"})
    mentioned = frozenset({"password_policy"})
    names = "select id, domain_id as owner, name from endpoint_instances"
    listed_by = ("/api/v1/instances/list", "instances")
    changed_by = MappingProxyType(
        {
            "/api/v1/instances/updateAuthType": "instanceId",
            "/api/v1/instances/deleteInstance": "instanceId",
            "/api/v1/instances/assignPolicyToMachine": "instanceId",
        }
    )

    def __init__(self, service: Instances, policies: PolicyAssignments) -> None:
        self._service = service
        self._policies = policies

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        policies = self._policies.of_instances(tx, tenant_id)
        for domain_id, domain in domains.items():
            for each in repo.of_domain(tx, domain_id):
                shown = answer(each)
                own = {name: shown[name] for name in SETTINGS}
                yield Stored(each.id, {"domain": domain, **own, POLICIES: policies.get(each.id, [])})

    def values(self, body: ConfiguredInstance) -> dict[str, object]:
        return {**super().values(body), POLICIES: {*map(fold, body.passwordPolicies)}}

    def mentions(self, body: ConfiguredInstance) -> Iterable[Mention]:
        return [Mention(POLICIES, "password_policy", name) for name in body.passwordPolicies]

    async def release(self, changes: Sequence[Change[ConfiguredInstance]]) -> None:
        for each in changes:
            if each.before and each.body is None:
                await self._service.release(int(each.before.id))

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[ConfiguredInstance]]) -> None:
        for each in changes:
            number = int(each.before.id) if each.before else 0
            if each.body is None:
                self._service.delete_in(tx, each.domain_id, number)
                continue
            fields = {SETTINGS[name]: getattr(each.body, name) for name in SETTINGS}
            if each.before:
                old = repo.get(tx, each.domain_id, number)
                if old is None:
                    raise Conflict("the instance does not exist any more")
                self._service.update_in(tx, old, replace(old, **fields))
            else:
                number = self._service.add_in(tx, each.domain_id, Instance(**fields))
            if POLICIES in each.fields:
                self._policies.assign_exactly(tx, tenant_id, number, each.body.passwordPolicies)
