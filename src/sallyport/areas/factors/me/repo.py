"""SQL for sign-ins at /me."""

from collections.abc import Sequence
from typing import Final

from sallyport.areas.factors.me.session import MAX_SESSIONS, PersonSession
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.mfa.provider import Strength
from sallyport.store.erasure import PRESENT
from sallyport.store.model import LISTED_TEXTS, Tx, listed
from sallyport.store.slices import SLICE, delete_slice

_COLUMNS: Final = (
    "id, domain_id, user_name, factor, strength, is_by_link, wrong, source, begun_at, proven_at, expires_at, stamp"
)


def add(
    tx: Tx, hashed: str, person: Person, source: str, at: int, expires_at: int, stamp: str, *, is_by_link: bool
) -> None:
    """Store a sign-in. It replaces the former one of the browser. End the oldest ones of the person if there are too
    many."""
    tx.execute("delete from people_sessions where hash = :hash", hash=hashed)
    oldest = (
        "select id from people_sessions where domain_id = :d and user_key = :key order by id desc "
        f"limit {SLICE} offset {MAX_SESSIONS - 1}"
    )
    tx.execute(f"delete from people_sessions where id in ({oldest})", d=person.domain_id, key=person.key)
    tx.execute(
        "insert into people_sessions (hash, domain_id, user_key, user_name, factor, strength, is_by_link, "
        "source, begun_at, proven_at, expires_at, stamp) "
        "values (:hash, :d, :key, :name, '', '', :link, :source, :at, :proven, :until, :stamp)",
        hash=hashed,
        d=person.domain_id,
        key=person.key,
        name=person.name,
        link=int(is_by_link),
        source=source,
        at=at,
        proven=at if is_by_link else 0,
        until=expires_at,
        stamp=stamp,
    )


def find(tx: Tx, hashed: str, at: int) -> PersonSession | None:
    """Return the sign-in of a browser, or None if there is none, or if it has ended."""
    sql = f"select {_COLUMNS} from people_sessions where hash = :hash and expires_at > :at and {PRESENT}"
    return tx.one(PersonSession, sql, hash=hashed, at=at)


def prove(tx: Tx, session_id: int, hashed: str, factor: str, strength: Strength, at: int, expires_at: int) -> bool:
    """Store a proof, and the new cookie of the browser. Return False if the sign-in has ended meanwhile."""
    sql = (
        "update people_sessions set hash = :hash, factor = :factor, strength = :strength, wrong = 0, proven_at = :at, "
        "is_by_link = 0, expires_at = :until where id = :id and expires_at > :at"
    )
    values = {"factor": factor, "strength": strength.value}
    return tx.execute(sql, id=session_id, hash=hashed, at=at, until=expires_at, **values) > 0


def count_wrong(tx: Tx, session_id: int, most: int) -> None:
    """Count a wrong proof. The sign-in ends with the last one."""
    tx.execute("update people_sessions set wrong = wrong + 1 where id = :id", id=session_id)
    tx.execute("delete from people_sessions where id = :id and wrong >= :most", id=session_id, most=most)


def end(tx: Tx, hashed: str) -> bool:
    """End the sign-in of a browser. Return whether there was one."""
    return tx.execute("delete from people_sessions where hash = :hash", hash=hashed) > 0


def end_of_people(tx: Tx, domain_id: int, keys: Sequence[str], *, but: int = 0) -> int:
    """End the sign-ins of people of a domain, by their case-folded names. but: the id of a sign-in that stays. Return
    their number."""
    sql = f"delete from people_sessions where domain_id = :d and user_key in {LISTED_TEXTS} and id <> :but"
    return tx.execute(sql, d=domain_id, ids=listed(keys), but=but)


def purge(tx: Tx, at: int) -> int:
    """Delete up to SLICE sign-ins that have ended. Return their number."""
    return delete_slice(tx, "people_sessions", "id", "expires_at <= :at", at=at)


def void(tx: Tx) -> None:
    """End all sign-ins."""
    tx.execute("delete from people_sessions")
