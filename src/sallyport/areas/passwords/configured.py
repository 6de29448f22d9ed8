"""Password policies in files (`sallyport apply`). The instances to which a policy is assigned name it."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from sallyport.areas.configured import Change, Kind, Stored
from sallyport.areas.passwords import repo
from sallyport.areas.passwords.bodies import AddPasswordPolicy
from sallyport.areas.passwords.policy import complete
from sallyport.areas.passwords.service import PasswordPolicies, checked
from sallyport.store.model import Tx


class PasswordPolicyKind(Kind[AddPasswordPolicy]):
    """Password policies. A policy without a name, which an earlier release has stored, has no file."""

    name = "password_policy"
    body = AddPasswordPolicy
    key = "policyName"
    removed_first = False
    names = "select id, tenant_id as owner, name_key as name from password_policies"
    listed_by = ("/api/v1/instances/listAllPasswordPolicy", "passwordPolicies")
    changed_by = MappingProxyType(
        {"/api/v1/instances/updatePasswordPolicy": "policyId", "/api/v1/instances/deletePasswordPolicy": "policyId"}
    )

    def __init__(self, service: PasswordPolicies) -> None:
        self._service = service

    def read(self, tx: Tx, tenant_id: int, domains: Mapping[int, str]) -> Iterable[Stored]:
        return [Stored(each.id, each.fields) for each in repo.of_tenant(tx, tenant_id) if each.name]

    def values(self, body: AddPasswordPolicy) -> dict[str, object]:
        return dict(complete(body.given()))

    def check(self, body: AddPasswordPolicy, before: Stored | None) -> None:
        checked(complete(body.given()))

    async def release(self, changes: Sequence[Change[AddPasswordPolicy]]) -> None:
        if gone := [int(each.before.id) for each in changes if each.before and each.body is None]:
            await self._service.release(gone)

    def write(self, tx: Tx, tenant_id: int, changes: Sequence[Change[AddPasswordPolicy]]) -> None:
        for each in changes:
            policy_id = int(each.before.id) if each.before else 0
            if each.body is None:
                self._service.delete_in(tx, tenant_id, policy_id)
            elif each.before:
                self._service.update_in(tx, tenant_id, policy_id, complete(each.body.given()))
            else:
                self._service.add_in(tx, tenant_id, complete(each.body.given()))
