"""SQL for passkeys and their challenges."""

from dataclasses import dataclass
from typing import Final

from sallyport.areas.factors.passkeys.passkey import Passkey, Person
from sallyport.areas.factors.passkeys.webauthn import Assertion, NewCredential
from sallyport.store.erasure import PRESENT
from sallyport.store.model import Tx, Value
from sallyport.store.slices import delete_slice

_COLUMNS: Final = (
    "id, domain_id, user_name, name, rp_id, user_handle, credential_id, public_key, sign_count, backup_eligible, "
    "backed_up, transports, created_at, last_used_at"
)


@dataclass(frozen=True, slots=True)
class Challenge:
    """An open challenge."""

    domain_id: int
    user_key: str
    user_handle: bytes
    rp_id: str
    challenge: bytes
    expires_at: int


def passkeys_of(tx: Tx, person: Person) -> list[Passkey]:
    """Return a person's passkeys, the oldest first."""
    sql = f"select {_COLUMNS} from passkeys where domain_id = :d and user_key = :key order by id"
    return tx.all(_passkey, sql, d=person.domain_id, key=person.key)


def page(tx: Tx, domain_id: int, user_key: str, offset: int, size: int) -> tuple[list[Passkey], int]:
    """Return a page of a domain's passkeys, ordered by user and id, and the number of all. user_key: the folded name of
    a user, or empty for all users."""
    where = "domain_id = :d" + (" and user_key = :key" if user_key else "")
    values: dict[str, Value] = {"d": domain_id, **({"key": user_key} if user_key else {})}
    total = tx.value(int, f"select count(*) from passkeys where {where}", **values) or 0
    sql = f"select {_COLUMNS} from passkeys where {where} order by user_key, id limit :size offset :offset"
    return tx.all(_passkey, sql, **values, size=size, offset=offset), total


def number_of_other_hosts(tx: Tx, rp_id: str) -> int:
    """Return the number of passkeys that were made for another host."""
    sql = f"select count(*) from passkeys where rp_id <> :rp and {PRESENT}"
    return tx.value(int, sql, rp=rp_id) or 0


def add(tx: Tx, person: Person, new: NewCredential, challenge: Challenge, name: str, at: int) -> int | None:
    """Store a passkey and return its id. Return None if the domain has a passkey with this credential id."""
    return tx.value(
        int,
        "insert into passkeys (domain_id, user_key, user_name, user_handle, rp_id, credential_id, public_key, "
        "sign_count, backup_eligible, backed_up, transports, name, created_at) values (:d, :key, :user, :handle, :rp, "
        ":credential, :public, :count, :eligible, :backed, :transports, :name, :at) "
        "on conflict (domain_id, credential_id) do nothing returning id",
        d=person.domain_id,
        key=person.key,
        user=person.name,
        handle=challenge.user_handle,
        rp=challenge.rp_id,
        credential=new.credential_id,
        public=new.public_key,
        count=new.sign_count,
        eligible=int(new.backup_eligible),
        backed=int(new.backed_up),
        transports=",".join(new.transports),
        name=name,
        at=at,
    )


def use(tx: Tx, assertion: Assertion, at: int) -> bool:
    """Store the use of a passkey. Return False if the passkey was removed meanwhile, or if another login has stored
    this counter of signatures, or a higher one."""
    sql = (
        "update passkeys set sign_count = :count, backed_up = :backed, last_used_at = :at "
        "where id = :id and (sign_count < :count or (sign_count = 0 and :count = 0))"
    )
    backed = int(assertion.backed_up)
    return tx.execute(sql, id=assertion.passkey.id, count=assertion.sign_count, backed=backed, at=at) > 0


def remove(tx: Tx, person: Person, passkey_id: int) -> Passkey | None:
    """Delete a person's passkey and return it. Return None if the person has no passkey with this id."""
    sql = f"delete from passkeys where id = :id and domain_id = :d and user_key = :key returning {_COLUMNS}"
    return tx.one(_passkey, sql, id=passkey_id, d=person.domain_id, key=person.key)


def number_of_challenges(tx: Tx, person: Person, except_hash: str, at: int) -> int:
    """Return the number of a person's open challenges, without one of them. Also delete some expired challenges."""
    delete_slice(tx, "passkey_challenges", "binding_hash", "expires_at <= :at", at=at)
    sql = (
        "select count(*) from passkey_challenges where domain_id = :d and user_key = :key and expires_at > :at "
        "and binding_hash <> :hash"
    )
    return tx.value(int, sql, d=person.domain_id, key=person.key, at=at, hash=except_hash) or 0


def put_challenge(tx: Tx, binding_hash: str, challenge: Challenge) -> None:
    """Store a challenge. It replaces the former challenge of the same browser, login and purpose."""
    tx.execute(
        "insert into passkey_challenges (binding_hash, domain_id, user_key, user_handle, rp_id, challenge, expires_at) "
        "values (:hash, :d, :key, :handle, :rp, :challenge, :expires) on conflict (binding_hash) do update set "
        "domain_id = excluded.domain_id, user_key = excluded.user_key, user_handle = excluded.user_handle, "
        "rp_id = excluded.rp_id, challenge = excluded.challenge, expires_at = excluded.expires_at",
        hash=binding_hash,
        d=challenge.domain_id,
        key=challenge.user_key,
        handle=challenge.user_handle,
        rp=challenge.rp_id,
        challenge=challenge.challenge,
        expires=challenge.expires_at,
    )


def take_challenge(tx: Tx, binding_hash: str) -> Challenge | None:
    """Delete a challenge and return it, so that it is used once. Return None if there is none."""
    sql = (
        "delete from passkey_challenges where binding_hash = :hash "
        "returning domain_id, user_key, user_handle, rp_id, challenge, expires_at"
    )
    return tx.one(Challenge, sql, hash=binding_hash)


def delete_challenges(tx: Tx) -> None:
    """Delete all challenges."""
    tx.execute("delete from passkey_challenges")


def _passkey(
    *,
    id: int,
    domain_id: int,
    user_name: str,
    name: str,
    rp_id: str,
    user_handle: bytes,
    credential_id: bytes,
    public_key: bytes,
    sign_count: int,
    backup_eligible: int,
    backed_up: int,
    transports: str,
    created_at: int,
    last_used_at: int | None,
) -> Passkey:
    return Passkey(
        id,
        domain_id,
        user_name,
        name,
        rp_id,
        bytes(user_handle),
        bytes(credential_id),
        bytes(public_key),
        sign_count,
        bool(backup_eligible),
        bool(backed_up),
        tuple(transports.split(",")) if transports else (),
        created_at,
        last_used_at,
    )
