"""The HTTP operations for first factors: /ad/GetFirstFactor, /ad/SetFirstFactor, /ad/CheckFirstFactor."""

from typing import Annotated

from pydantic import Field

from sallyport.areas.domains.bodies import AnyFirstFactor
from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.domains.service import Domains
from sallyport.areas.login.first.settings import FirstFactorSettings
from sallyport.areas.login.first.trial import Trials
from sallyport.base.model import Done, Success
from sallyport.outgoing.errors import ADDRESS_NOT_ALLOWED
from sallyport.web.bodies import Flag, InDomain, Members, Octets, PlainText
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, READERS, Caller, Gate

Values = dict[str, object]


class GetFirstFactor(InDomain):
    """Request body of the operation `GetFirstFactor`."""


class SetFirstFactor(InDomain):
    """Request body of the operation `SetFirstFactor`. If `ldap` or `radius` is absent, its stored configuration remains
    unchanged."""

    firstFactor: AnyFirstFactor
    ldap: Members | None = Field(default=None, description="Configuration of the directory, for `ldap`.")
    radius: Members | None = Field(default=None, description="Configuration of the RADIUS servers, for `radius`.")

    def given(self) -> dict[str, Values]:
        """Return the configurations that the body contains, by kind: `ldap`, `radius`."""
        return {name: values for name, values in (("ldap", self.ldap), ("radius", self.radius)) if values is not None}


class DomainFirstFactor(Success):
    """Response body of the operation `GetFirstFactor`."""

    domainId: int = Field(description="Id of the domain.")
    firstFactor: FirstFactor = Field(description="First factor of the domain's logins.")
    ldap: Values | None = Field(
        default=None,
        description="Configuration of the directory as an admin set it, without secrets; null if none was set.",
    )
    radius: Values | None = Field(
        default=None,
        description="Configuration of the RADIUS servers as an admin set it, without secrets; null if none was set.",
    )


class CheckFirstFactor(InDomain):
    """Request body of the operation `CheckFirstFactor`: a name and a password as a user types them at a device."""

    userName: Annotated[PlainText, Field(min_length=1, max_length=253)] = Field(
        description="User-Name as a user types it at a device, with or without a realm."
    )
    password: Octets = Field(description="Password of the user.")
    mschap: Flag = Field(default=False, description="Send the password by MS-CHAPv2 instead of PAP.")


class FirstFactorSet(Done):
    """Response body of the operation `SetFirstFactor`."""

    warnings: list[str] = Field(
        description="Servers that the setting `egress` does not allow, and settings without effect; empty without any."
    )


class FirstFactorChecked(Success):
    """Response body of the operation `CheckFirstFactor`."""

    message: str = Field(description="Result of the last step, as a sentence.")
    reason: str = Field(description="Reason why the login would be refused; empty if the password is correct.")
    steps: list[str] = Field(description="Steps of the check, in order.")


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
        - web: no password is checked. The user signs in at the identity provider of the MFA provider `own`, which
          checks both factors. 409: this provider, or an enabled login rule, does not fit.

        The configuration of `ldap` or `radius` may be left out if it was set before.
        """
        await service.set(domains.table.present(body.domainId), body.firstFactor, body.given())
        warnings = service.egress_warnings(body.domainId, body.firstFactor)
        if body.firstFactor is FirstFactor.WEB:
            warnings += domains.warnings(await domains.changed(body.domainId))
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
