"""Values of DIDs and of their keys."""

from dataclasses import dataclass
from enum import StrEnum


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
    """A stored DID. issuer_id: the issuer of a holder. wallet_id: the wallet that has the DID. issuer_name: the
    issuer's own name, or for a holder, the name of the holder's issuer. Times are in microseconds."""

    id: int
    tenant_id: int
    domain_id: int
    did: str
    kind: str
    method: str
    name: str
    description: str
    wallet_id: int | None
    issuer_id: int | None
    issuer_name: str
    credentials_issued: int
    updated_at: int
    deleted_at: int | None


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A stored key. sealed: the encrypted private key, or None if a wallet keeps the private key."""

    id: int
    did_id: int
    method_id: str
    multikey: str
    sealed: bytes | None
    state: str
