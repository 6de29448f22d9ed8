"""SQL for local administrators and for sessions of the console, as functions of a transaction."""

from dataclasses import dataclass
from typing import Final

from sallyport.areas.signin.person import Administrator, Identity, Session
from sallyport.base.errors import SecretError
from sallyport.base.text import fold
from sallyport.store.foreign import CLOCKS_US
from sallyport.store.inserts import insert_row
from sallyport.store.model import Tx
from sallyport.store.slices import delete_slice
from sallyport.store.vault import Vault

_ADMINISTRATOR = """
select administrators.id, administrators.name, role, tenant_id, coalesce(organization_id, 0) as organization,
    coalesce(number, 0) as tenant_number, administrators.created_at
from administrators left join tenants on tenants.id = tenant_id
"""
_IDENTITY = """
select identities.id, issuer, subject, identities.name, role, tenant_id, coalesce(organization_id, 0) as organization,
    coalesce(number, 0) as tenant_number, identities.created_at, signed_in_at
from identities left join tenants on tenants.id = tenant_id
"""
_SESSION = """
select s.id, s.token_id, s.administrator_id, s.identity_id, coalesce(t.name, a.name, i.name) as name,
    coalesce(t.role, a.role, i.role) as role,
    tenants.id as tenant_id, coalesce(tenants.organization_id, 0) as organization,
    coalesce(tenants.number, 0) as tenant_number, s.source, s.agent, s.created_at, s.seen_at, s.ends_at,
    t.expires_at as token_expires_at, t.revoked_at as token_revoked_at, i.issuer, i.subject, i.member_of, s.id_token
from console_sessions s
    left join access_tokens t on t.id = s.token_id
    left join administrators a on a.id = s.administrator_id
    left join identities i on i.id = s.identity_id
    left join tenants on tenants.id = coalesce(t.tenant_id, a.tenant_id, i.tenant_id, s.tenant_id)
"""


SESSION_ORDERS: Final = {
    "name": "lower(coalesce(t.name, a.name, i.name))",
    "role": "coalesce(t.role, a.role, i.role)",
    "from": "s.source",
    "browser": "s.agent",
    "began": "s.created_at",
    "seen": "s.seen_at",
    "ends": "s.ends_at",
}


@dataclass(frozen=True, slots=True)
class Secrets:
    """The sealed secrets of an administrator. last_step: the time step of the last accepted code."""

    id: int
    password: bytes
    seed: bytes
    last_step: int

    def open_password(self, vault: Vault) -> str:
        """Return the hash of the password. Raises SecretError."""
        return vault.open(self.password, f"administrators/{self.id}/password").decode()

    def open_seed(self, vault: Vault) -> str:
        """Return the seed of the one-time codes in base32. Raises SecretError."""
        return vault.open(self.seed, f"administrators/{self.id}/seed").decode()


def add_administrator(tx: Tx, name: str, name_key: str, role: str, tenant_id: int | None, at: int) -> int:
    """Insert an administrator without secrets, and return its id. Set the secrets in the same transaction."""
    return insert_row(
        tx,
        "administrators",
        name=name,
        name_key=name_key,
        role=role,
        tenant_id=tenant_id,
        password=b"",
        seed=b"",
        created_at=at,
    )


def set_password(tx: Tx, vault: Vault, administrator_id: int, hashed: str) -> None:
    """Store the hash of a password."""
    sealed = vault.seal(hashed.encode(), f"administrators/{administrator_id}/password")
    tx.execute("update administrators set password = :sealed where id = :id", sealed=sealed, id=administrator_id)


def set_seed(tx: Tx, vault: Vault, administrator_id: int, seed: str) -> None:
    """Store the seed of the one-time codes."""
    sealed = vault.seal(seed.encode(), f"administrators/{administrator_id}/seed")
    sql = "update administrators set seed = :sealed, last_step = 0 where id = :id"
    tx.execute(sql, sealed=sealed, id=administrator_id)


def take_attempt(tx: Tx, name: str, most: int, refill_us: int, at: int) -> bool:
    """Count an attempt to sign in before it is checked. Return False, and count nothing, if the limit is reached.

    The limit is a token bucket, see `Guesses`. The store keeps only the time at which its count reaches zero. The
    transactions of all nodes follow one another, so the limit is exact over all nodes. If the time in the store is
    later than a full bucket allows, the clock was wrong and was set back. The attempt is then the last one of the
    bucket. name: the name of the bucket. most: the size of the bucket.
    """
    delete_slice(tx, "sign_in_attempts", "name", "zero_at <= :at", at=at)
    taken = tx.execute(
        "insert into sign_in_attempts as a (name, zero_at) values (:name, :first) on conflict (name) do update set "
        "zero_at = case when a.zero_at > :latest then :full when a.zero_at > :at then a.zero_at + :refill "
        "else :first end where a.zero_at <= :last or a.zero_at > :latest",
        name=name,
        at=at,
        first=at + refill_us,
        last=at + (most - 1) * refill_us,
        full=at + most * refill_us,
        latest=at + most * refill_us + CLOCKS_US,
        refill=refill_us,
    )
    return taken > 0


