"""Write decided logins to the store. Their answers are sent only after the commit.

Entries that arrive while a transaction runs are written together in the next one. So a busy service stores hundreds of
logins with one sync to disk, and an idle service stores a single login at once. A login is stored with its answer, so
that a retransmission after a restart gets the same answer. The first sighting of its device and station is stored in
the same transaction.

Transactions are short, and tenants take turns in them. So thousands of waiting requests of one tenant delay a request
of another tenant by at most two transactions.

If one entry makes a transaction fail, all its entries are written again one by one. Then only the faulty entry gets no
answer.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

import structlog
import trio

from sallyport.areas.clients.client import RADSEC
from sallyport.areas.devices.device import Device, Station
from sallyport.areas.devices.sightings import Sighting, write_first_sightings
from sallyport.areas.events.repo import COUNTER
from sallyport.areas.login.accounting import write_accounting
from sallyport.areas.login.facts import RECORDED, recorded
from sallyport.areas.login.identity import kind, realm_of
from sallyport.areas.login.limit import SessionLimit
from sallyport.areas.login.login import (
    NO_WAITS,
    NOTHING_RECORDED,
    AccountingRecord,
    Answered,
    Login,
    Recorded,
)
from sallyport.areas.login.spool import Spool
from sallyport.areas.policy.rules.facts import AccountKind
from sallyport.areas.sessions.report import OF_DEVICE
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import Contradiction, StoreError
from sallyport.base.fair import FairQueue
from sallyport.nodes.periodic import every
from sallyport.nodes.service import Cluster
from sallyport.radius.attributes import SERVICE_TYPE, USER_NAME
from sallyport.radius.duplicates import Source
from sallyport.radius.password import Method
from sallyport.store import counters
from sallyport.store.model import NewRows, Store, Tx, Value

log = structlog.get_logger()

MOST: Final = 1000
"""Maximum number of entries in a transaction. An entry counts as 1 + `LONG` entries if its device or station is new to
the store. So does an accounting record that ends all sessions of a device, and a login with a limit of parallel
sessions."""
LONG: Final = 16
SINGLE: Final = 60
"""Maximum number of entries that are written one by one in the same transaction. Each has a savepoint, and PostgreSQL
becomes slow above 64 savepoints."""
PURGE_S = 5.0
SKEW_US: Final = 180 * SECOND
"""Maximum difference between the clocks of two nodes. Answers are deleted only this long after their expiry. So a node
with a fast clock deletes no answer that another node still needs."""

OWN_COLUMNS = ("at", "user_name", "ip_address", "client_ip", "device_id", "device_name", "station", "latency_us")
ALL_COLUMNS = (*OWN_COLUMNS, "first_us", "second_us", "attributes", "detail", *Recorded._fields)
"""The columns of a login that has waited, whose answer has attributes, or that has a detail or recorded facts."""


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


class Journal:
    """The writer of decided logins and accounting records.

    on_sightings: a function that is called after a commit with the new devices: those that were stored, and those that
    were not stored because of a limit. on_accounted: a function that is called after a commit with the number of
    accounting records of each Acct-Status-Type. cluster: the membership of this node in the cluster, or None. spool:
    the local file for accounting records while the store accepts no writes, or None. as_text: a function that returns
    the text of encoded attributes, without secrets. It is called in a thread.
    """

    def __init__(
        self,
        store: Store,
        on_sightings: Callable[[list[Sighting]], None],
        on_accounted: Callable[[Mapping[int, int]], None],
        *,
        keep_answers_s: float,
        clock: Clock = now_us,
        cluster: Cluster | None = None,
        spool: Spool | None = None,
        as_text: Callable[[bytes], str],
    ) -> None:
        self._store = store
        self._spool = spool
        self._as_text = as_text
        self._on_sightings = on_sightings
        self._on_accounted = on_accounted
        self._keep_us = int(keep_answers_s * SECOND)
        self._clock = clock
        self._cluster = cluster
        self._entries: FairQueue[int, Answered] = FairQueue()
        self._gathers = False
        self._writing = 0  # batches that were passed to the store
        self._single: deque[Answered] = deque()  # entries that must be written one by one

    def add(self, entry: Answered) -> None:
        """Add an entry to the next transaction. Call `flush` afterwards. After the transaction, the journal reports the
        result to the entry's `exchange`."""
        self._entries.put(entry.arrival.client.tenant_id, entry)

    def flush(self) -> None:
        """Submit the added entries to the store. If a transaction is running, do nothing: at its end the entries are
        submitted."""
        if self._writing:
            return
        if self._single:
            single, now = self._single, self._clock()
            taken = [single.popleft() for _ in range(min(SINGLE, len(single)))]
            self._submit([self._batch([each], now) for each in taken])
        elif self._entries:
            self._submit([self._batch(self._take(), self._clock())])

    def _batch(self, entries: list[Answered], at: int) -> "_Batch":
        return _Batch(entries, at, self._cluster.id if self._cluster else 0, self._as_text)

    def _submit(self, batches: Sequence["_Batch"]) -> None:
        self._writing = len(batches)
        for batch in batches:
            self._store.submit(batch.write, partial(self._written, batch))

    def _take(self) -> list[Answered]:
        """Remove the entries for the next transaction from the queue, and return them."""
        entries: list[Answered] = []
        long: set[Device | Station | Answered] = set()
        while self._entries and len(entries) + LONG * len(long) < MOST:
            entry = self._entries.take()
            entries.append(entry)
            if _is_first(entry):
                long.add(entry.device if entry.behind is None else entry.behind)
            elif isinstance(entry, Login):
                if entry.limit is not None:
                    long.add(entry)
            elif isinstance(entry, AccountingRecord) and entry.report.status in OF_DEVICE:
                long.add(entry)
        return entries

    def flush_soon(self) -> None:
        """Call `flush` when all tasks that are ready now have had their turn. The logins that these tasks decide then
        share a transaction."""
        if not self._gathers:
            self._gathers = True
            trio.lowlevel.current_trio_token().run_sync_soon(self._flush_gathered)

    def _flush_gathered(self) -> None:
        self._gathers = False
        self.flush()

    def _written(self, batch: "_Batch", sightings: list[Sighting] | None, error: BaseException | None) -> None:
        self._writing -= 1
        if error is not None:
            batch.undo()  # before the next transaction asks which devices already have a row
            if len(batch.entries) > 1 and _is_of_an_entry(error):
                log.warning("journal_batch_split", entries=len(batch.entries), error=str(error))
                self._single.extend(batch.entries)
            else:
                self._refused(batch.entries, is_away=not _is_of_an_entry(error))
        else:
            self._answer(batch.kept)
            for entry in batch.lost:
                entry.exchange.lost(entry)
        if sightings:
            self._on_sightings(sightings)
        if batch.accounted and error is None:
            self._on_accounted(batch.accounted)
        self.flush()

    def _refused(self, entries: list[Answered], *, is_away: bool) -> None:
        """Drop entries that the store did not write. Accounting records go to the spool if the store accepts no writes.
        is_away: whether the store accepts no writes at present."""
        for entry in entries:
            if not (is_away and self._is_taken_by_spool(entry)):
                entry.exchange.abandoned(entry)

    def _is_taken_by_spool(self, entry: Answered) -> bool:
        if self._spool is None or not isinstance(entry, AccountingRecord):
            return False
        return self._spool.add(entry, partial(self._spooled, entry))

    def _spooled(self, entry: AccountingRecord, is_kept: bool) -> None:
        if is_kept:
            self._answer([entry])
        else:
            entry.exchange.abandoned(entry)

    def _answer(self, entries: Sequence[Answered]) -> None:
        now = self._clock()
        for entry in entries:
            try:
                entry.exchange.committed(entry, now)
            except Exception:  # one failure must not prevent the other answers
                log.exception("answer_not_sent", client=entry.arrival.client.name)

    async def drained(self) -> None:
        """Wait until every added entry is written or dropped."""
        while self._entries or self._single or self._writing or (self._spool is not None and self._spool.is_writing):
            await trio.sleep(0.005)

    async def recent(self) -> list[KeptAnswer]:
        """Return the stored answers whose requests may still be retransmitted, oldest first. They are needed after a
        restart."""
        since = self._clock() - self._keep_us
        rows = await self._store.read(
            lambda tx: tx.all(_Packed, "select packed from answers where at >= :since order by id", since=since)
        )
        return [answer for row in rows for answer in unpack(row.packed)]

    async def purge(self) -> None:
        """Delete expired answers every few seconds, until cancelled. Several nodes may do this at the same time."""
        await every(PURGE_S, self._purge, failure="answer_purge_failed")

    async def _purge(self) -> None:
        skew_us, now = SKEW_US if self._cluster and self._cluster.is_shared else 0, self._clock()
        await self._store.write(partial(_purge, before=now - self._keep_us - skew_us, now=now + skew_us))


