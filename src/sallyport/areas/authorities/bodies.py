"""Request and response bodies of the operations of authorities."""

import re
from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, AliasChoices, Field

from sallyport.areas.authorities.authority import (
    ADDRESSES_TEXT,
    CRL_TEXT,
    DEFAULT_NAMES,
    GROUPS_TEXT,
    KINDS_TEXT,
    MAX_ADDRESSES,
    MAX_DOMAINS,
    MAX_LISTED,
    MAX_NAME,
    NAMES_TEXT,
    NONCE_TEXT,
    OCSP_TEXT,
    PREFIXES_TEXT,
    REALMS_TEXT,
    REVOCATION_TEXT,
    STRONG_TEXT,
    Authority,
    HolderKind,
    Revocation,
)
from sallyport.base.addresses import is_host
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.validation import unfit
from sallyport.outgoing.pem import MAX_CERTIFICATES_LENGTH
from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.web.bodies import Flag, Id, Many, Name, Paged, Scoped, Search, Text, TotalCount, Whole

NAME: Final = "Name of the authority; unique in the tenant."
CERTIFICATES: Final = (
    "Certificates in PEM: a root, a root with its intermediates, or an issuing authority alone. One that "
    "another one has signed is an intermediate certificate; all others are trust anchors."
)
DOMAINS: Final = "Ids of the domains whose users may log in with its certificates."
_SID: Final = re.compile(r"S-1(-[0-9]{1,20}){1,15}", re.IGNORECASE)
_HTTP: Final = re.compile(r"https?://([^/?#@\[\]:\s]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[!-~]*)?", re.IGNORECASE)


def _prefix(value: str) -> str:
    if not _SID.fullmatch(value.strip()):
        raise unfit("must be the beginning of a SID, such as S-1-5-21-1-2-3")
    return value.strip().upper()


def _realm(value: str) -> str:
    found = value.strip().removeprefix("@")
    if not found or "@" in found or "\\" in found:
        raise unfit("must be a realm such as corp.example")
    return found


def _address(value: str) -> str:
    found = _HTTP.fullmatch(value.strip())
    if found is None or not is_host(found[1].strip("[]")):
        raise unfit("must be a URL such as http://pki.example.com/ca.crl")
    return value.strip()


def _address_or_none(value: str) -> str:
    return _address(value) if value.strip() else ""


