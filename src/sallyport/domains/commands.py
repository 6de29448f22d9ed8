"""What the command line asks: domain.add, domain.list, domain.mode."""

from collections.abc import Mapping

from pydantic import Field

from sallyport.base.command import JSON, Arguments, Command, OfTenant, Tenants, command
from sallyport.base.errors import Invalid
from sallyport.domains.model import AnyFallback, AnyFirstFactor, AnyMode, Domain, Fallback, FirstFactor, Mode
from sallyport.domains.service import Domains
from sallyport.web.scope import Name


class AddDomain(OfTenant):
    """A domain of a tenant."""

    name: Name
    mode: AnyMode = Mode.MONITOR
    fallback: AnyFallback = Fallback.DENY
    first_factor: AnyFirstFactor = FirstFactor.LOCAL
    realms: list[Name] = Field(default_factory=list)


class ListDomains(Arguments):
    """Of the installation."""


class SetMode(Arguments):
    """domain: a name or an id; everything: every domain of the installation instead."""

    mode: AnyMode
    domain: str | None = None
    everything: bool = False
    fallback: AnyFallback | None = None


def commands(service: Domains, tenants: Tenants) -> dict[str, Command]:
    """The commands of this slice by name."""

    async def add(wanted: AddDomain) -> JSON:
        tenant_id = await tenants.ensure_tenant(wanted.org, wanted.tenant)
        return await service.add(
            tenant_id,
            wanted.name,
            mode=wanted.mode,
            fallback=wanted.fallback,
            first_factor=wanted.first_factor,
            realms=wanted.realms,
        )

    async def listing(_: ListDomains) -> JSON:
        numbers = await tenants.numbers()
        return [
            {**_row(domain), **_owner(numbers, domain.tenant_id), "warnings": list[JSON](service.warnings(domain.id))}
            for domain in service.table.by_id.values()
        ]

    async def mode(wanted: SetMode) -> JSON:
        if wanted.everything is (wanted.domain is not None):
            raise Invalid("name a domain, or all of them")
        chosen = list(service.table.by_id) if wanted.domain is None else [service.anywhere(wanted.domain).id]
        await service.set_mode(chosen, wanted.mode, wanted.fallback)
        warnings = [text for domain_id in chosen for text in service.warnings(domain_id)]
        return {
            "domains": [_row(service.table.by_id[domain_id]) for domain_id in chosen],
            "warnings": list(dict.fromkeys(warnings)),
        }

    return {
        "domain.add": command(AddDomain, add),
        "domain.list": command(ListDomains, listing),
        "domain.mode": command(SetMode, mode),
    }


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
    }
