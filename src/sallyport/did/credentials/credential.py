"""Values of credentials and of their schemas."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sallyport.base.wire import JSON


class Status(StrEnum):
    """The stored status of a credential. Expiry is not a status: answers have `expired` for it."""

    ACTIVE = "ACTIVE"
    ASSIGNED = "Assigned"
    ACCEPTED = "Accepted"
    IGNORED = "Ignored"
    REVOKED = "Revoked"


@dataclass(frozen=True, slots=True)
class NewSchema:
    """A schema to create. content: the JSON Schema, not yet checked."""

    author: str
    name: str
    content: dict[str, JSON]
    sign: bool


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as it is stored. content: the credential schema as JSON, with its proof where it was signed."""

    id: int
    tenant_id: int
    domain_id: int
    uuid: str
    name: str
    content: str


@dataclass(frozen=True, slots=True)
class ListedSchema:
    """A schema in a list. author: a DID."""

    id: int
    name: str
    author: str
    signed: bool


@dataclass(frozen=True, slots=True)
class NewCredential:
    """A credential to issue. claims: of the subject, without its id. password: for the holder alone. expires_at:
    microseconds, None for never."""

    domain_id: int
    issuer_did: str
    holder_did: str
    schema_id: int
    name: str
    claims: dict[str, JSON]
    password: str
    expires_at: int | None


class Credential(NamedTuple):
    """A credential as it is stored. uuid: with `urn:uuid:`. wallet_id: None before it is assigned. list_index: its bit
    in a status list. Times in microseconds.

    A tuple, since a page has up to 1,000 of them: a frozen dataclass takes 4 ms more.
    """

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
    issuer_name: str
    schema_name: str

    def is_expired(self, now: int) -> bool:
        """Return whether the expiry time is reached."""
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class Holder:
    """A wallet and its DID, which can show a credential. username: as the credential has it, empty for none.
    credential: the one to show, by its `urn:uuid:`; empty for any."""

    wallet_id: int
    holder_did: str
    username: str
    credential: str = ""
