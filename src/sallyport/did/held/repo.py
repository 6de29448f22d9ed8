"""The SQL of credentials as wallets hold them."""

import json
from collections.abc import Sequence

from sallyport.base.text import fold
from sallyport.did.credentials.model import Status
from sallyport.did.held.model import HeldCredential, Holder
from sallyport.store.model import Tx
from sallyport.store.slices import delete_slice

_SELECT = (
    "select c.id, c.domain_id, c.issuer_id, c.schema_id, c.name, c.issuer_did, "
    "i.name as issuer_name, c.holder_did, c.epm_username, c.wallet_id, c.status, t.jwt, c.issued_at, c.expires_at "
    "from credentials c join credential_tokens t on t.credential_id = c.id join dids i on i.id = c.issuer_id"
)
_VALID_EVER = "c.status in ('Assigned', 'Accepted')"
_VALID = f"{_VALID_EVER} and (c.expires_at is null or c.expires_at > :at)"
_LIVE = (
    "exists (select 1 from dids h where h.domain_id = c.domain_id and h.did = c.holder_did and h.kind = 'User' "
    "and h.deleted_at is null)"
)
"""The holder's DID is not deleted."""


def get(tx: Tx, domain_id: int, credential_id: int) -> HeldCredential | None:
    """A credential of the domain, or None."""
    return tx.one(HeldCredential, f"{_SELECT} where c.id = :id and c.domain_id = :d", id=credential_id, d=domain_id)


def by_name(tx: Tx, domain_id: int, name: str) -> HeldCredential | None:
    """The domain's credential of that `urn:uuid:`, or None."""
    return tx.one(HeldCredential, f"{_SELECT} where c.uuid = :name and c.domain_id = :d", name=name, d=domain_id)


def of_wallet(tx: Tx, wallet_id: int, at: int) -> list[int]:
    """The ids, in order, of what is assigned to a wallet or accepted by it, in date, and of a holder whose DID is not
    deleted."""
    sql = f"select c.id from credentials c where c.wallet_id = :wallet and {_VALID} and {_LIVE} order by c.id"
    return tx.all(_id, sql, wallet=wallet_id, at=at)


def counts(tx: Tx, wallet_ids: list[int]) -> dict[int, int]:
    """How many credentials each wallet has, assigned or accepted; none for those without."""
    marks = ", ".join(f":w{number}" for number in range(len(wallet_ids)))
    sql = (
        "select wallet_id, count(*) as number from credentials "
        f"where wallet_id in ({marks}) and status in ('Assigned', 'Accepted') group by wallet_id"
    )
    parameters = {f"w{number}": wallet_id for number, wallet_id in enumerate(wallet_ids)}
    return dict(tx.all(_pair, sql, **parameters)) if wallet_ids else {}


def move(tx: Tx, credential: HeldCredential, state: Status, wallet_id: int, at: int) -> None:
    """Keep how a credential stands with a wallet."""
    tx.execute(
        "update credentials set status = :status, wallet_id = :wallet, updated_at = :at where id = :id",
        id=credential.id,
        status=state.value,
        wallet=wallet_id,
        at=at,
    )


def belongs_to(tx: Tx, credential: HeldCredential) -> None:
    """A credential has come into a wallet: it is found by its user name from now on."""
    if credential.epm_username:
        tx.execute(
            "insert into credential_users (credential_id, domain_id, name_key) values (:id, :d, :key) "
            "on conflict do nothing",
            id=credential.id,
            d=credential.domain_id,
            key=fold(credential.epm_username),
        )


def wallet_of_holder(tx: Tx, domain_id: int, did: str) -> int | None:
    """The wallet that a holder's DID belongs to: by its registration, else by a credential that was assigned. None
    also where the DID is deleted."""
    sql = (
        "select coalesce(h.wallet_id, (select c.wallet_id from credentials c where c.domain_id = :d "
        "and c.holder_did = :did and c.wallet_id is not null limit 1)) "
        "from dids h where h.domain_id = :d and h.did = :did and h.kind = 'User' and h.deleted_at is null"
    )
    return tx.value(int, sql, d=domain_id, did=did)


def is_live(tx: Tx, credential: HeldCredential) -> bool:
    """Whether its holder's DID is not deleted."""
    sql = f"select 1 from credentials c where c.id = :id and {_LIVE}"
    return tx.value(int, sql, id=credential.id) is not None


def users_of_holder(tx: Tx, domain_id: int, did: str) -> list[str]:
    """Whom the credentials of a holder's DID let in: `holder_of_user` the other way round."""
    of_holder = f"c.domain_id = :d and c.holder_did = :did and c.wallet_id is not null and {_VALID_EVER}"
    unnamed = f"{of_holder} and c.epm_username = ''"
    sql = (
        f"select c.epm_username as name from credentials c where {of_holder} and c.epm_username <> '' union "
        "select u.name from credentials c join endpoint_user_credentials l on l.credential_id = c.id "
        f"join endpoint_users u on u.id = l.user_id where {of_holder} and u.domain_id = :d union "
        "select u.name from credentials c join endpoint_user_wallets l on l.wallet_id = c.wallet_id "
        f"join endpoint_users u on u.id = l.user_id where {unnamed} and u.domain_id = :d union "
        f"select u.name from endpoint_users u where u.domain_id = :d and u.did = :did and u.did <> '' "
        f"and exists (select 1 from credentials c where {unnamed})"
    )
    return [str(name) for (name,) in tx.rows(sql, d=domain_id, did=did)]


