"""Functions that find DIDs, schemas and wallets, and offer them in forms."""

from typing import Final

from sallyport.base.wire import Row
from sallyport.console.pages.reading import every
from sallyport.console.table import Filter
from sallyport.console.visit import Visit
from sallyport.domains.domain import Domain

DIDS: Final = "/api/v1/did/DIDList"
SCHEMAS: Final = "/api/v1/credential/credentialSchemaList"
WALLETS: Final = "/api/v1/walletService/walletUserList"
SEARCH: Final = (Filter("search", "Text"),)
LONGEST: Final = 28
"""Maximum length of a DID in a form, in characters. Of a longer DID, the form shows the start and the end."""


async def all_dids(visit: Visit, domain: Domain) -> list[Row]:
    """Return the DIDs of a domain."""
    return await every(visit, DIDS, "message", {}, domain=domain.id)


async def all_schemas(visit: Visit, domain: Domain) -> list[Row]:
    """Return the schemas of a domain."""
    return await every(visit, SCHEMAS, "message", {}, domain=domain.id)


async def all_wallets(visit: Visit, domain: Domain) -> list[Row]:
    """Return the wallets of a domain."""
    return await every(visit, WALLETS, "users", {}, domain=domain.id)


def did_choices(found: list[Row], kind: str) -> list[tuple[str, str]]:
    """Return the DIDs of a kind as choices of a form: (DID, name) for each DID. kind: `Issuer` or `User`."""
    return [
        (str(each["did"]), f"{each['name'] or each['id']} ({_short(str(each['did']))})")
        for each in found
        if each["DIDType"] == kind
    ]


async def wallet_choices(visit: Visit, domain: Domain) -> list[tuple[str, str]]:
    """Return the wallets of a domain as choices of a form: (id, owner) for each wallet."""
    return [(str(each["walletId"]), owner_of(each)) for each in await all_wallets(visit, domain)]


def owner_of(wallet: Row) -> str:
    """Return the name and the mail address of a wallet's owner."""
    return f"{wallet['username']} ({wallet['emailAddress']})"


def _short(did: str) -> str:
    return did if len(did) <= LONGEST else f"{did[:20]}…{did[-6:]}"