def return_attempt(tx: Tx, name: str, refill_us: int) -> None:
    """Take back an attempt that was successful."""
    sql = "update sign_in_attempts set zero_at = zero_at - :refill where name = :name"
    tx.execute(sql, name=name, refill=refill_us)


def spend(tx: Tx, administrator_id: int, step: int) -> bool:
    """Store the time step of an accepted code. Return False if a code of this step or a later one was accepted
    before."""
    sql = "update administrators set last_step = :step where id = :id and last_step < :step"
    return tx.execute(sql, step=step, id=administrator_id) > 0


def void_codes(tx: Tx, step: int) -> None:
    """Refuse the codes of a time step and of all earlier ones, for all administrators."""
    tx.execute("update administrators set last_step = :step where last_step < :step", step=step)


def administrator(tx: Tx, name_key: str) -> Administrator | None:
    """Return an administrator, or None. name_key: the name in the form for comparisons."""
    return tx.one(Administrator, f"{_ADMINISTRATOR} where name_key = :key", key=name_key)


def administrators(tx: Tx) -> list[Administrator]:
    """Return every administrator, ordered by name."""
    return tx.all(Administrator, f"{_ADMINISTRATOR} order by name_key")


def secrets(tx: Tx, administrator_id: int) -> Secrets | None:
    """Return the secrets of an administrator, or None."""
    sql = "select id, password, seed, last_step from administrators where id = :id"
    return tx.one(Secrets, sql, id=administrator_id)


def remove_administrator(tx: Tx, administrator_id: int) -> None:
    """Delete an administrator and its sessions."""
    tx.execute("delete from console_sessions where administrator_id = :id", id=administrator_id)
    tx.execute("delete from administrators where id = :id", id=administrator_id)


def add_session(
    tx: Tx,
    hashed: str,
    *,
    token_id: int | None,
    administrator_id: int | None,
    identity_id: int | None,
    tenant_id: int | None,
    source: str,
    agent: str,
    at: int,
    ends_at: int,
) -> int:
    """Insert a session, and delete some of the sessions whose end has passed. Return the id of the session."""
    delete_slice(tx, "console_sessions", "id", "ends_at <= :at", at=at)
    return insert_row(
        tx,
        "console_sessions",
        hash=hashed,
        token_id=token_id,
        administrator_id=administrator_id,
        identity_id=identity_id,
        tenant_id=tenant_id,
        source=source,
        agent=agent,
        created_at=at,
        seen_at=at,
        ends_at=ends_at,
    )


def put_identity(
    tx: Tx, issuer: str, subject: str, *, name: str, role: str, tenant_id: int | None, member_of: str, at: int
) -> int:
    """Insert or update a person of an identity provider, and return the person's id."""
    made = tx.value(
        int,
        "insert into identities (issuer, subject, name, role, tenant_id, member_of, created_at, signed_in_at)"
        " values (:issuer, :subject, :name, :role, :tenant, :groups, :at, :at) on conflict (issuer, subject) do update"
        " set name = excluded.name, role = excluded.role, tenant_id = excluded.tenant_id,"
        " member_of = excluded.member_of, signed_in_at = excluded.signed_in_at returning id",
        issuer=issuer,
        subject=subject,
        name=name,
        role=role,
        tenant=tenant_id,
        groups=member_of,
        at=at,
    )
    if made is None:
        raise LookupError("an insert returned no id")
    return made


def identity_id(tx: Tx, issuer: str, subject: str) -> int | None:
    """Return the id of a person of an identity provider, or None."""
    sql = "select id from identities where issuer = :issuer and subject = :subject"
    return tx.value(int, sql, issuer=issuer, subject=subject)


def identities(tx: Tx) -> list[Identity]:
    """Return the people of identity providers, ordered by id."""
    return tx.all(Identity, f"{_IDENTITY} order by identities.id")


def identity(tx: Tx, identity_id: int) -> Identity | None:
    """Return a person of an identity provider, or None."""
    return tx.one(Identity, f"{_IDENTITY} where identities.id = :id", id=identity_id)


def remove_identity(tx: Tx, identity_id: int) -> None:
    """Delete a person of an identity provider and the person's sessions."""
    end_of_identity(tx, identity_id)
    tx.execute("delete from identities where id = :id", id=identity_id)


def tenant_id(tx: Tx, organization: int, number: int) -> int | None:
    """Return the id of a tenant, or None."""
    sql = "select id from tenants where organization_id = :organization and number = :number"
    return tx.value(int, sql, organization=organization, number=number)


