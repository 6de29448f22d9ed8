"""What a credential is, in the service and in the interface."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, JsonValue

from sallyport.base.command import JSON
from sallyport.base.model import Model
from sallyport.base.validation import Moment
from sallyport.did.dids.model import Did
from sallyport.web.paging import LONG, LongSize, PagedByNumber
from sallyport.web.scope import Id, Name, OfDomain, ScopedIfGiven, Text


class Status(StrEnum):
    """How a credential stands; EXPIRED is told of one whose time is over, and never stored."""

    ACTIVE = "ACTIVE"
    ASSIGNED = "Assigned"
    ACCEPTED = "Accepted"
    IGNORED = "Ignored"
    REVOKED = "Revoked"
    EXPIRED = "Expired"


def _or_none(value: object) -> object:
    return None if value == "" else value


class CreateCredential(OfDomain):
    """Body of createCredential. metadata: the claims; epmPassword in it is kept for the holder and is no claim. expiry:
    absent or empty for a credential that does not expire."""

    issuerDid: Did
    holderDid: Did
    schemaId: Id
    credentialName: Name
    metadata: dict[str, JsonValue]
    expiry: Annotated[Moment | None, BeforeValidator(_or_none)] = None


class CredentialIssued(Model):
    """Answer of createCredential. id: what lists call it. credentialId: its `urn:uuid:`."""

    code: int = 200
    message: str
    status: str = "Success"
    id: int
    credentialId: str


class ListCredentials(OfDomain, PagedByNumber):
    """Body of credentialList."""

    pageSize: LongSize = LONG


class CredentialEntry(Model):
    """A credential in the list."""

    id: int
    issuerId: int
    schemaId: int
    credentialId: str
    name: str
    status: str


class CredentialList(Model):
    """Answer of credentialList. count: of the whole list."""

    code: int = 200
    message: str
    status: str = "Success"
    domainId: int
    count: int
    credentials: list[CredentialEntry]


class OfWallet(ScopedIfGiven, PagedByNumber):
    """Body of GetAssignedCredential and its neighbours. filter: a part of the credential's name."""

    walletId: Id
    filter: Text = ""


class WalletCredential(Model):
    """A credential of a wallet. expireDate: empty where it does not expire."""

    id: int
    issuerId: int
    issuerName: str
    schemaId: int
    schemaName: str
    issuedAt: str
    credentialId: str
    expireDate: str
    name: str
    status: str


class WalletCredentials(Model):
    """Answer of GetAssignedCredential and its neighbours."""

    code: int = 200
    message: str
    status: str = "Success"
    walletId: int
    count: int
    credentials: list[WalletCredential]


class GetCredential(ScopedIfGiven):
    """Body of GetCredential. credentialId: the `urn:uuid:`, or the number of the lists."""

    credentialId: Name


class CredentialDocument(Model):
    """Answer of GetCredential."""

    id: int
    credential: dict[str, JsonValue]


class RevokeCredential(OfDomain):
    """Body of revokecredential. vcid: the number of the lists."""

    vcid: Id
    issuerDid: Did
    holderDid: Did


class CredentialRevoked(Model):
    """Answer of revokecredential."""

    Message: str
    Code: int = 200
    Status: str = "Success"


@dataclass(frozen=True, slots=True)
class NewCredential:
    """What is to be issued. claims: of the subject, without its id. password: for the holder alone. expires_at:
    microseconds, None for never."""

    domain_id: int
    issuer_did: str
    holder_did: str
    schema_id: int
    name: str
    claims: dict[str, JSON]
    password: str
    expires_at: int | None


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential as it is stored. uuid: with `urn:uuid:`. list_index: its bit in a status list. Times in
    microseconds."""

    id: int
    tenant_id: int
    domain_id: int
    issuer_id: int
    issuer_did: str
    schema_id: int
    uuid: str
    name: str
    status: str
    wallet_id: int | None
    holder_did: str
    epm_username: str
    list_id: int
    list_index: int
    issued_at: int
    expires_at: int | None

    def stands(self, now: int) -> str:
        """Its status at a time."""
        over = self.expires_at is not None and self.expires_at <= now and self.status != Status.REVOKED
        return Status.EXPIRED if over else self.status


@dataclass(frozen=True, slots=True)
class Listed:
    """A credential as a domain's list shows it. status: at the time of the list."""

    id: int
    issuer_id: int
    schema_id: int
    uuid: str
    name: str
    status: str


@dataclass(frozen=True, slots=True)
class Held:
    """A credential in a wallet, with the names of what it refers to."""

    credential: Credential
    issuer_name: str
    schema_name: str
