"""An authority of a tenant: its trust anchors, its scope, the names that it gives, and its settings of revocation."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from sallyport.base.answer import Wire
from sallyport.base.clock import iso
from sallyport.base.text import fold
from sallyport.radius.eap.certificate_names import STRONG, NamedBy

MAX_AUTHORITIES: Final = 64
"""Maximum number of authorities of a tenant."""
MAX_OF_DOMAIN: Final = 16
"""Maximum number of authorities of a domain. A TLS context has the certificates of all of them."""
MAX_DOMAINS: Final = 256
"""Maximum number of domains of an authority."""
MAX_CERTIFICATES: Final = 32
"""Maximum number of certificates of an authority."""
MAX_NAME: Final = 64
MAX_LISTED: Final = 64
"""Maximum number of realms, groups or SID prefixes of an authority."""
MAX_ADDRESSES: Final = 8
"""Maximum number of addresses of revocation lists of an authority."""
DEFAULT_NAMES: Final = (NamedBy.UPN, NamedBy.MAIL, NamedBy.DNS, NamedBy.COMMON_NAME)
NAMES_TEXT: Final = (
    "Fields of a certificate that may name its holder, in order of precedence. The first field that the certificate "
    "has decides. Strong: sid (security identifier of Active Directory), object-id (of Entra ID). Weak, because they "
    "may be given to another holder later: upn, mail, dns, cn (common name), serial (serialNumber of the subject)."
)
KINDS_TEXT: Final = "Kinds of holders for which the authority may speak: people, machines."
REALMS_TEXT: Final = (
    "Realms, or UPN suffixes, of the holders for which the authority may speak. Empty: all realms of the domain."
)
GROUPS_TEXT: Final = "Groups of which a holder must be a member, at least of one. Empty: the holder needs no group."
PREFIXES_TEXT: Final = (
    "Beginnings of the SIDs of the holders, such as S-1-5-21-1-2-3 for one domain of Active Directory. A holder whose "
    "SID is unknown is then outside the scope. Empty: any SID, or none."
)
STRONG_TEXT: Final = "Whether only strong names are accepted: sid, object-id."
REVOCATION_TEXT: Final = (
    "What happens if it is unknown whether a certificate is revoked: soft accepts it, hard refuses it. A certificate "
    "that is known as revoked is always refused."
)
CRL_TEXT: Final = "Addresses of revocation lists (HTTP). Empty: the addresses in the certificates."
OCSP_TEXT: Final = "Address of the OCSP responder (HTTP). Empty: the addresses in the certificates."
NONCE_TEXT: Final = "Whether requests to the OCSP responder have a nonce (RFC 9654)."
ADDRESSES_TEXT: Final = (
    "Whether the addresses in the certificates of a verified chain are used, if no address is configured."
)


class HolderKind(StrEnum):
    """A kind of holder of certificates."""

    PEOPLE = "people"
    MACHINES = "machines"


class Revocation(StrEnum):
    """What happens if it is unknown whether a certificate is revoked."""

    SOFT = "soft"
    HARD = "hard"


@dataclass(frozen=True, slots=True)
class Anchor:
    """A certificate of a bundle. key: the SHA-256 of its SubjectPublicKeyInfo, in hex. until: the end of its validity,
    in microseconds. key_id: its SubjectKeyIdentifier, in hex; empty if it has none, or if an earlier build has stored
    it."""

    key: Annotated[str, Wire("SHA-256 of the public key (SubjectPublicKeyInfo), in hex.", look="code")]
    subject: Annotated[str, Wire("Subject of the certificate.")]
    until: Annotated[int, Wire("End of its validity, ISO 8601 UTC.", "validUntil", iso)]
    key_id: str = ""

    def is_confusable(self, other: "Anchor") -> bool:
        """Whether TLS cannot tell two anchors apart when it looks for the issuer of a certificate: by the subject and
        the key identifier (RFC 5280 section 4.2.1.1). A missing identifier equals every other one."""
        is_same_name = " ".join(fold(self.subject).split()) == " ".join(fold(other.subject).split())
        return is_same_name and (self.key_id == other.key_id or not (self.key_id and other.key_id))


def shown_anchors(anchors: tuple[Anchor, ...]) -> list[dict[str, object]]:
    """Return anchors as answers have them."""
    return [{"key": each.key, "subject": each.subject, "validUntil": iso(each.until)} for each in anchors]


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority of a tenant.

    certificates: the bundle in PEM. anchors: its certificates: trust anchors, and intermediate certificates below them
    (`radius.eap.trust`). version: a number that grows with each change.
    """

    id: Annotated[int, Wire("Id of the authority.", "authorityId", title="Id")]
    tenant_id: int
    name: Annotated[str, Wire("Name of the authority; unique in the tenant.", title="Authority")]
    certificates: Annotated[str, Wire("Certificates in PEM.", detail=True)]
    anchors: Annotated[
        tuple[Anchor, ...],
        Wire(
            "Certificates of the bundle. One that another one of them has signed is an intermediate certificate; all "
            "others are trust anchors.",
            convert=shown_anchors,
            look="none",
        ),
    ]
    domain_ids: Annotated[
        tuple[int, ...],
        Wire("Ids of the domains whose users may log in with its certificates.", "domainIds", list, list[int]),
    ] = ()
    kinds: Annotated[tuple[HolderKind, ...], Wire(KINDS_TEXT, convert=list, kind=list[HolderKind])] = tuple(HolderKind)
    realms: Annotated[tuple[str, ...], Wire(REALMS_TEXT, convert=list, kind=list[str])] = ()
    groups: Annotated[tuple[str, ...], Wire(GROUPS_TEXT, convert=list, kind=list[str])] = ()
    sid_prefixes: Annotated[tuple[str, ...], Wire(PREFIXES_TEXT, "sidPrefixes", list, list[str])] = ()
    names: Annotated[tuple[NamedBy, ...], Wire(NAMES_TEXT, convert=list, kind=list[NamedBy])] = DEFAULT_NAMES
    strong_only: Annotated[bool, Wire(STRONG_TEXT, "strongOnly", title="Only strong names")] = False
    revocation: Annotated[Revocation, Wire(REVOCATION_TEXT)] = Revocation.SOFT
    crl_addresses: Annotated[tuple[str, ...], Wire(CRL_TEXT, "crlAddresses", list, list[str], title="CRLs")] = ()
    ocsp_address: Annotated[str, Wire(OCSP_TEXT, "ocspAddress", title="OCSP")] = ""
    ocsp_nonce: Annotated[bool, Wire(NONCE_TEXT, "ocspNonce", title="Nonce")] = False
    use_certificate_addresses: Annotated[
        bool, Wire(ADDRESSES_TEXT, "useCertificateAddresses", title="Addresses of certificates")
    ] = True
    version: int = 1

    @Wire("Warnings, such as another authority that may speak for the same users.", kind=list[str])
    def warnings(self, warnings: Mapping[int, list[str]]) -> list[str]:
        """Return the warnings about the authority. warnings: those of all authorities by id (`overlaps`)."""
        return warnings.get(self.id, [])

    @property
    def keys(self) -> frozenset[str]:
        """The SHA-256 of the SubjectPublicKeyInfo of each certificate of the bundle, in hex."""
        return frozenset(each.key for each in self.anchors)

    @property
    def stamp(self) -> str:
        """A text that changes with each change of the authority."""
        return f"{self.id}.{self.version}"

    @property
    @Wire("Strong names that the authority can give.", "strongNames", after="names", kind=list[NamedBy], look="none")
    def strong_names(self) -> list[NamedBy]:
        """The strong names that the authority can give."""
        return [each for each in self.names if each in STRONG]


@dataclass(frozen=True, slots=True)
class AuthorityTable:
    """The authorities of all tenants: by id, by tenant in the order of their names, and by domain."""

    by_id: Mapping[int, Authority] = field(default_factory=dict)
    by_tenant: Mapping[int, tuple[Authority, ...]] = field(default_factory=dict)
    by_domain: Mapping[int, tuple[Authority, ...]] = field(default_factory=dict)
    stored: Mapping[int, object] = field(default_factory=dict)

    @classmethod
    def of(cls, authorities: Iterable[Authority], stored: Mapping[int, object]) -> "AuthorityTable":
        """Return a table. stored: the rows from which the authorities were made, by id."""
        by_id = {each.id: each for each in authorities}
        tenants: dict[int, list[Authority]] = {}
        domains: dict[int, list[Authority]] = {}
        for each in sorted(by_id.values(), key=lambda each: fold(each.name)):
            tenants.setdefault(each.tenant_id, []).append(each)
            for domain_id in each.domain_ids:
                domains.setdefault(domain_id, []).append(each)
        return cls(
            by_id,
            {tenant_id: tuple(several) for tenant_id, several in tenants.items()},
            {domain_id: tuple(several) for domain_id, several in domains.items()},
            stored,
        )
