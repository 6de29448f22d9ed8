"""What a domain is, in the service and in the interface."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, model_validator

from sallyport.base.errors import FieldError, Invalid, invalid_field
from sallyport.base.model import Model
from sallyport.base.text import fold
from sallyport.base.validation import Between, unfit
from sallyport.domains.impact import Summary
from sallyport.web.paging import ShortPaged
from sallyport.web.scope import Flag, Name, Scoped, Text, Whole

LONGEST_REVERT_MINUTES: Final = 10_080
"""A week: a change that nobody has confirmed for so long was forgotten, not tried."""


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


LOCAL: Final = FirstFactor.LOCAL
MONITOR: Final = Mode.MONITOR


class Domain:
    """A domain as the login path sees it.

    reverts_at, revert_set_at: when its mode ends by itself, and since when that stands, in microseconds; None: it
    stays. disconnect_on_revoke: whoever loses their access loses their sessions too.
    """

    __slots__ = (
        "directory_name", "disconnect_on_revoke", "factor", "fallback", "first_factor", "id", "label", "mode", "name",
        "realms", "revert_set_at", "reverts_at", "status", "tenant_id",
    )  # fmt: skip

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
        reverts_at: int | None = None,
        revert_set_at: int | None = None,
        disconnect_on_revoke: int = 0,
        directory_name: str = "",
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
        self.reverts_at = reverts_at
        self.revert_set_at = revert_set_at
        self.disconnect_on_revoke = bool(disconnect_on_revoke)
        self.directory_name = directory_name


class DomainTable:
    """All domains of the installation, by id, by tenant and by realm."""

    def __init__(self, domains: Iterable[Domain] = ()) -> None:
        self.by_id = {domain.id: domain for domain in domains}
        self.by_tenant: dict[int, list[Domain]] = {}
        self._by_realm: dict[tuple[int, str], Domain] = {}
        for domain in self.by_id.values():
            self.by_tenant.setdefault(domain.tenant_id, []).append(domain)
            for realm in (domain.name, *domain.realms):
                self._by_realm.setdefault((domain.tenant_id, fold(realm)), domain)

    def by_realm(self, tenant_id: int, realm: str) -> Domain | None:
        """The tenant's domain whose name or realm this is, in any case."""
        return self._by_realm.get((tenant_id, fold(realm)))


def _mode(value: object) -> object:
    text = value.casefold() if isinstance(value, str) else value
    return {"monitoring": "monitor", "enforcing": "enforce"}.get(text, text) if isinstance(text, str) else value


def _lower(value: object) -> object:
    return value.casefold() if isinstance(value, str) else value


AnyMode = Annotated[Mode, BeforeValidator(_mode)]
AnyFallback = Annotated[Fallback, BeforeValidator(_lower)]
AnyFirstFactor = Annotated[FirstFactor, BeforeValidator(_lower)]


def _realm(value: str) -> str:
    if value != value.strip() or "@" in value or "\\" in value:
        raise unfit("a realm as it stands behind user@ or before \\user")
    return value


Realm = Annotated[Name, AfterValidator(_realm)]
"""What also chooses a domain; what no User-Name can have there is refused."""
RevertAfter = Annotated[Whole, Between(1, LONGEST_REVERT_MINUTES)]


class GetAllDomains(Scoped, ShortPaged):
    """Body of GetAllDomains."""


class DomainEntry(Model):
    """A domain in the list; the fields after `status` are additions to the interface. revertsAt: ISO 8601, when its
    mode ends by itself; empty where it stays."""

    domainId: int
    domainName: str
    enforcementMode: Mode
    status: str
    fallbackAction: Fallback
    firstFactor: FirstFactor
    realms: list[str]
    revertsAt: str
    disconnectOnRevoke: bool
    directoryName: str


class DomainList(Model):
    """Answer of GetAllDomains."""

    domains: list[DomainEntry]
    totalCount: int


class AddDomain(Scoped):
    """Body of AddDomain. disconnectOnRevoke: a user who is deleted, or loses a group that a login rule names, loses
    live sessions too."""

    domainName: Name
    directoryName: Text = ""
    enforcementMode: AnyMode = Mode.MONITOR
    fallbackAction: AnyFallback = Fallback.DENY
    firstFactor: AnyFirstFactor = FirstFactor.LOCAL
    realms: list[Realm] = Field(default_factory=list, max_length=64)
    disconnectOnRevoke: Flag = False


class DomainAdded(Model):
    """Answer of AddDomain. warnings: what an admin should know about the domain's mode."""

    code: int = 200
    status: str = "Success"
    message: str
    domainId: int
    warnings: list[str]


class UpdateDomainEnforcement(Scoped):
    """Body of updateDomainEnforcement; the domain may be called adId.

    requireClean: enforce only where nobody would be denied. revertAfterMinutes: go back to what was unless confirmed.
    confirm: keep what waits for it; then the mode may be left out.
    """

    domainId: Whole = Field(validation_alias=AliasChoices("domainId", "adId"))
    enforcementMode: AnyMode | None = None
    fallbackAction: AnyFallback | None = None
    requireClean: Flag = False
    revertAfterMinutes: RevertAfter | None = None
    confirm: Flag = False

    @model_validator(mode="before")
    @classmethod
    def _has_a_mode(cls, values: object) -> object:
        """A mode that is null is none, with `confirm` too."""
        if isinstance(values, dict) and "enforcementMode" in values and values["enforcementMode"] is None:
            raise invalid_field("enforcementMode", "monitor or enforce")
        return values

    @model_validator(mode="after")
    def _says_what_to_do(self) -> "UpdateDomainEnforcement":
        if self.enforcementMode is None and not self.confirm:
            raise Invalid("missing enforcementMode", (FieldError("enforcementMode", "monitor or enforce"),))
        if self.confirm and self.revertAfterMinutes is not None:
            raise unfit("revertAfterMinutes and confirm exclude each other", "revertAfterMinutes", "confirm")
        return self

    def claimed_domains(self) -> Sequence[int]:
        return (self.domainId,)


class EnforcementUpdated(Model):
    """What is now stored, and what the admin should know about it. revertsAt: ISO 8601, empty where the mode stays.
    preview: what enforcing does, where the domain was switched to it; null where that could not be told."""

    code: int = 200
    status: str = "Success"
    message: str
    domainId: int
    enforcementMode: Mode
    fallbackAction: Fallback
    warnings: list[str]
    revertsAt: str
    preview: Summary | None
