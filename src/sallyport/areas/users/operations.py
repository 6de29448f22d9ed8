"""Local operations of instances and users: instance.import, user.import, user.export, user.totp.remove."""

from collections.abc import Callable

from pydantic import Field

from sallyport.areas.users.accounts.account import DIRECT, Account, UserQuery
from sallyport.areas.users.accounts.service import Users
from sallyport.areas.users.imports import ImportRows, import_instances, import_users
from sallyport.areas.users.instances.service import Instances
from sallyport.areas.users.totp import OneTimeSeeds
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import Arguments, LocalOperations
from sallyport.store.model import Store

FindDomain = Callable[[str], int]
"""A function that takes the name or id of a domain and returns its id. It raises NotFound if the domain does not
exist."""
PAGE = 200


class OneName(Arguments):
    """Arguments that select a user of a domain by name."""

    domain: str
    name: str


class ExportUsers(Arguments):
    """Arguments of user.export. after: the number of users to skip. With `after`, the command line reads the users page
    by page."""

    domain: str
    after: int = Field(default=0, ge=0)


def local_operations(
    store: Store, instances: Instances, users: Users, seeds: OneTimeSeeds, find_domain: FindDomain
) -> LocalOperations:
    """Return the local operations of this package by name."""
    local = LocalOperations()

    @local("instance.import")
    async def importing_instances(wanted: ImportRows) -> JSON:
        domain_id = find_domain(wanted.domain)
        planned = await import_instances(store, instances, domain_id, wanted.rows, apply=wanted.apply)
        return [each.row() for each in planned]

    @local("user.import")
    async def importing_users(wanted: ImportRows) -> JSON:
        planned = await import_users(store, users, find_domain(wanted.domain), wanted.rows, apply=wanted.apply)
        return [each.row() for each in planned]

    @local("user.export")
    async def export_users(wanted: ExportUsers) -> JSON:
        found, _ = await users.page(UserQuery(find_domain(wanted.domain), offset=wanted.after, limit=PAGE))
        return [_exported(listed) for listed in found]

    @local("user.totp.remove")
    async def remove_totp(wanted: OneName) -> JSON:
        return await seeds.remove(find_domain(wanted.domain), wanted.name)

    return local


def _exported(account: Account) -> Row:
    return {
        "userName": account.name,
        "userType": account.user_type,
        "credType": account.credential_type,
        "privilegedUser": account.privileged_user,
        "sshKey": list[JSON](account.ssh_key.splitlines()),
        "did": account.did,
        "instances": [instance.name for instance in account.instances if instance.source == DIRECT],
        "groups": list[JSON](account.groups),
    }
