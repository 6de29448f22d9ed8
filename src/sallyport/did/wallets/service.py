"""The rules of wallets: registered, given credentials, asked for them, told what their person thinks of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict, Invalid, NotFound, SecretError
from sallyport.base.wire import JSON
from sallyport.did.credentials import repo as credentials
from sallyport.did.credentials.model import Status
from sallyport.did.credentials.service import NO_CREDENTIAL
from sallyport.did.held import repo as held
from sallyport.did.held.model import HeldCredential
from sallyport.did.wallets import guard, repo
from sallyport.did.wallets.guard import Tries
from sallyport.did.wallets.key import new_wallet_key
from sallyport.did.wallets.model import ListedWallet, NewWallet, Wallet
from sallyport.store import audit
from sallyport.store.model import Store, Tx
from sallyport.store.search import Stretch
from sallyport.store.vault import Vault
from sallyport.web.paging import Page
from sallyport.web.scope import Caller

FIRST_PAGE = Page(0, 1000)
LONGEST_PAGE = 2 << 20
"""Octets of the credentials that one poll delivers."""
NO_WALLET = "wallet not found"
ANOTHERS = "the credential is assigned to another wallet"
REVOKED = "the credential is revoked"


class Tokens(Protocol):
    """Makes access tokens."""

    def wallet_token(self, tx: Tx, tenant_id: int, email: str) -> tuple[int, str]:
        """A token with the role wallet: its id, and the token."""

    def end_wallet_token(self, tx: Tx, tenant_id: int, token_id: int) -> None:
        """Revoke it."""

    def forget(self) -> None:
        """A token was revoked: that holds from now on."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A new wallet, with what is shown once."""

    wallet_id: int
    wallet_key: str
    token: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """A credential for its holder. password: for the holder alone."""

    credential: HeldCredential
    password: str


class Wallets:
    """The wallets of all tenants."""

    def __init__(self, store: Store, tokens: Tokens, vault: Vault, tries: Tries, clock: Clock = now_us) -> None:
        self._store = store
        self._tokens = tokens
        self._vault = vault
        self._tries = tries
        self._clock = clock

    async def register(self, tenant_id: int, new: NewWallet) -> Registered:
        """A new wallet of a person. Conflict: the domain has one of that address."""
        wallet_key, at = new_wallet_key(), self._clock()

        def work(tx: Tx) -> Registered:
            token_id, token = self._tokens.wallet_token(tx, tenant_id, new.email)
            wallet_id = repo.add(tx, new, wallet_key, token_id, at)
            told: dict[str, JSON] = {"email": new.email, "username": new.username, "url": new.url}
            _note(tx, "wallet.register", tenant_id, new.domain_id, wallet_id, audit.changed({}, told), at)
            return Registered(wallet_id, wallet_key, token)

        return await self._store.write(work)

    async def reset(self, tenant_id: int, domain_id: int, wallet_id: int) -> Registered:
        """Another walletKey and token for a wallet that was lost: those before are worth nothing from now on, and keys
        of holders that were sealed under them are lost. NotFound."""
        wallet_key, at = new_wallet_key(), self._clock()

        def work(tx: Tx) -> Registered:
            wallet = found(tx, tenant_id, wallet_id)
            if wallet.domain_id != domain_id:
                raise NotFound(NO_WALLET)
            token_id, token = self._tokens.wallet_token(tx, tenant_id, wallet.email)
            repo.renew(tx, wallet.id, wallet_key, token_id)
            self._tokens.end_wallet_token(tx, tenant_id, wallet.token_id)
            hidden = audit.changed({"walletKey": audit.HIDDEN}, {"walletKey": audit.HIDDEN})
            _note(tx, "wallet.reset", tenant_id, domain_id, wallet.id, hidden, at)
            return Registered(wallet.id, wallet_key, token)

        made = await self._store.write(work)
        self._tokens.forget()
        return made

    async def page(self, stretch: Stretch, search: str = "") -> tuple[list[ListedWallet], int]:
        """One page of a domain's wallets and how many match."""

        def work(tx: Tx) -> tuple[list[ListedWallet], int]:
            wallets, total = repo.page(tx, stretch, search)
            counted = held.counts(tx, [wallet.id for wallet in wallets])
            return [replace(each, credentials=counted.get(each.id, 0)) for each in wallets], total

        return await self._store.search(work)

    async def assign(self, tenant_id: int, pairs: Sequence[tuple[int, int]]) -> int:
        """Give credentials to wallets, all or none; how many were new there. pairs: wallet and credential. NotFound.
        Conflict: a credential is revoked, expired, or another wallet's."""
        at = self._clock()
        return await self._store.write(lambda tx: sum(assign_in(tx, tenant_id, *pair, at) for pair in pairs))

    async def deliver(
        self, caller: Caller, email: str, wallet_key: str, page: Page = FIRST_PAGE
    ) -> tuple[Wallet, list[Delivered], int]:
        """Return the wallet of that e-mail address and key with a page of its credentials, ordered by id, and their
        number. A page ends before a credential that would make it longer than LONGEST_PAGE.

        Unauthenticated: no such wallet. Forbidden, TooMany.
        """
        wallets = await self._store.read(lambda tx: repo.by_email(tx, caller.tenant_id, email))
        wallet = guard.check_key(self._tries, caller, wallets, wallet_key, email)
        at = self._clock()

        def work(tx: Tx) -> tuple[list[Delivered], int]:
            ids, delivered, room = held.of_wallet(tx, wallet.id, at), list[Delivered](), LONGEST_PAGE
            for each in ids[page.offset : page.offset + page.size]:
                credential = held.get(tx, wallet.domain_id, each)
                assert credential is not None  # noqa: S101  it is the same transaction
                room -= len(credential.jwt)
                if delivered and room < 0:
                    break
                delivered.append(Delivered(credential, self._password(tx, credential)))
            return delivered, len(ids)

        return wallet, *await self._store.search(work)

    def _password(self, tx: Tx, credential: HeldCredential) -> str:
        """A password that cannot be opened is nobody's loss but its own."""
        try:
            return credentials.password(tx, self._vault, credential.id)
        except SecretError:
            return ""

    async def acknowledge(self, caller: Caller, wallet_id: int, credential_id: int, *, accept: bool) -> None:
        """The wallet's person takes a credential, or leaves it; that may change. NotFound: not the wallet's. Forbidden.
        Conflict: it is revoked."""
        at = self._clock()

        def work(tx: Tx) -> None:
            wallet = found(tx, caller.tenant_id, wallet_id)
            guard.own(caller, wallet)
            credential = held.get(tx, wallet.domain_id, credential_id)
            if credential is None or credential.wallet_id != wallet.id:
                raise NotFound(NO_CREDENTIAL)
            if credential.is_revoked:
                raise Conflict(REVOKED)
            state = Status.ACCEPTED if accept else Status.IGNORED
            if credential.status != state:
                held.move(tx, credential, state, wallet.id, at)
                told: dict[str, JSON] = {"credential": credential.id, "status": [credential.status, state.value]}
                _note(tx, "wallet.acknowledge", caller.tenant_id, wallet.domain_id, wallet.id, told, at)

        await self._store.write(work)


