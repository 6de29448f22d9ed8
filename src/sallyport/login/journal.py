"""Nothing is answered before it is on disk: the journal writes decided logins and then sends their answers.

Entries that arrive while a transaction runs gather for the next one, so a busy service writes hundreds of logins with
one synchronization and an idle one writes a single login at once. Each login is written with the first sighting of its
device and station, and with the answer's octets: after a restart a retransmission gets the same answer.

Tenants take turns in each transaction, and a transaction is short: a tenant whose requests wait by the thousand delays
another one's by two transactions.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import compress
from typing import Final

import structlog
import trio

from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.fair import FairQueue
from sallyport.base.periodic import every
from sallyport.events.repo import ACCOUNTING_COUNTER, COUNTER
from sallyport.inventory.devices.device import Device, Station
from sallyport.inventory.devices.sightings import Refused, Registered, write_first_sighting
from sallyport.inventory.sessions.report import OF_DEVICE
from sallyport.inventory.sessions.service import Record, write_records
from sallyport.login.identity import kind
from sallyport.login.login import AccountingRecord, Answered, Login
from sallyport.policy.rules.rule import Kind
from sallyport.radius.attributes import ACCT_SESSION_ID, SERVICE_TYPE
from sallyport.radius.duplicates import Source
from sallyport.radius.password import Method
from sallyport.store import counters
from sallyport.store.model import Store, Tx, Value

log = structlog.get_logger()

MOST: Final = 1000
"""Entries of a transaction; each device or station that the store does not know yet, and each record that ends all
sessions of its device, counts as `LONG` of them."""
LONG: Final = 16
PURGE_S = 5.0

OWN_COLUMNS = ("at", "user_name", "ip_address", "client_ip", "device_id", "device_name", "station", "latency_us")
ACCOUNTING_COLUMNS = (
    "at", "domain_id", "device_id", "status_type", "session_id", "user_name", "station", "attributes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer that was not sent before a restart. listener: the exchange's number. signed: of the request."""

    listener: int
    source: Source
    identifier: int
    authenticator: bytes
    reply: bytes
    signed: bool


class Journal:
    """Writes decided logins and accounting records.

    on_sightings, on_accounted: called after a commit with the devices that got their row, and those beyond a limit, and
    with the number of accounting records of each Acct-Status-Type.
    """

    def __init__(
        self,
        store: Store,
        on_sightings: Callable[[list[Registered | Refused]], None],
        on_accounted: Callable[[Mapping[int, int]], None],
        *,
        keep_answers_s: float,
        clock: Clock = now_us,
    ) -> None:
        self._store = store
        self._on_sightings = on_sightings
        self._on_accounted = on_accounted
        self._keep_us = int(keep_answers_s * SECOND)
        self._clock = clock
        self._entries: FairQueue[int, Answered] = FairQueue()
        self._gathers = False
        self._writing = False

    def add(self, entry: Answered) -> None:
        """Add an entry to the next transaction; its exchange is called when it is done. `flush` must follow."""
        self._entries.put(entry.client.tenant_id, entry)

    def flush(self) -> None:
        """Submit the added entries to the store, unless a transaction runs: then they gather for the next one."""
        if self._entries and not self._writing:
            batch = _Batch(self._take(), self._clock())
            self._writing = True
            self._store.submit(batch.write, lambda sightings, error: self._written(batch, sightings, error))

    def _take(self) -> list[Answered]:
        """Return the entries of the next transaction."""
        entries: list[Answered] = []
        long: set[Device | Station | Answered] = set()
        while self._entries and len(entries) + LONG * len(long) < MOST:
            entry = self._entries.take()
            entries.append(entry)
            if _is_first(entry):
                long.add(entry.device if entry.behind is None else entry.behind)
            elif isinstance(entry, AccountingRecord) and entry.report.status in OF_DEVICE:
                long.add(entry)
        return entries

    def flush_soon(self) -> None:
        """Call `flush` after all tasks that can run now: logins that many tasks decide at the same time share a
        transaction."""
        if not self._gathers:
            self._gathers = True
            trio.lowlevel.current_trio_token().run_sync_soon(self._flush_gathered)

    def _flush_gathered(self) -> None:
        self._gathers = False
        self.flush()

    def _written(
        self, batch: "_Batch", sightings: list[Registered | Refused] | None, error: BaseException | None
    ) -> None:
        self._writing = False
        if error is not None:
            batch.undo()  # before the next one asks which devices have their row
            for entry in batch.entries:
                entry.exchange.abandoned(entry)
        else:
            self._answer(batch.kept)
            for entry in batch.lost:
                entry.exchange.lost(entry)
        if sightings:
            self._on_sightings(sightings)
        if batch.accounted and error is None:
            self._on_accounted(batch.accounted)
        self.flush()

    def _answer(self, entries: list[Answered]) -> None:
        now = self._clock()
        for entry in entries:
            try:
                entry.exchange.committed(entry, now)
            except Exception:  # the answers behind it are as good as this one
                log.exception("answer_not_sent", client=entry.client.name)

    async def drained(self) -> None:
        """Return once no entry waits."""
        while self._entries or self._writing:
            await trio.sleep(0.005)

    async def recent(self) -> list[KeptAnswer]:
        """Return the answers that a retransmission may still ask for, oldest first."""
        since = self._clock() - self._keep_us
        rows = await self._store.read(
            lambda tx: tx.all(_Packed, "select packed from answers where at >= :since order by id", since=since)
        )
        return [answer for row in rows for answer in unpack(row.packed)]

    async def purge(self) -> None:
        """Delete expired answers every few seconds, until cancelled."""
        await every(PURGE_S, self._purge, failure="answer_purge_failed")

    async def _purge(self) -> None:
        await self._store.write(partial(_purge, before=self._clock() - self._keep_us))


