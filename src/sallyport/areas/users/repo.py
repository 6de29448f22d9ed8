"""The SQL of endpoint users for logins, and of their passwords and seeds.

The vault seals each secret under an identity (associated data):

- `endpoint_users/ID/password`: a password
- `endpoint_users/ID/motp`: a confirmed one-time-password seed
- `totp_enrolments/ID/seed`: the seed of a pending enrolment
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from sallyport.areas.users.groups.group import ttl_seconds
from sallyport.areas.users.user import User, UserKey, UserRef, name_key
from sallyport.store.model import LISTED, Tx, listed
from sallyport.store.vault import Vault


@dataclass(frozen=True, slots=True)
class _Sealed:
    id: int
    name: str
    password: bytes | None
    motp: bytes | None


@dataclass(frozen=True, slots=True)
class SealedSeed:
    """A user's confirmed seed, sealed by the vault. The vault never returns the same octets twice. So if `sealed` has
    another value than before, the seed was replaced."""

    user_id: int
    sealed: bytes

    def open(self, vault: Vault) -> str:
        """Return the seed in base32. Raises SecretError."""
        return vault.open(self.sealed, _motp(self.user_id)).decode()


@dataclass(frozen=True, slots=True)
class Pending:
    """A stored pending enrolment. seed: the seed, sealed by the vault."""

    user_id: int
    domain_id: int
    name: str
    seed: bytes
    wrong_codes: int
    expires_at: int

    @property
    def user(self) -> UserRef:
        """The user of the seed."""
        return UserRef(self.user_id, self.domain_id, self.name)

    def open(self, vault: Vault) -> str:
        """Return the seed in base32. Raises SecretError."""
        return vault.open(self.seed, _pending(self.user_id)).decode()


_PENDING = (
    "select e.user_id, u.domain_id, u.name, e.seed, e.wrong_codes, e.expires_at "
    "from totp_enrolments e join endpoint_users u on u.id = e.user_id where e.expires_at > :at and "
)


def password_identity(user_id: int) -> str:
    """Return the identity (associated data) with which the vault seals a user's password."""
    return f"endpoint_users/{user_id}/password"


def _motp(user_id: int) -> str:
    return f"endpoint_users/{user_id}/motp"


def _pending(user_id: int) -> str:
    return f"totp_enrolments/{user_id}/seed"


def find(tx: Tx, vault: Vault, domain_id: int, key: str) -> User | None:
    """Return a user with the decrypted password, or None if the domain has no such user. key: the name as `name_key`
    returns it. Raises SecretError."""
    row = tx.one(
        _Sealed,
        "select id, name, password, motp from endpoint_users where domain_id = :d and name_key = :key",
        d=domain_id,
        key=key,
    )
    if row is None:
        return None
    password = None if row.password is None else vault.open(row.password, password_identity(row.id))
    groups = _groups(tx, row.id)
    return User(
        row.id,
        row.name,
        password,
        has_totp=row.motp is not None,
        groups=frozenset(key for key, _ in groups),
        stamp=sha256(row.password or b"").hexdigest()[:16],  # the sealed octets differ after each change
        session_s=min((seconds for _, ttl in groups if (seconds := ttl_seconds(ttl)) is not None), default=None),
    )


def _groups(tx: Tx, user_id: int) -> list[tuple[str, str]]:
    """Return (case-folded name, time to live) of each active group of a user."""
    return tx.all(
        _group,
        "select g.name_key, coalesce(p.ttl_user, '') as ttl from endpoint_group_users m "
        "join endpoint_groups g on g.id = m.group_id left join endpoint_credential_policies p on p.group_id = g.id "
        "where m.user_id = :user and g.active = 1",
        user=user_id,
    )


def _group(*, name_key: str, ttl: str) -> tuple[str, str]:
    return name_key, ttl


def set_password(tx: Tx, vault: Vault, user_id: int, password: bytes, at: int) -> None:
    """Seal and store a user's password."""
    tx.execute(
        "update endpoint_users set password = :password, updated_at = :at where id = :id",
        password=vault.seal(password, password_identity(user_id)),
        at=at,
        id=user_id,
    )


def secrets(tx: Tx, vault: Vault, user_id: int) -> tuple[bytes | None, str | None]:
    """Return (password, confirmed seed in base32) of a user. A missing secret is None. Raises SecretError."""
    row = tx.one(_Sealed, "select id, name, password, motp from endpoint_users where id = :id", id=user_id)
    if row is None:
        return None, None
    password = None if row.password is None else vault.open(row.password, password_identity(user_id))
    return password, None if row.motp is None else SealedSeed(user_id, row.motp).open(vault)


def locate(tx: Tx, domain_id: int, which: UserKey) -> UserRef | None:
    """Return a user of the domain, or None if the user does not exist. which: the id or name of the user."""
    columns = "select id, domain_id, name from endpoint_users where domain_id = :d and "
    if isinstance(which, int):
        return tx.one(UserRef, columns + "id = :id", d=domain_id, id=which)
    return tx.one(UserRef, columns + "name_key = :key", d=domain_id, key=name_key(which))


