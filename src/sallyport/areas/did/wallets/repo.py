"""The SQL of wallets."""

from dataclasses import dataclass

from sallyport.areas.did.credentials.repo import VALID_EVER
from sallyport.areas.did.wallets.key import key_hash, public_of
from sallyport.areas.did.wallets.wallet import ListedWallet, NewWallet, Wallet
from sallyport.base.errors import Conflict
from sallyport.base.text import fold
from sallyport.store import counters
from sallyport.store.counters import whole_page
from sallyport.store.erasure import OF_TENANT, Rows
from sallyport.store.inserts import insert_new
from sallyport.store.model import LISTED, ListQuery, Tx, Value, columns_of, listed
from sallyport.store.search import SearchIndex
from sallyport.store.search import page as page_of
from sallyport.store.slices import SLICE

COUNTER = "wallets"
TAKEN = "the domain already has a wallet with this e-mail address; to replace a lost walletKey, use resetWallet"
_SEARCH = SearchIndex("wallets_search")
_SELECT = f"select {', '.join(columns_of(Wallet))} from wallets"
_LISTED = (
    "select id, username, email, url, (select count(*) from credentials c where c.wallet_id = wallets.id "
    f"and {VALID_EVER}) as credentials from wallets"
)


def add(tx: Tx, new: NewWallet, wallet_key: str, token_id: int, at: int) -> int:
    """Add a wallet, and return its id. Raises Conflict if the domain already has a wallet with this e-mail address."""
    wallet_id = insert_new(
        tx,
        "wallets",
        "domain_id, email_key",
        domain_id=new.domain_id,
        username=new.username,
        email=new.email,
        email_key=fold(new.email),
        url=new.url,
        key_hash=key_hash(wallet_key),
        public_key=public_of(wallet_key),
        token_id=token_id,
        created_at=at,
    )
    if wallet_id is None:
        raise Conflict(TAKEN)
    _SEARCH.add(tx, new.domain_id, wallet_id, (fold(new.username), fold(new.email)))
    counters.add_row(tx, new.domain_id, COUNTER, wallet_id, 1)
    return wallet_id


def renew(tx: Tx, wallet_id: int, wallet_key: str, token_id: int) -> None:
    """Replace the walletKey and the token of a wallet."""
    tx.execute(
        "update wallets set key_hash = :hash, public_key = :public, token_id = :token where id = :id",
        id=wallet_id,
        hash=key_hash(wallet_key),
        public=public_of(wallet_key),
        token=token_id,
    )


def get(tx: Tx, tenant_id: int, wallet_id: int) -> Wallet | None:
    """Return a wallet of the tenant, or None."""
    sql = f"{_SELECT} where id = :id and {OF_TENANT}"
    return tx.one(Wallet, sql, id=wallet_id, t=tenant_id)


def by_email(tx: Tx, tenant_id: int, email: str) -> list[Wallet]:
    """Return the wallets of a tenant that have this e-mail address. A domain has at most one of them."""
    sql = f"{_SELECT} where email_key = :key and {OF_TENANT} order by id"
    return tx.all(Wallet, sql, key=fold(email.strip()), t=tenant_id)


def page(tx: Tx, stretch: ListQuery, search: str = "", wallet_id: int = 0) -> tuple[list[ListedWallet], int]:
    """Return one page of a domain's wallets, ordered by id, and the number of matches. search: a part of a name or an
    e-mail address. wallet_id: the id of a wallet; 0 for any wallet."""
    if wallet_id:
        ids = "select id from wallets where id = :id and domain_id = :d"
        given = dict[str, Value](id=wallet_id, d=stretch.domain_id)
        if search:
            contains = "(instr(fold(username), :text) > 0 or instr(fold(email), :text) > 0)"
            ids, given["text"] = f"{ids} and {contains}", fold(search)
        return page_of(tx, ListedWallet, _LISTED, ids, stretch, counter=None, searched=False, **given)
    if search:
        return _SEARCH.page(tx, ListedWallet, _LISTED, stretch, search)
    return whole_page(tx, ListedWallet, _LISTED, "wallets", stretch, counter=COUNTER)


def public_key(tx: Tx, domain_id: int, wallet_id: int) -> bytes | None:
    """Return the public key with which values are encrypted for a wallet, or None if the domain has no such wallet."""
    sql = "select public_key from wallets where id = :id and domain_id = :d"
    return tx.value(bytes, sql, id=wallet_id, d=domain_id)


@dataclass(frozen=True, slots=True)
class WalletRows(Rows):
    """The wallets of a removed domain. The access token of a wallet is deleted with the wallet."""

    def erase(self, tx: Tx, domain_id: int) -> int:
        """Delete up to SLICE wallets of the domain, with their access tokens. Return the number of deleted rows."""
        sql = f"select id, token_id from wallets where domain_id = :d limit {SLICE}"
        found = [(int(str(wallet_id)), int(str(token_id))) for wallet_id, token_id in tx.rows(sql, d=domain_id)]
        gone = self.erase_ids(tx, domain_id, [wallet_id for wallet_id, _ in found])
        tokens = listed(token_id for _, token_id in found)
        tx.execute(f"delete from access_tokens where id in {LISTED}", ids=tokens)
        return gone
