"""The stations at which users are not asked for the second factor for a time."""

from typing import Final

from sallyport.areas.factors.remembered.station import RememberedStation
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import row_columns
from sallyport.console.pages.enforcement import person_url
from sallyport.console.pages.reading import rights
from sallyport.console.table import Filter, listed
from sallyport.console.visit import Pages, Visit, address
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
LIST: Final = "/ad/ListRememberedStations"
CHOSEN: Final = ("userName", "station", "clientName", "since", "until", "lastUsedAt")
FILTERS: Final = (Filter("user", "User"),)


@pages.show("/remembered", "Remembered stations", roles=READERS, template="remembered.html", menu="People")
async def remembered(visit: Visit) -> Context:
    """List the remembered stations of a domain."""
    domain, user = visit.domain(), visit.query.get("user", "").strip()

    def removal(row: Row) -> str:
        values = [("domain", str(domain.id)), ("user", str(row["userName"])), ("id", str(row["rememberedId"]))]
        return address("/remembered/remove", values)

    links = {"userName": lambda row: person_url(domain.id, str(row["userName"]))}
    if visit.may(OPERATORS):
        links["station"] = removal
    columns = row_columns(RememberedStation, *CHOSEN, links=links)
    empty = "No station is remembered." if domain.remember_h else "This domain remembers no stations."
    body: dict[str, JSON] = {"userName": user}
    table = await listed(
        visit, columns, LIST, "rememberedStations", body, domain=domain.id, filters=FILTERS, empty=empty, most=1000
    )
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/remembered/remove", "Forget a station", roles=OPERATORS, template="remembered_remove.html")
async def removal(visit: Visit) -> Context:
    """Show the station that the form forgets."""
    found = await _station(visit)
    return {"station": found, "back": f"/remembered?domain={visit.domain().id}"}


@pages.submit("/remembered/remove", roles=OPERATORS)
async def remove(visit: Visit) -> Redirect:
    """Forget the station."""
    domain = visit.domain()
    body: dict[str, JSON] = {"userName": visit.query.get("user", ""), "rememberedId": visit.query.get("id", "")}
    answer = await visit.call("/ad/RemoveRememberedStation", body, domain=domain.id)
    return Redirect(f"/remembered?domain={domain.id}", f"{answer['message']}.")


async def _station(visit: Visit) -> Row:
    """Return the remembered station in the address. Raises NotFound."""
    answer = await visit.call(LIST, {"userName": visit.query.get("user", "")}, domain=visit.domain().id)
    for row in entries(answer["rememberedStations"]):
        if str(row["rememberedId"]) == visit.query.get("id", ""):
            return row
    raise NotFound("this station is not remembered any more")
