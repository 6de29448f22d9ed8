"""Values of DIDs and of their keys."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The owner of a DID: an issuer, or a holder of credentials."""

    ISSUER = "Issuer"
    USER = "User"


@dataclass(frozen=True, slots=True)
class NewDid:
    """A DID to create. curve: its name."""

    domain_id: int
    method: str
    name: str
    description: str
    curve: str


@dataclass(frozen=True, slots=True)
class Record:
    """A DID as it is stored. issuer_id: of a holder the issuer it belongs to. wallet_id: of the wallet that has it.
    issuer_name: of the issuer itself, or the holder's. Times in microseconds."""

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
    """A key as it is stored. sealed: None where a wallet keeps it."""

    id: int
    did_id: int
    method_id: str
    multikey: str
    sealed: bytes | None
    state: str
