"""What a wallet is, in the service and in the interface."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from sallyport.base.model import Model
from sallyport.base.validation import unfit
from sallyport.did.wallets.key import LONGEST
from sallyport.web.paging import LONG, IsMinimum, LongSize, PagedByNumber
from sallyport.web.scope import Flag, Id, LongText, Many, Name, OfDomain, PlainText, ScopedIfGiven, Text

REGISTERED = "Registered"
MAX_ASSIGNED = 500
_ADDRESS = re.compile(r"[^@\s]{1,64}@[^@\s]{1,190}")


def _email(value: str) -> str:
    text = value.strip()
    if not _ADDRESS.fullmatch(text):
        raise unfit("an e-mail address")
    return text


def _url(value: str) -> str:
    text = value.strip()
    if text and not re.fullmatch(r"https?://[!-~]+", text):
        raise unfit("an http or https URL")
    return text


def _key(value: object) -> object:
    if not isinstance(value, str) or not value.strip():
        raise unfit("the key that registerWalletUser gave")
    return value.strip()


Email = Annotated[PlainText, Field(min_length=3, max_length=255), AfterValidator(_email)]
WalletUrl = Annotated[LongText, AfterValidator(_url)]
WalletKey = Annotated[SecretStr, Field(max_length=LONGEST), BeforeValidator(_key)]


class RegisterWallet(OfDomain):
    """Body of registerWalletUser. walletUrl: kept for the reader; the service connects to no wallet."""

    username: Name
    emailAddress: Email
    walletUrl: WalletUrl = ""


class ResetWallet(OfDomain):
    """Body of resetWallet."""

    walletId: Id


class WalletRegistered(Model):
    """Answer of registerWalletUser and resetWallet. walletKey and token are shown here alone."""

    code: int = 200
    status: str = "Success"
    message: str
    walletId: int
    userId: int
    walletKey: str
    token: str


class ListWallets(OfDomain, PagedByNumber):
    """Body of walletUserList. filter: a part of a user name or an e-mail address."""

    filter: Text = ""


class WalletEntry(Model):
    """A wallet user in the list. noOfcredential: the credentials that are assigned to the wallet or accepted."""

    walletId: int
    userId: int
    walletUrl: str
    status: str
    username: str
    emailAddress: str
    noOfcredential: int


class WalletList(Model):
    """Answer of walletUserList."""

    code: int = 200
    status: str = "Success"
    message: str
    count: int
    totalIsMinimum: IsMinimum = False
    users: list[WalletEntry]


class AssignWallet(ScopedIfGiven):
    """Body of assignWalletUser: integers, or arrays of them. userId says the same as walletId, entry by entry; each
    wallet gets the credential of its place, and one wallet alone gets them all."""

    walletId: Many[Id] = Field(min_length=1, max_length=MAX_ASSIGNED)
    userId: Many[Id] = Field(min_length=1, max_length=MAX_ASSIGNED)
    credentialId: Many[Id] = Field(min_length=1, max_length=MAX_ASSIGNED)


class PollCredentials(ScopedIfGiven, PagedByNumber):
    """Body of pollCredentials."""

    pageSize: LongSize = LONG
    email: Annotated[PlainText, Field(min_length=1, max_length=255)]
    walletKey: WalletKey


class PolledCredential(Model):
    """A credential on its way to a wallet. epmPassword: for the holder alone; never part of jwt."""

    credentialId: int
    credentialName: str
    issuerName: str
    issuerDid: str
    userDid: str
    jwt: str
    createdAt: str
    status: str
    epmPassword: str = ""


class Polled(Model):
    """Answer of pollCredentials."""

    code: int = 200
    status: str = "Success"
    message: str
    email: str
    walletKey: str
    totalCount: int
    credentials: list[PolledCredential]


class Acknowledge(ScopedIfGiven):
    """Body of acknowledgeCredential."""

    walletId: Id
    userId: Id
    credentialId: Id
    accept: Flag


@dataclass(frozen=True, slots=True)
class NewWallet:
    """A wallet to be."""

    domain_id: int
    username: str
    email: str
    url: str


@dataclass(frozen=True, slots=True)
class Wallet:
    """A wallet as it is stored. id: its walletId and its user's userId. Times in microseconds."""

    id: int
    domain_id: int
    username: str
    email: str
    url: str
    key_hash: str
    public_key: bytes
    token_id: int
    created_at: int


@dataclass(frozen=True, slots=True)
class ListedWallet:
    """A wallet in a list."""

    id: int
    username: str
    email: str
    url: str
    credentials: int
