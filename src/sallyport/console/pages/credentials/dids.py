"""DIDs of issuers and holders."""

from typing import Final

from sallyport.areas.did.crypto.encoding import CURVES
from sallyport.areas.did.dids.bodies import METHODS
from sallyport.areas.domains.domain import Domain
from sallyport.base.wire import Row
from sallyport.console.columns import Column
from sallyport.console.pages.choosing import chosen, offer
from sallyport.console.pages.credentials.finding import DIDS, ISSUERS, WALLET_USERS, did_at
from sallyport.console.pages.reading import choices, number, of, rights
from sallyport.console.table import Filter, listed
from sallyport.console.visit import Pages, Visit
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
DID_COLUMNS: Final = (
    Column("shownName", "Name", link=lambda row: str(row["address"])),
    Column("kindText", "Kind"),
    Column("did", "DID", "code"),
    Column("issuerName", "Issuer"),
    Column("credentialIssued", "Credentials issued", "number"),
    Column("method", "Method", is_chosen=False),
    Column("desc", "Description", is_chosen=False),
    Column("id", "Id", "number", is_chosen=False),
)
KINDS: Final = {"issuer": "Issuer", "holder": "User"}
FILTERS: Final = (Filter("search", "Name or DID"), Filter("kindText", "Kind", [(kind, kind) for kind in KINDS]))
NO_DID: Final = "No DID yet. Create an issuer first; then register wallets, and create a holder for each wallet."


@pages.show("/dids", "DIDs", roles=READERS, template="dids.html", menu="Credentials")
async def dids(visit: Visit) -> Context:
    """List the DIDs of a domain."""
    domain, query = visit.domain(), visit.query
    body: Row = {"name": query.get("search", ""), "didType": KINDS.get(query.get("kindText", ""), "")}
    table = await listed(
        visit, DID_COLUMNS, DIDS, "didList", body, domain=domain.id, filters=FILTERS, empty=NO_DID, most=1000
    )
    table.rows = [did_row(each, domain) for each in table.rows]
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/dids/add", "Create a DID", roles=OPERATORS, template="did_add.html")
async def new_did(visit: Visit) -> Context:
    """Show the form of a new DID."""
    domain = visit.domain()
    return {
        "domain": domain,
        "methods": [(each, f"did:{each}") for each in METHODS],
        "curves": choices([*CURVES]),
        "issuers": await offer(visit, domain, ISSUERS),
        "wallets": await offer(visit, domain, WALLET_USERS),
    }


@pages.submit("/dids/add", roles=OPERATORS)
async def add_did(visit: Visit) -> Redirect:
    """Create a DID. It is a holder's DID if the person has chosen a wallet. Otherwise it is an issuer's DID."""
    domain, fields = visit.domain(), visit.fields
    body: Row = {name: fields.get(name, "") for name in ("method", "name", "description", "keyType")}
    path = "/api/v1/did/createIssuerDid"
    if wallet := await chosen(visit, domain, WALLET_USERS, "wallet"):
        path = "/api/v1/did/createHolderDid"
        issuer = await chosen(visit, domain, ISSUERS, "issuer")
        body |= {"walletUserId": number(wallet, "wallet"), "issuerDid": issuer}
    made = await visit.call(path, body, domain=domain.id)
    return Redirect(of(f"/dids/{made['didId']}", domain), f"{made['message']}.")


@pages.show("/dids/{did}", "DID", roles=READERS, template="did.html")
async def did(visit: Visit) -> Context:
    """Show a DID."""
    domain = visit.domain()
    found = await _did(visit, domain)
    return {
        "title": f"{str(found['kindText']).capitalize()} {found['shownName']}",
        "domain": domain,
        "did": found,
        **rights(visit),
    }


@pages.show("/dids/{did}/rotate", "New key of an issuer", roles=OPERATORS, template="confirm.html")
async def ask_to_rotate(visit: Visit) -> Context:
    """Show the issuer that would get a new key."""
    domain = visit.domain()
    found = await _did(visit, domain)
    return {
        "text": "The issuer signs with a new key from then on. Credentials with the former key can still be verified.",
        "facts": [("Issuer", found["shownName"]), ("DID", found["did"])],
        "button": "Make a new key",
        "back": found["address"],
    }


@pages.submit("/dids/{did}/rotate", roles=OPERATORS)
async def rotate(visit: Visit) -> Redirect:
    """Give an issuer a new key."""
    domain = visit.domain()
    found = await _did(visit, domain)
    await visit.call("/api/v1/did/rotateKey", {"did": found["did"]}, domain=domain.id)
    return Redirect(str(found["address"]), "The issuer has a new key.")


@pages.show("/dids/{did}/remove", "Delete a DID", roles=OPERATORS, template="confirm.html")
async def confirm_did(visit: Visit) -> Context:
    """Show what would be deleted with a DID."""
    domain = visit.domain()
    found = await _did(visit, domain)
    is_issuer = found["DIDType"] == "Issuer"
    ends = " Sessions of its users end." if domain.disconnect_on_revoke else ""
    text = (
        "The issuer is deleted with its key, and its open presentation requests are closed. Credentials that it has "
        "signed can still be verified and revoked."
        if is_issuer
        else f"The holder is deleted, and its open presentation requests are closed. Its credentials can no longer be "
        f"used for logins.{ends}"
    )
    facts = [("DID", found["did"]), ("Name", found["name"]), ("Domain", domain.name)]
    if is_issuer:
        facts.append(("Credentials that it has issued", str(found["credentialIssued"])))
    return {"text": text, "facts": facts, "button": "Delete the DID", "back": found["address"]}


@pages.submit("/dids/{did}/remove", roles=OPERATORS)
async def remove_did(visit: Visit) -> Redirect:
    """Delete a DID."""
    domain = visit.domain()
    found = await _did(visit, domain)
    body: Row = {"dids": [{"type": found["DIDType"], "did": found["did"]}]}
    answer = await visit.call("/api/v1/did/deleteDid", body, domain=domain.id)
    return Redirect(of("/dids", domain), f"{answer['message']}.")


async def _did(visit: Visit, domain: Domain) -> Row:
    found = await did_at(visit, domain)
    return {**did_row(found, domain), "changedAt": _iso(str(found["lastUpdatedAt"]))}


def did_row(row: Row, domain: Domain) -> Row:
    """Return a DID with its name, its kind and the address of its page."""
    return {
        **row,
        "shownName": row["name"] or f"DID {row['id']}",
        "kindText": "issuer" if row["DIDType"] == "Issuer" else "holder",
        "address": of(f"/dids/{row['id']}", domain),
    }


def _iso(day_first: str) -> str:
    """Return a time of the form DD-MM-YYYY HH:MM:SS in ISO 8601."""
    date, _, time = day_first.partition(" ")
    return f"{'-'.join(reversed(date.split('-')))}T{time}Z"
