"""The page of the objects that files manage (`sallyport apply`)."""

from typing import Final

from sallyport.console.columns import Column
from sallyport.console.table import Filter, complete
from sallyport.console.visit import Pages, Visit
from sallyport.web.console_pages import Context
from sallyport.web.scope import READERS

pages = Pages()
COLUMNS: Final = (Column("kind", "Kind"), Column("domain", "Domain"), Column("name", "Name"))
FILTERS: Final = (Filter("search", "Search"),)
EMPTY: Final = (
    "Files manage nothing. sallyport export writes the configuration as files, and sallyport apply reads them."
)


@pages.show("/managed", "Managed by files", roles=READERS, template="managed.html", menu="Administration")
async def managed(visit: Visit) -> Context:
    """List the objects of the tenant that files manage."""
    found = await visit.managed()
    return {"table": complete(visit, COLUMNS, found, filters=FILTERS, empty=EMPTY)}