def _purge(tx: Tx, before: int, now: int) -> int:
    """Delete the answers before the oldest one that is not expired. The table has no index of times, because each batch
    of logins would have to write it. An answer from the future does not count: the clock was set back after it."""
    kept = "coalesce((select id from answers where at >= :at and at <= :now order by id limit 1), :all)"
    return tx.execute(f"delete from answers where id < {kept}", at=before, now=now, all=2**62)  # noqa: S608


class _Batch:
    """The entries of one transaction.

    at: the time when the transaction was created, in microseconds. The lifetime of a stored answer begins at this time,
    not at the arrival of its request. node_id: the node that the events name. as_text: see `Journal`. lost: the logins
    that another node answers. kept: all other entries.
    """

    def __init__(self, entries: list[Answered], at: int, node_id: int, as_text: Callable[[bytes], str]) -> None:
        self.entries = entries
        self.at = at
        self.node_id = node_id
        self._as_text = as_text
        self.kept = entries
        self.lost: list[Login] = []
        self.accounted: Mapping[int, int] = {}
        self._new_devices: list[Device] = []
        self._new_stations: list[Station] = []

    def write(self, tx: Tx) -> list[Sighting]:
        """Write the entries in the given transaction. If the engine undoes the transaction, this method runs again."""
        self.undo()
        try:
            return self._write(tx)
        except BaseException:
            self.undo()  # before the next work in this transaction
            raise

    def _write(self, tx: Tx) -> list[Sighting]:
        """Write devices and stations, then accounting records, then events and answers with the totals of the events.
        Events refer to devices. The totals come last, because other work may wait while this transaction locks
        them."""
        sightings = self._sightings(tx)
        alike, records = self._decided(tx)
        totals: defaultdict[tuple[int, str], int] = defaultdict(int)
        rows: list[NewRows] = []
        has_stations = False
        for logins in alike.values():
            has_stations = has_stations or logins[0].method == Method.MAB
            same = _common(logins[0])
            if self.node_id:
                same["node_id"] = self.node_id
            if _is_short(logins[0]):
                rows.append(NewRows("events", OWN_COLUMNS, [*map(_event, logins)], same))
            else:
                rows.append(NewRows("events", ALL_COLUMNS, [*map(self._long_event, logins)], same))
            totals[_domain_id(logins[0]), COUNTER] += len(logins)
        self.accounted = write_accounting(tx, records) if records else {}
        self.kept = [each for each in self.entries if each not in self.lost] if self.lost else self.entries
        stored = filter(_is_stored, self.kept) if has_stations else self.kept
        rows.append(NewRows("answers", ("at", "packed"), [(self.at, b"".join(map(pack, stored)))]))
        tx.insert_all([*rows, counters.shared(tx, totals)])
        return sightings

    def _decided(self, tx: Tx) -> tuple[Mapping[Hashable, list[Login]], list[AccountingRecord]]:
        """Return the logins that this node answers, by their `_likeness`, and the accounting records. Write what the
        decisions depend on: results of second factors, locks, and the logins of users with a limit of sessions."""
        alike: defaultdict[Hashable, list[Login]] = defaultdict(list)
        records: list[AccountingRecord] = []
        limited: list[tuple[SessionLimit, Login]] = []
        self.lost = []
        for entry in self.entries:
            if isinstance(entry, Login):
                if entry.keep is None or entry.keep(tx) is not False:
                    for write in entry.locks:
                        write(tx, entry.device)
                    if entry.limit is None:
                        alike[_likeness(entry)].append(entry)
                    else:
                        limited.append((entry.limit, entry))
                else:
                    self.lost.append(entry)
            elif isinstance(entry, AccountingRecord):
                records.append(entry)
        for limit, login in sorted(limited, key=lambda each: each[0].place):  # all nodes lock users in the same order
            limit.apply(tx, self.at)
            alike[_likeness(login)].append(login)
        return alike, records

    def _long_event(self, login: Login) -> tuple[Value, ...]:
        sent = login.answer.attributes
        attributes = self._as_text(sent) if sent else ""
        waits = login.waits
        return (
            *_event(login),
            waits.first_us,
            waits.second_us,
            attributes or None,
            login.detail or None,
            *login.recorded,
        )

    def undo(self) -> None:
        """After the transaction has failed, mark its new devices and stations as not stored."""
        for device in self._new_devices:
            device.id = None
        for station in self._new_stations:
            station.stored = False
        self._new_devices, self._new_stations = [], []

    def _sightings(self, tx: Tx) -> list[Sighting]:
        first = [(entry.device, entry.behind) for entry in self.entries if _is_first(entry)]
        if not first:
            return []
        self._new_devices = [device for device, _ in first if device.id is None]
        self._new_stations = [each for _, each in first if each is not None and not each.stored]
        return write_first_sightings(tx, first)


