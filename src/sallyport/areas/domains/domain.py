"""A domain, and the table of all domains."""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from sallyport.base.answer import Wire, field_names
from sallyport.base.clock import iso
from sallyport.base.errors import NotFound
from sallyport.base.text import fold


class Mode(StrEnum):
    """The mode of a domain. In enforce mode, the decision about a login is applied. In monitor mode, the same decision
    is only recorded."""

    MONITOR = "monitor"
    ENFORCE = "enforce"


class Fallback(StrEnum):
    """The outcome of a login in enforce mode if the second factor is not available."""

    DENY = "deny"
    ALLOW = "allow"


class FirstFactor(StrEnum):
    """The system that checks the passwords of a domain's logins. `none` means that the RADIUS client has checked them.
    `web` means that no password is checked: the company's identity provider checks both factors on a page."""

    LOCAL = "local"
    LDAP = "ldap"
    RADIUS = "radius"
    NONE = "none"
    WEB = "web"


class UnknownStations(StrEnum):
    """What happens to stations that ask for admission by their MAC address and are not on the domain's list. `rules`
    means that login rules decide about them."""

    REJECT = "reject"
    RULES = "rules"


class RuleOrder(StrEnum):
    """The order in which the login rules of a domain are read. `identity`: rules with users first, then those with
    groups, then those with OUs, then all others, and by priority within each of these kinds. `listed`: by priority
    alone, as other RADIUS servers read their policies."""

    IDENTITY = "identity"
    LISTED = "listed"


class CertificateNames(StrEnum):
    """The names of users in client certificates that a domain accepts. A strong name never belongs to another user
    later."""

    ANY = "any"
    STRONG = "strong"


class Effect(StrEnum):
    """The effect of enforcing on the logins of a user or a device.

    `unknown` means that the outcome depends on an enrolment that the service has not looked up.
    """

    ACCEPT = "accept"
    CHALLENGE = "challenge"
    REJECT = "reject"
    UNKNOWN = "unknown"


