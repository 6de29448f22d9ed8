"""Schemas of credentials."""

import json
from typing import Final

from sallyport.areas.did.credentials.credential import ListedSchema
from sallyport.areas.domains.domain import Domain
from sallyport.base.errors import Invalid
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import row_columns
from sallyport.console.pages.choosing import chosen, offer
from sallyport.console.pages.credentials.finding import ISSUERS, SCHEMAS
from sallyport.console.pages.reading import PAGE, of, rights
from sallyport.console.table import SIZE, Filter, Table, is_export, page_of
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
SCHEMA_COLUMNS: Final = row_columns(ListedSchema, "id", "name", "authorName", "signed")
FILTERS: Final = (Filter("search", "Name"),)
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
    return {"domain": domain, "table": await _listed(visit, domain), **rights(visit)}


async def _listed(visit: Visit, domain: Domain) -> Table:
    """Return one page of the list. The answer of the operation has no total. So the page reads one more schema, to know
    whether there is another page."""
    page, size = page_of(visit), PAGE if is_export(visit) else SIZE
    found = await _read(visit, domain, page, size)
    is_last = len(found) < size or not await _read(visit, domain, page * size + 1, 1)
    total = (page - 1) * size + len(found) if is_last and (found or page == 1) else None
    following = "" if is_last else visit.url(page=page + 1)
    rows = [{**each, "authorName": each["authorName"] or "deleted"} for each in found]
    return Table(
        visit, SCHEMA_COLUMNS, rows, total, page, SIZE, FILTERS, NO_SCHEMA, next_url=following, next_text="Next page"
    )


async def _read(visit: Visit, domain: Domain, number: int, size: int) -> list[Row]:
    body: Row = {"filter": visit.query.get("search", ""), "pageNumber": number, "pageSize": size}
    return entries((await visit.call(SCHEMAS, body, domain=domain.id))["message"])


@pages.show("/schemas/add", "Add a schema", roles=OPERATORS, template="schema_add.html")
async def new_schema(visit: Visit) -> Context:
    """Show the form of a new schema."""
    domain = visit.domain()
    return {"domain": domain, "issuers": await offer(visit, domain, ISSUERS), "example": EXAMPLE}


@pages.submit("/schemas/add", roles=OPERATORS)
async def add_schema(visit: Visit) -> Redirect:
    """Add a schema."""
    domain, fields = visit.domain(), visit.fields
    try:
        content: JSON = json.loads(fields.get("schema", ""))
    except (ValueError, RecursionError):
        raise Invalid.about("the schema is not valid JSON", "schema") from None
    body: Row = {
        "author": await chosen(visit, domain, ISSUERS, "author"),
        "name": fields.get("name", ""),
        "schema": content,
        "sign": bool(fields.get("sign")),
    }
    made = await visit.call("/api/v1/schema/createSchema", body)
    return Redirect(of("/schemas", domain), f"The schema {made['id']} is added.")
