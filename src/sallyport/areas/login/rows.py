"""The rows of decided logins: their events, and their answers. After a restart, a stored answer is sent again for a
retransmission.

A transaction of the journal stores all its answers in one row, as octets.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from sallyport.areas.clients.client import RADSEC
from sallyport.areas.login.identity import kind
from sallyport.areas.login.login import NO_WAITS, Answered, Login
from sallyport.areas.policy.rules.facts import AccountKind
from sallyport.radius.attributes import SERVICE_TYPE
from sallyport.radius.duplicates import Source
from sallyport.radius.password import Method
from sallyport.store.model import NewRows, Tx, Value

EAP_TLS: Final = Method.EAP_TLS
_UNSIGNED: Final = 0x80
OWN_COLUMNS = ("at", "user_name", "ip_address", "client_ip", "device_id", "device_name", "station", "latency_us")
ALL_COLUMNS = (*OWN_COLUMNS, "first_us", "second_us", "attributes", "detail", "port", "trace_id")
"""The columns of a login that has waited, whose answer has attributes, or that has a detail or a port."""


def rows_of_events(logins: list[Login], node_id: int, as_text: Callable[[bytes], str]) -> NewRows:
    """Return the rows of logins with the same `likeness`. node_id: the node that the events name, or 0. as_text: see
    `Journal`."""
    same = _common(logins[0])
    if node_id:
        same["node_id"] = node_id
    if _is_short(logins[0]):
        return NewRows("events", OWN_COLUMNS, [*map(_event, logins)], same)
    return NewRows("events", ALL_COLUMNS, [*map(partial(_long_event, as_text=as_text), logins)], same)


def likeness(login: Login) -> Hashable:
    """Return a key for the `_common` columns of a login. Logins with the same key have the same values in these
    columns. Most logins of a transaction have the same key. Their common values are bound only once, which saves much
    of the time for a login."""
    arrival, domain, rule, network, answer = login.arrival, login.domain, login.rule, login.network, login.answer
    request, client, method = arrival.request, arrival.client, login.method
    return (
        domain and domain.id,
        method,
        login.factor,
        answer.decision,
        request.first.get(SERVICE_TYPE),
        method == EAP_TLS and (_machine(login), login.authority, login.named_by, login.revocation),
        rule and rule.id,
        login.realm,
        client.secret is RADSEC or (request.signed and client.is_single),  # as `Client.proves`, without a call
        login.role,
        network.ssid,
        login.further,
        not (answer.attributes or login.waits is not NO_WAITS or login.detail or network.port),  # as `_is_short`
    )


def _common(login: Login) -> dict[str, Value]:
    """Return the column values of an event that are bound only once for all logins with the same `likeness`."""
    decision, applied, would_have_been, reason = login.answer.decision.row
    rule_id, rule_name = (0, "") if login.rule is None else (login.rule.id, login.rule.name)
    further: dict[str, Value] = {}
    if login.role is not None and login.answer.decision.admits:
        further = {"role": login.role.name, "role_source": login.role.source.value}
    if login.authority:
        further |= {
            "authority": login.authority,
            "named_by": login.named_by and login.named_by.value,
            "revocation": login.revocation,
        }
    return {
        "domain_id": domain_id(login),
        "method": login.method,
        "factor": login.factor,
        "decision": decision,
        "applied_decision": applied,
        "would_have_been": would_have_been,
        "reason": reason,
        "service_type": login.arrival.request.integer(SERVICE_TYPE),
        "machine": _machine(login),
        "rule_id": rule_id,
        "rule_name": rule_name,
        "realm": login.realm,
        "claimed": int(not login.arrival.client.proves(login.arrival.request)),
        "ssid": login.network.ssid,
        "facts": login.further,
        **further,
    }


def domain_id(login: Login) -> int:
    return 0 if login.domain is None else login.domain.id


def _machine(login: Login) -> int | None:
    """Return 1 if the certificate shows that the principal is a computer. Otherwise return None, because the form of
    the name decides."""
    return 1 if login.method == Method.EAP_TLS and kind(login) is AccountKind.MACHINE else None


def _is_short(login: Login) -> bool:
    """Return whether the event of a login has only the OWN_COLUMNS: the login waited for nothing, its answer has no
    attributes, and there is neither a detail nor a port."""
    return not (login.answer.attributes or login.waits is not NO_WAITS or login.detail or login.network.port)


def _event(login: Login) -> tuple[Value, ...]:
    device = login.device
    return (
        login.arrival.at,
        login.user,
        device.ip_address,
        device.client_ip,
        device.id or 0,
        device.device_name,
        login.station,
        login.answer.latency_us,
    )


def _long_event(login: Login, as_text: Callable[[bytes], str]) -> tuple[Value, ...]:
    sent = login.answer.attributes
    attributes = as_text(sent) if sent else ""
    waits = login.waits
    return (
        *_event(login),
        waits.first_us,
        waits.second_us,
        attributes or None,
        login.detail or None,
        login.network.port,
        login.trace.id if login.trace else None,
    )


# --- answers --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer that was stored before a restart, and is sent again for a retransmission. listener: the number of the
    listener that sent it, as in `Exchange.number`. signed: whether the request was signed."""

    listener: int
    source: Source
    identifier: int
    authenticator: bytes
    reply: bytes
    signed: bool


