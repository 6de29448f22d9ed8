"""Operations of domains: /ad/*; local: domain.break_glass, domain.restore, domain.erase."""

from collections.abc import Sequence

from sallyport.areas.domains.bodies import (
    AddDomain,
    AnyFallback,
    Deletion,
    DomainAdded,
    DomainList,
    DomainRemoved,
    DomainUpdated,
    EnforcementUpdated,
    GetAllDomains,
    RemoveDomain,
    UpdateDomain,
    UpdateDomainEnforcement,
)
from sallyport.areas.domains.domain import SETTINGS, Domain, Fallback, FirstFactor, Mode
from sallyport.areas.domains.enforcement import Enforcement, Switch
from sallyport.areas.domains.removal import Removal
from sallyport.areas.domains.repo import Update
from sallyport.areas.domains.service import Domains
from sallyport.base.answer import answer
from sallyport.base.model import Done, given
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import Arguments, LocalOperations
from sallyport.store.model import Work
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, OPERATORS, READERS, Caller, Gate, not_allowed


async def added(service: Domains, tenant: int | Work[int], body: AddDomain) -> DomainAdded:
    """Add a domain to a tenant. Raises Conflict, StoreError.

    tenant: the internal id of the tenant, or a function that creates the tenant in the same transaction.
    """
    domain_id = await service.add(tenant, body.domainName, **given(body, SETTINGS))  # type: ignore[arg-type]
    warnings = service.warnings(await service.changed(domain_id))
    values = {"message": "domain added", "domainId": domain_id, "warnings": warnings}
    return DomainAdded.model_validate(values)


def operations(service: Domains, enforcement: Enforcement, removal: Removal, gate: Gate) -> Operations:
    """Return the HTTP operations of domains."""
    domains = Operations("Domains", gate)

    @domains.post("/ad/GetAllDomains", roles=READERS)
    async def get_all_domains(body: GetAllDomains, caller: Caller) -> Plain[DomainList]:
        """Return the domains of the tenant, ordered by id. Most other operations need a domainId."""
        own, page = service.of_tenant(caller.tenant_id), body.page()
        entries = [shown(domain, service) for domain in own[page.offset : page.offset + page.size]]
        return Plain({"domains": entries, "totalCount": len(own)})

    @domains.post("/ad/AddDomain", roles=OPERATORS)
    async def add_domain(body: AddDomain, caller: Caller) -> DomainAdded:
        """Add a domain. 409: another domain of the tenant has the name or a realm.

        An enforcementMode, fallbackAction or firstFactor other than the default requires the role admin.
        """
        decided = (body.enforcementMode, body.fallbackAction, body.firstFactor)
        if decided != (Mode.MONITOR, Fallback.DENY, FirstFactor.LOCAL) and caller.role not in ADMINS:
            raise not_allowed(caller.role, ADMINS)
        return await added(service, caller.tenant_id, body)

    @domains.post("/ad/UpdateDomain", roles=OPERATORS)
    async def update_domain(body: UpdateDomain, caller: Caller) -> DomainUpdated:
        """Rename a domain, or change its realms and settings, from the next request on.

        A renamed domain keeps its former name as a realm, so that user@former still works. It is not an error to add an
        existing realm or to remove a missing realm.

        A change of unknownStations, ruleOrder, directoryMaxAgeHours, staleDirectoryAction, certificateNames,
        lockOnNotMe or rememberHours requires the role admin.

        409: another domain of the tenant has the name or a realm.
        """
        decided = (
            body.unknownStations,
            body.ruleOrder,
            body.directoryMaxAgeHours,
            body.staleDirectoryAction,
            body.certificateNames,
            body.rememberHours,
            body.lockOnNotMe,
        )
        if any(each is not None for each in decided) and caller.role not in ADMINS:
            raise not_allowed(caller.role, ADMINS)
        change = Update(body.domainName, body.addRealms, body.removeRealms, given(body, SETTINGS))
        domain = await service.update(body.domainId, change)
        return DomainUpdated.model_validate({**shown(domain, service), **dict(Done(message="domain updated"))})

    @domains.post("/ad/RemoveDomain", roles=ADMINS)
    async def remove_domain(body: RemoveDomain, caller: Caller) -> DomainRemoved:
        """Remove a domain with everything in it. The answer lists the removed data as `deleted`. With `dryRun`, the
        data is only listed and not removed.

        A removal cannot be undone. Logins, agents, wallets and DIDs of the domain stop working before the answer is
        sent, and the name and realms can be used again. Live sessions stay until the network devices end them. A
        background task then deletes the rows. The audit trail stays.

        409: the domain is the default of a RADIUS client, or an import is waiting or running.
        """
        domain, deleted = await removal.preview(body.domainId)
        if not body.dryRun:
            await removal.remove(domain.id)
        values = {
            "message": "nothing was removed, because dryRun is set" if body.dryRun else "domain removed",
            "domainId": domain.id,
            "domainName": domain.name,
            "deleted": [Deletion(kind=kind, count=count) for kind, count in deleted],
        }
        return DomainRemoved.model_validate(values)

    @domains.post("/ad/updateDomainEnforcement", roles=ADMINS)
    async def update_domain_enforcement(body: UpdateDomainEnforcement, caller: Caller) -> EnforcementUpdated:
        """Switch a domain between monitoring and enforcing, from the next request on.

        The answer to a switch to `enforce` contains the impact on the logins of the last 30 days (`preview`).

        `requireClean` checks the provider first, then looks up unknown enrolments for some seconds. If the look-up
        takes longer, the same request continues it. 409, with `users` and `devices`: the provider does not work, a
        login would be denied, or an enrolment stays unknown (unless `acceptUnknown`). Then the mode is unchanged.

        `revertAfterMinutes` restores the former mode after that time. To keep the new mode, send a request with
        `confirm`, or another switch without `revertAfterMinutes`.
        """
        switched = await enforcement.switch(
            body.domainId,
            Switch(
                body.enforcementMode,
                body.fallbackAction,
                body.requireClean,
                body.acceptUnknown,
                body.revertAfterMinutes,
            ),
        )
        impact = switched.impact
        values = {
            **answer(switched.domain, warnings=switched.warnings),
            **dict(Done(message=f"the domain is in {switched.domain.mode} mode")),
            "preview": None if impact is None else impact.summary(),
        }
        return EnforcementUpdated.model_validate(values)

    return domains


def shown(domain: Domain, service: Domains) -> Row:
    """Return a domain as answers show it."""
    return answer(domain, warnings=service.warnings(domain))


class BreakGlass(Arguments):
    """Request body of the command `domain.break_glass`. fallback: the new fallback of every domain; None keeps the
    fallbacks."""

    fallback: AnyFallback | None = None


def local_operations(service: Domains, removal: Removal) -> LocalOperations:
    """Return the local operations of domains by name."""
    local = LocalOperations()

    @local("domain.break_glass")
    async def break_glass(wanted: BreakGlass) -> JSON:
        return switched(await service.break_glass(wanted.fallback))

    @local("domain.restore")
    async def restore() -> JSON:
        return switched(await service.restore())

    @local("domain.erase")
    async def erase() -> JSON:
        return {"done": await removal.finish()}

    def switched(domain_ids: Sequence[int]) -> JSON:
        table = service.table.by_id
        domains = [
            table[domain_id] for domain_id in domain_ids if domain_id in table
        ]  # other domains were removed in the meantime
        warnings = [text for domain in domains for text in service.warnings(domain)]
        return {
            "domains": [shown(domain, service) for domain in domains],
            "warnings": list(dict.fromkeys(warnings)),
        }

    return local
