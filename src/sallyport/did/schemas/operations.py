"""The HTTP operations of credential schemas."""

import json

from sallyport.did.schemas.model import (
    CreateSchema,
    ListSchemas,
    NewSchema,
    SchemaCreated,
    SchemaEntry,
)
from sallyport.did.schemas.service import Schemas
from sallyport.store.search import Stretch
from sallyport.web.operation import Operations
from sallyport.web.paging import Counted
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate


def operations(service: Schemas, gate: Gate) -> Operations:
    """The operations of this slice."""
    schemas = Operations("Credential schemas", gate)

    @schemas.post("/api/v1/schema/createSchema", roles=OPERATORS)
    async def create_schema(body: CreateSchema, caller: Caller) -> SchemaCreated:
        """A new schema, of draft-07 or 2020-12, which credentials can name from now on.

        It refers to nothing but itself, and its patterns are of a kind that cannot take long. With `sign` its author
        signs it.
        """
        made = await service.create(caller.tenant_id, NewSchema(body.author, body.name, body.content, body.sign))
        return SchemaCreated(id=made.id, Schema=json.loads(made.content))

    @schemas.post("/api/v1/credential/credentialSchemaList", roles=READERS)
    async def list_schemas(body: ListSchemas, caller: Caller) -> Counted[SchemaEntry]:
        """List the schemas of a domain, ordered by id: of one author, or all. The header `X-Total-Count` has the
        total."""
        page = body.page()
        found, total = await service.page(Stretch(body.domainId, page.offset, page.size), body.issuerDid)
        return Counted([SchemaEntry(id=each.id, name=each.name) for each in found], total)

    return schemas
