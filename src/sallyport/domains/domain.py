"""What a domain is, and the table of all domains."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from sallyport.base.text import fold


class Mode(StrEnum):
    """monitor records what enforce would have done; both are decided by the same function."""

    MONITOR = "monitor"
    ENFORCE = "enforce"


class Fallback(StrEnum):
    """Outcome of a login in enforce mode if no second factor is available."""

    DENY = "deny"
    ALLOW = "allow"


class FirstFactor(StrEnum):
    """Where the passwords of a domain's logins are checked."""

    LOCAL = "local"
    LDAP = "ldap"
    RADIUS = "radius"
    NONE = "none"


class Effect(StrEnum):
    """Outcome of logins; unknown: it depends on an enrolment that is not known."""

    ACCEPT = "accept"
    CHALLENGE = "challenge"
    REJECT = "reject"
    UNKNOWN = "unknown"


LOCAL: Final = FirstFactor.LOCAL
MONITOR: Final = Mode.MONITOR


class Domain:
    """A domain as the login path sees it.

    reverts_at, revert_set_at: when the mode is reverted, and when that was set, in microseconds; None: the mode stays.
    disconnect_on_revoke: live sessions end when a user loses access.
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
        """Return the tenant's domain with this name or realm, in upper or lower case."""
        return self._by_realm.get((tenant_id, fold(realm)))
