"""Values of wallets."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from sallyport.areas.did.credentials.credential import Credential
from sallyport.base.answer import Wire


@dataclass(frozen=True, slots=True)
class NewWallet:
    """A wallet to register."""

    domain_id: int
    username: str
    email: str
    url: str


@dataclass(frozen=True, slots=True)
class Wallet:
    """A stored wallet. id: the walletId, which is also the userId of the wallet's user. Times are in microseconds."""

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
    """A wallet and the number of its credentials."""

    id: Annotated[
        int, Wire("Id of the wallet.", "walletId"), Wire("Id of the wallet user: the same as walletId.", "userId")
    ]
    url: Annotated[str, Wire("URL of the wallet, as information.", "walletUrl")]
    status: ClassVar[Annotated[str, Wire("Always Registered.")]]
    username: Annotated[str, Wire("Name of the wallet's user.")]
    email: Annotated[str, Wire("E-mail address of the wallet's user.", "emailAddress")]
    credentials: Annotated[
        int, Wire("Number of credentials that the wallet has accepted, or that are assigned to it.", "noOfcredential")
    ]


@dataclass(frozen=True, slots=True)
class Registered:
    """A new or reset wallet, with the walletKey and the token, which are shown only once."""

    wallet_id: int
    wallet_key: str
    token: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """A credential that is delivered to its holder. jwt: the credential as a token. password: a secret that only the
    holder gets. It is not a claim."""

    credential: Credential
    jwt: str
    password: str
