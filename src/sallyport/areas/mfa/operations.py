"""The HTTP operations of MFA providers: /ad/...MFAProvider(s)."""

from typing import Final

from sallyport.areas.mfa.bodies import (
    AddMfaProvider,
    CheckMfaProvider,
    DeleteMfaProvider,
    GetMfaProvider,
    ListedProvider,
    ListMfaProviders,
    MfaProvider,
    MfaProviderChecked,
    MfaProviders,
    SetMfaProvider,
)
from sallyport.areas.mfa.repo import ProviderRow
from sallyport.areas.mfa.service import Providers
from sallyport.base.clock import Clock, iso_or_empty
from sallyport.base.fair import PerMinute
from sallyport.base.model import Done
from sallyport.outgoing.errors import ADDRESS_NOT_ALLOWED
from sallyport.web.bodies import Plain
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, READERS, Caller, Gate

CHECKS_PER_MINUTE: Final = 5


def operations(service: Providers, gate: Gate, clock: Clock) -> Operations:
    checks = PerMinute[int](CHECKS_PER_MINUTE, "checks", clock)
    providers = Operations("MFA providers", gate)

    @providers.post("/ad/GetMFAProvider", roles=READERS)
    async def get_mfa_provider(body: GetMfaProvider, caller: Caller) -> MfaProvider:
        """Return an MFA provider of a domain, with its fields but without secrets.

        The answer has the last known state of the provider on this node. The service does not ask a provider unless
        a user logs in or an admin checks the provider.

        Status 404 means that the domain has no such provider.
        """
        shown = service.shown(body.domainId, body.provider)
        health = service.health(body.domainId, body.provider)
        return MfaProvider(
            provider=shown.name,
            timeoutSeconds=shown.timeout_s,
            workedAt=iso_or_empty(health.worked_at),
            failsSince=iso_or_empty(health.fails_since),
            lastError=health.error,
            **shown.fields,
        )

    @providers.post("/ad/ListMFAProviders", roles=READERS)
    async def list_mfa_providers(body: ListMfaProviders, caller: Caller) -> Plain[MfaProviders]:
        """List the MFA providers of a domain: the default one, and those beside it that login rules can name.

        The list has the last known state of each provider on this node.
        """
        used = await service.usage(body.domainId)

        def entry(row: ProviderRow) -> ListedProvider:
            health = service.health(body.domainId, row.provider)
            return ListedProvider(
                provider=row.provider,
                isDefault=service.is_default(row),
                strongest=service.strongest(body.domainId, row.provider) or "",
                timeoutSeconds=row.timeout_s,
                usedBy=used.get(row.provider, []),
                workedAt=iso_or_empty(health.worked_at),
                failsSince=iso_or_empty(health.fails_since),
                lastError=health.error,
            )

        found = MfaProviders(providers=[entry(row) for row in service.all_of(body.domainId)])
        return Plain(found.model_dump(mode="json"))

    @providers.post("/ad/SetMFAProvider", roles=ADMINS)
    async def set_mfa_provider(body: SetMfaProvider, caller: Caller) -> Done:
        """Set the default MFA provider of a domain, in place of the previous one. It applies from the next login on.

        If login rules name the previous provider, status 409 names them. If the new provider was beside the default
        one, it is beside it no longer.

        totp {}, duo {ikey, skey, host}, okta {domain, apiToken}, privacyidea {url, realm?, adminToken?}, webhook {url,
        secret}, radius {host, port?, secret}, wallet {issuerDid, schemaId?}, own {binding?, factors?, digits?,
        pageByMail?, enrolByChallenge?, changeStrength?, ownCodes?; for the factor oidc issuer, clientId, clientSecret,
        userClaim?, userIs?, userSuffix?, authTime?, amr?, acr?, resistantAmr?}, or an installed provider.
        """
        await service.set(body.domainId, body.provider, body.own_fields(), body.timeoutSeconds)
        return Done(message=f"{body.provider} is the MFA provider")

    @providers.post("/ad/AddMFAProvider", roles=ADMINS)
    async def add_mfa_provider(body: AddMfaProvider, caller: Caller) -> Done:
        """Add an MFA provider to a domain beside its default one, or change it. Only login rules that name it ask it.

        The fields are those of SetMFAProvider. A domain has each kind of provider once: status 409 means that it is the
        default provider.
        """
        await service.set(body.domainId, body.provider, body.own_fields(), body.timeoutSeconds, beside=True)
        return Done(message=f"{body.provider} is an MFA provider for login rules that name it")

    @providers.post("/ad/CheckMFAProvider", roles=ADMINS)
    async def check_mfa_provider(body: CheckMfaProvider, caller: Caller) -> MfaProviderChecked:
        """Test whether an MFA provider of a domain answers and accepts its keys. No prompt is sent.

        Status 404 means that the domain has no such provider. Each domain may make five checks a minute; further calls
        get status 429.
        """
        if not caller.is_installation:
            checks.admit(body.domainId)
        checked = await service.check(body.domainId, body.provider)
        problem = checked.problem
        if caller.is_installation and ADDRESS_NOT_ALLOWED in problem:
            problem = "; ".join([problem, *service.egress_advice(body.domainId)])
        message = problem or checked.found
        return MfaProviderChecked(message=message, provider=checked.provider, works=not problem, problem=problem)

    @providers.post("/ad/DeleteMFAProvider", roles=ADMINS)
    async def delete_mfa_provider(body: DeleteMfaProvider, caller: Caller) -> Done:
        """Remove an MFA provider of a domain. From the next login on, the provider is not asked.

        Status 404 means that the domain has no such provider. If login rules name it, status 409 names them.
        """
        await service.delete(body.domainId, body.provider)
        return Done(message="MFA provider removed")

    return providers