def found(tx: Tx, tenant_id: int, wallet_id: int) -> Wallet:
    """A wallet of the tenant. NotFound."""
    wallet = repo.get(tx, tenant_id, wallet_id)
    if wallet is None:
        raise NotFound(NO_WALLET)
    return wallet


def assign_in(tx: Tx, tenant_id: int, wallet_id: int, credential_id: int, at: int) -> bool:
    """Give a credential to a wallet; False: it has it already. NotFound. Conflict: the credential is revoked, expired,
    another wallet's, or of a holder whose DID is deleted."""
    wallet = found(tx, tenant_id, wallet_id)
    credential = held.get(tx, wallet.domain_id, credential_id)
    if credential is None:
        raise NotFound(NO_CREDENTIAL)
    if credential.is_revoked:
        raise Conflict(REVOKED)
    if credential.expires_at is not None and credential.expires_at <= at:
        raise Conflict("the credential is expired")
    owner = credential.wallet_id or held.wallet_of_holder(tx, wallet.domain_id, credential.holder_did)
    if owner not in {None, wallet.id}:
        raise Conflict(ANOTHERS)
    if credential.wallet_id == wallet.id:
        return False
    if not held.is_live(tx, credential):
        raise Conflict("the DID of the credential's holder is deleted")
    held.move(tx, credential, Status.ASSIGNED, wallet.id, at)
    held.belongs_to(tx, credential)
    told: dict[str, JSON] = {"credential": credential.id, "holder": credential.holder_did}
    _note(tx, "wallet.assign", tenant_id, wallet.domain_id, wallet.id, told, at)
    return True


def paired(wallet_ids: Sequence[int], user_ids: Sequence[int], credential_ids: Sequence[int]) -> list[tuple[int, int]]:
    """Each credential with the wallet of its place; one wallet takes them all. NotFound: a user is not the wallet's.
    Invalid: the arrays do not pair up."""
    if len(wallet_ids) != len(user_ids):
        raise Invalid.about("walletId and userId have the same number of entries", "walletId", "userId")
    if list(wallet_ids) != list(user_ids):
        raise NotFound(NO_WALLET)
    if len(wallet_ids) == 1:
        return [(wallet_ids[0], credential_id) for credential_id in credential_ids]
    if len(wallet_ids) != len(credential_ids):
        raise Invalid.about("credentialId has one entry for each wallet, or there is one wallet", "credentialId")
    return list(zip(wallet_ids, credential_ids, strict=True))


def _note(
    tx: Tx, action: str, tenant_id: int, domain_id: int, wallet_id: int, changes: dict[str, JSON], at: int
) -> None:
    target = f"wallet {wallet_id}"
    audit.record(tx, action, at=at, tenant_id=tenant_id, domain_id=domain_id, target=target, changes=changes)
