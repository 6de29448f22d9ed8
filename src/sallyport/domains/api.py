"""The HTTP operations of domains: /ad/*."""

from sallyport.base.errors import Forbidden
from sallyport.domains.model import (
    AddDomain,
    Domain,
    DomainAdded,
    DomainEntry,
    DomainList,
    EnforcementUpdated,
    GetAllDomains,
    Mode,
    UpdateDomainEnforcement,
)
from sallyport.domains.service import Domains
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, OPERATORS, READERS, Caller, Gate


def operations(service: Domains, gate: Gate) -> Operations:
    """The operations of this slice."""
    domains = Operations("Domains", gate)

    @domains.post("/ad/GetAllDomains", roles=READERS)
    async def get_all_domains(body: GetAllDomains, caller: Caller) -> DomainList:
        """The domains of the tenant, ordered by id. Their domainId is what most other operations ask for."""
        own, page = service.of_tenant(caller.tenant_id), body.page()
        return DomainList(
            domains=[_entry(domain) for domain in own[page.offset : page.offset + page.size]], totalCount=len(own)
        )

    @domains.post("/ad/AddDomain", roles=OPERATORS)
    async def add_domain(body: AddDomain, caller: Caller) -> DomainAdded:
        """Add a domain. A name or a realm that another domain of the tenant has is refused with 409.

        An operator's domain begins in monitor mode; modes are set by admins.
        """
        if body.enforcementMode is not Mode.MONITOR and caller.role not in ADMINS:
            raise Forbidden("role not allowed")
        domain_id = await service.add(
            caller.tenant_id,
            body.domainName,
            directory_name=body.directoryName,
            mode=body.enforcementMode,
            fallback=body.fallbackAction,
            first_factor=body.firstFactor,
            realms=body.realms,
        )
        return DomainAdded(message="domain added", domainId=domain_id)

    @domains.post("/ad/updateDomainEnforcement", roles=ADMINS)
    async def update_domain_enforcement(body: UpdateDomainEnforcement, caller: Caller) -> EnforcementUpdated:
        """Switch a domain between monitoring and enforcing. It holds for the next request."""
        await service.set_mode([body.domainId], body.enforcementMode, body.fallbackAction)
        domain = service.table.by_id[body.domainId]
        return EnforcementUpdated(
            message=f"the domain is in {domain.mode} mode",
            domainId=domain.id,
            enforcementMode=domain.mode,
            fallbackAction=domain.fallback,
            warnings=service.warnings(domain.id),
        )

    return domains


def _entry(domain: Domain) -> DomainEntry:
    return DomainEntry(
        domainId=domain.id,
        domainName=domain.name,
        enforcementMode=domain.mode,
        status=domain.status,
        fallbackAction=domain.fallback,
        firstFactor=domain.first_factor,
        realms=list(domain.realms),
    )
