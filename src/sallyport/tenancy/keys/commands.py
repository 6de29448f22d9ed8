"""What the command line asks: key.create, key.list, key.revoke."""

from collections.abc import Awaitable, Callable

from pydantic import Field

from sallyport.base.clock import Clock, iso
from sallyport.base.command import Arguments, Command, OfTenant, Tenants, command
from sallyport.base.wire import JSON
from sallyport.store.search import Stretch
from sallyport.tenancy.commands import expiry
from sallyport.tenancy.keys.bodies import KeyName, Uses
from sallyport.tenancy.keys.key import Agent, Configure, NewKey
from sallyport.tenancy.keys.operations import entry
from sallyport.tenancy.keys.service import Keys
from sallyport.web.scope import Id

FindDomain = Callable[[str], int]
"""A domain's name or id to its id. NotFound."""
TenantDomain = Callable[[int, str], int]
"""(tenant id, name or id) to a domain's id. NotFound."""
FindInstance = Callable[[int, str], Awaitable[int]]
"""(domain id, name) to an instance's id. NotFound."""
PAGE = 1000


class CreateKey(OfTenant):
    """An enrolment key. instance: by name. expires: `90d`, `12h`, or an ISO 8601 time. place: where the directory is,
    as CreateKey of the API has it."""

    domain: str
    instance: str | None = None
    agent: Agent = Agent.ENDPOINT
    name: KeyName = ""
    uses: Uses | None = None
    expires: str | None = None
    place: dict[str, str | bool | list[str]] = Field(default_factory=dict)


class ListKeys(Arguments):
    """Of one domain. after: the number of keys to pass over, since a command reads page by page."""

    domain: str
    after: int = Field(default=0, ge=0)


class RevokeKey(Arguments):
    """A key of a domain."""

    domain: str
    key: Id


def commands(
    service: Keys,
    tenants: Tenants,
    clock: Clock,
    *,
    tenant_domain: TenantDomain,
    find_domain: FindDomain,
    find_instance: FindInstance,
    configure: Configure,
) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def create(wanted: CreateKey) -> JSON:
        domain_id = tenant_domain(await tenants.tenant_id(wanted.org, wanted.tenant), wanted.domain)
        instance_id = None if wanted.instance is None else await find_instance(domain_id, wanted.instance)
        until = None if wanted.expires is None else expiry(wanted.expires, clock())
        record, key = await service.create(
            NewKey(domain_id, wanted.agent, instance_id, wanted.name, wanted.uses, until)
        )
        return {
            "key": key,
            "id": record.id,
            "agent": record.agent,
            "domain": domain_id,
            "instance": instance_id,
            "expires": iso(record.expires_at),
            "configuration": configure(record, key, wanted.place),
        }

    async def listing(wanted: ListKeys) -> JSON:
        found, _ = await service.page(Stretch(find_domain(wanted.domain), wanted.after, PAGE))
        now = clock()
        return [dict(entry(each, now)) for each in found]

    async def revoke(wanted: RevokeKey) -> JSON:
        revoked = await service.revoke(find_domain(wanted.domain), wanted.key)
        return {"id": revoked.id, "name": revoked.name}

    return {
        "key.create": command(CreateKey, create),
        "key.list": command(ListKeys, listing),
        "key.revoke": command(RevokeKey, revoke),
    }
