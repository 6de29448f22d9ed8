"""Presentation requests."""

from typing import Final

from sallyport.base.command import entries
from sallyport.base.errors import NotFound
from sallyport.base.wire import Row
from sallyport.console.declare import Context, Pages, Redirect
from sallyport.console.pages.credentials.finding import (
    all_dids,
    did_choices,
)
from sallyport.console.pages.reading import number, of, rights
from sallyport.console.table import Column
from sallyport.console.visit import Visit
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
STATUS: Final = "/api/v1/verifierService/presentationStatus"
MOST_REQUESTS: Final = 50
"""Maximum number of presentation requests on a page."""
REQUEST_COLUMNS: Final = (
    Column("presentationRequestId", "Request", "number"),
    Column("status", "State"),
    Column("at", "Since", "time"),
    Column("holderDid", "Holder", "code"),
)


@pages.show("/presentations", "Presentation requests", roles=READERS, template="presentations.html", menu="Credentials")
async def presentations(visit: Visit) -> Context:
    """Show the states of some presentation requests. The address contains the numbers of these requests."""
    domain = visit.domain()
    numbers = [number(each, "presentation request") for each in visit.query.getlist("request") if each]
    found, missing = list[Row](), list[int]()
    for each in numbers[:MOST_REQUESTS]:
        try:
            answer = await visit.call(STATUS, {"presentationRequestId": each})
            found.append({**answer, "status": str(answer["status"]).lower()})
        except NotFound:
            missing.append(each)
    return {
        "domain": domain,
        "requests": found,
        "request_columns": REQUEST_COLUMNS,
        "missing": missing,
        "is_open": any(each["status"] == "pending" for each in found),
        **rights(visit),
    }


@pages.show("/presentations/add", "Ask for a presentation", roles=OPERATORS, template="presentation_add.html")
async def new_request(visit: Visit) -> Context:
    """Show the form of a new request."""
    domain = visit.domain()
    known = await all_dids(visit, domain)
    return {
        "domain": domain,
        "issuers": did_choices(known, "Issuer"),
        "holders": [("", "all holders of a group"), *did_choices(known, "User")],
    }


@pages.submit("/presentations/add", roles=OPERATORS)
async def add_request(visit: Visit) -> Redirect:
    """Send a presentation request to a holder, or to all holders of a group."""
    domain, fields = visit.domain(), visit.fields
    body: Row = {name: fields.get(name, "") for name in ("issuerDid", "holderDid", "username", "endpoint")}
    if not body["holderDid"]:
        body["groupop"] = "yes"
    issued = await visit.call("/api/v1/verifierService/issuePR", body)
    numbers = "".join(f"&request={each['prId']}" for each in entries(issued["prs"])[:MOST_REQUESTS])
    return Redirect(f"{of('/presentations', domain)}{numbers}", f"{issued['message']}.")