@dataclass(frozen=True, slots=True)
class _Packed:
    packed: bytes


def stored_answers(tx: Tx) -> list[KeptAnswer]:
    """Return all stored answers, oldest first."""
    rows = tx.all(_Packed, "select packed from answers order by id")
    return [answer for row in rows for answer in unpack(row.packed)]


def newest_answers(tx: Tx) -> int:
    """Return the id of the newest row of answers, or 0 if there is none."""
    return tx.value(int, "select max(id) from answers") or 0


def delete_answers(tx: Tx, last: int) -> int:
    """Delete the rows of answers up to an id. The table has no index of times, because each batch of logins would have
    to write it."""
    return tx.execute("delete from answers where id <= :last", last=last)


def void_answers(tx: Tx) -> None:
    """Delete all answers after a restore. Their requests are long over."""
    tx.execute("delete from answers")


def is_stored(entry: Answered) -> bool:
    """Return whether an answer is stored for retransmissions after a restart. An answer with a key in clear, which only
    stations get, is not: the request is then decided again."""
    return not (isinstance(entry, Login) and entry.found.keys_in_clear)


def pack(entry: Answered) -> bytes:
    """Encode an answer for the column `packed`.

    The parts are: listener, port, length of host, host, length of own address, own address, request authenticator,
    reply. The reply contains its own length. The highest bit of the listener is set if the request was unsigned.
    """
    listener = entry.exchange.number | (0 if entry.known.signed else _UNSIGNED)
    return _packed_source(listener, entry.arrival.source) + entry.arrival.request.authenticator + entry.reply


@lru_cache(4096)
def _packed_source(listener: int, source: Source) -> bytes:
    name, port, own = source[0].encode(), source[1], source[2] if len(source) == 3 else b""
    head = bytes((listener, port >> 8, port & 0xFF, len(name))) + name
    return head + bytes((len(own),)) + own


def unpack(packed: bytes) -> list[KeptAnswer]:
    """Decode the answers in a `packed` column of the table `answers`."""
    found, at = [], 0

    def pull(size: int) -> bytes:
        nonlocal at
        at += size
        return packed[at - size : at]

    while at < len(packed):
        listener, port = pull(1)[0], int.from_bytes(pull(2))
        host, own = pull(pull(1)[0]).decode(), pull(pull(1)[0])
        authenticator = pull(16)
        reply = pull(int.from_bytes(packed[at + 2 : at + 4]))
        source: Source = (host, port, own) if own else (host, port)
        number, signed = listener & ~_UNSIGNED, not listener & _UNSIGNED
        found.append(KeptAnswer(number, source, reply[1], authenticator, reply, signed))
    return found
