"""Requests and answers of the operations of credentials and schemas."""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue

from sallyport.areas.did.credentials.credential import Credential, ListedSchema
from sallyport.areas.did.dids.bodies import Did, HolderDid, IssuerDid
from sallyport.areas.did.wallets.bodies import WalletId
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.spelling import Spellings, unknown_field
from sallyport.base.validation import Moment, unfit
from sallyport.web.bodies import (
    LONG,
    DomainId,
    Flag,
    Id,
    LongSize,
    Name,
    OfDomain,
    PagedByNumber,
    PlainText,
    ScopedIfGiven,
    Text,
    TotalCount,
    Whole,
)

Expired = Annotated[bool, Field(description="Whether the credential has expired.")]


class CreateSchema(ScopedIfGiven):
    """Request body of the operation `createSchema`."""

    author: Did = Field(description="DID of the issuer that the schema belongs to.")
    name: Name = Field(description="Name of the schema.")
    content: Annotated[dict[str, JsonValue], Field(validation_alias="schema")] = Field(
        description="JSON Schema of the claims, draft-07 or 2020-12, at most 64 KiB."
    )
    sign: Flag = Field(default=False, description="Whether the author signs the schema.")


class SchemaCreated(Done):
    """Response body of the operation `createSchema`."""

    id: int = Field(description="Id of the schema: its schemaId.")
    Schema: dict[str, JsonValue] = Field(description="Credential schema; its member Schema is the JSON Schema.")


class ListSchemas(OfDomain, PagedByNumber):
    """Request body of the operation `credentialSchemaList`."""

    issuerDid: PlainText = Field(
        default="", description="DID of the author. Leave it empty to list all schemas of the domain."
    )
    filter: Text = Field(
        default="", description="Part of the name, case-insensitive. Leave it empty to list all schemas."
    )
    pageSize: LongSize = LONG


@answer_of(ListedSchema)
class SchemaEntry(Model):
    """A schema in the answer of the operation `credentialSchemaList`."""


def _or_none(value: object) -> object:
    return None if value == "" else value


_PASSWORD: Final = Spellings(["epmPassword"])


def _has_no_near_password(metadata: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the metadata. A misspelled epmPassword would become a claim that anybody can read, so it is an error."""
    if "epmPassword" not in metadata and any(_PASSWORD.near(name) for name in metadata):
        raise unfit(unknown_field(["epmPassword"]))
    return metadata


class CreateCredential(OfDomain):
    """Request body of the operation `createCredential`."""

    issuerDid: IssuerDid
    holderDid: HolderDid
    schemaId: Id = Field(description="Id of the schema, as createSchema gives it.")
    credentialName: Name = Field(description="Name of the credential.")
    metadata: Annotated[dict[str, JsonValue], AfterValidator(_has_no_near_password)] = Field(
        description=(
            "Claims, at most 32 KiB. The member epmPassword does not become a "
            "claim. Only the holder gets this password."
        )
    )
    expiry: Annotated[Moment | None, BeforeValidator(_or_none)] = Field(
        default=None,
        description="Time of the expiry, ISO 8601. If it is absent or empty, the credential does not expire.",
    )


class CredentialIssued(Done):
    """Response body of the operation `createCredential`."""

    id: int = Field(description="Id of the credential, as credentialList shows it.")
    credentialId: str = Field(description="Identifier of the credential, urn:uuid:...")


class ListCredentials(OfDomain, PagedByNumber):
    """Request body of the operation `credentialList`."""

    pageSize: LongSize = LONG


@answer_of(Credential)
class CredentialEntry(Model):
    """A credential in the answer of the operation `credentialList`."""


class CredentialList(Done):
    """Response body of the operation `credentialList`."""

    domainId: DomainId
    count: TotalCount
    credentials: list[CredentialEntry] = Field(description="Credentials on this page.")


class OfWallet(ScopedIfGiven, PagedByNumber):
    """Request body of the operations `GetAssignedCredential`, `GetAcceptedCredential` and `GetIgnoredCredential`."""

    walletId: WalletId
    filter: Text = Field(
        default="",
        description="Part of the credential's name, case-insensitive. Leave it empty to list all credentials.",
    )


class WalletCredentials(Done):
    """Response body of the operations `GetAssignedCredential`, `GetAcceptedCredential` and `GetIgnoredCredential`."""

    walletId: int = Field(description="Id of the wallet.")
    count: TotalCount
    credentials: list[CredentialEntry] = Field(description="Credentials on this page.")


class GetCredential(ScopedIfGiven):
    """Request body of the operation `GetCredential`."""

    credentialId: Name = Field(description="Identifier of the credential, urn:uuid:..., or its id in lists.")
    domainId: Whole | None = Field(
        default=None,
        description="Id of the credential's domain. If it is absent, all domains of the tenant are searched.",
    )

    def claimed_domains(self) -> Sequence[int]:
        return () if self.domainId is None else (self.domainId,)


class CredentialDocument(Model):
    """Response body of the operation `GetCredential`."""

    id: int = Field(description="Number of the credential.")
    credential: dict[str, JsonValue] = Field(description="The credential with its issuer's proof.")


class RevokeCredential(OfDomain):
    """Request body of the operation `revokecredential`."""

    vcid: Id = Field(description="Id of the credential, as credentialList shows it.")
    issuerDid: IssuerDid
    holderDid: HolderDid


class CredentialRevoked(Model):
    """Response body of the operation `revokecredential`."""

    Message: str = Field(description="Result in words.")
    Code: int = Field(default=200, description="HTTP status of the answer.")
    Status: str = Field(default="Success", description="Success. The answer to a failed request contains Failure.")
