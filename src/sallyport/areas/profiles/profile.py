"""A profile: the networks that a device joins, and how it logs in there."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar, Final
from uuid import UUID, uuid4, uuid5

from sallyport.areas.domains.domain import Domain, FirstFactor
from sallyport.base.answer import Wire, field_names
from sallyport.base.clock import iso

MAX_PROFILES: Final = 50
"""Maximum number of profiles in a domain."""
MAX_NAME: Final = 64
MAX_SSIDS: Final = 16
MAX_SSID_OCTETS: Final = 32
"""Maximum length of an SSID in octets (IEEE 802.11)."""
MAX_SERVER_NAMES: Final = 16
MAX_IDENTITY: Final = 253
"""Maximum length of an outer identity, as of a User-Name in octets."""
MAX_ANCHORS: Final = 4
"""Maximum number of authorities in a profile, such as a root and its cross-signed form."""

HOST: Final = re.compile(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)*[a-z]([a-z0-9-]*[a-z0-9])?", re.ASCII)
"""A DNS name in lower case, and no address. It has no wildcard, because Windows accepts no certificate with a wildcard
for EAP."""
_REALM: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", re.ASCII)


class Method(StrEnum):
    """How a device proves who its user is."""

    TLS = "tls"
    PEAP = "peap"
    TTLS_PAP = "ttls-pap"
    TTLS_MSCHAPV2 = "ttls-mschapv2"

    @property
    def eap_type(self) -> int:
        """The number of the EAP method (RFC 5216, RFC 5281, and Microsoft's PEAP)."""
        return {Method.TLS: 13, Method.PEAP: 25}.get(self, 21)

    @property
    def has_password(self) -> bool:
        """Whether the user types a password."""
        return self is not Method.TLS

    @property
    def label(self) -> str:
        """The name for people."""
        return {
            Method.TLS: "EAP-TLS with a client certificate",
            Method.PEAP: "PEAP with MSCHAPv2",
            Method.TTLS_PAP: "TTLS with PAP",
            Method.TTLS_MSCHAPV2: "TTLS with MSCHAPv2",
        }[self]


class Security(StrEnum):
    """The security of a Wi-Fi network. WPA2 includes networks that offer WPA2 and WPA3."""

    WPA2 = "wpa2"
    WPA3 = "wpa3"


class LoginBy(StrEnum):
    """Who logs in on Windows and macOS: the signed-in person, the machine, or the machine until a person signs in."""

    PERSON = "person"
    MACHINE = "machine"
    BOTH = "both"


SSIDS_TEXT: Final = f"SSID of a Wi-Fi network: 1 to {MAX_SSID_OCTETS} octets of UTF-8."
HIDDEN_TEXT: Final = "Whether the access points hide the SSIDs."
SECURITY_TEXT: Final = "wpa2 joins WPA2-Enterprise and WPA3-Enterprise networks, wpa3 only WPA3-Enterprise."
WIRED_TEXT: Final = "Whether there are files for a wired network with 802.1X."
METHOD_TEXT: Final = "EAP method, and the method inside its tunnel. peap contains MSCHAPv2."
LOGIN_TEXT: Final = "Who logs in on Windows and macOS: person, machine, or both."
OUTER_TEXT: Final = (
    "Identity that devices send outside the tunnel, such as anonymous@corp.example. Its realm selects the domain."
)
NAMES_TEXT: Final = "Name that the server's certificate must have. Empty: the DNS names of the present certificate."
ANCHORS_TEXT: Final = (
    "Certificates of the authority that issued the server's certificate, in PEM. Empty: the root in the server's files."
)
LINK_TEXT: Final = "When the link of the profile expires, ISO 8601 UTC. Empty: there is no link."


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile as it is stored. uuid: the namespace of the UUIDs in the files. link_expires_at: in microseconds, or
    null if the profile has no link."""

    id: Annotated[int, Wire("Id of the profile.", "profileId", title="Id")]
    domain_id: Annotated[int, Wire("Id of the domain.", "domainId", look="none")]
    name: Annotated[str, Wire("Name of the profile, unique in the domain.", title="Profile")]
    uuid: UUID
    ssids: Annotated[tuple[str, ...], Wire(SSIDS_TEXT, convert=list, kind=list[str], title="Wi-Fi networks")] = ()
    hidden: Annotated[bool, Wire(HIDDEN_TEXT)] = False
    security: Annotated[Security, Wire(SECURITY_TEXT)] = Security.WPA2
    wired: Annotated[bool, Wire(WIRED_TEXT)] = False
    method: Annotated[Method, Wire(METHOD_TEXT, title="Method", look="none")] = Method.PEAP
    login_by: Annotated[LoginBy, Wire(LOGIN_TEXT, "loginBy", title="Logs in")] = LoginBy.PERSON
    outer_identity: Annotated[str, Wire(OUTER_TEXT, "outerIdentity", title="Outer identity")] = ""
    server_names: Annotated[
        tuple[str, ...], Wire(NAMES_TEXT, "serverNames", convert=list, kind=list[str], title="Server names")
    ] = ()
    anchors: Annotated[str, Wire(ANCHORS_TEXT, "anchors", look="none")] = ""
    link_expires_at: Annotated[int | None, Wire(LINK_TEXT, "linkExpiresAt", iso, empty=True, title="Link expires")] = (
        None
    )
    warnings: ClassVar[Annotated[list[str], Wire("Hints on the profile.", look="none")]]

    def part(self, name: str) -> str:
        """Return the UUID of a part of the files, in capitals. It depends on the profile and the name of the part."""
        return str(uuid5(self.uuid, name)).upper()


SETTINGS: Final = {
    name: own
    for name, own in field_names(Profile).items()
    if name not in ("profileId", "domainId", "name", "linkExpiresAt", "warnings")
}
"""The field of `Profile` for each setting, by its name in bodies."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """An authority that a device trusts for the server. der: its certificate. sha1: its thumbprint in hex, which is how
    Windows names a certificate in the store of trusted roots."""

    name: str
    der: bytes
    pem: str
    sha1: str


@dataclass(frozen=True, slots=True)
class Trust:
    """What a device must know of the server: its names and its authorities. warnings: hints on certificates of the
    server that devices would refuse."""

    server_names: Sequence[str] = ()
    anchors: Sequence[Anchor] = ()
    warnings: Sequence[str] = ()


def new_profile(domain: Domain, name: str) -> Profile:
    """Return a profile that is not stored yet. It has a method that the first factor of the domain can check, and an
    outer identity with the realm of the domain."""
    method = Method.TTLS_PAP if domain.first_factor is FirstFactor.LDAP else Method.PEAP
    return Profile(0, domain.id, name, uuid4(), method=method, outer_identity=_identity(domain))


def _identity(domain: Domain) -> str:
    """Return an outer identity that hides the user and selects the domain. Return an empty text if neither the name nor
    a realm of the domain can be a realm."""
    named = (each for each in (*domain.realms, domain.name) if "." in each and _REALM.fullmatch(each))
    realm = next(named, domain.name if _REALM.fullmatch(domain.name) else "")
    return f"anonymous@{realm}" if realm else ""


def warnings_of(profile: Profile, domain: Domain) -> list[str]:
    """Return hints on a profile that cannot work as the domain is set up."""
    found = []
    if domain.first_factor in (FirstFactor.NONE, FirstFactor.WEB):
        name = domain.first_factor
        found.append(f"the domain's first factor is {name}, so Sallyport does not answer EAP: set another first factor")
    if domain.first_factor is FirstFactor.LDAP and profile.method in (Method.PEAP, Method.TTLS_MSCHAPV2):
        found.append("an LDAP server cannot check MSCHAPv2 without winbind: use ttls-pap or tls, or set up winbind")
    if profile.login_by is not LoginBy.PERSON and profile.method.has_password:
        if profile.method is not Method.PEAP:
            found.append(f"a machine has no password for {profile.method.label}: use tls or peap for machines")
        if domain.first_factor is FirstFactor.LOCAL:
            found.append(
                "the domain's first factor is local, which knows no passwords of machines: use tls for machines"
            )
    return found