def _purge(tx: Tx, before: int) -> int:
    return tx.execute("delete from answers where at < :at", at=before)


class _Batch:
    """The content of one transaction. at: its start, in microseconds: its answers are kept from then on, however long
    their requests have waited. lost: logins that another node answers; kept: all other entries."""

    def __init__(self, entries: list[Answered], at: int) -> None:
        self.entries = entries
        self.at = at
        self.kept = entries
        self.lost: list[Login] = []
        self.accounted: Counter[int] = Counter()
        self._new_devices: list[Device] = []

    def write(self, tx: Tx) -> list[Registered | Refused]:
        """Write devices and stations first, since events name them."""
        sightings: list[Registered | Refused] = []
        alike: defaultdict[Hashable, list[Login]] = defaultdict(list)
        records: list[AccountingRecord] = []
        self.lost = []
        for entry in self.entries:
            if _is_first(entry):
                sightings += self._sighting(tx, entry)
            if isinstance(entry, Login):
                if entry.keep is None or entry.keep(tx) is not False:
                    alike[_likeness(entry)].append(entry)
                else:
                    self.lost.append(entry)
            elif isinstance(entry, AccountingRecord):
                records.append(entry)
        totals: Counter[tuple[int, str]] = Counter()
        for logins in alike.values():
            tx.insert("events", OWN_COLUMNS, map(_event, logins), same=_common(logins[0]))
            totals[_domain_id(logins[0]), COUNTER] += len(logins)
        if records:
            totals.update((each.domain_id, ACCOUNTING_COUNTER) for each in self._account(tx, records))
        for (domain_id, name), count in totals.items():
            counters.add(tx, domain_id, name, count)
        self.kept = [each for each in self.entries if each not in self.lost] if self.lost else self.entries
        tx.insert("answers", ("at", "packed"), [(self.at, b"".join(map(pack, self.kept)))])
        return sightings

    def _account(self, tx: Tx, records: list[AccountingRecord]) -> list[AccountingRecord]:
        """Write sessions and records; return the records that are kept: all except repeated ones."""
        fresh = write_records(tx, [Record(each.domain_id, each.device.id or 0, each.report) for each in records])
        kept = list(compress(records, fresh))
        self.accounted.update([each.report.status for each in kept])
        tx.insert("accounting_records", ACCOUNTING_COLUMNS, map(_record, kept))
        return kept

    def _sighting(self, tx: Tx, entry: Answered) -> list[Registered | Refused]:
        device, behind = entry.device, entry.behind
        if device.id is None:
            self._new_devices.append(device)
        return write_first_sighting(tx, device, behind)

    def undo(self) -> None:
        """Undo a transaction that was not kept: its devices and stations are as new as before."""
        for device in self._new_devices:
            device.id = None
        for entry in self.entries:
            if entry.behind is not None:
                entry.behind.stored = False


def _is_first(entry: Answered) -> bool:
    """Return whether the store does not know the entry's device or station yet."""
    return entry.device.id is None or (entry.behind is not None and not entry.behind.stored)


def _event(login: Login) -> tuple[Value, ...]:
    """OWN_COLUMNS."""
    device = login.device
    return (
        login.at,
        login.user,
        device.ip_address,
        device.client_ip,
        device.id or 0,
        device.device_name,
        login.station,
        login.latency_us,
    )


def _likeness(login: Login) -> Hashable:
    """Return the key of `_common`: most logins of a transaction are alike, and a bound value takes much of a login's
    time."""
    service_type = login.request.first.get(SERVICE_TYPE)
    return _domain_id(login), login.method, login.factor, login.decision, service_type, _machine(login)


def _common(login: Login) -> dict[str, Value]:
    """Return the other columns of an event."""
    decision, applied, would_have_been, reason = login.decision.row
    return {
        "domain_id": _domain_id(login),
        "method": login.method,
        "factor": login.factor,
        "decision": decision,
        "applied_decision": applied,
        "would_have_been": would_have_been,
        "reason": reason,
        "service_type": login.service_type,
        "machine": _machine(login),
    }


def _domain_id(login: Login) -> int:
    return 0 if login.domain is None else login.domain.id


def _machine(login: Login) -> int | None:
    """Return 1 for a computer whose name does not show it."""
    return 1 if login.method == Method.EAP_TLS and kind(login) is Kind.MACHINE else None


def _record(entry: AccountingRecord) -> tuple[Value, ...]:
    first = entry.request.first
    return (
        entry.at,
        entry.domain_id,
        entry.device.id or 0,
        entry.report.status,
        first.get(ACCT_SESSION_ID, b""),
        entry.user,
        entry.report.station,
        entry.request.data[20:],
    )


_UNSIGNED: Final = 0x80


@dataclass(frozen=True, slots=True)
class _Packed:
    packed: bytes


def pack(entry: Answered) -> bytes:
    """Return an answer in octets: listener, port, length of host, host, length of own address, own address, request
    authenticator, reply (which contains its length). The listener's highest bit is set for an unsigned request."""
    listener = entry.exchange.number | (0 if entry.known.signed else _UNSIGNED)
    return _packed_source(listener, entry.source) + entry.request.authenticator + entry.reply


@lru_cache(4096)
def _packed_source(listener: int, source: Source) -> bytes:
    name, port, own = source[0].encode(), source[1], source[2] if len(source) == 3 else b""
    head = bytes((listener, port >> 8, port & 0xFF, len(name))) + name
    return head + bytes((len(own),)) + own


def unpack(packed: bytes) -> list[KeptAnswer]:
    """Return the answers in a row of `answers`."""
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
