"""Credentials: their issue, assignment and revocation."""

import json
from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.base.wire import Row
from sallyport.console.columns import Column
from sallyport.console.pages.choosing import chosen, offer
from sallyport.console.pages.credentials.finding import HOLDERS, ISSUERS, SCHEMA_LIST, WALLET_USERS
from sallyport.console.pages.reading import find, number, of, pairs, rights
from sallyport.console.table import listed
from sallyport.console.visit import Pages, Visit
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
CREDENTIALS: Final = "/api/v1/credential/credentialList"
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
NO_CREDENTIAL: Final = "No credential yet. It needs an issuer, a holder and a schema."


@pages.show("/credentials", "Credentials", roles=READERS, template="credentials.html", menu="Credentials")
async def credentials(visit: Visit) -> Context:
    """List the credentials of a domain."""
    domain = visit.domain()
    table = await listed(
        visit, CREDENTIAL_COLUMNS, CREDENTIALS, "credentials", {}, domain=domain.id, empty=NO_CREDENTIAL, most=1000
    )
    table.rows = [credential_row(each, domain) for each in table.rows]
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/credentials/add", "Issue a credential", roles=OPERATORS, template="credential_add.html")
async def new_credential(visit: Visit) -> Context:
    """Show the form of a new credential."""
    domain = visit.domain()
    return {
        "domain": domain,
        "issuers": await offer(visit, domain, ISSUERS),
        "holders": await offer(visit, domain, HOLDERS),
        "schemas": await offer(visit, domain, SCHEMA_LIST),
    }


@pages.submit("/credentials/add", roles=OPERATORS)
async def add_credential(visit: Visit) -> Redirect:
    """Issue a credential."""
    domain, fields = visit.domain(), visit.fields
    metadata = pairs(fields.get("claims", ""), "NAME=VALUE", "metadata")
    if fields.get("password"):
        metadata["epmPassword"] = fields["password"]
    body: Row = {
        "issuerDid": await chosen(visit, domain, ISSUERS, "issuerDid"),
        "holderDid": await chosen(visit, domain, HOLDERS, "holderDid"),
        "schemaId": await chosen(visit, domain, SCHEMA_LIST, "schemaId"),
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
        "title": f"Credential {found['name']}",
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
    return {
        "domain": domain,
        "credential": await _credential(visit, domain),
        "wallets": await offer(visit, domain, WALLET_USERS),
    }


@pages.submit("/credentials/{credential}/assign", roles=OPERATORS)
async def assign(visit: Visit) -> Redirect:
    """Assign a credential to a wallet."""
    domain = visit.domain()
    wallet = number(await chosen(visit, domain, WALLET_USERS, "wallet"), "wallet")
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


async def _credential(visit: Visit, domain: Domain) -> Row:
    wanted = number(visit.at["credential"], "credential")
    found = await find(visit, CREDENTIALS, "credentials", "id", wanted, "credential", domain=domain.id)
    return credential_row(found, domain)


def credential_row(row: Row, domain: Domain) -> Row:
    """Return a credential with its state and the address of its page."""
    state = "expired" if row["expired"] and row["status"] != "Revoked" else str(row["status"]).lower()
    return {**row, "state": state, "address": of(f"/credentials/{row['id']}", domain)}
