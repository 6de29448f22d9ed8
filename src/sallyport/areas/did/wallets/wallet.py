"""Values of wallets."""

from dataclasses import dataclass

from sallyport.areas.did.credentials.credential import Credential


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
    """A wallet and the number of its credentials. credentials: the number of assigned and accepted credentials."""

    id: int
    username: str
    email: str
    url: str
    credentials: int


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
