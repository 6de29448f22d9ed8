"""What a credential schema is, in the service and in the interface."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, JsonValue

from sallyport.base.model import Model
from sallyport.base.wire import JSON
from sallyport.did.dids.model import Did
from sallyport.web.paging import LONG, LongSize, PagedByNumber
from sallyport.web.scope import Flag, Name, OfDomain, PlainText, ScopedIfGiven

KIND = "https://w3c-ccg.github.io/vc-json-schemas/schema/2.0/schema.json"
VERSION = "1.0"


class CreateSchema(ScopedIfGiven):
    """Body of createSchema. author: an issuer's DID, which signs the schema where `sign` says so."""

    author: Did
    name: Name
    content: Annotated[dict[str, JsonValue], Field(validation_alias="schema")]
    sign: Flag = False


class SchemaCreated(Model):
    """Answer of createSchema. id: the schemaId. Schema: the credential schema, with the JSON Schema in it."""

    id: int
    Schema: dict[str, JsonValue]
    code: int = 200
    status: str = "Success"
    message: str = "schema created"


class ListSchemas(OfDomain, PagedByNumber):
    """Body of credentialSchemaList. issuerDid: the author; empty for any."""

    issuerDid: PlainText = ""
    pageSize: LongSize = LONG


class SchemaEntry(Model):
    """A schema in the list."""

    id: int
    name: str


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
class NewSchema:
    """A schema to create. content: the JSON Schema, not yet checked."""

    author: str
    name: str
    content: dict[str, JSON]
    sign: bool
