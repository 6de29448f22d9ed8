"""The HTTP operations of instances: /api/v1/instances/*."""

from sallyport.areas.users.bodies import CodeAnswer
from sallyport.areas.users.instances.bodies import (
    AddInstance,
    AssignGroups,
    AssignUsers,
    DeleteInstance,
    InstanceAdded,
    InstanceList,
    ListInstances,
    UpdateAuthType,
)
from sallyport.areas.users.instances.instance import InstanceQuery
from sallyport.areas.users.instances.service import Instances
from sallyport.base.answer import answers
from sallyport.web.bodies import Plain, totals
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


def operations(service: Instances, gate: Gate) -> Operations:
    """Return the operations of instances."""
    instances = Operations("Instances", gate)

    @instances.post("/api/v1/instances/list", roles=READERS)
    async def list_instances(body: ListInstances, caller: Caller) -> Plain[InstanceList]:
        """List the instances of a domain, or only the instances of one group, ordered by id."""
        page = body.page()
        found, total = await service.page(
            InstanceQuery(body.domainId, body.filter, body.groupId, offset=page.offset, limit=page.size)
        )
        entries = answers(found)
        return Plain({"domainId": body.domainId, "groupId": body.groupId, **totals(total), "instances": entries})

    @instances.post("/api/v1/instances/addInstance", roles=OPERATORS)
    async def add_instance(body: AddInstance, caller: Caller) -> InstanceAdded:
        """Add an instance. Its name must be unique within the domain."""
        instance_id = await service.add(body.domainId, body.onto(None))
        return InstanceAdded(instanceId=str(instance_id), message="instance added")

    @instances.put("/api/v1/instances/updateAuthType", roles=OPERATORS)
    async def update_auth_type(body: UpdateAuthType, caller: Caller) -> str:
        """Set the authentication methods of an instance: SSH, DID and Password, separated by commas. An empty text
        allows all methods."""
        await service.set_auth_type(body.domainId, body.instanceId, body.authType)
        return "Auth Type Updated"

    @instances.delete("/api/v1/instances/deleteInstance", roles=OPERATORS)
    async def delete_instance(body: DeleteInstance, caller: Caller) -> CodeAnswer:
        """Delete an instance with its assignments and the keys of its agent. The agent then needs a new key."""
        await service.remove(body.domainId, body.instanceId)
        return CodeAnswer(message="instance deleted")

    @instances.post("/api/v1/instances/assignUsersToMachines", roles=OPERATORS)
    async def assign_users(body: AssignUsers, caller: Caller) -> CodeAnswer:
        """Assign each user to each instance, or remove the assignments. If one user or instance does not exist, nothing
        is changed."""
        await service.assign_users(body.domainId, body.instanceIds, body.userIds, body.action)
        return CodeAnswer(message="users assigned" if body.action == "add" else "users removed")

    @instances.put("/api/v1/instances/assignGroupToMachines", roles=OPERATORS)
    async def assign_groups(body: AssignGroups, caller: Caller) -> CodeAnswer:
        """Assign each group to each instance, or remove the assignments. If one group or instance does not exist,
        nothing is changed."""
        await service.assign_groups(body.domainId, body.instanceId, body.groupId, body.action)
        return CodeAnswer(message="groups assigned" if body.action == "add" else "groups removed")

    return instances