def only_tenant(tx: Tx) -> int | None:
    """Return the id of the installation's tenant if it has only one."""
    rows = tx.rows("select id from tenants order by id limit 2")
    return int(str(rows[0][0])) if len(rows) == 1 else None


def set_id_token(tx: Tx, vault: Vault, session_id: int, token: str) -> None:
    """Store the ID token of a session, for the sign-out at the identity provider."""
    sealed = vault.seal(token.encode(), f"console_sessions/{session_id}/id_token")
    tx.execute("update console_sessions set id_token = :sealed where id = :id", sealed=sealed, id=session_id)


def open_id_token(vault: Vault, session: Session) -> str:
    """Return the ID token of a session. Return "" if there is none, or if its key is unknown."""
    try:
        sealed = session.id_token
        return vault.open(sealed, f"console_sessions/{session.id}/id_token").decode() if sealed else ""
    except SecretError:
        return ""


def session_by_hash(tx: Tx, hashed: str) -> Session | None:
    """Return the session with a hash, even if it has ended. Return None if there is none."""
    return tx.one(Session, f"{_SESSION} where s.hash = :hash", hash=hashed)


def session_by_id(tx: Tx, session_id: int) -> Session | None:
    """Return a session, or None."""
    return tx.one(Session, f"{_SESSION} where s.id = :id", id=session_id)


def sessions(tx: Tx, tenant_id: int | None, order: str = "id", *, descending: bool = True) -> list[Session]:
    """Return the sessions of a tenant's tokens, administrators and identities. tenant_id: None for all sessions of the
    installation. order: the field by which they are sorted, as the page of sessions calls it."""
    where = "where coalesce(t.tenant_id, a.tenant_id, i.tenant_id) = :tenant" if tenant_id is not None else ""
    parameters = {} if tenant_id is None else {"tenant": tenant_id}
    return tx.all(Session, f"{_SESSION} {where} order by {_sorted_by(order, descending=descending)}", **parameters)


def sessions_of(
    tx: Tx,
    token_id: int | None,
    administrator_id: int | None,
    identity_id: int | None = None,
    order: str = "id",
    *,
    descending: bool = True,
) -> list[Session]:
    """Return the sessions of a token, an administrator or an identity. order: see `sessions`."""
    where = "where s.token_id = :token or s.administrator_id = :administrator or s.identity_id = :identity"
    sql = f"{_SESSION} {where} order by {_sorted_by(order, descending=descending)}"
    return tx.all(Session, sql, token=token_id, administrator=administrator_id, identity=identity_id)


def _sorted_by(order: str, *, descending: bool) -> str:
    return f"{SESSION_ORDERS.get(order, 's.id')} {'desc' if descending else 'asc'}, s.id desc"


def end_of_identity(tx: Tx, identity_id: int) -> int:
    """Delete the sessions of a person of an identity provider, and return their number."""
    return tx.execute("delete from console_sessions where identity_id = :id", id=identity_id)


def seen(tx: Tx, session_id: int, at: int) -> None:
    """Store the time of a session's latest request."""
    tx.execute("update console_sessions set seen_at = :at where id = :id", at=at, id=session_id)


def set_tenant(tx: Tx, session_id: int, tenant_id: int) -> None:
    """Store the tenant in which an installation administrator acts."""
    tx.execute("update console_sessions set tenant_id = :tenant where id = :id", tenant=tenant_id, id=session_id)


def end(tx: Tx, session_id: int) -> bool:
    """Delete a session. Return False if there is none."""
    return tx.execute("delete from console_sessions where id = :id", id=session_id) > 0


def end_of_administrator(tx: Tx, administrator_id: int) -> int:
    """Delete the sessions of an administrator, and return their number."""
    return tx.execute("delete from console_sessions where administrator_id = :id", id=administrator_id)


def void(tx: Tx) -> None:
    """Delete all sessions."""
    tx.execute("delete from console_sessions")


def administrator_names(tx: Tx, domain_id: int) -> frozenset[str]:
    """Return the case-folded names of the people with the role admin in the console, for the tenant of a domain or for
    the installation. Each name is returned without a realm of the domain, and with each of them."""
    own = "role in ('admin', 'installation') and (tenant_id is null or tenant_id = "
    tenant = "(select tenant_id from domains where id = :d))"
    sql = f"select name from administrators where {own}{tenant} union select name from identities where {own}{tenant}"
    names = {fold(str(row[0]).strip()) for row in tx.rows(sql, d=domain_id)}
    sql = "select realm_key from domain_realms where domain_id = :d"  # a domain's name is one of its realms
    realms = {str(row[0]) for row in tx.rows(sql, d=domain_id)}
    found = set[str]()
    for name in names:
        user, _, realm = name.rpartition("@")
        plain = user if user and realm in realms else name
        found |= {plain, *(f"{plain}@{each}" for each in realms)}
    return frozenset(found)
