"""SQL for the users of logins with certificates of authorities."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.base.text import fold
from sallyport.store.model import LISTED, Tx, columns_of, listed
from sallyport.store.slices import SLICE, delete_slice


@dataclass(frozen=True, slots=True)
class CertifiedUser:
    """A user and the certificate of a login.

    issuer_key: the hash of the issuer's key, in hex. serial: the serial number, in hex. responder: the address of the
    OCSP responder, or empty. asked_until: when the responder is asked again. until: the end of the certificate. The
    times are in microseconds.
    """

    domain_id: int
    authority_id: int
    issuer_key: str
    serial: str
    user_name: str
    responder: str
    asked_until: int
    seen_at: int
    until: int


@dataclass(frozen=True, slots=True)
class StoredUser:
    """A stored `CertifiedUser`, with the id of its row."""

    id: int
    domain_id: int
    authority_id: int
    issuer_key: str
    serial: str
    user_name: str
    responder: str


_COLUMNS: Final = columns_of(CertifiedUser)
_STORED: Final = ", ".join(columns_of(StoredUser))
_KEY: Final = "(domain_id, authority_id, issuer_key, serial, user_name)"


def put(tx: Tx, users: Sequence[CertifiedUser]) -> None:
    """Store users, each once. The times of a stored user are replaced."""
    tx.insert(
        "certified_users",
        (*_COLUMNS, "name_key"),
        [[*(getattr(each, name) for name in _COLUMNS), fold(each.user_name)] for each in users],
        on_conflict=f"on conflict {_KEY} do update set responder = excluded.responder, "
        "asked_until = excluded.asked_until, seen_at = excluded.seen_at",
    )


def of_authority(tx: Tx, authority_id: int, after: int, limit: int) -> list[StoredUser]:
    """Return users with certificates of an authority, ordered by id. after: only rows with a higher id."""
    return tx.all(
        StoredUser,
        f"select {_STORED} from certified_users where authority_id = :authority and id > :after "
        "order by id limit :limit",
        authority=authority_id,
        after=after,
        limit=limit,
    )


def to_ask(tx: Tx, authorities: Sequence[int], now: int, since: int, limit: int) -> list[StoredUser]:
    """Return users of some authorities about whose certificates responders are asked again, those of the longest ago
    first. since: only users with a login after this time."""
    return tx.all(
        StoredUser,
        f"select {_STORED} from certified_users where responder <> '' and asked_until <= :now and seen_at > :since "
        f"and authority_id in {LISTED} order by asked_until limit :limit",
        ids=listed(authorities),
        now=now,
        since=since,
        limit=limit,
    )


def asked(tx: Tx, row_id: int, until: int) -> None:
    """Store when the responder is asked again."""
    tx.execute("update certified_users set asked_until = :until where id = :id", until=until, id=row_id)


def delete(tx: Tx, ids: Sequence[int]) -> None:
    """Delete users."""
    tx.execute(f"delete from certified_users where id in {LISTED}", ids=listed(ids))


def delete_old(tx: Tx, now: int, since: int) -> int:
    """Delete some users whose last login is long ago or whose certificate has ended. Return their number."""
    return delete_slice(tx, "certified_users", "id", "seen_at < :since or until < :now", since=since, now=now)


def delete_of_authority(tx: Tx, authority_id: int) -> int:
    """Delete some users of an authority. Return their number."""
    return delete_slice(tx, "certified_users", "id", "authority_id = :a", a=authority_id)


def forget_users(tx: Tx, user_ids: Sequence[int]) -> int:
    """Delete some rows with the names of endpoint users who will be deleted. Return their number."""
    named = f"(domain_id, name_key) in (select domain_id, name_key from endpoint_users where id in {LISTED})"
    return delete_slice(tx, "certified_users", "id", named, ids=listed(user_ids))


def count_of(tx: Tx, authorities: Sequence[int]) -> int:
    """Return the number of users of some authorities."""
    sql = f"select count(*) from certified_users where authority_id in {LISTED}"
    return tx.value(int, sql, ids=listed(authorities)) or 0


def delete_oldest(tx: Tx, authorities: Sequence[int], most: int) -> None:
    """Delete some users of authorities, so that those of the last logins stay. most: the number of users that stay."""
    old = (
        f"select id from certified_users where authority_id in {LISTED} "
        f"order by seen_at desc, id desc limit {SLICE} offset :most"
    )
    tx.execute(f"delete from certified_users where id in ({old})", ids=listed(authorities), most=most)
