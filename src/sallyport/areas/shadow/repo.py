"""SQL for shadow logins: record them, pair copies with answers, and read them in slices."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from sallyport.areas.shadow.shadow_login import MAX_KEPT, TOGETHER_US, Cause, Kind, OldAnswer, ShadowRow
from sallyport.base.errors import NotFound
from sallyport.base.mac import station_key
from sallyport.base.text import fold
from sallyport.store import counters
from sallyport.store.model import LISTED_TEXTS, Tx, columns_of, listed

COUNTER: Final = "shadow_logins"
GENERATION: Final = "shadow_logins.generation"
_COLUMNS: Final = (
    *("at", "recorded_at", "kind", "digest", "client", "user_name", "user_key", "station", "station_key", "nas"),
    *("method", "attributes", "answer", "cause", "reason", "policy", "place"),
    "replies",
)
_SELECT: Final = f"select {', '.join(columns_of(ShadowRow))} from shadow_logins"


@dataclass(frozen=True, slots=True)
class NewShadow:
    """A shadow login to record. mark: octets that identify a copy; empty for a record of a log, which is identified by
    its values. The other fields are those of `ShadowRow`."""

    at: int
    kind: Kind
    client: str
    user_name: str
    station: str
    nas: str
    method: str
    attributes: bytes
    answer: OldAnswer = OldAnswer.NONE
    cause: Cause = Cause.UNKNOWN
    reason: str = ""
    policy: str = ""
    place: str = ""
    replies: str | None = None
    mark: bytes = b""

    @property
    def digest(self) -> str:
        """Return what identifies the login."""
        values = (self.kind, self.at, self.client, self.user_name, self.station, self.nas, self.answer, self.reason)
        return blake2b(self.mark or repr(values).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Filter:
    """The shadow logins that a report covers. An empty value covers all. device: the address of the NAS, or the name or
    address of the client. A name of a RADIUS client of the tenant covers all of its addresses. user: the user name as
    it was sent, without regard to case."""

    device: str = ""
    user: str = ""


@dataclass(slots=True)
class _Near:
    """A stored or new shadow login that may belong to the same login as another one. id: 0 if it is new."""

    id: int
    at: int
    nas: str
    kind: str
    answer: str
    is_used: bool = False


def record(tx: Tx, domain_id: int, logins: Sequence[NewShadow], now: int) -> int:
    """Record shadow logins of a domain, and return how many are new. A copy without an answer is paired with the record
    of the same login that has one. now: the time in microseconds. Raises NotFound."""
    _check_domain(tx, domain_id)
    asked = [each for each in logins if not each.answer]  # first, so that an answer beside them finds them
    answered = [each for each in logins if each.answer]
    return sum(_record(tx, domain_id, part, now) for part in (asked, answered) if part)


def _check_domain(tx: Tx, domain_id: int) -> None:
    """Raise NotFound if a domain was removed."""
    if tx.value(int, "select 1 from domains where id = :d and removed_at is null", d=domain_id) is None:
        raise NotFound("no such domain")


def _record(tx: Tx, domain_id: int, logins: Sequence[NewShadow], now: int) -> int:
    known = {
        str(digest)
        for (digest,) in tx.rows(
            f"select digest from shadow_logins where domain_id = :d and digest in {LISTED_TEXTS}",
            d=domain_id,
            ids=listed({each.digest for each in logins}),
        )
    }
    fresh = {each.digest: each for each in logins if each.digest not in known}
    ordered = sorted(fresh.values(), key=lambda each: each.at)
    near = _near(tx, domain_id, ordered)
    added = [each for each in ordered if not _pairs(tx, each, near)]
    tx.insert(
        "shadow_logins",
        _COLUMNS,
        [_values(each, now) for each in added],
        same={"domain_id": domain_id},
        on_conflict="on conflict (domain_id, digest) do nothing",
    )
    counters.add(tx, domain_id, COUNTER, len(added))
    if any(each.kind is Kind.LOG for each in ordered):
        counters.add(tx, domain_id, GENERATION, 1)
    _trim(tx, domain_id)
    return len(added)


def _values(login: NewShadow, now: int) -> tuple[int | str | bytes | None, ...]:
    return (
        *(login.at, now, login.kind.value, login.digest, login.client, login.user_name, fold(login.user_name)),
        *(login.station, station_key(login.station), login.nas, login.method, login.attributes, login.answer.value),
        *(login.cause.value, login.reason, login.policy, login.place, login.replies),
    )


def _near(tx: Tx, domain_id: int, logins: Sequence[NewShadow]) -> dict[tuple[str, str], list[_Near]]:
    """Return stored copies, and if copies are recorded also all others, around the time of the logins, by user and
    station."""
    found: dict[tuple[str, str], list[_Near]] = defaultdict(list)
    if not logins:
        return found
    with_copies = any(each.kind is not Kind.LOG for each in logins)
    rows = tx.rows(
        "select id, at, nas, kind, answer, user_key, station_key from shadow_logins where domain_id = :d "
        f"and user_key in {LISTED_TEXTS} and at >= :since and at <= :until"
        + ("" if with_copies else " and kind = 'copy'"),
        d=domain_id,
        ids=listed({fold(each.user_name) for each in logins}),
        since=logins[0].at - TOGETHER_US,
        until=logins[-1].at + TOGETHER_US,
    )
    for number, at, nas, kind, answer, user, station in rows:
        found[str(user), str(station)].append(_Near(int(str(number)), int(str(at)), str(nas), str(kind), str(answer)))
    return found


def _pairs(tx: Tx, login: NewShadow, near: dict[tuple[str, str], list[_Near]]) -> bool:
    """Return whether a new record adds nothing but an answer to a login that is already known, and store the answer."""
    others = near[fold(login.user_name), station_key(login.station)]
    same = sorted(
        (
            each
            for each in others
            if not each.is_used and abs(each.at - login.at) <= TOGETHER_US and (not login.nas or login.nas == each.nas)
        ),
        key=lambda each: abs(each.at - login.at),
    )
    if not login.answer:
        answered = next((each for each in same if each.kind == Kind.LOG), None)
    elif (asked := next((each for each in same if each.id and _waits(each, login)), None)) is not None:
        asked.is_used, asked.answer = login.kind is not Kind.START, login.answer
        _answer(tx, asked.id, login)
        return True
    elif login.kind is Kind.START:
        answered = next((each for each in same if each.answer == OldAnswer.ACCEPT), None)
    else:
        answered = None
    if answered is None and login.kind is not Kind.LOG:
        others.append(_Near(0, login.at, login.nas, login.kind, login.answer))
    return answered is not None


def _waits(known: _Near, login: NewShadow) -> bool:
    """Return whether a copy gets the answer of a login. One that was accepted by the start of its session has the
    answer already, and takes the same answer of a log, so that the login is counted once."""
    if not known.answer:
        return True
    return login.kind is not Kind.START and known.kind == Kind.COPY and known.answer == login.answer


def _answer(tx: Tx, number: int, login: NewShadow) -> None:
    """Store the answer of a login whose request is known. A log also knows the user, the client and the method."""
    changed: dict[str, str] = {name: str(getattr(login, name)) for name in ("answer", "cause", "reason", "policy")}
    if login.kind is not Kind.START:
        further = {name: str(getattr(login, name)) for name in ("kind", "client", "method", "place")}
        changed |= {name: value for name, value in further.items() if value}
    if login.replies is not None:
        changed["replies"] = login.replies
    columns = ", ".join(f"{name} = :{name}" for name in changed)
    tx.execute(f"update shadow_logins set {columns} where id = :id", id=number, **changed)


def _trim(tx: Tx, domain_id: int) -> None:
    """Delete the oldest rows of a domain if its tenant has more than MAX_KEPT."""
    own = "select id from domains where tenant_id = (select tenant_id from domains where id = :d)"
    total = f"select sum(value) from counters where name = :name and domain_id in ({own})"
    excess = (tx.value(int, total, d=domain_id, name=COUNTER) or 0) - MAX_KEPT
    if excess > 0:
        _delete(tx, domain_id, "", excess)


def _delete(tx: Tx, domain_id: int, condition: str, most: int, **given: int) -> int:
    oldest = f"select id from shadow_logins where domain_id = :d {condition} order by id limit :most"
    gone = tx.execute(f"delete from shadow_logins where id in ({oldest})", d=domain_id, most=most, **given)
    counters.add(tx, domain_id, COUNTER, -gone)
    return gone


def delete_some(tx: Tx, domain_id: int, most: int) -> int:
    """Delete up to `most` shadow logins of a domain, and return their number. Raises NotFound."""
    _check_domain(tx, domain_id)
    counters.add(tx, domain_id, GENERATION, 1)
    return _delete(tx, domain_id, "", most)


def delete_old(tx: Tx, before: int, most: int) -> int:
    """Delete up to `most` shadow logins of one domain that were recorded before a time in microseconds, and return
    their number."""
    domain_id = tx.value(
        int, "select domain_id from shadow_logins where recorded_at < :at order by recorded_at limit 1", at=before
    )
    if domain_id is None:
        return 0
    counters.add(tx, domain_id, GENERATION, 1)
    return _delete(tx, domain_id, "and recorded_at < :before", most, before=before)


def generation(tx: Tx, domain_id: int) -> int:
    """Return a number that increases when shadow logins of a domain are deleted or recorded. Copies do not increase it:
    they arrive all the time, and a report without the latest is still of use."""
    return counters.total(tx, domain_id, GENERATION)


def total(tx: Tx, domain_id: int) -> int:
    """Return the number of shadow logins of a domain."""
    return counters.total(tx, domain_id, COUNTER)


def page(tx: Tx, domain_id: int, before: int, wanted: Filter, most: int) -> list[ShadowRow]:
    """Return up to `most` shadow logins with ids below `before`, the last recorded first."""
    where, given = "domain_id = :d and id < :before", dict[str, int | str](d=domain_id, before=before, most=most)
    if wanted.device:
        where += " and (nas = :device or client = :device)"
        given["device"] = wanted.device
    if wanted.user:
        where += " and user_key = :user"
        given["user"] = fold(wanted.user)
    return tx.all(ShadowRow, f"{_SELECT} where {where} order by id desc limit :most", **given)
