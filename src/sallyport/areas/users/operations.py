"""Local operations of instances and users: instance.import, user.import, user.export, user.totp.remove."""

from functools import partial
from typing import Final, Protocol

from pydantic import Field

from sallyport.areas.domains.service import Domains
from sallyport.areas.users.accounts.account import DIRECT, Account, UserQuery
from sallyport.areas.users.accounts.service import Users
from sallyport.areas.users.imports import ImportRows, Planned, import_instances, import_users
from sallyport.areas.users.instances.service import Instances
from sallyport.areas.users.totp import OneTimeSeeds
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import Arguments, LocalOperations
from sallyport.store.model import Store
from sallyport.web.scope import ManagedCheck, acting_on

PAGE = 200
UPDATE_INSTANCE: Final = "/api/v1/instances/updateAuthType"
UPDATE_USER: Final = "/api/v1/endpointUsers/updateEpmUserInfo"


class RunImport(Protocol):
    """A function that plans the import of rows, and executes the plans if `apply` is set."""

    async def __call__(self, *, apply: bool) -> list[Planned]: ...


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
    store: Store, instances: Instances, users: Users, seeds: OneTimeSeeds, domains: Domains, managed: ManagedCheck
) -> LocalOperations:
    """Return the local operations of this package by name."""
    local = LocalOperations()
    find_domain = domains.id_of

    async def imported(wanted: ImportRows, run: RunImport, path: str, field: str) -> JSON:
        """Plan or run an import, which changes present objects as an operation does. field: that of the operation which
        selects the object."""
        planned, domain_id = await run(apply=False), find_domain(wanted.domain)
        changed = [
            {"domainId": domain_id, field: each.id, **dict.fromkeys(each.changes, True)} for each in planned if each.id
        ]
        tenant_id = domains.tenant_of(domain_id) or 0
        async with acting_on(managed, tenant_id, path, changed, override=wanted.override):
            if wanted.apply:
                planned = await run(apply=True)
        return [each.row() for each in planned]

    @local("instance.import")
    async def importing_instances(wanted: ImportRows) -> JSON:
        run = partial(import_instances, store, instances, find_domain(wanted.domain), wanted.rows)
        return await imported(wanted, run, UPDATE_INSTANCE, "instanceId")

    @local("user.import")
    async def importing_users(wanted: ImportRows) -> JSON:
        run = partial(import_users, store, users, find_domain(wanted.domain), wanted.rows)
        return await imported(wanted, run, UPDATE_USER, "userId")

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
