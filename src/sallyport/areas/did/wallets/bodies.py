"""Requests and answers of the operations of wallets."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from sallyport.areas.did.wallets.wallet import ListedWallet
from sallyport.base.model import Done, Model, answer_of
from sallyport.base.validation import unfit
from sallyport.web.bodies import (
    LONG,
    Flag,
    Id,
    IsMinimum,
    LongSize,
    LongText,
    Many,
    Name,
    OfDomain,
    PagedByNumber,
    PlainText,
    ScopedIfGiven,
    Text,
    TotalCount,
)

MAX_ASSIGNED = 500
_ADDRESS = re.compile(r"[^@\s]{1,64}@[^@\s]{1,190}")


def _email(value: str) -> str:
    text = value.strip()
    if not _ADDRESS.fullmatch(text):
        raise unfit("must be an e-mail address")
    return text


def _url(value: str) -> str:
    text = value.strip()
    if text and not re.fullmatch(r"https?://[!-~]+", text):
        raise unfit("must be an http or https URL")
    return text


def _key(value: object) -> object:
    if not isinstance(value, str) or not value.strip():
        raise unfit("must be the walletKey that registerWalletUser returned")
    return value.strip()


Email = Annotated[PlainText, Field(min_length=3, max_length=255), AfterValidator(_email)]
WalletUrl = Annotated[LongText, AfterValidator(_url)]
WalletId = Annotated[Id, Field(description="Id of the wallet, as registerWalletUser returns it.")]
WalletKey = Annotated[
    SecretStr,
    Field(max_length=128, description="Key of the wallet, from registerWalletUser."),
    BeforeValidator(_key),
]


class RegisterWallet(OfDomain):
    """Request body of the operation `registerWalletUser`."""

    username: Name = Field(description="Name of the wallet's user.")
    emailAddress: Email = Field(
        description="E-mail address of the user. It identifies the wallet in polls, and is unique in the domain."
    )
    walletUrl: WalletUrl = Field(
        default="", description="http or https URL of the wallet, as information. The service does not connect to it."
    )


class ResetWallet(OfDomain):
    """Request body of the operation `resetWallet`."""

    walletId: WalletId


class WalletRegistered(Done):
    """Response body of the operations `registerWalletUser` and `resetWallet`."""

    walletId: int = Field(description="Id of the wallet.")
    userId: int = Field(description="Id of the wallet user: the same as walletId.")
    walletKey: str = Field(description="Key of the wallet. No other answer contains the key.")
    token: str = Field(description="Access token with the role wallet. No other answer contains the token.")


class ListWallets(OfDomain, PagedByNumber):
    """Request body of the operation `walletUserList`."""

    filter: Text = Field(
        default="",
        description="Part of a user name or e-mail address, case-insensitive. Leave it empty to list all wallet users.",
    )
    walletId: Id = Field(
        default=0, description="Id of a wallet. Only this wallet is listed. Leave it 0 to list all wallet users."
    )


@answer_of(ListedWallet)
class WalletEntry(Model):
    """A wallet user in the answer of the operation `walletUserList`."""


class WalletList(Done):
    """Response body of the operation `walletUserList`."""

    count: TotalCount
    totalIsMinimum: IsMinimum = False
    users: list[WalletEntry] = Field(description="Wallet users on this page.")


class AssignWallet(ScopedIfGiven):
    """Request body of the operation `assignWalletUser`. Each field is an integer or an array of integers."""

    walletId: Many[Id] = Field(
        min_length=1,
        max_length=MAX_ASSIGNED,
        description=(
            "Ids of the wallets: either one wallet for each credential, or one wallet that gets all credentials."
        ),
    )
    userId: Many[Id] = Field(
        min_length=1, max_length=MAX_ASSIGNED, description="Ids of the wallet users: the same as walletId."
    )
    credentialId: Many[Id] = Field(
        min_length=1, max_length=MAX_ASSIGNED, description="Numbers of the credentials, as credentialList returns them."
    )


class PollCredentials(ScopedIfGiven, PagedByNumber):
    """Request body of the operation `pollCredentials`."""

    pageSize: LongSize = LONG
    email: Annotated[PlainText, Field(min_length=1, max_length=255)] = Field(
        description="E-mail address that the wallet was registered with."
    )
    walletKey: WalletKey


class PolledCredential(Model):
    """A credential that is delivered to a wallet."""

    credentialId: int = Field(description="Number of the credential.")
    credentialName: str = Field(description="Name of the credential.")
    issuerName: str = Field(description="Name of the issuer.")
    issuerDid: str = Field(description="DID of the issuer.")
    userDid: str = Field(description="DID of the holder.")
    jwt: str = Field(description="The credential as a token (VC-JWT).")
    createdAt: str = Field(description="Time when the credential was issued, ISO 8601.")
    status: str = Field(description="Assigned or Accepted.")
    epmPassword: str = Field(
        default="",
        description="Password for the holder, which is not part of jwt. It is empty if the credential has no password.",
    )


class Polled(Done):
    """Response body of the operation `pollCredentials`."""

    email: str = Field(description="E-mail address of the wallet's user.")
    walletKey: str = Field(description="Key of the wallet, as in the request.")
    totalCount: TotalCount
    credentials: list[PolledCredential] = Field(description="Credentials on this page. The page has at most 2 MiB.")


class Acknowledge(ScopedIfGiven):
    """Request body of the operation `acknowledgeCredential`."""

    walletId: WalletId
    userId: Id = Field(description="Id of the wallet user: the same as walletId.")
    credentialId: Id = Field(description="Number of the credential, as pollCredentials returns it.")
    accept: Flag = Field(description="true accepts the credential, false ignores it. The choice may be changed later.")
