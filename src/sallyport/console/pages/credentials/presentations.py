"""Presentation requests."""

from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.base.errors import NotFound
from sallyport.base.wire import Row
from sallyport.console.columns import Column
from sallyport.console.pages.choosing import chosen, offer
from sallyport.console.pages.credentials.finding import HOLDERS, ISSUERS
from sallyport.console.pages.reading import number, of, rights
from sallyport.console.table import SIZE, Table, is_export
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
STATUS: Final = "/api/v1/verifierService/presentationStatus"
MAX_REQUESTS: Final = 50
"""Maximum number of presentation requests on a page."""
LIST: Final = "/api/v1/verifierService/listPresentations"
MAX_LISTED: Final = 100
COLUMNS: Final = (
    Column("presentationRequestId", "Request", "number"),
    Column("status", "State"),
    Column("at", "Since", "time"),
    Column("username", "Wallet of"),
    Column("credential", "Credential"),
    Column("endpoint", "For"),
    Column("createdAt", "Created", "time"),
    Column("expiresAt", "Expires", "time"),
    Column("purpose", "Purpose", is_chosen=False),
    Column("holderDid", "Holder", "code", is_chosen=False),
    Column("issuerDid", "Issuer", "code", is_chosen=False),
    Column("walletId", "Wallet id", "number", is_chosen=False),
)
EMPTY: Final = "No presentation request yet. Ask for a presentation, or let a domain use the wallet as second factor."
REQUEST_COLUMNS: Final = (
    Column("presentationRequestId", "Request", "number"),
    Column("status", "State"),
    Column("at", "Since", "time"),
    Column("holderDid", "Holder", "code"),
)


@pages.show("/presentations", "Presentation requests", roles=READERS, template="presentations.html", menu="Credentials")
async def presentations(visit: Visit) -> Context:
    """List the requests of a domain, the newest first. If the address contains numbers of requests, show their states
    above the list."""
    domain = visit.domain()
    numbers = [number(each, "presentation request") for each in visit.query.getlist("request") if each]
    chosen, missing = list[Row](), list[int]()
    for each in numbers[:MAX_REQUESTS]:
        try:
            answer = await visit.call(STATUS, {"presentationRequestId": each})
            chosen.append({**answer, "status": str(answer["status"]).lower()})
        except NotFound:
            missing.append(each)
    table = await _listed(visit, domain)
    return {
        "domain": domain,
        "requests": chosen,
        "request_columns": REQUEST_COLUMNS,
        "missing": missing,
        "table": table,
        "is_open": any(each["status"] == "pending" for each in (*chosen, *table.rows)),
        **rights(visit),
    }


async def _listed(visit: Visit, domain: Domain) -> Table:
    """Return one part of the list."""
    before = number(visit.query.get("before", "0"), "presentation request")
    body: Row = {"before": before, "pageSize": MAX_LISTED if is_export(visit) else SIZE}
    answer = await visit.call(LIST, body, domain=domain.id)
    rows = [
        {**each, "status": str(each["status"]).lower(), "credential": each["schemaName"] or "any"}
        for each in entries(answer["requests"])
    ]
    following = visit.url(before=answer["before"], request=None) if answer["before"] else ""
    return Table(visit, COLUMNS, rows, None, empty=EMPTY, next_url=following)


@pages.show("/presentations/add", "Ask for a presentation", roles=OPERATORS, template="presentation_add.html")
async def new_request(visit: Visit) -> Context:
    """Show the form of a new request."""
    domain = visit.domain()
    return {
        "domain": domain,
        "issuers": await offer(visit, domain, ISSUERS),
        "holders": await offer(visit, domain, HOLDERS),
    }


@pages.submit("/presentations/add", roles=OPERATORS)
async def add_request(visit: Visit) -> Redirect:
    """Send a presentation request to a holder, or to all holders of a group."""
    domain, fields = visit.domain(), visit.fields
    body: Row = {
        "issuerDid": await chosen(visit, domain, ISSUERS, "issuerDid"),
        "holderDid": await chosen(visit, domain, HOLDERS, "holderDid"),
        "username": fields.get("username", ""),
        "endpoint": fields.get("endpoint", ""),
    }
    if not body["holderDid"]:
        body["groupop"] = "yes"
    issued = await visit.call("/api/v1/verifierService/issuePR", body)
    numbers = "".join(f"&request={each['prId']}" for each in entries(issued["prs"])[:MAX_REQUESTS])
    return Redirect(f"{of('/presentations', domain)}{numbers}", f"{issued['message']}.")