def seed(tx: Tx, domain_id: int, key: str) -> SealedSeed | None:
    """Return the confirmed seed of a user, or None if the user has none. key: the name as `name_key` returns it."""
    sql = (
        "select id as user_id, motp as sealed from endpoint_users "
        "where domain_id = :d and name_key = :key and motp is not null"
    )
    return tx.one(SealedSeed, sql, d=domain_id, key=key)


def spend(tx: Tx, seed: SealedSeed, step: int) -> bool:
    """Store the time step of an accepted code, so that the code cannot be used again.

    Return False, and store nothing, in two cases: a code of this step or of a later step was accepted before, or the
    store now has another seed than `seed`.
    """
    sql = "update endpoint_users set motp_step = :step where id = :id and motp = :sealed and motp_step < :step"
    return tx.execute(sql, step=step, id=seed.user_id, sealed=seed.sealed) > 0


def set_seed(tx: Tx, vault: Vault, user_id: int, seed: str, step: int, at: int) -> None:
    """Store a user's seed. The new seed replaces the old one. step: a time step; codes of this step and of earlier
    steps are not accepted."""
    tx.execute(
        "update endpoint_users set motp = :motp, motp_step = :step, updated_at = :at where id = :id",
        motp=vault.seal(seed.encode(), _motp(user_id)),
        step=step,
        at=at,
        id=user_id,
    )


def clear_seed(tx: Tx, user_id: int, at: int) -> bool:
    """Delete a user's seed and pending enrolment. Return whether there was a seed or an enrolment."""
    sql = "update endpoint_users set motp = null, motp_step = -1, updated_at = :at where id = :id and motp is not null"
    had_seed = tx.execute(sql, at=at, id=user_id) > 0
    return end_enrolment(tx, user_id) or had_seed


def clear_all(tx: Tx, user_ids: Sequence[int]) -> int:
    """Delete the passwords, seeds and enrolments of users. Return the number of users that had a password or a seed."""
    tx.execute(f"delete from totp_enrolments where user_id in {LISTED}", ids=listed(user_ids))
    sql = "update endpoint_users set password = null, motp = null, motp_step = -1"
    having = f"id in {LISTED} and (password is not null or motp is not null)"
    return tx.execute(f"{sql} where {having}", ids=listed(user_ids))


def begin_enrolment(tx: Tx, vault: Vault, user_id: int, seed: str, *, link_hash: str, at: int, expires_at: int) -> None:
    """Store a pending enrolment. It replaces an earlier pending enrolment of the user. Also delete the expired
    enrolments of all users.

    link_hash: the hash of the secret part of the link. at, expires_at: times in microseconds.
    """
    tx.execute("delete from totp_enrolments where expires_at <= :at or user_id = :id", at=at, id=user_id)
    tx.execute(
        "insert into totp_enrolments (user_id, seed, link_hash, wrong_codes, expires_at) "
        "values (:id, :seed, :hash, 0, :expires)",
        id=user_id,
        seed=vault.seal(seed.encode(), _pending(user_id)),
        hash=link_hash,
        expires=expires_at,
    )


def pending(tx: Tx, user_id: int, at: int) -> Pending | None:
    """Return a user's pending enrolment, or None if there is none at time `at`."""
    return tx.one(Pending, _PENDING + "e.user_id = :id", at=at, id=user_id)


def pending_by_link(tx: Tx, link_hash: str, at: int) -> Pending | None:
    """Return the pending enrolment of a link, or None if there is none at time `at`."""
    return tx.one(Pending, _PENDING + "e.link_hash = :hash", at=at, hash=link_hash)


def end_enrolment(tx: Tx, user_id: int) -> bool:
    """Delete a user's pending enrolment. Return whether there was one."""
    return tx.execute("delete from totp_enrolments where user_id = :id", id=user_id) > 0


def count_wrong_code(tx: Tx, user_id: int) -> None:
    """Count one more wrong code in a user's pending enrolment."""
    tx.execute("update totp_enrolments set wrong_codes = wrong_codes + 1 where user_id = :id", id=user_id)


def void_codes(tx: Tx, step: int) -> None:
    """Make all codes up to a time step invalid, and delete all pending enrolments.

    This is necessary after a restore, because users may have used these codes after the backup was made.
    """
    tx.execute("delete from totp_enrolments")
    tx.execute("update endpoint_users set motp_step = :step where motp is not null and motp_step < :step", step=step)


def active_groups(tx: Tx, domain_id: int, key: str) -> frozenset[str]:
    """Return the names of a user's active groups, folded for case-insensitive comparison.

    key: the name of the user as `name_key` returns it. If the domain has no such user, the result is empty.
    """
    user_id = tx.value(
        int, "select id from endpoint_users where domain_id = :d and name_key = :key", d=domain_id, key=key
    )
    return frozenset() if user_id is None else frozenset(key for key, _ in _groups(tx, user_id))
