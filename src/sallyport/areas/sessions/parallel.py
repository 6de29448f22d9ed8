"""Count the parallel sessions of a user in the transaction that admits a login, so that a limit is exact.

The transaction first locks the row of the user in `session_limits`. Therefore logins of one user are counted one after
the other, over all nodes. The row has the logins that were admitted in the last `AWAITED_US`: their sessions may not
have begun. It also has the sessions that the service has just asked a NAS to end.

Accounting loses records, so a live session counts only if its last record is not older than twice the interval of its
interim updates. The interval is the average time between the records of the session, and at least `MIN_INTERVAL_US`
(RFC 2869 section 5.16). A session with few records has at least the Acct-Interim-Interval that the login gets. A
session without an interim update has the interval of its device. If a device sends no interim updates, nothing is known
about the end of its sessions. Then its sessions do not count, and the limit does not apply to logins at this device.

Sessions at the same MAC address are not parallel: the station has logged in again, or has moved to another access
point. So the sessions and the admitted logins of one station count once.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sallyport.areas.sessions.repo import siblings
from sallyport.areas.sessions.session import SessionState
from sallyport.base.clock import SECOND
from sallyport.base.mac import mac_key
from sallyport.store.model import Tx, Value, columns_of

MAX_NAMES: Final = 256
"""Maximum number of names under which the sessions of a user are searched, over all domains of the tenant."""
AWAITED_US: Final = 60 * SECOND
MIN_INTERVAL_US: Final = 60 * SECOND
MAX_READ: Final = 200
"""Maximum number of sessions of a user that are read, the newest first. It is more than the highest limit of a
rule."""
MAX_DEVICES: Final = 8
"""Maximum number of devices whose interval is learned for one login, those of the newest sessions without an interim
update. At further devices, such a session counts for twice MIN_INTERVAL_US."""
MAX_SIBLINGS: Final = 4
"""Maximum number of devices that may be the same NAS as a device, from which its interval is learned too."""
SAMPLE: Final = 16
"""Number of sessions from which the interval of a device is learned, of each state."""
_BLOCKS: Final = (4, 64)
"""Number of names in a statement. Most users have few names, because most domains have one realm."""

Place = tuple[int, str]
"""The id of a domain with devices, and a case-folded User-Name that its devices send for the user."""


@dataclass(frozen=True, slots=True)
class Admission:
    """A login that a limit may refuse. Times are in microseconds.

    domain_id, user_key: the domain of the user, and the case-folded name of the principal. places: the names in the
    accounting of the user's sessions, at most MAX_NAMES. device_id: the device, or 0 if it has no row. station: the
    Calling-Station-Id. limit: the maximum number of parallel sessions. ends_oldest: whether the oldest sessions end if
    there are too many. sent_us: the Acct-Interim-Interval of the answer, or 0. at: the time of the transaction.
    """

    domain_id: int
    user_key: str
    places: Sequence[Place]
    device_id: int
    station: str
    limit: int
    ends_oldest: bool
    sent_us: int
    at: int


@dataclass(frozen=True, slots=True)
class LiveSession:
    """A live session of the user, as `session.Session` describes it."""

    id: int
    domain_id: int
    device_id: int
    user_name: str | None
    station: str | None
    started: int
    first_seen: int
    updated: int
    records: int


@dataclass(frozen=True, slots=True)
class Parallel:
    """The result of a count.

    is_applied: whether the limit applies at the device. awaited: the number of admitted logins whose sessions have not
    begun. sessions: the live sessions that count, oldest first; the newest one of each MAC address. limit: the limit.
    ended: the sessions that must end so that the login can be admitted. is_over: whether the login must be refused.
    """

    is_applied: bool
    limit: int
    awaited: int = 0
    sessions: Sequence[LiveSession] = ()
    ended: Sequence[LiveSession] = ()
    is_over: bool = False

    @property
    def count(self) -> int:
        """The number of parallel sessions without the login."""
        return self.awaited + len(self.sessions)


@dataclass(frozen=True, slots=True)
class _Awaited:
    """An admitted login. station: the MAC address as 12 hex digits, or empty. after: the highest id of a session at
    that time, so that its own session has a higher id."""

    at: int
    station: str
    after: int


def admit(tx: Tx, login: Admission, *, is_refused: bool = True) -> Parallel:
    """Count the parallel sessions of a user, and admit the login if the limit allows it. Call this in the transaction
    that stores the answer, and call it for users in the order of (domain_id, user_key).

    is_refused: whether a login over the limit is refused. In monitor mode, it is admitted, and no session ends.
    """
    kept = tx.value(
        str,
        "insert into session_limits (domain_id, user_key, at, admitted) values (:domain, :key, :at, '') "
        "on conflict (domain_id, user_key) do update set at = excluded.at returning admitted",
        domain=login.domain_id,
        key=login.user_key,
        at=login.at,
    )
    awaited, ending = _parsed(kept or "", login.at)
    found = _count(tx, login, awaited, ending)
    if not found.is_applied or (found.is_over and is_refused):
        return found
    station = mac_key(login.station)
    awaited = [each for each in awaited if not station or each.station != station]
    awaited.append(_Awaited(login.at, station, tx.value(int, "select max(id) from sessions") or 0))
    if is_refused:
        ending |= {each.id: login.at for each in found.ended}
    tx.execute(
        "update session_limits set admitted = :admitted where domain_id = :domain and user_key = :key",
        admitted=json.dumps([[[each.at, each.station, each.after] for each in awaited[-MAX_READ:]], [*ending.items()]]),
        domain=login.domain_id,
        key=login.user_key,
    )
    return found


def count(tx: Tx, login: Admission) -> Parallel:
    """Count the parallel sessions of a user without a lock and without an admission, for a test of rules."""
    kept = tx.value(
        str,
        "select admitted from session_limits where domain_id = :domain and user_key = :key",
        domain=login.domain_id,
        key=login.user_key,
    )
    return _count(tx, login, *_parsed(kept or "", login.at))


def interval_us(tx: Tx, device_id: int, sent_us: int, at: int) -> int | None:
    """Return the interval of the interim updates of a device, or None if it sends none.

    If none was seen, but the device is asked for them by an Acct-Interim-Interval, the device sends them unless a live
    session lacks them. sent_us: this interval, or 0. at: the time now, in microseconds.
    """
    seen_us, gaps, is_lacking, has_sessions = 0, 0, False, False
    for each in (device_id, *siblings(tx, device_id)[:MAX_SIBLINGS]) if device_id else ():
        for state, own in ((SessionState.LIVE, 0), (SessionState.STOPPED, 1)):
            for first, last, records in _sample(tx, each, state):
                has_sessions = True
                if records - own > 1:
                    seen_us, gaps = seen_us + last - first, gaps + records - 1
                elif state is SessionState.LIVE and last < at - 2 * max(sent_us, MIN_INTERVAL_US):
                    is_lacking = True
    if gaps:
        return max(MIN_INTERVAL_US, sent_us, seen_us // gaps)
    return max(MIN_INTERVAL_US, sent_us) if sent_us and has_sessions and not is_lacking else None


def delete_old(tx: Tx, before: int, limit: int) -> int:
    """Delete the rows of users without a login since `before`, at most `limit` rows. Return the number of rows."""
    sql = "select domain_id, user_key from session_limits where at < :before order by at limit :limit"
    rows = tx.rows(sql, before=before, limit=limit)
    for domain_id, user_key in sorted((int(str(domain)), str(key)) for domain, key in rows):  # the order of `admit`
        tx.execute(
            "delete from session_limits where domain_id = :domain and user_key = :key and at < :before",
            domain=domain_id,
            key=user_key,
            before=before,
        )
    return len(rows)


def _parsed(kept: str, at: int) -> tuple[list[_Awaited], dict[int, int]]:
    """Return the admitted logins, and the sessions that are being ended, of the last AWAITED_US."""
    if not kept:
        return [], {}
    logins, ended = json.loads(kept)
    since = at - AWAITED_US
    awaited = [_Awaited(*each) for each in logins if each[0] > since]
    return awaited, {session: when for session, when in ended if when > since}


def _count(tx: Tx, login: Admission, awaited: Sequence[_Awaited], ending: dict[int, int]) -> Parallel:
    interval = interval_us(tx, login.device_id, login.sent_us, login.at)
    if interval is None:
        return Parallel(False, login.limit)
    station = mac_key(login.station)
    begun = _live(tx, login.places)
    seen = {each.id: mac_key(each.station or "") for each in begun}
    own = [each for each in begun if each.id not in ending and not (station and seen[each.id] == station)]
    fresh = defaultdict[str | int, list[LiveSession]](list)  # by station: it may have several sessions after a move
    for live in sorted(_fresh(tx, own, login), key=lambda each: (each.started, each.id)):
        fresh[seen[live.id] or live.id].append(live)
    counted = sorted(fresh.values(), key=lambda each: (each[-1].started, each[-1].id))
    others = [each for each in awaited if not station or each.station != station]
    missing = [each for each in _without_session(others, seen) if each.station not in fresh]
    if missing and len(missing) + len(counted) >= login.limit:  # some of their sessions may already be over
        every = seen | _over(tx, login.places, min(each.after for each in missing))
        missing = [each for each in _without_session(others, every) if each.station not in fresh]
    excess = len(missing) + len(counted) - login.limit + 1
    can_end = login.ends_oldest and excess <= len(counted)
    return Parallel(
        True,
        login.limit,
        len(missing),
        [each[-1] for each in counted],
        [each for of_station in counted[: max(excess, 0)] for each in of_station] if can_end else (),
        excess > 0 and not can_end,
    )


def _fresh(tx: Tx, sessions: Sequence[LiveSession], login: Admission) -> Iterator[LiveSession]:
    """Yield the sessions whose last record is not older than twice the interval of their interim updates."""
    of_device: dict[int, int | None] = {}
    for each in sorted(sessions, key=lambda session: -session.id):
        if each.records > 1:
            own = (each.updated - each.first_seen) // (each.records - 1)
            interval: int | None = max(MIN_INTERVAL_US, own, login.sent_us if each.records == 2 else 0)
        else:
            if each.device_id not in of_device and len(of_device) < MAX_DEVICES:
                of_device[each.device_id] = interval_us(tx, each.device_id, login.sent_us, login.at)
            interval = of_device.get(each.device_id, MIN_INTERVAL_US)
        if interval is not None and each.updated >= login.at - 2 * interval:
            yield each


def _without_session(awaited: Sequence[_Awaited], sessions: Mapping[int, str]) -> list[_Awaited]:
    """Return the admitted logins for which no session has begun. sessions: the MAC address of each session, or an empty
    text, by the id of the session. Each session belongs to one login."""
    left, missing = sorted(sessions.items()), list[_Awaited]()
    for login in awaited:
        fits = (
            each
            for each in left
            if each[0] > login.after and (each[1] == login.station or not each[1] or not login.station)
        )
        found = next(fits, None)
        if found is None:
            missing.append(login)
        else:
            left.remove(found)
    return missing


_COLUMNS: Final = ", ".join(f"s.{name}" for name in columns_of(LiveSession))


def _live(tx: Tx, places: Sequence[Place]) -> list[LiveSession]:
    """Return the live sessions of a user, at most MAX_READ of the newest in each block of names."""
    found: dict[int, LiveSession] = {}
    for named, parameters in _blocks(places):
        sql = (  # a join, because SQLite scans the table for `in (values ...)`
            f"{named} select {_COLUMNS} from named cross join sessions s where s.domain_id = domain "  # noqa: S608
            f"and s.user_key = name and s.state = '{SessionState.LIVE}' order by s.id desc limit {MAX_READ}"
        )
        found |= {each.id: each for each in tx.all(LiveSession, sql, **parameters)}
    return list(found.values())


def _over(tx: Tx, places: Sequence[Place], after: int) -> dict[int, str]:
    """Return the MAC address, or an empty text, of each session of a user with an id above `after` that is over."""
    found: dict[int, str] = {}
    for named, parameters in _blocks(places):
        sql = (
            f"{named} select s.id, s.station from named cross join sessions s where s.domain_id = domain "  # noqa: S608
            f"and s.user_key = name and s.state <> '{SessionState.LIVE}' and s.id > :after "
            f"order by s.id limit {MAX_READ}"
        )
        found |= {
            int(str(key)): mac_key(str(station or "")) for key, station in tx.rows(sql, after=after, **parameters)
        }
    return found


def _blocks(places: Sequence[Place]) -> Iterator[tuple[str, dict[str, Value]]]:
    """Yield the places as the SQL of a table `named (domain, name)` and its parameters. The tables have few different
    numbers of rows, so that the statements stay prepared."""
    size = _BLOCKS[len(places) > _BLOCKS[0]]
    for at in range(0, len(places), size):
        part = places[at : at + size]
        parameters: dict[str, Value] = {}
        for number in range(size):
            parameters[f"d{number}"], parameters[f"n{number}"] = part[number] if number < len(part) else (0, "")
        values = ", ".join(f"(:d{number}, :n{number})" for number in range(size))
        yield f"with named (domain, name) as (values {values})", parameters


def _sample(tx: Tx, device_id: int, state: SessionState) -> list[tuple[int, int, int]]:
    """Return (first_seen, updated, records) of the newest sessions of a device."""
    rows = tx.rows(
        "select first_seen, updated, records from sessions where domain_id = (select domain_id from devices "  # noqa: S608
        f"where id = :device) and device_id = :device and state = '{state}' order by id desc limit {SAMPLE}",
        device=device_id,
    )
    return [(int(str(first)), int(str(last)), int(str(records))) for first, last, records in rows]
