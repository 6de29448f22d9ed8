"""The HTTP operations of MFA providers: /ad/GetMFAProvider, /ad/SetMFAProvider, /ad/DeleteMFAProvider."""

from sallyport.mfa.bodies import DeleteMfaProvider, GetMfaProvider, MfaProvider, SetMfaProvider
from sallyport.mfa.service import Providers
from sallyport.web.operation import Done, Operations
from sallyport.web.scope import ADMINS, READERS, Caller, Gate


def operations(service: Providers, gate: Gate) -> Operations:
    """The operations of this slice."""
    providers = Operations("MFA providers", gate)

    @providers.post("/ad/GetMFAProvider", roles=READERS)
    async def get_mfa_provider(body: GetMfaProvider, caller: Caller) -> MfaProvider:
        """Return the provider of a domain's second factor, with its fields but the secrets. 404: the domain
        has none."""
        name, timeout_s, fields = service.shown(body.domainId)
        return MfaProvider(provider=name, timeoutSeconds=timeout_s, **fields)

    @providers.post("/ad/SetMFAProvider", roles=ADMINS)
    async def set_mfa_provider(body: SetMfaProvider, caller: Caller) -> Done:
        """Attach the provider of a domain's second factor, in the place of the one before, for the next login.

        totp {}, duo {ikey, skey, host}, okta {domain, apiToken}, privacyidea {url, realm?, adminToken?}, webhook {url,
        secret}, radius {host, port?, secret}, wallet {issuerDid, schemaId?}, or an installed one.
        """
        await service.set(body.domainId, body.provider, body.own_fields(), body.timeoutSeconds)
        return Done(message=f"{body.provider} is the MFA provider")

    @providers.post("/ad/DeleteMFAProvider", roles=ADMINS)
    async def delete_mfa_provider(body: DeleteMfaProvider, caller: Caller) -> Done:
        """Remove the provider of a domain's second factor, from the next login on. 404: the domain has none."""
        await service.delete(body.domainId)
        return Done(message="MFA provider removed")

    return providers
