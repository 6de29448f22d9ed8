"""The HTTP operations of endpoint groups and their credential policies: /api/v1/instanceGroup/*."""

from sallyport.areas.users.bodies import CodeAnswer, StatusAnswer
from sallyport.areas.users.groups.bodies import (
    AddAuthFlow,
    AddGroup,
    AssignUsersToGroup,
    AuthFlowAdded,
    DeleteCredentialPolicy,
    DeleteGroups,
    EditGroup,
    FirstMember,
    GroupAdded,
    GroupDetail,
    GroupList,
    ListGroups,
    OneGroup,
    SetCredentialPolicy,
    UpdateStatus,
)
from sallyport.areas.users.groups.group import SETTINGS, CredentialPolicy, Group
from sallyport.areas.users.groups.service import Groups
from sallyport.base.answer import answer, answers, field_names
from sallyport.base.model import given
from sallyport.base.text import counted
from sallyport.store.model import ListQuery
from sallyport.web.bodies import Plain, totals
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


def operations(service: Groups, gate: Gate) -> Operations:
    """Return the operations of endpoint groups."""
    groups = Operations("Endpoint groups", gate)
    _declare_groups(groups, service)
    _declare_settings(groups, service)
    return groups


def _declare_groups(groups: Operations, service: Groups) -> None:
    @groups.post("/api/v1/instanceGroup/listEndpointGroup", roles=READERS)
    async def list_groups(body: ListGroups, caller: Caller) -> Plain[GroupList]:
        """List the groups of a domain, or only those of one instance, ordered by id."""
        page = body.page()
        stretch = ListQuery(body.domainId, page.offset, page.size)
        found, total = await service.page(stretch, body.filter, body.instanceId)
        policies = [answer(policy) if policy else None for _, policy in found]
        shown = answers([group for group, _ in found])
        entries = [{**each, "credentialPolicy": policy} for each, policy in zip(shown, policies, strict=True)]
        return Plain({"groups": entries, **totals(total)})

    @groups.post("/api/v1/instanceGroup/addInstanceGroup", roles=OPERATORS)
    async def add_group(body: AddGroup, caller: Caller) -> GroupAdded:
        """Add an active group, and assign the group to instances."""
        new = Group(body.groupName, ou=body.ou, cn=body.cn, dc=body.dc)
        group_id = await service.add(body.domainId, new, body.instanceIds)
        return GroupAdded(instanceId=group_id, Message="group added")

    @groups.delete("/api/v1/instanceGroup/deleteEndpointGroup", roles=OPERATORS)
    async def delete_groups(body: DeleteGroups, caller: Caller) -> StatusAnswer:
        """Delete one or several groups, with their assignments. If one group cannot be deleted, none is deleted."""
        deleted = await service.delete(body.domainId, body.id)
        return StatusAnswer(message=f"{counted(deleted, 'group')} deleted")

    @groups.put(
        "/api/v1/epmGroupManagement/editEPMGroupStatus", "/api/v1/instanceGroup/editInstanceGroup", roles=OPERATORS
    )
    async def edit_group(body: EditGroup, caller: Caller) -> StatusAnswer:
        """Change a group. An absent field keeps its value. `instanceIds` replaces the instances of the group."""
        await service.edit(body.domainId, body.groupId, given(body, SETTINGS), body.instanceIds)
        return StatusAnswer(message="group updated")

    @groups.post(
        "/api/v1/instanceGroup/assignUsersToEndpointGroup",
        "/api/v1/instances/assignUsersToEndpointGroup",
        roles=OPERATORS,
    )
    async def assign_users(body: AssignUsersToGroup, caller: Caller) -> StatusAnswer:
        """Add users to a group, or remove users from the group. If one user does not exist, nothing is changed."""
        await service.assign_users(body.domainId, body.groupId, body.userIds, body.action)
        return StatusAnswer(message="users assigned" if body.action == "add" else "users removed")

    @groups.post("/api/v1/instanceGroup/fetchInstanceGroupDetail", roles=READERS)
    async def group_detail(body: OneGroup, caller: Caller) -> GroupDetail:
        """Return a group's status and instances, and the fields of its first instance."""
        group, instances = await service.detail(body.domainId, body.groupId)
        members = [{**each, "os": each["osName"]} for each in answers(instances)]
        first = members[0] if members else dict.fromkeys(FirstMember.model_fields, "")
        return GroupDetail.model_validate({**first, "state": group.status, "instances": members})


def _declare_settings(groups: Operations, service: Groups) -> None:
    @groups.post("/api/v1/instanceGroup/addAuthFlowToInstanceGroup", roles=OPERATORS)
    async def add_auth_flow(body: AddAuthFlow, caller: Caller) -> AuthFlowAdded:
        """Set the authentication methods that a group allows to its users: SSH, DID and Password, separated by commas.
        An empty text allows all methods.

        Several assignments may give a user access to the same machine. The user may then use a method if the machine
        accepts it and at least one of these assignments allows it.
        """
        await service.edit(body.domainId, body.groupId, {"auth_flow": body.authFlow})
        return AuthFlowAdded(instanceId=body.groupId, message="authentication flow set")

    @groups.put("/api/v1/instanceGroup/updateInstanceGroupStatus", roles=OPERATORS)
    async def update_status(body: UpdateStatus, caller: Caller) -> StatusAnswer:
        """Set the status of a group. With the status `Active` or `Enabled` (case-insensitive), the users of the group
        have access. With any other status, they have none."""
        await service.edit(body.domainId, body.groupId, {"status": body.status})
        return StatusAnswer(message="group status updated")

    @groups.put("/api/v1/instances/updateCredentialPolicyToEndpointGroup", roles=OPERATORS)
    async def set_policy(body: SetCredentialPolicy, caller: Caller) -> CodeAnswer:
        """Set the credential policy of a group. An absent field keeps its value. An empty field clears the value."""
        fields = given(body, field_names(CredentialPolicy))
        if body.policyId is not None:
            fields["policy_id"] = int(body.policyId) if body.policyId else None
        kept = await service.set_credential_policy(body.domainId, body.groupId, fields)
        return CodeAnswer(message=f"credential policy {kept} was set")

    @groups.delete("/api/v1/instances/deleteCredentialPolicyToEndpointGroup", roles=OPERATORS)
    async def delete_policy(body: DeleteCredentialPolicy, caller: Caller) -> CodeAnswer:
        """Delete the credential policy of a group. If credPolicyId is given, the policy must have that id."""
        policy_id = int(body.credPolicyId) if body.credPolicyId else None
        await service.delete_credential_policy(body.domainId, body.groupId, policy_id)
        return CodeAnswer(message="credential policy deleted")
