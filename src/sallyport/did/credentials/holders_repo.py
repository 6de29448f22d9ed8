"""The SQL that finds the holder of a user, and the users of a holder.

A credential is a user's by its epmUsername, or by updateUserWallet. A credential without an epmUsername is also that of
the users that have its wallet, and of the user whose `did` is the DID of its holder.
"""

from sallyport.base.text import fold
from sallyport.did.credentials.credential import Credential, Holder
from sallyport.did.credentials.repo import LIVE, VALID, VALID_EVER
from sallyport.store.model import Tx, Value


def holder_of_user(tx: Tx, domain_id: int, user: str, issuer_did: str, schema_id: int, at: int) -> Holder | None:
    """Return the holder that shows a credential of that issuer for a user of the domain, or None: the wallet with the
    newest accepted one, else the newest assigned one, whose holder's DID is not deleted. schema_id 0: of any schema.

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
        f"and (:schema = 0 or c.schema_id = :schema) and {VALID} and {LIVE} order by c.status, c.id desc limit 1"
    )
    return tx.one(Holder, sql, d=domain_id, key=fold(user), issuer=issuer_did, schema=schema_id, at=at)


def users_of_holder(tx: Tx, domain_id: int, did: str) -> list[str]:
    """Return the names of the users that the credentials of a holder's DID admit."""
    of_holder = f"c.domain_id = :d and c.holder_did = :did and c.wallet_id is not null and {VALID_EVER}"
    return _users(tx, of_holder, d=domain_id, did=did)


def users_of(tx: Tx, credential: Credential) -> list[str]:
    """Return the names of the users that a credential admits, or admitted before it was revoked."""
    return _users(tx, "c.id = :id", d=credential.domain_id, id=credential.id)


def _users(tx: Tx, condition: str, **given: Value) -> list[str]:
    """Return the names of the users of some credentials of the domain `:d`. condition: SQL, of the credentials `c`."""
    unnamed = f"{condition} and c.epm_username = ''"
    sql = (
        f"select c.epm_username as name from credentials c where {condition} and c.epm_username <> '' union "
        "select u.name from credentials c join endpoint_user_credentials l on l.credential_id = c.id "
        f"join endpoint_users u on u.id = l.user_id where {condition} and u.domain_id = :d union "
        "select u.name from credentials c join endpoint_user_wallets l on l.wallet_id = c.wallet_id "
        f"join endpoint_users u on u.id = l.user_id where {unnamed} and u.domain_id = :d union "
        "select u.name from credentials c join endpoint_users u on u.domain_id = c.domain_id and u.did = c.holder_did "
        f"where {unnamed} and u.did <> ''"
    )
    return [str(name) for (name,) in tx.rows(sql, **given)]


def wallet_of_holder(tx: Tx, domain_id: int, did: str) -> int | None:
    """Return the wallet that a holder's DID belongs to: by its registration, else by a credential that was assigned.
    None also where the DID is deleted."""
    sql = (
        "select coalesce(h.wallet_id, (select c.wallet_id from credentials c where c.domain_id = :d "
        "and c.holder_did = :did and c.wallet_id is not null limit 1)) "
        "from dids h where h.domain_id = :d and h.did = :did and h.kind = 'User' and h.deleted_at is null"
    )
    return tx.value(int, sql, d=domain_id, did=did)
