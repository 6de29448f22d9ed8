"""The HTTP operations of MFA providers: /ad/GetMFAProvider, SetMFAProvider, CheckMFAProvider, DeleteMFAProvider."""

from typing import Final

from sallyport.areas.mfa.bodies import (
    CheckMfaProvider,
    DeleteMfaProvider,
    GetMfaProvider,
    MfaProvider,
    MfaProviderChecked,
    SetMfaProvider,
)
from sallyport.areas.mfa.service import Providers
from sallyport.base.clock import Clock, iso
from sallyport.base.fair import PerMinute
from sallyport.base.model import Done
from sallyport.outgoing.errors import ADDRESS_NOT_ALLOWED
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, READERS, Caller, Gate

CHECKS_PER_MINUTE: Final = 5


def operations(service: Providers, gate: Gate, clock: Clock) -> Operations:
    checks = PerMinute[int](CHECKS_PER_MINUTE, "checks", clock)
    providers = Operations("MFA providers", gate)

    @providers.post("/ad/GetMFAProvider", roles=READERS)
    async def get_mfa_provider(body: GetMfaProvider, caller: Caller) -> MfaProvider:
        """Return the MFA provider of a domain, with its fields but without secrets.

        The answer has the last known state of the provider on this node. The service does not ask a provider unless
        somebody logs in or checks the provider.

        Status 404 means that the domain has no provider.
        """
        name, timeout_s, fields = service.shown(body.domainId)
        health = service.health(body.domainId)
        return MfaProvider(
            provider=name,
            timeoutSeconds=timeout_s,
            workedAt=iso(health.worked_at) if health.worked_at else "",
            failsSince=iso(health.fails_since) if health.fails_since else "",
            lastError=health.error,
            **fields,
        )

    @providers.post("/ad/SetMFAProvider", roles=ADMINS)
    async def set_mfa_provider(body: SetMfaProvider, caller: Caller) -> Done:
        """Set the MFA provider of a domain, in place of the previous one. It applies from the next login on.

        totp {}, duo {ikey, skey, host}, okta {domain, apiToken}, privacyidea {url, realm?, adminToken?}, webhook {url,
        secret}, radius {host, port?, secret}, wallet {issuerDid, schemaId?}, or an installed provider.
        """
        await service.set(body.domainId, body.provider, body.own_fields(), body.timeoutSeconds)
        return Done(message=f"{body.provider} is the MFA provider")

    @providers.post("/ad/CheckMFAProvider", roles=ADMINS)
    async def check_mfa_provider(body: CheckMfaProvider, caller: Caller) -> MfaProviderChecked:
        """Test whether the MFA provider of a domain answers and accepts its keys. No prompt is sent.

        Status 404 means that the domain has no provider. Each domain may make five checks a minute; further calls get
        status 429.
        """
        if not caller.is_installation:
            checks.admit(body.domainId)
        checked = await service.check(body.domainId)
        problem = checked.problem
        if caller.is_installation and ADDRESS_NOT_ALLOWED in problem:
            problem = "; ".join([problem, *service.egress_advice(body.domainId)])
        message = problem or checked.found
        return MfaProviderChecked(message=message, provider=checked.provider, works=not problem, problem=problem)

    @providers.post("/ad/DeleteMFAProvider", roles=ADMINS)
    async def delete_mfa_provider(body: DeleteMfaProvider, caller: Caller) -> Done:
        """Remove the MFA provider of a domain. From the next login on, the provider is not asked.

        Status 404 means that the domain has no provider.
        """
        await service.delete(body.domainId)
        return Done(message="MFA provider removed")

    return providers