def holder_of_user(tx: Tx, domain_id: int, user: str, issuer_did: str, schema_id: int, at: int) -> Holder | None:
    """Who shows a credential of that issuer for a user of the domain: the wallet with the newest accepted one, else the
    newest assigned. The credential is the user's by its epmUsername, or by updateUserWallet, or, if it has no
    epmUsername, by the user's `did`, which is the DID of the wallet; its holder's DID is not
    deleted. schema_id 0: any.

    `+`: the planner is to go by the few ids, and not through all credentials of the domain.
    """
    ids = (
        "select credential_id from credential_users where domain_id = :d and name_key = :key union "
        "select l.credential_id from endpoint_users u join endpoint_user_credentials l on l.user_id = u.id "
        "where u.domain_id = :d and u.name_key = :key union "
        "select c.id from endpoint_users u join endpoint_user_wallets l on l.user_id = u.id "
        "join credentials c on c.wallet_id = l.wallet_id where u.domain_id = :d and u.name_key = :key "
        "and c.epm_username = '' union "
        "select c.id from endpoint_users u join credentials c on c.domain_id = u.domain_id and c.holder_did = u.did "
        "where u.domain_id = :d and u.name_key = :key and u.did <> '' and c.epm_username = ''"
    )
    sql = (
        "select c.wallet_id, c.holder_did, c.epm_username as username, c.uuid as credential from credentials c "
        f"where c.id in ({ids}) and +c.domain_id = :d and c.issuer_did = :issuer and c.wallet_id is not null "
        f"and (:schema = 0 or c.schema_id = :schema) and {_VALID} and {_LIVE} order by c.status, c.id desc limit 1"
    )
    return tx.one(Holder, sql, d=domain_id, key=fold(user), issuer=issuer_did, schema=schema_id, at=at)


def has_issuer(tx: Tx, domain_id: int, issuer_id: int) -> bool:
    """Whether the domain has this issuer."""
    sql = "select 1 from dids where id = :id and domain_id = :d and kind = 'Issuer' and deleted_at is null"
    return tx.value(int, sql, id=issuer_id, d=domain_id) is not None


def link_wallets(tx: Tx, user_id: int, wallet_ids: Sequence[int], *, several: bool) -> None:
    """Assign wallets to an endpoint user. several: beside those before."""
    if not several:
        tx.execute("delete from endpoint_user_wallets where user_id = :user", user=user_id)
    for wallet_id in wallet_ids:
        tx.execute(
            "insert into endpoint_user_wallets (user_id, wallet_id) values (:user, :wallet) on conflict do nothing",
            user=user_id,
            wallet=wallet_id,
        )


def link_credentials(tx: Tx, user_id: int, credential_ids: Sequence[int], kind: str, *, several: bool) -> None:
    """Assign credentials to an endpoint user. kind: as it was said. several: beside those before."""
    if not several:
        tx.execute("delete from endpoint_user_credentials where user_id = :user", user=user_id)
    for credential_id in credential_ids:
        tx.execute(
            "insert into endpoint_user_credentials (user_id, credential_id, credential_type) values (:user, :id, :kind)"
            " on conflict (user_id, credential_id) do update set credential_type = excluded.credential_type",
            user=user_id,
            id=credential_id,
            kind=kind,
        )


def of_users(tx: Tx, user_ids: Sequence[int]) -> dict[int, str]:
    """The newest credential that was assigned to each of these users and is not revoked; none for those without."""
    marks = ", ".join(f":u{number}" for number in range(len(user_ids)))
    sql = (
        "select l.user_id, c.uuid as name from endpoint_user_credentials l "
        f"join credentials c on c.id = l.credential_id where l.user_id in ({marks}) and c.status <> 'Revoked' "
        "order by c.id"
    )
    parameters = {f"u{number}": user_id for number, user_id in enumerate(user_ids)}
    return dict(tx.all(_named, sql, **parameters)) if user_ids else {}


def credential_type(tx: Tx, user_id: int) -> str:
    """Return the type that updateUserWallet gave with the user's newest credential that is not revoked, or empty."""
    sql = (
        "select l.credential_type from endpoint_user_credentials l join credentials c on c.id = l.credential_id "
        "where l.user_id = :user and c.status <> 'Revoked' order by c.id desc limit 1"
    )
    return tx.value(str, sql, user=user_id) or ""


def user_of(tx: Tx, domain_id: int, name: str) -> int | None:
    """The endpoint user to whom the credential of that `urn:uuid:` was assigned first, or None."""
    sql = (
        "select l.user_id from endpoint_user_credentials l join credentials c on c.id = l.credential_id "
        "where c.domain_id = :d and c.uuid = :name order by l.user_id limit 1"
    )
    return tx.value(int, sql, d=domain_id, name=name)


def unlink(tx: Tx, user_ids: Sequence[int]) -> int:
    """Take wallets and credentials from endpoint users that are to be deleted, up to SLICE at a time; how many."""
    condition, ids = "user_id in (select value from json_each(:ids))", json.dumps(list(user_ids))
    return delete_slice(tx, "endpoint_user_wallets", "user_id, wallet_id", condition, ids=ids) or delete_slice(
        tx, "endpoint_user_credentials", "user_id, credential_id", condition, ids=ids
    )


def _id(*, id: int) -> int:
    return id


def _named(*, user_id: int, name: str) -> tuple[int, str]:
    return user_id, name


def _pair(*, wallet_id: int, number: int) -> tuple[int, int]:
    return wallet_id, number
