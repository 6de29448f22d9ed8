"""What the command line asks: instance.add, instance.assign, instance.list, instance.remove, instance.import."""

from collections.abc import Callable

from pydantic import Field

from sallyport.base.clock import iso
from sallyport.base.command import Arguments, Command, command
from sallyport.base.wire import JSON, Row
from sallyport.endpoints.bodies import AnyAction
from sallyport.endpoints.imports import ImportRows
from sallyport.endpoints.instances.bodies import ImportedInstance
from sallyport.endpoints.instances.instance import Instance, InstanceQuery
from sallyport.endpoints.instances.service import Instances
from sallyport.web.scope import AddressOrText

FindDomain = Callable[[str], int]
"""A domain's name or id to its id. NotFound."""
PAGE = 1000


class AddInstance(Arguments, ImportedInstance):
    """An instance of a domain."""

    domain: str


class ListInstances(Arguments):
    """Of one domain. after: the number of instances to pass over, since a command reads page by page."""

    domain: str
    search: AddressOrText = ""
    after: int = Field(default=0, ge=0)


class OneInstance(Arguments):
    """An instance of a domain."""

    domain: str
    name: str


class AssignUsers(OneInstance):
    """Users, by name, to assign or to take away."""

    users: list[str] = Field(min_length=1)
    action: AnyAction


def commands(service: Instances, find_domain: FindDomain) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def add(wanted: AddInstance) -> JSON:
        return await service.add(find_domain(wanted.domain), wanted.onto(None))

    async def listing(wanted: ListInstances) -> JSON:
        query = InstanceQuery(find_domain(wanted.domain), wanted.search, offset=wanted.after, limit=PAGE)
        found, _ = await service.page(query)
        return [_row(instance) for instance in found]

    async def remove(wanted: OneInstance) -> JSON:
        await service.remove(find_domain(wanted.domain), wanted.name)
        return None

    async def assign(wanted: AssignUsers) -> JSON:
        await service.assign_named(find_domain(wanted.domain), wanted.name, wanted.users, wanted.action)
        return None

    async def importing(wanted: ImportRows) -> JSON:
        planned = await service.import_rows(find_domain(wanted.domain), wanted.rows, apply=wanted.apply)
        return [each.row() for each in planned]

    return {
        "instance.add": command(AddInstance, add),
        "instance.assign": command(AssignUsers, assign),
        "instance.import": command(ImportRows, importing),
        "instance.list": command(ListInstances, listing),
        "instance.remove": command(OneInstance, remove),
    }


def _row(instance: Instance) -> Row:
    return {
        "id": instance.id,
        "instanceName": instance.name,
        "osId": instance.os_id,
        "osName": instance.os_name,
        "publicIp": instance.public_ip,
        "privateIp": instance.private_ip,
        "hostName": instance.host_name,
        "authType": instance.auth_type,
        "status": instance.status,
        "totalUsers": instance.total_users,
        "totalGroups": instance.total_groups,
        "created": iso(instance.created_at),
        "updated": iso(instance.updated_at),
    }
