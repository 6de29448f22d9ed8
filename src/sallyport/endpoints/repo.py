"""The SQL of endpoint users. A password is sealed under the identity `endpoint_users/ID/password`."""

from dataclasses import dataclass

from sallyport.base.errors import Conflict
from sallyport.endpoints.model import User, UserRow, name_key
from sallyport.store.model import Tx
from sallyport.store.vault import Vault

_LISTED = ", ".join(UserRow.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class _Sealed:
    id: int
    name: str
    password: bytes | None


def _identity(user_id: int) -> str:
    return f"endpoint_users/{user_id}/password"


def find(tx: Tx, vault: Vault, domain_id: int, key: str) -> User | None:
    """A user with its password opened, or None. SecretError."""
    row = tx.one(
        _Sealed,
        "select id, name, password from endpoint_users where domain_id = :d and name_key = :key",
        d=domain_id,
        key=key,
    )
    if row is None:
        return None
    password = None if row.password is None else vault.open(row.password, _identity(row.id))
    return User(row.id, row.name, password)


def check_key(tx: Tx, vault: Vault) -> None:
    """Open one password, if there is any. SecretError: the store was sealed under another key."""
    sql = "select id, name, password from endpoint_users where password is not null order by id limit 1"
    row = tx.one(_Sealed, sql)
    if row is not None and row.password is not None:
        vault.open(row.password, _identity(row.id))


def add(tx: Tx, vault: Vault, domain_id: int, name: str, password: bytes, at: int) -> int:
    """The new user's id. Conflict: the name is taken."""
    user_id = tx.value(
        int,
        "insert into endpoint_users (domain_id, name, name_key, user_type, credential_type, created_at, updated_at) "
        "values (:d, :name, :key, 'Local', 'Password', :at, :at) on conflict (domain_id, name_key) do nothing "
        "returning id",
        d=domain_id,
        name=name,
        key=name_key(name),
        at=at,
    )
    if user_id is None:
        raise Conflict(f"the domain has a user {name}")
    set_password(tx, vault, user_id, password, at)
    return user_id


def set_password(tx: Tx, vault: Vault, user_id: int, password: bytes, at: int) -> None:
    """Seal and keep a user's password."""
    tx.execute(
        "update endpoint_users set password = :password, updated_at = :at where id = :id",
        password=vault.seal(password, _identity(user_id)),
        at=at,
        id=user_id,
    )


def remove(tx: Tx, domain_id: int, name: str) -> bool:
    """Delete a user; whether there was one."""
    sql = "delete from endpoint_users where domain_id = :d and name_key = :key"
    return tx.execute(sql, d=domain_id, key=name_key(name)) > 0


def page(tx: Tx, domain_id: int, *, offset: int, limit: int) -> list[UserRow]:
    """A domain's users, ordered by id."""
    return tx.all(
        UserRow,
        f"select {_LISTED} from endpoint_users where domain_id = :d order by id limit :limit offset :offset",
        d=domain_id,
        limit=limit,
        offset=offset,
    )
