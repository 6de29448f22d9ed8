"""Schemas of credentials."""

import json
from typing import Final

from sallyport.base.errors import Invalid
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column
from sallyport.console.declare import Context, Pages, Redirect
from sallyport.console.pages.credentials.finding import (
    SEARCH,
    all_dids,
    all_schemas,
    did_choices,
)
from sallyport.console.pages.reading import of, rights
from sallyport.console.table import complete
from sallyport.console.visit import Visit
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
SCHEMA_COLUMNS: Final = (
    Column("id", "Schema", "number"),
    Column("name", "Name"),
    Column("authorName", "Author"),
    Column("signed", "Signed", "flag"),
    Column("author", "DID of the author", "code", is_chosen=False),
)
NO_SCHEMA: Final = "No schema yet. A schema says which claims a credential has. It needs an issuer as author."
EXAMPLE: Final = """{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {"epmUsername": {"type": "string"}},
  "required": ["epmUsername"],
  "additionalProperties": true
}"""


@pages.show("/schemas", "Schemas", roles=READERS, template="schemas.html", menu="Credentials")
async def schemas(visit: Visit) -> Context:
    """List the schemas of a domain."""
    domain = visit.domain()
    names = {each["did"]: each["name"] for each in await all_dids(visit, domain)}
    found = await all_schemas(visit, domain)
    rows = [{**each, "authorName": names.get(each["author"]) or "deleted"} for each in found]
    table = complete(visit, SCHEMA_COLUMNS, rows, filters=SEARCH, empty=NO_SCHEMA)
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/schemas/add", "Add a schema", roles=OPERATORS, template="schema_add.html")
async def new_schema(visit: Visit) -> Context:
    """Show the form of a new schema."""
    domain = visit.domain()
    return {"domain": domain, "issuers": did_choices(await all_dids(visit, domain), "Issuer"), "example": EXAMPLE}


@pages.submit("/schemas/add", roles=OPERATORS)
async def add_schema(visit: Visit) -> Redirect:
    """Add a schema."""
    domain, fields = visit.domain(), visit.fields
    try:
        content: JSON = json.loads(fields.get("schema", ""))
    except (ValueError, RecursionError):
        raise Invalid.about("the schema is not valid JSON", "schema") from None
    body: Row = {
        "author": fields.get("author", ""),
        "name": fields.get("name", ""),
        "schema": content,
        "sign": bool(fields.get("sign")),
    }
    made = await visit.call("/api/v1/schema/createSchema", body)
    return Redirect(of("/schemas", domain), f"The schema {made['id']} is added.")
