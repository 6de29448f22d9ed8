"""SQL for bypass codes."""

from collections.abc import Iterable
from typing import Final

from sallyport.areas.factors.bypass_codes.code import MAX_WRONG, BypassCode
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.store.model import Tx, Value
from sallyport.store.slices import delete_slice
from sallyport.store.vault import Vault

IDENTITY: Final = "bypass_codes/{}/hash"
"""The identity (associated data) with which the vault seals the hash of a code, with a place for the id."""
_COLUMNS: Final = (
    "id, domain_id, user_name, number, code_hash as sealed, uses, used, wrong, created_at, expires_at, last_used_at"
)
_USABLE: Final = f"used < uses and wrong < {MAX_WRONG} and expires_at > :at"


def replace(
    tx: Tx, vault: Vault, person: Person, hashes: Iterable[tuple[int, str]], *, uses: int, at: int, expires_at: int
) -> int:
    """Delete a person's codes, and store new ones. hashes: (first digit, hash) of each. Return the number of deleted
    codes."""
    deleted = remove(tx, person)
    for number, each in hashes:
        code_id = tx.value(
            int,
            "insert into bypass_codes (domain_id, user_key, user_name, number, uses, created_at, expires_at) "
            "values (:d, :key, :user, :number, :uses, :at, :expires) returning id",
            d=person.domain_id,
            key=person.key,
            user=person.name,
            number=number,
            uses=uses,
            at=at,
            expires=expires_at,
        )
        sealed = vault.seal(each.encode(), IDENTITY.format(code_id))
        tx.execute("update bypass_codes set code_hash = :sealed where id = :id", sealed=sealed, id=code_id)
    return deleted


def remove(tx: Tx, person: Person) -> int:
    """Delete a person's codes. Return their number."""
    sql = "delete from bypass_codes where domain_id = :d and user_key = :key"
    return tx.execute(sql, d=person.domain_id, key=person.key)


def number_in_domain(tx: Tx, domain_id: int, at: int) -> int:
    """Return the number of a domain's codes. Also delete some expired codes of all domains."""
    delete_slice(tx, "bypass_codes", "id", "expires_at <= :at", at=at)
    return tx.value(int, "select count(*) from bypass_codes where domain_id = :d", d=domain_id) or 0


def page(tx: Tx, domain_id: int, user_key: str, offset: int, size: int) -> tuple[list[BypassCode], int]:
    """Return a page of a domain's codes, ordered by user and first digit, and the number of all. user_key: the folded
    name of a user, or empty for all users."""
    where = "domain_id = :d" + (" and user_key = :key" if user_key else "")
    values: dict[str, Value] = {"d": domain_id, **({"key": user_key} if user_key else {})}
    total = tx.value(int, f"select count(*) from bypass_codes where {where}", **values) or 0
    order = "order by user_key, number limit :size offset :offset"
    sql = f"select {_COLUMNS} from bypass_codes where {where} {order}"
    return tx.all(BypassCode, sql, **values, size=size, offset=offset), total


def is_usable(tx: Tx, person: Person, at: int) -> bool:
    """Return whether a person has a code that can be used now."""
    sql = f"select 1 from bypass_codes where domain_id = :d and user_key = :key and {_USABLE} limit 1"
    return bool(tx.rows(sql, d=person.domain_id, key=person.key, at=at))


def take_try(tx: Tx, person: Person, number: int, at: int) -> BypassCode | None:
    """Count a try with a first digit, and return the code with this digit. Return None if the person has no such code,
    or if it cannot be used any more."""
    sql = (
        "update bypass_codes set wrong = wrong + 1 where domain_id = :d and user_key = :key and number = :number "
        f"and {_USABLE} returning {_COLUMNS}"
    )
    return tx.one(BypassCode, sql, d=person.domain_id, key=person.key, number=number, at=at)


def use(tx: Tx, code: BypassCode, at: int) -> int | None:
    """Count a use of a code, and forget the wrong tries. Return how often it was used. Return None if another login has
    made its last use, or if it was removed or has expired."""
    sql = (
        "update bypass_codes set used = used + 1, wrong = 0, last_used_at = :at "
        "where id = :id and used < uses and expires_at > :at returning used"
    )
    return tx.value(int, sql, id=code.id, at=at)


def delete_all(tx: Tx) -> None:
    """Delete all codes."""
    tx.execute("delete from bypass_codes")
