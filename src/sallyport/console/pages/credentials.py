"""Credentials: DIDs, schemas, credentials, wallets and presentation requests."""

import json
from typing import Final

from sallyport.base.command import entries
from sallyport.base.errors import Invalid, NotFound
from sallyport.base.wire import JSON, Row
from sallyport.console.declare import Context, Pages, Redirect
from sallyport.console.pages.reading import choices, every, find, lines, number, of, one, rights
from sallyport.console.table import Column, Filter, complete, listed
from sallyport.console.visit import Visit
from sallyport.did.crypto.keys import CURVES
from sallyport.did.dids.bodies import METHODS
from sallyport.domains.domain import Domain
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
DIDS: Final = "/api/v1/did/DIDList"
SCHEMAS: Final = "/api/v1/credential/credentialSchemaList"
CREDENTIALS: Final = "/api/v1/credential/credentialList"
WALLETS: Final = "/api/v1/walletService/walletUserList"
STATUS: Final = "/api/v1/verifierService/presentationStatus"
MOST_REQUESTS: Final = 50
"""Maximum number of presentation requests on a page."""
SEARCH: Final = (Filter("search", "Text"),)
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
SCHEMA_COLUMNS: Final = (
    Column("id", "Schema", "number"),
    Column("name", "Name"),
    Column("authorName", "Author"),
    Column("signed", "Signed", "flag"),
    Column("author", "DID of the author", "code", is_chosen=False),
)
CREDENTIAL_COLUMNS: Final = (
    Column("name", "Credential", link=lambda row: str(row["address"])),
    Column("epmUsername", "User"),
    Column("state", "State"),
    Column("issuerName", "Issuer"),
    Column("schemaName", "Schema"),
    Column("issuedAt", "Issued", "time"),
    Column("expireDate", "Expires", "time"),
    Column("holderDid", "Holder", "code", is_chosen=False),
    Column("credentialId", "Identifier", "code", is_chosen=False),
    Column("id", "Id", "number", is_chosen=False),
)
WALLET_COLUMNS: Final = (
    Column("username", "User", link=lambda row: str(row["address"])),
    Column("emailAddress", "Mail"),
    Column("noOfcredential", "Credentials", "number"),
    Column("status", "Status"),
    Column("walletUrl", "URL", is_chosen=False),
    Column("walletId", "Id", "number", is_chosen=False),
)
REQUEST_COLUMNS: Final = (
    Column("presentationRequestId", "Request", "number"),
    Column("status", "State"),
    Column("at", "Since", "time"),
    Column("holderDid", "Holder", "code"),
)
NO_DID: Final = "No DID yet. Create an issuer first; then register wallets, and create a holder for each wallet."
NO_SCHEMA: Final = "No schema yet. A schema says which claims a credential has. It needs an issuer as author."
NO_CREDENTIAL: Final = "No credential yet. It needs an issuer, a holder and a schema."
NO_WALLET: Final = "No wallet yet. Register the wallet of a person; its key is shown once."
EXAMPLE: Final = """{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {"epmUsername": {"type": "string"}},
  "required": ["epmUsername"],
  "additionalProperties": true
}"""


# --- DIDs -------------------------------------------------------------------------------------------------------------


@pages.show("/dids", "DIDs", roles=READERS, template="dids.html", menu="Credentials")
async def dids(visit: Visit) -> Context:
    """List the DIDs of a domain."""
    domain = visit.domain()
    found = [_did_row(each, domain) for each in await _dids(visit, domain)]
    filters = (*SEARCH, Filter("kindText", "Kind", (("issuer", "issuer"), ("holder", "holder"))))
    return {
        "domain": domain,
        "table": complete(visit, DID_COLUMNS, found, filters=filters, empty=NO_DID),
        **rights(visit),
    }


@pages.show("/dids/add", "Create a DID", roles=OPERATORS, template="did_add.html")
async def new_did(visit: Visit) -> Context:
    """Show the form of a new DID."""
    domain = visit.domain()
    wallets = await every(visit, WALLETS, "users", {}, domain=domain.id)
    return {
        "domain": domain,
        "methods": [(each, f"did:{each}") for each in METHODS],
        "curves": choices([*CURVES]),
        "issuers": [("", "none"), *_named(await _dids(visit, domain), "Issuer")],
        "wallets": [("", "none: the DID is an issuer"), *((str(each["walletId"]), _person(each)) for each in wallets)],
    }


