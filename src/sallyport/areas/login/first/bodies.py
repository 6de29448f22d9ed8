"""Request and response bodies of /ad/GetFirstFactor, /ad/SetFirstFactor and /ad/CheckFirstFactor."""

from typing import Annotated

from pydantic import Field

from sallyport.areas.domains.bodies import AnyFirstFactor
from sallyport.areas.domains.domain import FirstFactor
from sallyport.base.model import Done, Success
from sallyport.web.scope import Flag, InDomain, Members, Octets, PlainText

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

    warnings: list[str] = Field(description="Servers that the setting `egress` does not allow; empty without any.")


class FirstFactorChecked(Success):
    """Response body of the operation `CheckFirstFactor`."""

    message: str = Field(description="Result of the last step, as a sentence.")
    reason: str = Field(description="Reason why the login would be refused; empty if the password is correct.")
    steps: list[str] = Field(description="Steps of the check, in order.")
