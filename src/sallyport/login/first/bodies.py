"""The bodies and answers of /ad/GetFirstFactor, /ad/SetFirstFactor and /ad/CheckFirstFactor."""

from typing import Annotated

from pydantic import Field

from sallyport.base.model import Model
from sallyport.domains.bodies import AnyFirstFactor
from sallyport.domains.domain import FirstFactor
from sallyport.web.scope import Flag, InDomain, Members, Octets, PlainText

Values = dict[str, object]


class GetFirstFactor(InDomain):
    """Body of GetFirstFactor."""


class SetFirstFactor(InDomain):
    """Body of SetFirstFactor. What is left out stays as it was configured before."""

    firstFactor: AnyFirstFactor
    ldap: Members | None = None
    radius: Members | None = None

    def given(self) -> dict[str, Values]:
        """The fields of the kinds that are in the body."""
        return {name: values for name, values in (("ldap", self.ldap), ("radius", self.radius)) if values is not None}


class DomainFirstFactor(Model):
    """Answer of GetFirstFactor. ldap, radius: as they were set, without secrets; null where they never were."""

    code: int = 200
    status: str = "Success"
    domainId: int
    firstFactor: FirstFactor
    ldap: Values | None = None
    radius: Values | None = None


class CheckFirstFactor(InDomain):
    """Body of CheckFirstFactor: what a person would type at a device. mschap: which brings it by MS-CHAPv2, not PAP."""

    userName: Annotated[PlainText, Field(min_length=1, max_length=253)]
    password: Octets
    mschap: Flag = False


class FirstFactorChecked(Model):
    """Answer of CheckFirstFactor. reason: empty where the password is right. steps: what was done, in order."""

    code: int = 200
    status: str = "Success"
    message: str
    reason: str
    steps: list[str]
