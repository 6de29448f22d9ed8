"""SQL for dynamic authorization. It reads sessions with the attributes that identify them to the NAS, and stores
revocations."""

from collections.abc import Sequence
from dataclasses import dataclass

from sallyport.areas.sessions.session import SessionState
from sallyport.base.text import fold_name
from sallyport.store.model import Tx, Value, columns_of, without_case


@dataclass(frozen=True, slots=True)
class Target:
    """A session and its device.

    newest: 0 if a later session has the same Acct-Session-Id. ip_address: the source address of the device's packets.
    client_ip: the NAS-IP-Address or NAS-IPv6-Address in the packets, or the source address if they have none.
    """

    id: int
    domain_id: int
    newest: int
    state: str
    acct_session_id: bytes
    user_name: str | None
    station: str | None
    nas_port: int | None
    framed_ip: str | None
    ip_address: str
    client_ip: str
    nas_identifier: str


_DEVICE = ("ip_address", "client_ip", "nas_identifier")
_SESSION = ", ".join(f"s.{name}" for name in columns_of(Target) if name not in _DEVICE)
_PAST = "select {0} from device_history where domain_id = s.domain_id and device_id = s.device_id limit 1"
_OF_DEVICE = ", ".join(f"coalesce(d.{name}, ({_PAST.format(name)}), '') as {name}" for name in _DEVICE)
_TARGETS = f"select {_SESSION}, {_OF_DEVICE} from sessions s left join devices d on d.id = s.device_id where "


def one(tx: Tx, session_id: int) -> Target | None:
    """Return the session with this id, of any tenant. Return None if it does not exist."""
    return tx.one(Target, f"{_TARGETS} s.id = :id", id=session_id)


def targets_of_user(tx: Tx, domain_id: int, names: Sequence[str], *, after: int = 0, limit: int) -> list[Target]:
    """Return live sessions of a user at the devices of a domain, ordered by id.

    names: the user's names; case and surrounding spaces are ignored. after: only sessions with a higher id are
    returned.
    """
    parameters: dict[str, Value] = {"d": domain_id, "after": after, "limit": limit}
    keys = {f"n{number}": fold_name(name) for number, name in enumerate(names)}
    return tx.all(  # `coalesce` prevents the use of the index on states, because the index on users is faster
        Target,
        f"{_TARGETS} s.domain_id = :d and s.user_key in ({', '.join(f':{key}' for key in keys)}) "
        f"and coalesce(s.state, '') = '{SessionState.LIVE}' and s.id > :after "
        "order by s.id limit :limit",
        **parameters,
        **keys,
    )


_PLAIN_STATION = "replace(replace(replace(replace(lower(s.station), '-', ''), ':', ''), '.', ''), ' ', '')"


def of_station(tx: Tx, domain_id: int, station: str, mac: str | None, *, limit: int) -> list[Target]:
    """Return live sessions of a station at the devices of a domain, ordered by id.

    station: the Calling-Station-Id; case is ignored. mac: a MAC address as 12 hex digits, which matches any notation;
    None if the station is no MAC address.
    """
    column, text = without_case("s.station", station)
    return tx.all(
        Target,
        f"{_TARGETS} s.domain_id = :d and s.state = '{SessionState.LIVE}' "
        f"and ({column} = :text or {_PLAIN_STATION} = :mac) "
        "order by s.id limit :limit",
        d=domain_id,
        text=text,
        mac=mac,
        limit=limit,
    )


@dataclass(frozen=True, slots=True)
class Revocation:
    """A stored task: end the sessions of a user whose access was revoked, or a single session. reason: a text for the
    audit trail. session_id: the id of the only session, or 0 for all sessions of the user."""

    id: int
    domain_id: int
    user_name: str
    reason: str
    session_id: int = 0


def add_revocations(
    tx: Tx, domain_id: int, user_names: Sequence[str], reason: str, at: int, *, session_id: int = 0
) -> None:
    """Store that the sessions of these users must end. reason: a text for the audit trail. at: the time in
    microseconds. session_id: see `Revocation`."""
    same: dict[str, Value] = {"domain_id": domain_id, "reason": reason, "at": at, "session_id": session_id}
    tx.insert("revocations", ("user_name",), [(name,) for name in user_names], same=same)


def revoked_domains(tx: Tx) -> list[int]:
    """Return the ids of the domains that have stored revocations."""
    return tx.all(_domain_id, "select distinct domain_id from revocations")


def _domain_id(*, domain_id: int) -> int:
    return domain_id


def revocations(tx: Tx, domain_id: int, limit: int) -> list[Revocation]:
    """Return the first stored revocations of a domain, ordered by id."""
    return tx.all(
        Revocation,
        "select id, domain_id, user_name, reason, session_id from revocations where domain_id = :d "
        "order by id limit :limit",
        d=domain_id,
        limit=limit,
    )


def delete_revocation(tx: Tx, revocation_id: int) -> None:
    """Delete a revocation whose sessions have ended."""
    tx.execute("delete from revocations where id = :id", id=revocation_id)