def _each_once(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


AuthorityName = Annotated[Name, Field(max_length=MAX_NAME), AfterValidator(str.strip)]
Certificates = Annotated[str, Field(min_length=1, max_length=MAX_CERTIFICATES_LENGTH)]
"""Certificates in PEM. A worker thread reads them (`bundle.read_bundle`)."""
Address = Annotated[str, Field(max_length=1024), AfterValidator(_address)]
AddressOrNone = Annotated[str, Field(max_length=1024), AfterValidator(_address_or_none)]
Domains = Annotated[Many[Whole], Field(min_length=1, max_length=MAX_DOMAINS), AfterValidator(_each_once)]
Kinds = Annotated[Many[HolderKind], Field(min_length=1, max_length=2), AfterValidator(_each_once)]
Realms = Annotated[
    Many[Annotated[Text, AfterValidator(_realm)]], Field(max_length=MAX_LISTED), AfterValidator(_each_once)
]
Groups = Annotated[Many[Name], Field(max_length=MAX_LISTED), AfterValidator(_each_once)]
Prefixes = Annotated[
    Many[Annotated[Text, AfterValidator(_prefix)]], Field(max_length=MAX_LISTED), AfterValidator(_each_once)
]
Names = Annotated[Many[NamedBy], Field(min_length=1, max_length=len(NamedBy)), AfterValidator(_each_once)]
Addresses = Annotated[Many[Address], Field(max_length=MAX_ADDRESSES), AfterValidator(_each_once)]
AuthorityId = Annotated[Id, Field(description="Id of the authority, as ListAuthorities gives it.")]
_DOMAIN_NAMES: Final = AliasChoices("domainIds", "domainId")


class AddAuthority(Scoped):
    """Request body of the operation `AddAuthority`."""

    name: AuthorityName = Field(description=NAME)
    certificates: Certificates = Field(description=CERTIFICATES)
    domainIds: Domains = Field(validation_alias=_DOMAIN_NAMES, description=DOMAINS)
    kinds: Kinds = Field(default=list(HolderKind), description=KINDS_TEXT)
    realms: Realms = Field(default=[], description=REALMS_TEXT)
    groups: Groups = Field(default=[], description=GROUPS_TEXT)
    sidPrefixes: Prefixes = Field(default=[], description=PREFIXES_TEXT)
    names: Names = Field(default=list(DEFAULT_NAMES), description=NAMES_TEXT)
    strongOnly: Flag = Field(default=False, description=STRONG_TEXT)
    revocation: Revocation = Field(default=Revocation.SOFT, description=REVOCATION_TEXT)
    crlAddresses: Addresses = Field(default=[], description=CRL_TEXT)
    ocspAddress: AddressOrNone = Field(default="", description=OCSP_TEXT)
    ocspNonce: Flag = Field(default=False, description=NONCE_TEXT)
    useCertificateAddresses: Flag = Field(default=True, description=ADDRESSES_TEXT)

    def claimed_domains(self) -> Sequence[int]:
        return self.domainIds


class UpdateAuthority(Scoped):
    """Request body of the operation `UpdateAuthority`: an absent field keeps its value."""

    authorityId: AuthorityId
    name: AuthorityName | None = Field(default=None, description="New name.")
    certificates: Certificates | None = Field(default=None, description=CERTIFICATES)
    domainIds: Domains | None = Field(default=None, validation_alias=_DOMAIN_NAMES, description=DOMAINS)
    kinds: Kinds | None = Field(default=None, description=KINDS_TEXT)
    realms: Realms | None = Field(default=None, description=REALMS_TEXT)
    groups: Groups | None = Field(default=None, description=GROUPS_TEXT)
    sidPrefixes: Prefixes | None = Field(default=None, description=PREFIXES_TEXT)
    names: Names | None = Field(default=None, description=NAMES_TEXT)
    strongOnly: Flag | None = Field(default=None, description=STRONG_TEXT)
    revocation: Revocation | None = Field(default=None, description=REVOCATION_TEXT)
    crlAddresses: Addresses | None = Field(default=None, description=CRL_TEXT)
    ocspAddress: AddressOrNone | None = Field(default=None, description=OCSP_TEXT)
    ocspNonce: Flag | None = Field(default=None, description=NONCE_TEXT)
    useCertificateAddresses: Flag | None = Field(default=None, description=ADDRESSES_TEXT)

    def claimed_domains(self) -> Sequence[int]:
        return self.domainIds or ()


class OneAuthority(Scoped):
    """Request body of the operations `GetAuthority` and `DeleteAuthority`."""

    authorityId: AuthorityId


class ListAuthorities(Scoped, Paged):
    """Request body of the operation `ListAuthorities`."""

    domainId: Whole = Field(default=0, description="Id of the domain whose authorities are listed. 0 selects all.")
    search: Search = ""

    def claimed_domains(self) -> Sequence[int]:
        return (self.domainId,) if self.domainId else ()


@answer_of(Authority)
class AuthorityEntry(Model):
    """An authority without its certificates."""


@answer_of(Authority, detail=True)
class AuthorityDetail(Model):
    """An authority with its certificates."""


class AuthorityUpdated(Done):
    """Response body of the operation `UpdateAuthority`."""

    warnings: list[str] = Field(description="Warnings, such as another authority that may speak for the same users.")


class AuthorityAdded(AuthorityUpdated):
    """Response body of the operation `AddAuthority`."""

    authorityId: int = Field(description="Id of the new authority.")


class AuthorityList(Model):
    """Response body of the operation `ListAuthorities`."""

    authorities: list[AuthorityEntry] = Field(description="Authorities of the page, ordered by name.")
    totalCount: TotalCount