def _is_of_an_entry(error: BaseException) -> bool:
    """Return whether a single entry of the batch may have caused the error. Return False for an error of the store
    itself."""
    return not isinstance(error, StoreError) or isinstance(error, Contradiction)


def _is_first(entry: Answered) -> bool:
    """Return whether the device or the station of an entry is not stored yet."""
    return entry.device.id is None or (entry.behind is not None and not entry.behind.stored)


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


def _is_stored(entry: Answered) -> bool:
    """Return whether an answer is stored for retransmissions after a restart. An answer with a key in clear, which only
    stations get, is not: the request is then decided again."""
    return not (isinstance(entry, Login) and entry.found.keys_in_clear)


def _is_short(login: Login) -> bool:
    """Return whether the event of a login has only the OWN_COLUMNS: the login waited for nothing, its answer has no
    attributes, and there is neither a detail nor a recorded fact."""
    is_plain = login.recorded is NOTHING_RECORDED and not login.detail
    return is_plain and login.waits is NO_WAITS and not login.answer.attributes


def _likeness(login: Login) -> Hashable:
    """Return a key for the `_common` columns of a login. Logins with the same key have the same values in these
    columns. Most logins of a transaction have the same key. Their common values are bound only once, which saves much
    of the time for a login."""
    request, client, domain, rule = login.arrival.request, login.arrival.client, login.domain, login.rule
    first = request.first
    name = first.get(USER_NAME, b"")
    if login.facts is not None or not first.keys().isdisjoint(RECORDED):
        login.recorded = recorded(login)
    return (
        domain and domain.id,
        login.method,
        login.factor,
        login.answer.decision,
        first.get(SERVICE_TYPE),
        login.method == Method.EAP_TLS and _machine(login),
        rule and rule.id,
        login.inner_realm or ((b"@" in name or b"\\" in name) and realm_of(login)),
        request.signed and client.is_single,  # with the next value, this decides `Client.proves`
        client.secret is RADSEC,
        login.role,
        _is_short(login),
    )


def _common(login: Login) -> dict[str, Value]:
    """Return the column values of an event that are bound only once for all logins with the same `_likeness`."""
    decision, applied, would_have_been, reason = login.answer.decision.row
    rule_id, rule_name = (0, "") if login.rule is None else (login.rule.id, login.rule.name)
    role: dict[str, Value] = {}
    if login.role is not None and login.answer.decision.admits:
        role = {"role": login.role.name, "role_source": login.role.source.value}
    return {
        "domain_id": _domain_id(login),
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
        "realm": realm_of(login),
        "claimed": int(not login.arrival.client.proves(login.arrival.request)),
        **role,
    }


def _domain_id(login: Login) -> int:
    return 0 if login.domain is None else login.domain.id


def _machine(login: Login) -> int | None:
    """Return 1 if the certificate shows that the principal is a computer. Otherwise return None, because the form of
    the name decides."""
    return 1 if login.method == Method.EAP_TLS and kind(login) is AccountKind.MACHINE else None


_UNSIGNED: Final = 0x80


@dataclass(frozen=True, slots=True)
class _Packed:
    packed: bytes


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
