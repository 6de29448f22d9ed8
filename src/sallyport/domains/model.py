"""What a domain is, in the service and in the interface."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from sallyport.web.paging import ShortPaged
from sallyport.web.scope import Name, Scoped, Text, Whole


class Mode(StrEnum):
    """monitor records what enforce would have done; both are decided by the same function."""

    MONITOR = "monitor"
    ENFORCE = "enforce"


class Fallback(StrEnum):
    """What happens in enforce mode to a login whose second factor cannot be asked."""

    DENY = "deny"
    ALLOW = "allow"


class FirstFactor(StrEnum):
    """Who checks the password of a domain's logins."""

    LOCAL = "local"
    LDAP = "ldap"
    RADIUS = "radius"
    NONE = "none"


class Domain:
    """A domain as the login path sees it."""

    __slots__ = ("factor", "fallback", "first_factor", "id", "label", "mode", "name", "realms", "status", "tenant_id")

    def __init__(
        self,
        *,
        id: int,
        tenant_id: int,
        name: str,
        enforcement_mode: str,
        fallback_action: str,
        first_factor: str,
        status: str,
        realms: str,
    ) -> None:
        self.id = id
        self.tenant_id = tenant_id
        self.name = name
        self.mode = Mode(enforcement_mode)
        self.fallback = Fallback(fallback_action)
        self.first_factor = FirstFactor(first_factor)
        self.factor = str(first_factor)
        self.status = status
        self.realms = tuple(realms.split("\n")) if realms else ()
        self.label = str(id)


class DomainTable:
    """All domains of the installation, by id, by tenant and by realm."""

    def __init__(self, domains: Iterable[Domain] = ()) -> None:
        self.by_id = {domain.id: domain for domain in domains}
        self.by_tenant: dict[int, list[Domain]] = {}
        self._by_realm: dict[tuple[int, str], Domain] = {}
        for domain in self.by_id.values():
            self.by_tenant.setdefault(domain.tenant_id, []).append(domain)
            for realm in (domain.name, *domain.realms):
                self._by_realm.setdefault((domain.tenant_id, realm.casefold()), domain)

    def by_realm(self, tenant_id: int, realm: str) -> Domain | None:
        """The tenant's domain whose name or realm this is, in any case."""
        return self._by_realm.get((tenant_id, realm.casefold()))


def _mode(value: object) -> object:
    text = value.casefold() if isinstance(value, str) else value
    return {"monitoring": "monitor", "enforcing": "enforce"}.get(text, text) if isinstance(text, str) else value


def _lower(value: object) -> object:
    return value.casefold() if isinstance(value, str) else value


AnyMode = Annotated[Mode, BeforeValidator(_mode)]
AnyFallback = Annotated[Fallback, BeforeValidator(_lower)]
AnyFirstFactor = Annotated[FirstFactor, BeforeValidator(_lower)]


class GetAllDomains(Scoped, ShortPaged):
    """Body of GetAllDomains."""


class DomainEntry(BaseModel):
    """A domain in the list; the fields after `status` are additions to the interface."""

    domainId: int
    domainName: str
    enforcementMode: Mode
    status: str
    fallbackAction: Fallback
    firstFactor: FirstFactor
    realms: list[str]


class DomainList(BaseModel):
    """Answer of GetAllDomains."""

    domains: list[DomainEntry]
    totalCount: int


class AddDomain(Scoped):
    """Body of AddDomain."""

    domainName: Name
    directoryName: Text = ""
    enforcementMode: AnyMode = Mode.MONITOR
    fallbackAction: AnyFallback = Fallback.DENY
    firstFactor: AnyFirstFactor = FirstFactor.LOCAL
    realms: list[Name] = Field(default_factory=list, max_length=64)


class DomainAdded(BaseModel):
    """Answer of AddDomain."""

    code: int = 200
    status: str = "Success"
    message: str
    domainId: int


class UpdateDomainEnforcement(Scoped):
    """Body of updateDomainEnforcement; the domain may be called adId."""

    domainId: Whole = Field(validation_alias=AliasChoices("domainId", "adId"))
    enforcementMode: AnyMode
    fallbackAction: AnyFallback | None = None

    def claimed_domains(self) -> Sequence[int]:
        return (self.domainId,)


class EnforcementUpdated(BaseModel):
    """What is now stored, and what the admin should know about it."""

    code: int = 200
    status: str = "Success"
    message: str
    domainId: int
    enforcementMode: Mode
    fallbackAction: Fallback
    warnings: list[str]
