"""Wallets of people, with their credentials and DIDs."""

from typing import Final

from sallyport.base.wire import Row
from sallyport.console.columns import Column
from sallyport.console.pages.credentials.credentials import CREDENTIAL_COLUMNS, credential_row
from sallyport.console.pages.credentials.dids import DID_COLUMNS, did_row
from sallyport.console.pages.credentials.finding import WALLETS, owner_of, wallet_at
from sallyport.console.pages.reading import number, of, rights
from sallyport.console.table import SIZE, Filter, listed
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
WALLET_COLUMNS: Final = (
    Column("username", "User", link=lambda row: str(row["address"])),
    Column("emailAddress", "Mail"),
    Column("noOfcredential", "Credentials", "number"),
    Column("status", "Status"),
    Column("walletUrl", "URL", is_chosen=False),
    Column("walletId", "Id", "number", is_chosen=False),
)
NO_WALLET: Final = "No wallet yet. Register the wallet of a person; its key is shown once."


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
    found = await wallet_at(visit, domain)
    held = list[Row]()
    for state in ("Assigned", "Accepted", "Ignored"):
        body: Row = {"walletId": found["walletId"], "pageSize": 100}
        answer = await visit.call(f"/api/v1/credential/Get{state}Credential", body)
        held += entries(answer["credentials"])
    of_wallet: Row = {"userId": found["walletId"], "pageSize": SIZE + 1}
    own = entries((await visit.call("/api/v1/did/DIDList", of_wallet, domain=domain.id))["message"])
    return {
        "title": f"Wallet of {found['username']}",
        "domain": domain,
        "wallet": found,
        "credentials": [credential_row(each, domain) for each in held],
        "credential_columns": [column for column in CREDENTIAL_COLUMNS if column.is_chosen],
        "dids": [did_row(each, domain) for each in own[:SIZE]],
        "has_more_dids": len(own) > SIZE,
        "did_columns": [column for column in DID_COLUMNS if column.key in ("shownName", "did", "issuerName")],
        **rights(visit),
    }


@pages.show("/wallets/{wallet}/reset", "Reset a wallet", roles=OPERATORS, template="confirm.html")
async def confirm_reset(visit: Visit) -> Context:
    """Show what the owner of a wallet loses if the wallet is reset."""
    domain = visit.domain()
    found = await wallet_at(visit, domain)
    return {
        "text": "For a lost wallet. Its key and its token are invalid at once, and the keys of holders that the "
        "service kept for it are lost. Afterwards, revoke its credentials, and issue new ones to a new DID.",
        "facts": [
            ("Wallet", owner_of(found)),
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
