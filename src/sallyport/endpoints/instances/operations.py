"""The HTTP operations of instances: /api/v1/instances/*."""

from sallyport.endpoints.bodies import CodeAnswer
from sallyport.endpoints.instances.model import (
    AddInstance,
    AssignGroups,
    AssignUsers,
    Instance,
    InstanceAdded,
    InstanceEntry,
    InstanceFields,
    InstanceList,
    InstanceQuery,
    ListInstances,
    NewInstance,
    UpdateAuthType,
)
from sallyport.endpoints.instances.service import Instances
from sallyport.store.search import Minimum
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


def operations(service: Instances, gate: Gate) -> Operations:
    """The operations of this slice."""
    instances = Operations("Instances", gate)

    @instances.post("/api/v1/instances/list", roles=READERS)
    async def list_instances(body: ListInstances, caller: Caller) -> InstanceList:
        """The instances of a domain, or of a group in it, ordered by id."""
        page = body.page()
        found, total = await service.page(
            InstanceQuery(body.domainId, body.filter, body.groupId, offset=page.offset, limit=page.size)
        )
        return InstanceList(
            domainId=body.domainId,
            groupId=body.groupId,
            totalCount=total,
            totalIsMinimum=isinstance(total, Minimum),
            instances=[_entry(instance) for instance in found],
        )

    @instances.post("/api/v1/instances/addInstance", roles=OPERATORS)
    async def add_instance(body: AddInstance, caller: Caller) -> InstanceAdded:
        """A new machine, under a name that the domain has not given yet."""
        instance_id = await service.add(body.domainId, new_instance(body))
        return InstanceAdded(instanceId=str(instance_id), message="instance added")

    @instances.put("/api/v1/instances/updateAuthType", roles=OPERATORS)
    async def update_auth_type(body: UpdateAuthType, caller: Caller) -> str:
        """How one authenticates at an instance: SSH, DID and Password, separated by commas; empty clears it."""
        await service.set_auth_type(body.domainId, body.instanceId, body.authType)
        return "Auth Type Updated"

    @instances.post("/api/v1/instances/assignUsersToMachines", roles=OPERATORS)
    async def assign_users(body: AssignUsers, caller: Caller) -> CodeAnswer:
        """Assign users to instances, or take them away, each with each, all or none."""
        await service.assign_users(body.domainId, body.instanceIds, body.userIds, body.action)
        return CodeAnswer(message="users assigned" if body.action == "add" else "users removed")

    @instances.put("/api/v1/instances/assignGroupToMachines", roles=OPERATORS)
    async def assign_groups(body: AssignGroups, caller: Caller) -> CodeAnswer:
        """Assign groups to instances, or take them away, each with each, all or none."""
        await service.assign_groups(body.domainId, body.instanceId, body.groupId, body.action)
        return CodeAnswer(message="groups assigned" if body.action == "add" else "groups removed")

    return instances


def new_instance(fields: InstanceFields) -> NewInstance:
    """What a body says of an instance."""
    return NewInstance(fields.instanceName, fields.osId, fields.publicIp, fields.privateIp)


def _entry(instance: Instance) -> InstanceEntry:
    return InstanceEntry(
        totalUsers=instance.total_users,
        instanceName=instance.name,
        osName=instance.os_name,
        publicIp=instance.public_ip,
        privateIp=instance.private_ip,
        hostName=instance.host_name,
        status=instance.status,
        instanceId=instance.id,
        totalGroups=instance.total_groups,
    )
