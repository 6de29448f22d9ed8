"""What the command line asks: group.add, group.assign, group.list, group.remove, group.status."""

from collections.abc import Callable

from pydantic import Field

from sallyport.base.clock import iso
from sallyport.base.command import Arguments, Command, command
from sallyport.base.wire import JSON, Row
from sallyport.endpoints.bodies import AnyAction
from sallyport.endpoints.groups.bodies import Status
from sallyport.endpoints.groups.group import CredentialPolicy, Group, NewGroup
from sallyport.endpoints.groups.service import Groups
from sallyport.store.search import Stretch
from sallyport.web.scope import Name, Text

FindDomain = Callable[[str], int]
"""A domain's name or id to its id. NotFound."""
PAGE = 1000


class AddGroup(Arguments):
    """A group of a domain."""

    domain: str
    name: Name
    ou: Text = ""
    cn: Text = ""
    dc: Text = ""


class ListGroups(Arguments):
    """Of one domain. after: the number of groups to pass over, since a command reads page by page."""

    domain: str
    search: str = ""
    after: int = Field(default=0, ge=0)


class OneGroup(Arguments):
    """A group of a domain."""

    domain: str
    name: str


class SetStatus(OneGroup):
    """Its status."""

    status: Status


class AssignGroup(OneGroup):
    """Users and instances, by name, to put in or to take out."""

    users: list[str] = Field(default_factory=list)
    instances: list[str] = Field(default_factory=list)
    action: AnyAction


def commands(service: Groups, find_domain: FindDomain) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def add(wanted: AddGroup) -> JSON:
        new = NewGroup(wanted.name, wanted.ou, wanted.cn, wanted.dc)
        return await service.add(find_domain(wanted.domain), new)

    async def listing(wanted: ListGroups) -> JSON:
        stretch = Stretch(find_domain(wanted.domain), wanted.after, PAGE)
        found, _ = await service.page(stretch, wanted.search)
        policies = await service.credential_policies([group.id for group in found])
        return [_row(group, policies.get(group.id)) for group in found]

    async def remove(wanted: OneGroup) -> JSON:
        domain_id = find_domain(wanted.domain)
        group = await service.named(domain_id, wanted.name)
        await service.delete(domain_id, [group.id])
        return None

    async def status(wanted: SetStatus) -> JSON:
        domain_id = find_domain(wanted.domain)
        group = await service.named(domain_id, wanted.name)
        await service.edit(domain_id, group.id, {"status": wanted.status})
        return None

    async def assign(wanted: AssignGroup) -> JSON:
        domain_id = find_domain(wanted.domain)
        await service.assign_named(domain_id, wanted.name, wanted.users, wanted.instances, wanted.action)
        return None

    return {
        "group.add": command(AddGroup, add),
        "group.assign": command(AssignGroup, assign),
        "group.list": command(ListGroups, listing),
        "group.remove": command(OneGroup, remove),
        "group.status": command(SetStatus, status),
    }


def _row(group: Group, policy: CredentialPolicy | None) -> Row:
    return {
        "id": group.id,
        "name": group.name,
        "status": group.status,
        "users": group.users_count,
        "auth_flow": group.auth_flow,
        "ou": group.ou,
        "cn": group.cn,
        "dc": group.dc,
        "credential_policy": None
        if policy is None
        else {
            "credPolicyId": policy.id,
            "ttlUser": policy.ttl_user,
            "priviligedUser": policy.privileged_user,
            "policyId": policy.policy_id,
            "homeDir": policy.home_dir,
        },
        "created": iso(group.created_at),
        "updated": iso(group.updated_at),
    }