@pages.submit("/dids/add", roles=OPERATORS)
async def add_did(visit: Visit) -> Redirect:
    """Create a DID. It is a holder's DID if the person has chosen a wallet. Otherwise it is an issuer's DID."""
    domain, fields = visit.domain(), visit.fields
    body: Row = {name: fields.get(name, "") for name in ("method", "name", "description", "keyType")}
    path = "/api/v1/did/createIssuerDid"
    if fields.get("wallet"):
        path = "/api/v1/did/createHolderDid"
        body |= {"walletUserId": number(fields["wallet"], "wallet"), "issuerDid": fields.get("issuer", "")}
    made = await visit.call(path, body, domain=domain.id)
    return Redirect(of(f"/dids/{made['didId']}", domain), f"{made['message']}.")


@pages.show("/dids/{did}", "DID", roles=READERS, template="did.html")
async def did(visit: Visit) -> Context:
    """Show a DID."""
    domain = visit.domain()
    found = await _did(visit, domain)
    return {"title": found["shownName"], "domain": domain, "did": found, **rights(visit)}


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


# --- schemas ----------------------------------------------------------------------------------------------------------


@pages.show("/schemas", "Schemas", roles=READERS, template="schemas.html", menu="Credentials")
async def schemas(visit: Visit) -> Context:
    """List the schemas of a domain."""
    domain = visit.domain()
    names = {each["did"]: each["name"] for each in await _dids(visit, domain)}
    found = await every(visit, SCHEMAS, "message", {}, domain=domain.id)
    rows = [{**each, "authorName": names.get(each["author"]) or "deleted"} for each in found]
    table = complete(visit, SCHEMA_COLUMNS, rows, filters=SEARCH, empty=NO_SCHEMA)
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/schemas/add", "Add a schema", roles=OPERATORS, template="schema_add.html")
async def new_schema(visit: Visit) -> Context:
    """Show the form of a new schema."""
    domain = visit.domain()
    return {"domain": domain, "issuers": _named(await _dids(visit, domain), "Issuer"), "example": EXAMPLE}


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


# --- credentials ------------------------------------------------------------------------------------------------------


@pages.show("/credentials", "Credentials", roles=READERS, template="credentials.html", menu="Credentials")
async def credentials(visit: Visit) -> Context:
    """List the credentials of a domain."""
    domain = visit.domain()
    table = await listed(
        visit, CREDENTIAL_COLUMNS, CREDENTIALS, "credentials", {}, domain=domain.id, empty=NO_CREDENTIAL, most=1000
    )
    table.rows = [_credential_row(each, domain) for each in table.rows]
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/credentials/add", "Issue a credential", roles=OPERATORS, template="credential_add.html")
async def new_credential(visit: Visit) -> Context:
    """Show the form of a new credential."""
    domain = visit.domain()
    known = await _dids(visit, domain)
    found = await every(visit, SCHEMAS, "message", {}, domain=domain.id)
    return {
        "domain": domain,
        "issuers": _named(known, "Issuer"),
        "holders": _named(known, "User"),
        "schemas": [(str(each["id"]), str(each["name"])) for each in found],
    }


@pages.submit("/credentials/add", roles=OPERATORS)
async def add_credential(visit: Visit) -> Redirect:
    """Issue a credential."""
    domain, fields = visit.domain(), visit.fields
    metadata: dict[str, JSON] = {}
    for line in map(str, lines(fields.get("claims", ""))):
        name, sign, value = line.partition("=")
        if not sign:
            raise Invalid.about(f'"{line}" is not understood: write NAME=VALUE', "metadata")
        metadata[name.strip()] = value.strip()
    if fields.get("password"):
        metadata["epmPassword"] = fields["password"]
    body: Row = {
        "issuerDid": fields.get("issuerDid", ""),
        "holderDid": fields.get("holderDid", ""),
        "schemaId": fields.get("schemaId", ""),
        "credentialName": fields.get("credentialName", ""),
        "metadata": metadata,
        "expiry": fields.get("expiry", ""),
    }
    made = await visit.call("/api/v1/credential/createCredential", body, domain=domain.id)
    return Redirect(of(f"/credentials/{made['id']}", domain), "The credential is issued. Now assign it to a wallet.")


