"""Values of credentials and of their schemas."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, NamedTuple

from sallyport.base.answer import Wire
from sallyport.base.clock import iso_seconds
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
    """A stored schema without its content."""

    id: Annotated[int, Wire("Id of the schema: its schemaId.", title="Schema")]
    name: Annotated[str, Wire("Name of the schema.")]
    author: Annotated[str, Wire("DID of the author.", title="DID of the author", look="code")]
    author_name: Annotated[
        str,
        Wire(
            "Name of the author, or its DID if it has no name. It is empty if the author is deleted.",
            "authorName",
            title="Author",
        ),
    ]
    signed: Annotated[bool, Wire("Whether the author has signed the schema.", convert=bool, kind=bool)]


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
    """A stored credential. wallet_id: the wallet, or None if the credential is
    not assigned yet. list_index: the index of the credential's bit in a status list. Times are in microseconds.

    The class is a named tuple, because frozen dataclasses would take 4 ms more for a page of 1,000 credentials.
    """

    id: Annotated[int, Wire("Number of the credential.")]
    tenant_id: int
    domain_id: int
    issuer_id: Annotated[int, Wire("Id of the issuer.", "issuerId")]
    issuer_did: Annotated[str, Wire("DID of the issuer.", "issuerDid", after="expireDate")]
    schema_id: Annotated[int, Wire("Id of the schema.", "schemaId")]
    uuid: Annotated[str, Wire("Identifier of the credential, urn:uuid:...", "credentialId")]
    name: Annotated[str, Wire("Name of the credential.")]
    status: Annotated[str, Wire("Stored status: ACTIVE, Assigned, Accepted, Ignored or Revoked.")]
    wallet_id: int | None
    holder_did: Annotated[str, Wire("DID of the holder.", "holderDid", after="issuerDid")]
    epm_username: Annotated[
        str,
        Wire(
            "Name of the user who may log in with the credential (claim epmUsername); may be empty.",
            "epmUsername",
            after="holderDid",
        ),
    ]
    list_id: int
    list_index: int
    issued_at: Annotated[
        int, Wire("Time when the credential was issued, ISO 8601.", "issuedAt", iso_seconds, after="expired")
    ]
    expires_at: Annotated[
        int | None,
        Wire(
            "Time of the expiry, ISO 8601; empty if the credential does not expire.",
            "expireDate",
            iso_seconds,
            empty=True,
            after="issuedAt",
        ),
    ]
    issuer_name: Annotated[str, Wire("Name of the issuer.", "issuerName", after="issuerId")]
    schema_name: Annotated[str, Wire("Name of the schema.", "schemaName", after="schemaId")]

    @Wire("Whether the credential has expired.", "expired", after="status")
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
