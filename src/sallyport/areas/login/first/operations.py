"""The HTTP operations for first factors: /ad/GetFirstFactor, /ad/SetFirstFactor, /ad/CheckFirstFactor."""

from sallyport.areas.domains.service import Domains
from sallyport.areas.login.first.bodies import (
    CheckFirstFactor,
    DomainFirstFactor,
    FirstFactorChecked,
    FirstFactorSet,
    GetFirstFactor,
    SetFirstFactor,
)
from sallyport.areas.login.first.settings import FirstFactorSettings
from sallyport.areas.login.first.trial import Trials
from sallyport.outgoing.errors import ADDRESS_NOT_ALLOWED
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, READERS, Caller, Gate


def operations(service: FirstFactorSettings, trials: Trials, domains: Domains, gate: Gate) -> Operations:
    factors = Operations("First factors", gate)

    @factors.post("/ad/GetFirstFactor", roles=READERS)
    async def get_first_factor(body: GetFirstFactor, caller: Caller) -> DomainFirstFactor:
        """Return the first factor of a domain and its configuration, without secrets."""
        domain = domains.table.present(body.domainId)
        return DomainFirstFactor(domainId=domain.id, firstFactor=domain.first_factor, **service.shown(domain.id))

    @factors.post("/ad/SetFirstFactor", roles=ADMINS)
    async def set_first_factor(body: SetFirstFactor, caller: Caller) -> FirstFactorSet:
        """Set the first factor of a domain. It applies from the next login on.

        firstFactor is one of these values:
        - local: the service checks the passwords of the domain's endpoint users.
        - ldap {servers: [url], baseDN, bindDN?, bindPassword?, userFilter?, startTls?, caCertificate?, cacheSeconds?,
          timeoutSeconds?, codeDigits?, winbind?, winbindDomain?}: a directory checks the password by a bind. The host's
          winbind checks MS-CHAP.
        - radius {servers: [{host, port?, secret}], responseWindowSeconds?, loadBalance?, statusCheck?,
          requireMessageAuthenticator?, stripRealm?, codeDigits?, namesInnerUser?}: every request is forwarded to other
          RADIUS servers.
        - none: the forwarding server has checked the password. Only for clients with `passwordVerified`.

        The configuration of `ldap` or `radius` may be left out if it was set before.
        """
        await service.set(domains.table.present(body.domainId), body.firstFactor, body.given())
        warnings = service.egress_warnings(body.domainId, body.firstFactor)
        return FirstFactorSet(message=f"the first factor is {body.firstFactor}", warnings=warnings)

    @factors.post("/ad/CheckFirstFactor", roles=ADMINS)
    async def check_first_factor(body: CheckFirstFactor, caller: Caller) -> FirstFactorChecked:
        """Check a name and a password as a device would send them, and list each step.

        No login is recorded, and the user is not asked for a second factor. A directory counts a wrong password as
        usual. Each domain may make five checks a minute; further calls get status 429.
        """
        domain = domains.table.present(body.domainId)
        if not caller.is_installation:
            trials.admit(domain)
        told = await trials.run(domain, body.userName, body.password.get_secret_value(), mschap=body.mschap)
        denied = caller.is_installation and any(ADDRESS_NOT_ALLOWED in step for step in told.steps)
        advice = service.egress_advice(domain) if denied else []
        return FirstFactorChecked(message=told.message, reason=told.reason, steps=[*told.steps, *advice])

    return factors
