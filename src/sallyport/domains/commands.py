"""What the command line asks: domain.add, domain.confirm, domain.list, domain.mode, domain.restore,
domain.set."""

from collections.abc import Mapping, Sequence

from pydantic import Field

from sallyport.base.command import Arguments, Command, OfTenant, Tenants, command
from sallyport.base.errors import Invalid
from sallyport.base.wire import JSON
from sallyport.domains.bodies import AnyFallback, AnyFirstFactor, AnyMode, Realm, RevertAfter
from sallyport.domains.domain import Domain, Fallback, FirstFactor, Mode
from sallyport.domains.enforcement import Enforcement, Switch, Switched
from sallyport.domains.operations import reverts_at
from sallyport.domains.service import Domains
from sallyport.web.scope import Name


class AddDomain(OfTenant):
    """A domain of a tenant."""

    name: Name
    mode: AnyMode = Mode.MONITOR
    fallback: AnyFallback = Fallback.DENY
    first_factor: AnyFirstFactor = FirstFactor.LOCAL
    realms: list[Realm] = Field(default_factory=list)
    disconnect_on_revoke: bool = False


class ListDomains(Arguments):
    """Of the installation."""


class SetMode(Arguments):
    """domain: a name or an id; everything: every domain of the installation instead, which is the break-glass.

    require_clean, revert_after: as updateDomainEnforcement has them.
    """

    mode: AnyMode
    domain: str | None = None
    everything: bool = False
    fallback: AnyFallback | None = None
    require_clean: bool = False
    revert_after: RevertAfter | None = None


class Confirm(Arguments):
    """domain: a name or an id."""

    domain: str


class SetDomain(Arguments):
    """domain: a name or an id."""

    domain: str
    disconnect_on_revoke: bool


class Restore(Arguments):
    """Of the installation."""


def commands(service: Domains, enforcement: Enforcement, tenants: Tenants) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def add(wanted: AddDomain) -> JSON:
        tenant_id = await tenants.ensure_tenant(wanted.org, wanted.tenant)
        domain_id = await service.add(
            tenant_id,
            wanted.name,
            mode=wanted.mode,
            fallback=wanted.fallback,
            first_factor=wanted.first_factor,
            realms=wanted.realms,
            disconnect_on_revoke=wanted.disconnect_on_revoke,
        )
        return {"id": domain_id, "warnings": list[JSON](service.warnings(domain_id))}

    async def listing(_: ListDomains) -> JSON:
        numbers = await tenants.numbers()
        return [
            {**_row(domain), **_owner(numbers, domain.tenant_id), "warnings": list[JSON](service.warnings(domain.id))}
            for domain in service.table.by_id.values()
        ]

    async def mode(wanted: SetMode) -> JSON:
        if wanted.everything is (wanted.domain is not None):
            raise Invalid("name a domain, or all of them")
        if wanted.domain is not None:
            chosen = service.anywhere(wanted.domain).id
            switch = Switch(wanted.mode, wanted.fallback, wanted.require_clean, wanted.revert_after)
            return _switched(await enforcement.switch(chosen, switch))
        if wanted.mode is not Mode.MONITOR or wanted.require_clean or wanted.revert_after is not None:
            raise Invalid("all domains take the mode monitor only: domains are enforced one by one")
        return told(await service.break_glass(wanted.fallback))

    async def confirm(wanted: Confirm) -> JSON:
        return _switched(await enforcement.switch(service.anywhere(wanted.domain).id, Switch(None)))

    async def set_(wanted: SetDomain) -> JSON:
        await service.set_disconnect_on_revoke(service.anywhere(wanted.domain).id, wanted.disconnect_on_revoke)
        return None

    async def restore(_: Restore) -> JSON:
        return told(await service.restore())

    def told(domain_ids: Sequence[int]) -> JSON:
        warnings = [text for domain_id in domain_ids for text in service.warnings(domain_id)]
        return {
            "domains": [_row(service.table.by_id[domain_id]) for domain_id in domain_ids],
            "warnings": list(dict.fromkeys(warnings)),
        }

    return {
        "domain.add": command(AddDomain, add),
        "domain.confirm": command(Confirm, confirm),
        "domain.list": command(ListDomains, listing),
        "domain.mode": command(SetMode, mode),
        "domain.restore": command(Restore, restore),
        "domain.set": command(SetDomain, set_),
    }


def _switched(switched: Switched) -> JSON:
    impact = switched.impact
    preview: JSON = None
    if impact is not None:
        preview = impact.summary().model_dump(mode="json", by_alias=True)
    return {"domains": [_row(switched.domain)], "warnings": list[JSON](switched.warnings), "preview": preview}


def _owner(numbers: Mapping[int, tuple[int, int]], tenant_id: int) -> dict[str, JSON]:
    organization, number = numbers[tenant_id]
    return {"org": organization, "tenant": number}


def _row(domain: Domain) -> dict[str, JSON]:
    return {
        "id": domain.id,
        "name": domain.name,
        "mode": domain.mode.value,
        "fallback": domain.fallback.value,
        "first_factor": domain.first_factor.value,
        "status": domain.status,
        "realms": list(domain.realms),
        "reverts_at": reverts_at(domain),
        "disconnect_on_revoke": domain.disconnect_on_revoke,
    }
