"""SQL for remembered stations."""

from collections.abc import Sequence
from typing import Final

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.remembered.station import MAX_STATIONS, RememberedStation, SeenStation
from sallyport.base.text import fold
from sallyport.store.model import LISTED_TEXTS, Tx, Value, listed
from sallyport.store.slices import delete_slice

_COLUMNS: Final = "id, domain_id, user_name, kind, station, client_name, provider, since, until, last_used_at"
_OF_PERSON: Final = "domain_id = :d and user_key = :key"


def use(tx: Tx, seen: SeenStation, since: int, at: int) -> RememberedStation | None:
    """Store the use of a remembered station, and return the station. Return None if the station is not remembered.
    since: the earliest time of the second factor, in microseconds."""
    sql = (
        f"update remembered_stations set last_used_at = :at where {_OF_PERSON} and station = :station "
        "and client_id = :client and provider = :provider and password = :password and until > :at and since > :since "
        f"returning {_COLUMNS}"
    )
    return tx.one(
        RememberedStation,
        sql,
        d=seen.person.domain_id,
        key=seen.person.key,
        station=seen.station,
        client=seen.client_id,
        provider=seen.provider,
        password=seen.password,
        since=since,
        at=at,
    )


def is_known(tx: Tx, seen: SeenStation, at: int) -> bool:
    """Return whether a station may be remembered. It is then looked up by `use`."""
    sql = f"select 1 from remembered_stations where {_OF_PERSON} and station = :station and until > :at limit 1"
    return bool(tx.rows(sql, d=seen.person.domain_id, key=seen.person.key, station=seen.station, at=at))


def keep(tx: Tx, seen: SeenStation, at: int, until: int) -> None:
    """Remember a station. Also delete the stations of the person above the maximum, and some expired ones of all
    people."""
    delete_slice(tx, "remembered_stations", "id", "until <= :at", at=at)
    tx.execute(
        "insert into remembered_stations (domain_id, user_key, user_name, kind, station, client_id, client_name, "
        "provider, password, since, until) values (:d, :key, :user, :kind, :station, :client, :client_name, :provider, "
        ":password, :at, :until) on conflict (domain_id, user_key, station, client_id) do update set "
        "user_name = excluded.user_name, kind = excluded.kind, client_name = excluded.client_name, "
        "provider = excluded.provider, password = excluded.password, since = excluded.since, until = excluded.until, "
        "last_used_at = null",
        d=seen.person.domain_id,
        key=seen.person.key,
        user=seen.person.name,
        kind=seen.kind,
        station=seen.station,
        client=seen.client_id,
        client_name=seen.client_name,
        provider=seen.provider,
        password=seen.password,
        at=at,
        until=until,
    )
    tx.execute(
        f"delete from remembered_stations where {_OF_PERSON} and id not in (select id from remembered_stations "
        f"where {_OF_PERSON} order by coalesce(last_used_at, since) desc, id desc limit {MAX_STATIONS})",
        d=seen.person.domain_id,
        key=seen.person.key,
    )


def page(tx: Tx, domain_id: int, user_key: str, at: int, offset: int, size: int) -> tuple[list[RememberedStation], int]:
    """Return a page of a domain's remembered stations, ordered by user and id, and the number of all. user_key: the
    folded name of a user, or empty for all users."""
    where = "domain_id = :d and until > :at" + (" and user_key = :key" if user_key else "")
    values: dict[str, Value] = {"d": domain_id, "at": at, **({"key": user_key} if user_key else {})}
    total = tx.value(int, f"select count(*) from remembered_stations where {where}", **values) or 0
    order = "order by user_key, id limit :size offset :offset"
    sql = f"select {_COLUMNS} from remembered_stations where {where} {order}"
    return tx.all(RememberedStation, sql, **values, size=size, offset=offset), total


def remove(tx: Tx, person: Person, station_id: int | None) -> list[RememberedStation]:
    """Delete a remembered station of a person, or all of them, and return them."""
    more: dict[str, Value] = {} if station_id is None else {"id": station_id}
    where = _OF_PERSON + (" and id = :id" if more else "")
    sql = f"delete from remembered_stations where {where} returning {_COLUMNS}"
    return tx.all(RememberedStation, sql, d=person.domain_id, key=person.key, **more)


def forget(tx: Tx, domain_id: int, names: Sequence[str]) -> None:
    """Delete all remembered stations of users."""
    sql = f"delete from remembered_stations where domain_id = :d and user_key in {LISTED_TEXTS}"
    tx.execute(sql, d=domain_id, ids=listed([fold(each) for each in names]))


def delete_all(tx: Tx) -> None:
    """Delete all remembered stations."""
    tx.execute("delete from remembered_stations")
