"""What a credential is, in the service and in the interface."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, JsonValue

from sallyport.base.model import Model
from sallyport.base.validation import Moment
from sallyport.base.wire import JSON
from sallyport.did.dids.model import Did
from sallyport.web.paging import LONG, LongSize, PagedByNumber
from sallyport.web.scope import Id, Name, OfDomain, ScopedIfGiven, Text


class Status(StrEnum):
    """The stored status of a credential. Expiry is not a status: answers have `expired` for it."""

    ACTIVE = "ACTIVE"
    ASSIGNED = "Assigned"
    ACCEPTED = "Accepted"
    IGNORED = "Ignored"
    REVOKED = "Revoked"


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
    """A credential in the list. status: as stored. expired: the credential's time is over."""

    id: int
    issuerId: int
    schemaId: int
    credentialId: str
    name: str
    status: str
    expired: bool


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
    """A credential of a wallet. expireDate: empty if the credential does not expire. status: as stored. expired: the
    credential's time is over."""

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
    expired: bool


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


def is_over(expires_at: int | None, now: int) -> bool:
    """Return whether the expiry time is reached. None: never."""
    return expires_at is not None and expires_at <= now


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

    def is_expired(self, now: int) -> bool:
        """Return whether the credential's time is over."""
        return is_over(self.expires_at, now)


@dataclass(frozen=True, slots=True)
class Listed:
    """The columns of a credential that a domain's list shows."""

    id: int
    issuer_id: int
    schema_id: int
    uuid: str
    name: str
    status: str
    expires_at: int | None

    def is_expired(self, now: int) -> bool:
        """Return whether the credential's time is over."""
        return is_over(self.expires_at, now)


@dataclass(frozen=True, slots=True)
class Held:
    """A credential in a wallet, with the names of what it refers to."""

    credential: Credential
    issuer_name: str
    schema_name: str
