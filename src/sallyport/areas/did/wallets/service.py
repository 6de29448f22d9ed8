"""The service of wallets. It registers wallets, assigns credentials to them, delivers the credentials, and stores
whether they are accepted."""

from collections.abc import Sequence
from typing import Final

from sallyport.areas.did.credentials import repo as credentials
from sallyport.areas.did.credentials.credential import Status
from sallyport.areas.did.credentials.repo import wallet_of_holder
from sallyport.areas.did.credentials.service import NO_CREDENTIAL
from sallyport.areas.did.dids import repo as dids
from sallyport.areas.did.dids.did import DidKind
from sallyport.areas.did.peers import Tokens
from sallyport.areas.did.wallets import guard, repo
from sallyport.areas.did.wallets.guard import NO_WALLET, Tries, wallet_of
from sallyport.areas.did.wallets.key import new_wallet_key
from sallyport.areas.did.wallets.wallet import Delivered, ListedWallet, NewWallet, Registered, Wallet
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Conflict, Invalid, NotFound, SecretError
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.model import ListQuery, Store, Tx
from sallyport.store.vault import Vault
from sallyport.web.bodies import Page
from sallyport.web.scope import Caller

FIRST_PAGE: Final = Page(0, 1000)
MAX_PAGE_LENGTH: Final = 2 << 20
"""Maximum total size of the credentials that one poll delivers, in octets."""
REVOKED: Final = "the credential is revoked"


class Wallets:
    """The wallets of all tenants."""

    def __init__(self, store: Store, tokens: Tokens, vault: Vault, tries: Tries, clock: Clock = now_us) -> None:
        self._store = store
        self._tokens = tokens
        self._vault = vault
        self._tries = tries
        self._clock = clock

    async def register(self, tenant_id: int, new: NewWallet) -> Registered:
        """Register a person's wallet. Raises Conflict if the domain already has a wallet with the e-mail address."""
        wallet_key, at = new_wallet_key(), self._clock()

        def transaction(tx: Tx) -> Registered:
            token_id, token = self._tokens.wallet_token(tx, tenant_id, new.email)
            wallet_id = repo.add(tx, new, wallet_key, token_id, at)
            values: dict[str, JSON] = {"email": new.email, "username": new.username, "url": new.url}
            _note(tx, "wallet.register", new.domain_id, wallet_id, audit.changed({}, values), at)
            return Registered(wallet_id, wallet_key, token)

        return await self._store.write(transaction)

    async def reset(self, tenant_id: int, domain_id: int, wallet_id: int) -> Registered:
        """Give a lost wallet a new walletKey and token. The former walletKey and token become invalid at once.
        Holders' keys that were encrypted for the former walletKey are lost. Raises NotFound."""
        wallet_key, at = new_wallet_key(), self._clock()

        def transaction(tx: Tx) -> Registered:
            wallet = wallet_of(tx, tenant_id, wallet_id)
            if wallet.domain_id != domain_id:
                raise NotFound(NO_WALLET)
            token_id, token = self._tokens.wallet_token(tx, tenant_id, wallet.email)
            repo.renew(tx, wallet.id, wallet_key, token_id)
            self._tokens.end_wallet_token(tx, tenant_id, wallet.token_id)
            hidden = audit.changed({"walletKey": audit.HIDDEN}, {"walletKey": audit.HIDDEN})
            _note(tx, "wallet.reset", domain_id, wallet.id, hidden, at)
            return Registered(wallet.id, wallet_key, token)

        made = await self._store.write(transaction)
        self._tokens.forget()
        return made

    async def page(self, stretch: ListQuery, search: str = "", wallet_id: int = 0) -> tuple[list[ListedWallet], int]:
        """Return one page of a domain's wallets, ordered by id, and the number of matches. search: a part of a name
        or an e-mail address. wallet_id: the id of a wallet; 0 for any wallet."""
        return await self._store.search(lambda tx: repo.page(tx, stretch, search, wallet_id))

    async def assign(self, tenant_id: int, pairs: Sequence[tuple[int, int]]) -> int:
        """Assign credentials to wallets, and return the number of new assignments. pairs: (wallet id, credential
        id). If an assignment fails, nothing is changed.

        Raises NotFound. Raises Conflict if a credential is revoked, expired, or in another wallet.
        """
        at = self._clock()
        return await self._store.write(lambda tx: sum(assign_in(tx, tenant_id, *pair, at) for pair in pairs))

    async def deliver(
        self, caller: Caller, email: str, wallet_key: str, page: Page = FIRST_PAGE
    ) -> tuple[Wallet, list[Delivered], int]:
        """Return a wallet, one page of its credentials, and the total number of its credentials. The credentials are
        ordered by id. A page ends early if the next credential would exceed MAX_PAGE_LENGTH.

        Raises Unauthenticated if no wallet has this e-mail address and walletKey. Raises Forbidden, TooMany.
        """
        wallets = await self._store.read(lambda tx: repo.by_email(tx, caller.tenant_id, email))
        wallet = guard.check_key(self._tries, caller, wallets, wallet_key, email)
        at = self._clock()

        def query(tx: Tx) -> tuple[list[Delivered], int]:
            ids, delivered, room = credentials.valid_of_wallet(tx, wallet.id, at), list[Delivered](), MAX_PAGE_LENGTH
            for each in ids[page.offset : page.offset + page.size]:
                credential, jwt = credentials.get(tx, wallet.domain_id, each), credentials.token(tx, each)
                assert credential is not None  # noqa: S101  it is the same transaction
                room -= len(jwt)
                if delivered and room < 0:
                    break
                delivered.append(Delivered(credential, jwt, self._password(tx, each)))
            return delivered, len(ids)

        return wallet, *await self._store.search(query)

    def _password(self, tx: Tx, credential_id: int) -> str:
        """Return the credential's password. Return an empty text if the password cannot be decrypted. In that case the
        credential is delivered without a password."""
        try:
            return credentials.password(tx, self._vault, credential_id)
        except SecretError:
            return ""

    async def acknowledge(self, caller: Caller, wallet_id: int, credential_id: int, *, accept: bool) -> None:
        """Accept or ignore a credential. The choice may be changed later. Raises NotFound if the wallet does not
        have the credential. Raises Conflict if the credential is revoked. Raises Forbidden."""
        at = self._clock()

        def transaction(tx: Tx) -> None:
            wallet = guard.own_wallet(tx, caller, wallet_id)
            credential = credentials.get(tx, wallet.domain_id, credential_id)
            if credential is None or credential.wallet_id != wallet.id:
                raise NotFound(NO_CREDENTIAL)
            if credential.status == Status.REVOKED:
                raise Conflict(REVOKED)
            state = Status.ACCEPTED if accept else Status.IGNORED
            if credential.status != state:
                credentials.move(tx, credential, state, wallet.id, at)
                changes: dict[str, JSON] = {"credential": credential.id, "status": [credential.status, state.value]}
                _note(tx, "wallet.acknowledge", wallet.domain_id, wallet.id, changes, at)

        await self._store.write(transaction)


