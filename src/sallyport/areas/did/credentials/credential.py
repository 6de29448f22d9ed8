"""Values of credentials and of their schemas."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sallyport.base.wire import JSON


class Status(StrEnum):
    """The stored status of a credential. The status does not change when the credential expires. Answers report the
    expiry in the field `expired`."""

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
    """A stored schema. content: the credential schema as JSON, with a proof if it was signed."""

    id: int
    tenant_id: int
    domain_id: int
    uuid: str
    name: str
    content: str


@dataclass(frozen=True, slots=True)
class ListedSchema:
    """A stored schema without its content. author: the DID of the author. author_name: the author's name, or its DID
    if it has no name; empty if the author is deleted."""

    id: int
    name: str
    author: str
    author_name: str
    signed: bool


@dataclass(frozen=True, slots=True)
class NewCredential:
    """A credential to issue. claims: the claims about the subject, without the subject's id. password: a secret that
    only the holder gets. expires_at: the time in microseconds, or None if the credential does not expire."""

    domain_id: int
    issuer_did: str
    holder_did: str
    schema_id: int
    name: str
    claims: dict[str, JSON]
    password: str
    expires_at: int | None


class Credential(NamedTuple):
    """A stored credential. uuid: the identifier, `urn:uuid:...`. wallet_id: the wallet, or None if the credential is
    not assigned yet. list_index: the index of the credential's bit in a status list. Times are in microseconds.

    The class is a named tuple, because frozen dataclasses would take 4 ms more for a page of 1,000 credentials.
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
        """Return whether the credential has expired."""
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True)
class Holder:
    """A wallet, and the DID with which the holder of the wallet can present a credential. username: the epmUsername of
    the credential; may be empty. credential: the `urn:uuid:` of the credential that the holder must present; empty if
    any credential is accepted."""

    wallet_id: int
    holder_did: str
    username: str
    credential: str = ""
