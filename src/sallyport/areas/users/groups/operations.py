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
from sallyport.areas.users.groups.group import CredentialPolicy, Group, NewGroup
from sallyport.areas.users.groups.service import Groups
from sallyport.areas.users.instances.instance import Instance
from sallyport.base.clock import iso
from sallyport.base.text import counted
from sallyport.base.wire import Row
from sallyport.store.search import ListQuery
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
        return Plain({"groups": [_entry(group, policy) for group, policy in found], **totals(total)})

    @groups.post("/api/v1/instanceGroup/addInstanceGroup", roles=OPERATORS)
    async def add_group(body: AddGroup, caller: Caller) -> GroupAdded:
        """Add an active group, and assign the group to instances."""
        new = NewGroup(body.groupName, body.ou, body.cn, body.dc)
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
        fields = {"name": body.groupName, "ou": body.ou, "cn": body.cn, "dc": body.dc, "status": body.status}
        given = {field: value for field, value in fields.items() if value is not None}
        await service.edit(body.domainId, body.groupId, given, body.instanceIds)
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
    async def group_detail(body: OneGroup, caller: Caller) -> Plain[GroupDetail]:
        """Return a group's status and instances, and the fields of its first instance."""
        group, instances = await service.detail(body.domainId, body.groupId)
        members = [_member(each) for each in instances]
        first = {field: members[0][field] if members else "" for field in FirstMember.model_fields}
        return Plain({**first, "state": group.status, "instances": members})


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
        fields: dict[str, str | int | None] = {
            "ttl_user": body.ttlUser,
            "privileged_user": body.priviligedUser,
            "home_dir": body.homeDir,
        }
        fields = {field: value for field, value in fields.items() if value is not None}
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


def _entry(group: Group, policy: CredentialPolicy | None) -> Row:
    return {
        "groupId": group.id,
        "groupName": group.name,
        "usersCount": group.users_count,
        "status": group.status,
        "authFlow": group.auth_flow,
        "ou": group.ou,
        "cn": group.cn,
        "dc": group.dc,
        "credentialPolicy": _policy_entry(policy) if policy else None,
        "created": iso(group.created_at),
        "updated": iso(group.updated_at),
    }


def _policy_entry(policy: CredentialPolicy) -> Row:
    return {
        "credPolicyId": policy.id,
        "ttlUser": policy.ttl_user,
        "priviligedUser": policy.privileged_user,
        "policyId": policy.policy_id,
        "homeDir": policy.home_dir,
    }


def _member(instance: Instance) -> Row:
    return {
        "instanceId": instance.id,
        "instanceName": instance.name,
        "os": instance.os_name,
        "hostName": instance.host_name,
        "privateIp": instance.private_ip,
        "publicIp": instance.public_ip,
        "status": instance.status,
    }
