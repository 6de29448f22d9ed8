"""Values of DIDs and of their keys."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from sallyport.base.answer import Wire


class DidKind(StrEnum):
    """The owner of a DID: an issuer, or a holder of credentials."""

    ISSUER = "Issuer"
    USER = "User"


@dataclass(frozen=True, slots=True)
class NewDid:
    """A DID to create. curve: the name of the key's curve."""

    domain_id: int
    method: str
    name: str
    description: str
    curve: str


@dataclass(frozen=True, slots=True)
class Search:
    """A search of DIDs. text: a part of a name, or a whole DID; empty for all DIDs. kind: the owner of the DIDs; None
    for both. domain_id: the domain of the DIDs; 0 for all domains of the tenant. did_id: the id of the DID's record; 0
    for any DID."""

    tenant_id: int
    text: str = ""
    kind: DidKind | None = None
    domain_id: int = 0
    did_id: int = 0
    offset: int = 0
    limit: int = 10


@dataclass(frozen=True, slots=True)
class Record:
    """A stored DID. issuer_id: the issuer of a holder. Times are in microseconds."""

    id: Annotated[int, Wire("Id of the DID's record.")]
    tenant_id: int
    kind: Annotated[
        str,
        Wire("Owner of the DID: an issuer, or a user who holds credentials.", "DIDType", kind=DidKind),
        Wire("The same as DIDType.", "didType", kind=DidKind),
    ]
    domain_id: Annotated[int, Wire("Id of the domain.", "domainId")]
    did: Annotated[str, Wire("The DID.")]
    name: Annotated[str, Wire("Name of the DID.")]
    issuer_name: Annotated[
        str,
        Wire(
            "Name of the issuer. For a holder, it is the issuer that the holder belongs to. It may be empty.",
            "issuerName",
        ),
    ]
    credentials_issued: Annotated[int, Wire("Number of credentials that the issuer has issued.", "credentialIssued")]
    description: Annotated[str, Wire("Text that describes the DID.", "desc")]
    method: Annotated[str, Wire("DID method: key, jwk or web.")]
    wallet_id: int | None
    issuer_id: int | None
    updated_at: int
    deleted_at: int | None

    @property
    @Wire("Id of the issuer. For a holder, it is the issuer that the holder belongs to, or 0.", "issuerId")
    def issuer(self) -> int:
        """The id of the issuer."""
        return self.id if self.kind == DidKind.ISSUER else self.issuer_id or 0

    @property
    @Wire("Id of the wallet user that has the DID, or 0.", "walletUserId")
    def wallet_user(self) -> int:
        """The id of the wallet user."""
        return self.wallet_id or 0


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A stored key. sealed: the encrypted private key, or None if a wallet keeps the private key."""

    id: int
    did_id: int
    method_id: str
    multikey: str
    sealed: bytes | None
    state: str