def assign_in(tx: Tx, tenant_id: int, wallet_id: int, credential_id: int, at: int) -> bool:
    """Assign a credential to a wallet. Return False if the wallet already has the credential. Raises NotFound. Raises
    Conflict if the credential is revoked or expired, or is in another wallet. Raises Conflict also if the DID of the
    credential's holder is deleted."""
    wallet = wallet_of(tx, tenant_id, wallet_id)
    credential = credentials.get(tx, wallet.domain_id, credential_id)
    if credential is None:
        raise NotFound(NO_CREDENTIAL)
    if credential.status == Status.REVOKED:
        raise Conflict(REVOKED)
    if credential.is_expired(at):
        raise Conflict("the credential is expired")
    owner = credential.wallet_id or wallet_of_holder(tx, wallet.domain_id, credential.holder_did)
    if owner not in {None, wallet.id}:
        raise Conflict("the credential is assigned to another wallet")
    if credential.wallet_id == wallet.id:
        return False
    if dids.get(tx, wallet.domain_id, credential.holder_did, DidKind.USER) is None:
        raise Conflict("the DID of the credential's holder is deleted")
    credentials.move(tx, credential, Status.ASSIGNED, wallet.id, at)
    changes: dict[str, JSON] = {"credential": credential.id, "holder": credential.holder_did}
    _note(tx, "wallet.assign", wallet.domain_id, wallet.id, changes, at)
    return True


def paired(wallet_ids: Sequence[int], user_ids: Sequence[int], credential_ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return pairs of a wallet id and a credential id. If there is a single wallet, it is paired with every credential.
    Otherwise each credential is paired with the wallet at the same index.

    Raises NotFound if a user id differs from its wallet id. Raises Invalid if the arrays have different lengths.
    """
    if len(wallet_ids) != len(user_ids):
        raise Invalid.about("walletId and userId must have the same number of entries", "walletId", "userId")
    if list(wallet_ids) != list(user_ids):
        raise NotFound(NO_WALLET)
    if len(wallet_ids) == 1:
        return [(wallet_ids[0], credential_id) for credential_id in credential_ids]
    if len(wallet_ids) != len(credential_ids):
        raise Invalid.about("with several wallets, credentialId needs one entry for each wallet", "credentialId")
    return list(zip(wallet_ids, credential_ids, strict=True))


def _note(tx: Tx, action: str, domain_id: int, wallet_id: int, changes: dict[str, JSON], at: int) -> None:
    audit.record_in(tx, action, domain_id, f"wallet {wallet_id}", changes, at=at)