@pages.show("/credentials/{credential}", "Credential", roles=READERS, template="credential.html")
async def credential(visit: Visit) -> Context:
    """Show a credential as a document."""
    domain = visit.domain()
    found = await _credential(visit, domain)
    body: Row = {"credentialId": str(found["id"])}
    document = await visit.call("/api/v1/credential/GetCredential", body, domain=domain.id)
    return {
        "title": found["name"],
        "domain": domain,
        "credential": found,
        "document": json.dumps(document["credential"], indent=2, ensure_ascii=False),
        **rights(visit),
    }


@pages.show(
    "/credentials/{credential}/assign", "Assign a credential", roles=OPERATORS, template="credential_assign.html"
)
async def ask_to_assign(visit: Visit) -> Context:
    """Show the wallets that can get a credential."""
    domain = visit.domain()
    wallets = await every(visit, WALLETS, "users", {}, domain=domain.id)
    return {
        "domain": domain,
        "credential": await _credential(visit, domain),
        "wallets": [(str(each["walletId"]), _person(each)) for each in wallets],
    }


@pages.submit("/credentials/{credential}/assign", roles=OPERATORS)
async def assign(visit: Visit) -> Redirect:
    """Assign a credential to a wallet."""
    domain = visit.domain()
    wallet = number(visit.fields.get("wallet", ""), "wallet")
    body: Row = {
        "walletId": wallet,
        "userId": wallet,
        "credentialId": number(visit.at["credential"], "credential"),
    }
    await visit.call("/api/v1/walletService/assignWalletUser", body)
    return Redirect(of(f"/credentials/{body['credentialId']}", domain), "The credential is assigned to the wallet.")


@pages.show("/credentials/{credential}/revoke", "Revoke a credential", roles=OPERATORS, template="confirm.html")
async def confirm_revocation(visit: Visit) -> Context:
    """Show the credential that would be revoked."""
    domain = visit.domain()
    found = await _credential(visit, domain)
    ends = " Sessions of its holder end." if domain.disconnect_on_revoke else ""
    return {
        "text": f"The credential is revoked for good, and open requests for it are closed.{ends}",
        "facts": [
            ("Credential", found["name"]),
            ("User", found["epmUsername"]),
            ("Holder", found["holderDid"]),
            ("Issuer", found["issuerName"]),
            ("State", found["state"]),
        ],
        "button": "Revoke the credential",
        "back": found["address"],
    }


@pages.submit("/credentials/{credential}/revoke", roles=OPERATORS)
async def revoke(visit: Visit) -> Redirect:
    """Revoke a credential."""
    domain = visit.domain()
    found = await _credential(visit, domain)
    body: Row = {"vcid": found["id"], "issuerDid": found["issuerDid"], "holderDid": found["holderDid"]}
    await visit.call("/api/v1/credential/revokecredential", body, domain=domain.id)
    return Redirect(str(found["address"]), "The credential is revoked.")


# --- wallets ----------------------------------------------------------------------------------------------------------


@pages.show("/wallets", "Wallets", roles=READERS, template="wallets.html", menu="Credentials")
async def wallets(visit: Visit) -> Context:
    """List the wallets of a domain."""
    domain = visit.domain()
    filters = (Filter("filter", "Name or mail"),)
    body: Row = {"filter": visit.query.get("filter", "")}
    table = await listed(
        visit, WALLET_COLUMNS, WALLETS, "users", body, domain=domain.id, filters=filters, empty=NO_WALLET
    )
    table.rows = [{**each, "address": of(f"/wallets/{each['walletId']}", domain)} for each in table.rows]
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/wallets/add", "Register a wallet", roles=OPERATORS, template="wallet_add.html")
async def new_wallet(visit: Visit) -> Context:
    """Show the form of a new wallet."""
    return {"domain": visit.domain()}


@pages.submit("/wallets/add", roles=OPERATORS, template="wallet_made.html")
async def add_wallet(visit: Visit) -> Context:
    """Register a wallet, and show its key once."""
    domain = visit.domain()
    body: Row = {name: visit.fields.get(name, "") for name in ("username", "emailAddress", "walletUrl")}
    made = await visit.call("/api/v1/walletService/registerWalletUser", body, domain=domain.id)
    return {"title": "The wallet is registered", "domain": domain, "made": made}