MAX_REALMS: Final = 64
"""Maximum number of realms that a domain has in addition to its name."""
MAX_ISSUER_LENGTH: Final = 64
"""Maximum size of an issuer name in octets of UTF-8. A longer name would not fit into a QR code."""
DAY_H: Final = 24
MAX_AGE_H: Final = 720
"""Default and maximum of the age in hours that the data of a cloud directory may have."""
LOCAL: Final = FirstFactor.LOCAL
WEB: Final = FirstFactor.WEB
RULES: Final = UnknownStations.RULES
MONITOR: Final = Mode.MONITOR
MODE_TEXT: Final = "monitor only records what enforce would do. enforce requires the second factor."
FALLBACK_TEXT: Final = "Outcome of a login in enforce mode if no second factor is available: deny or allow."
FIRST_FACTOR_TEXT: Final = (
    "System that checks passwords. none means that the RADIUS client has checked them. web means that no password is "
    "checked: the company's identity provider checks both factors on a page."
)
ISSUER_TEXT: Final = "Issuer that authenticator apps show. If it is empty, they show the name of the domain."
UNKNOWN_TEXT: Final = (
    "Stations that ask for admission by their MAC address and are not on the list: reject, or rules. With rules, an "
    "allow rule that names the kind unknown and has a VLAN or role admits them."
)
ORDER_TEXT: Final = (
    "Order in which login rules are read: identity, which reads rules with users, groups and OUs before the others, or "
    "listed, which reads by priority alone."
)
MAX_AGE_TEXT: Final = (
    "Hours after which the data of a cloud directory are too old for logins by certificate, from 1 to 720."
)
STALE_TEXT: Final = (
    "Outcome of a login by certificate if the data of the user's cloud directory are older: deny or allow."
)
NAMES_TEXT: Final = (
    "Names of users in client certificates (EAP-TLS) that are accepted: any, or strong ones alone, which are the SID "
    "and the object id of Entra ID. Only authorities of the domain can give strong names."
)
MAX_REMEMBER_H: Final = 2160
"""Maximum of the hours for which a domain remembers stations: 90 days."""
REMEMBER_TEXT: Final = (
    "Hours for which a user is not asked again at the same station after a strong second factor, from 0 (never) to "
    "2160. A station is a MAC address from a switch or an access point, or a client certificate."
)
LOCK_TEXT: Final = (
    'Whether a user who says "not me" to a prompt is locked until an operator unlocks the user. Otherwise the user '
    "gets no prompt for ten minutes."
)
DIRECTORY_TEXT: Final = "Display name of the domain's directory."


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """A domain, with the values that the login path needs.

    reverts_at: the time in microseconds at which the mode is reverted, or None. revert_set_at: the time at which an
    admin set `reverts_at`. realm_keys: the name and the realms in the form for comparison, in this order; if empty,
    they are folded here. factor: the first factor as text, for events. applied_mode, applied_fallback: the mode and the
    fallback that decide logins. With the first factor `web`, they are always `enforce` and `deny`: monitor mode and the
    fallback accept logins whose password is right, and here no password is checked.
    """

    id: Annotated[int, Wire("Id of the domain.", "domainId", title="Id")]
    tenant_id: int
    name: Annotated[str, Wire("Name of the domain; unique in the tenant.", "domainName", title="Domain")]
    _: KW_ONLY
    mode: Annotated[Mode, Wire(MODE_TEXT, "enforcementMode", title="Mode")] = MONITOR
    status: Annotated[str, Wire("active.", look="none")] = "active"
    fallback: Annotated[Fallback, Wire(FALLBACK_TEXT, "fallbackAction", title="Without a second factor")] = (
        Fallback.DENY
    )
    first_factor: Annotated[FirstFactor, Wire(FIRST_FACTOR_TEXT, "firstFactor")] = LOCAL
    realms: Annotated[
        tuple[str, ...],
        Wire(
            "Realms that select this domain in addition to its name, such as REALM in user@REALM.",
            convert=list,
            kind=list[str],
            title="Further realms",
        ),
    ] = ()
    reverts_at: Annotated[
        int | None,
        Wire(
            "Time when the mode is reverted, ISO 8601 UTC. Empty if the mode stays.",
            "revertsAt",
            iso,
            empty=True,
            title="Mode reverts",
        ),
    ] = None
    glass_mode: Annotated[
        Mode | None,
        Wire(
            "During break-glass, the mode to which the domain returns at its end, `monitor` or `enforce`. `revertsAt` "
            "then belongs to this mode. Empty without break-glass.",
            "breakGlass",
            empty=True,
            look="none",
        ),
    ] = None
    disconnect_on_revoke: Annotated[
        bool,
        Wire(
            "Whether live sessions end when their user loses access.",
            "disconnectOnRevoke",
            title="Disconnects on revoke",
        ),
    ] = False
    directory_name: Annotated[str, Wire(DIRECTORY_TEXT, "directoryName")] = ""
    issuer_name: Annotated[str, Wire(ISSUER_TEXT, "issuerName", title="Issuer in apps")] = ""
    unknown_stations: Annotated[
        UnknownStations, Wire(UNKNOWN_TEXT, "unknownStations", title="Unknown stations", look="none")
    ] = UnknownStations.REJECT
    rule_order: Annotated[RuleOrder, Wire(ORDER_TEXT, "ruleOrder", title="Order of login rules", look="none")] = (
        RuleOrder.IDENTITY
    )
    directory_max_age_h: Annotated[
        int, Wire(MAX_AGE_TEXT, "directoryMaxAgeHours", title="Longest age of directory data", look="none")
    ] = DAY_H
    stale_directory: Annotated[
        Fallback, Wire(STALE_TEXT, "staleDirectoryAction", title="With older directory data", look="none")
    ] = Fallback.DENY
    certificate_names: Annotated[
        CertificateNames, Wire(NAMES_TEXT, "certificateNames", title="Names in certificates", look="none")
    ] = CertificateNames.ANY
    remember_h: Annotated[int, Wire(REMEMBER_TEXT, "rememberHours", title="Remembers stations for", look="none")] = 0
    lock_on_not_me: Annotated[bool, Wire(LOCK_TEXT, "lockOnNotMe", title='Locks after "not me"', look="none")] = False
    warnings: ClassVar[
        Annotated[list[str], Wire("Hints on the domain's mode and MFA provider, such as a missing provider.")]
    ]
    revert_set_at: int | None = None
    realm_keys: tuple[str, ...] = ()
    factor: str = field(init=False)
    applied_mode: Mode = field(init=False)
    applied_fallback: Fallback = field(init=False)

    @property
    def label(self) -> str:
        """The value of the label `domain` in metrics."""
        return str(self.id)

    @property
    def issuer(self) -> str:
        """The issuer that authenticator apps show."""
        return self.issuer_name or self.name

    def __post_init__(self) -> None:
        is_web = self.first_factor is WEB
        object.__setattr__(self, "factor", self.first_factor.value)
        object.__setattr__(self, "applied_mode", Mode.ENFORCE if is_web else self.mode)
        object.__setattr__(self, "applied_fallback", Fallback.DENY if is_web else self.fallback)
        if not self.realm_keys:
            object.__setattr__(self, "realm_keys", (*folded_realms((self.name, *self.realms)).values(),))


SETTINGS: Final = {
    name: field
    for name, field in field_names(Domain).items()
    if name not in ("domainId", "domainName", "status", "revertsAt", "breakGlass", "warnings")
}
"""The field of `Domain` for each setting that a new domain can have, by its name in bodies."""


def folded_realms(realms: Iterable[str]) -> Mapping[str, str]:
    """Return the form for comparison of each realm. A hostile realm takes 0.4 ms, so call this function in a worker
    thread, and not in a transaction."""
    return {realm: fold(realm) for realm in realms}


class DomainTable:
    """All domains of the installation, by id, by tenant and by realm."""

    def __init__(self, domains: Iterable[Domain] = ()) -> None:
        self.by_id = {domain.id: domain for domain in domains}
        self.by_tenant: dict[int, list[Domain]] = {}
        self._by_realm: dict[tuple[int, str], Domain] = {}
        for domain in self.by_id.values():
            self.by_tenant.setdefault(domain.tenant_id, []).append(domain)
            for key in domain.realm_keys:
                self._by_realm.setdefault((domain.tenant_id, key), domain)

    def present(self, domain_id: int) -> Domain:
        """Return the domain with an id. Raises NotFound if the domain does not exist."""
        found = self.by_id.get(domain_id)
        if found is None:
            raise NotFound("no such domain")
        return found

    def by_realm(self, tenant_id: int, realm: str) -> Domain | None:
        """Return the tenant's domain with a name or realm, or None. The comparison is case-insensitive."""
        return self._by_realm.get((tenant_id, fold(realm)))
