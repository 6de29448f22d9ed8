"""Functions that find DIDs, schemas and wallets for pages and forms."""

from dataclasses import replace
from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.base.wire import Row
from sallyport.console.pages.choosing import DID, ChoiceSource
from sallyport.console.pages.reading import number, one
from sallyport.console.visit import Visit
from sallyport.shell.command import entries

DIDS: Final = "/api/v1/did/SearchDID"
SCHEMAS: Final = "/api/v1/credential/credentialSchemaList"
WALLETS: Final = "/api/v1/walletService/walletUserList"
MAX_LENGTH: Final = 28
"""Maximum length of a DID in a form, in characters. Of a longer DID, the form shows the start and the end."""


async def did_at(visit: Visit, domain: Domain) -> Row:
    """Return the DID of the domain whose id is in the path. Raises NotFound."""
    found = await visit.call(DIDS, {"didId": number(visit.at["did"], "DID")}, domain=domain.id)
    return one(entries(found["didList"]), "id", visit.at["did"], "DID")


async def wallet_at(visit: Visit, domain: Domain) -> Row:
    """Return the wallet of the domain whose id is in the path. Raises NotFound."""
    found = await visit.call(WALLETS, {"walletId": number(visit.at["wallet"], "wallet")}, domain=domain.id)
    return one(entries(found["users"]), "walletId", visit.at["wallet"], "wallet")


def owner_of(wallet: Row) -> str:
    """Return the name and the mail address of a wallet's owner."""
    return f"{wallet['username']} ({wallet['emailAddress']})"


def _did_title(did: Row) -> str:
    whole = str(did["did"])
    short = whole if len(whole) <= MAX_LENGTH else f"{whole[:20]}…{whole[-6:]}"
    return f"{did['name'] or did['id']} ({short})"


ISSUERS: Final = ChoiceSource(
    "issuer",
    DIDS,
    "didList",
    _did_title,
    id="id",
    value=DID,
    names=("name",),
    search="name",
    by_id="didId",
    body={"didType": "Issuer"},
)
HOLDERS: Final = replace(ISSUERS, kind="holder", body={"didType": "User"})
WALLET_USERS: Final = ChoiceSource(
    "wallet",
    WALLETS,
    "users",
    owner_of,
    id="walletId",
    value="walletId",
    names=("username", "emailAddress"),
    search="filter",
)
SCHEMA_LIST: Final = ChoiceSource(
    "schema",
    SCHEMAS,
    "message",
    lambda schema: str(schema["name"]),
    id="id",
    value="id",
    names=("name",),
    search="filter",
)