@pages.show("/wallets/{wallet}", "Wallet", roles=READERS, template="wallet.html")
async def wallet(visit: Visit) -> Context:
    """Show a wallet with its DIDs and its credentials."""
    domain = visit.domain()
    found = await _wallet(visit, domain)
    held = list[Row]()
    for state in ("Assigned", "Accepted", "Ignored"):
        body: Row = {"walletId": found["walletId"], "pageSize": 100}
        answer = await visit.call(f"/api/v1/credential/Get{state}Credential", body)
        held += entries(answer["credentials"])
    own = await every(visit, DIDS, "message", {"userId": found["walletId"]}, domain=domain.id)
    return {
        "title": f"Wallet of {found['username']}",
        "domain": domain,
        "wallet": found,
        "credentials": [_credential_row(each, domain) for each in held],
        "credential_columns": [column for column in CREDENTIAL_COLUMNS if column.is_chosen],
        "dids": [_did_row(each, domain) for each in own],
        "did_columns": [column for column in DID_COLUMNS if column.key in ("shownName", "did", "issuerName")],
        **rights(visit),
    }


@pages.show("/wallets/{wallet}/reset", "Reset a wallet", roles=OPERATORS, template="confirm.html")
async def confirm_reset(visit: Visit) -> Context:
    """Show what the owner of a wallet loses if the wallet is reset."""
    domain = visit.domain()
    found = await _wallet(visit, domain)
    return {
        "text": "For a lost wallet. Its key and its token are invalid at once, and the keys of holders that the "
        "service kept for it are lost. Afterwards, revoke its credentials, and issue new ones to a new DID.",
        "facts": [
            ("Wallet", _person(found)),
            ("Domain", domain.name),
            ("Credentials in it", str(found["noOfcredential"])),
        ],
        "button": "Reset the wallet",
        "back": of(f"/wallets/{found['walletId']}", domain),
    }


@pages.submit("/wallets/{wallet}/reset", roles=OPERATORS, template="wallet_made.html")
async def reset(visit: Visit) -> Context:
    """Reset a wallet, and show its new key once."""
    domain = visit.domain()
    body: Row = {"walletId": number(visit.at["wallet"], "wallet")}
    made = await visit.call("/api/v1/walletService/resetWallet", body, domain=domain.id)
    return {"title": "The wallet is reset", "domain": domain, "made": made}


# --- presentation requests --------------------------------------------------------------------------------------------


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
    known = await _dids(visit, domain)
    return {
        "domain": domain,
        "issuers": _named(known, "Issuer"),
        "holders": [("", "all holders of a group"), *_named(known, "User")],
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


# --- rows -------------------------------------------------------------------------------------------------------------


async def _dids(visit: Visit, domain: Domain) -> list[Row]:
    return await every(visit, DIDS, "message", {}, domain=domain.id)


async def _did(visit: Visit, domain: Domain) -> Row:
    return _did_row(one(await _dids(visit, domain), "id", visit.at["did"], "DID"), domain)


async def _credential(visit: Visit, domain: Domain) -> Row:
    wanted = number(visit.at["credential"], "credential")
    found = await find(visit, CREDENTIALS, "credentials", "id", wanted, "credential", domain=domain.id)
    return _credential_row(found, domain)


async def _wallet(visit: Visit, domain: Domain) -> Row:
    found = await every(visit, WALLETS, "users", {}, domain=domain.id)
    return one(found, "walletId", visit.at["wallet"], "wallet")


def _named(found: list[Row], kind: str) -> list[tuple[str, str]]:
    """Return the DIDs of a kind as choices of a form: (DID, name) for each DID."""
    return [
        (str(each["did"]), f"{each['name'] or each['id']} ({_short(each['did'])})")
        for each in found
        if each["DIDType"] == kind
    ]


def _short(did: JSON) -> str:
    text = str(did)
    return text if len(text) <= 28 else f"{text[:20]}…{text[-6:]}"


def _person(wallet: Row) -> str:
    return f"{wallet['username']} ({wallet['emailAddress']})"


def _did_row(row: Row, domain: Domain) -> Row:
    return {
        **row,
        "shownName": row["name"] or f"DID {row['id']}",
        "kindText": "issuer" if row["DIDType"] == "Issuer" else "holder",
        "address": of(f"/dids/{row['id']}", domain),
    }


def _credential_row(row: Row, domain: Domain) -> Row:
    state = "expired" if row["expired"] and row["status"] != "Revoked" else str(row["status"]).lower()
    return {**row, "state": state, "address": of(f"/credentials/{row['id']}", domain)}
