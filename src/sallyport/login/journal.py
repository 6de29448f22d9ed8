"""The journal stores decided logins, and only then has their answers sent.

Entries that arrive while a transaction runs are collected for the next one. So a busy service writes hundreds of logins
with one sync to disk, and an idle service writes a single login at once. Each login is stored with the first sighting
of its device and station, and with its answer in octets, so that a retransmission after a restart gets the same answer.

Tenants take turns in each transaction, and a transaction is short: thousands of waiting requests of one tenant delay
those of another tenant by at most two transactions.

If an entry makes its transaction fail, all entries of the transaction are written again one by one. Then only the
faulty entries get no answer.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

import structlog
import trio

from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import Contradiction, StoreError
from sallyport.base.fair import FairQueue
from sallyport.base.periodic import every
from sallyport.events.repo import COUNTER
from sallyport.inventory.devices.device import Device, Station
from sallyport.inventory.devices.sightings import Refused, Registered, write_first_sightings
from sallyport.inventory.sessions.report import OF_DEVICE
from sallyport.login.accounting import write_accounting
from sallyport.login.identity import kind
from sallyport.login.login import AccountingRecord, Answered, Login
from sallyport.login.spool import Spool
from sallyport.nodes.service import Cluster
from sallyport.policy.rules.rule import Kind
from sallyport.radius.attributes import SERVICE_TYPE
from sallyport.radius.duplicates import Source
from sallyport.radius.password import Method
from sallyport.store import counters
from sallyport.store.model import Store, Tx, Value

log = structlog.get_logger()

MOST: Final = 1000
"""Maximum number of entries in a transaction. Each device or station that the store does not know yet, and each record
that ends all sessions of its device, counts as `LONG` further entries."""
LONG: Final = 16
SINGLE: Final = 60
"""Maximum number of entries that are written one by one at the same time. Each has a savepoint, and PostgreSQL becomes
slow above 64 savepoints."""
PURGE_S = 5.0
SKEW_US: Final = 180 * SECOND
"""Maximum difference between the clocks of two nodes. It is taken into account so that no node deletes answers that
another node still needs."""

OWN_COLUMNS = ("at", "user_name", "ip_address", "client_ip", "device_id", "device_name", "station", "latency_us")


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer that was stored before a restart. listener: the number of the exchange. signed: whether the request was
    signed."""

    listener: int
    source: Source
    identifier: int
    authenticator: bytes
    reply: bytes
    signed: bool


class Journal:
    """Writes decided logins and accounting records.

    on_sightings: called after a commit with the devices that got their row, and with those beyond a limit.
    on_accounted: called after a commit with the number of accounting records of each Acct-Status-Type. cluster: this
    node as a member of the cluster; None if the journal is used without one. spool: keeps the accounting records that
    the store does not accept.
    """

    def __init__(
        self,
        store: Store,
        on_sightings: Callable[[list[Registered | Refused]], None],
        on_accounted: Callable[[Mapping[int, int]], None],
        *,
        keep_answers_s: float,
        clock: Clock = now_us,
        cluster: Cluster | None = None,
        spool: Spool | None = None,
    ) -> None:
        self._store = store
        self._spool = spool
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
        """Add an entry to the next transaction. After the transaction, the entry's exchange is called. Call `flush`
        after this method."""
        self._entries.put(entry.client.tenant_id, entry)

    def flush(self) -> None:
        """Submit the added entries to the store. While a transaction runs, they are collected for the next one."""
        if self._writing:
            return
        if self._single:
            single, now = self._single, self._clock()
            taken = [single.popleft() for _ in range(min(SINGLE, len(single)))]
            self._submit([_Batch([each], now, self._node_id()) for each in taken])
        elif self._entries:
            self._submit([_Batch(self._take(), self._clock(), self._node_id())])

    def _node_id(self) -> int:
        return self._cluster.id if self._cluster else 0

    def _submit(self, batches: Sequence["_Batch"]) -> None:
        self._writing = len(batches)
        for batch in batches:
            self._store.submit(batch.write, partial(self._written, batch))

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
        """Call `flush` after the tasks that can run now. If these tasks decide logins, the logins then share a
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
        """Drop entries that the store did not write. is_away: whether the store accepts no writes at present."""
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
                log.exception("answer_not_sent", client=entry.client.name)

    async def drained(self) -> None:
        """Return when no entry waits any more."""
        while self._entries or self._single or self._writing or (self._spool is not None and self._spool.is_writing):
            await trio.sleep(0.005)

    async def recent(self) -> list[KeptAnswer]:
        """Return the stored answers that are still needed for retransmissions, oldest first."""
        since = self._clock() - self._keep_us
        rows = await self._store.read(
            lambda tx: tx.all(_Packed, "select packed from answers where at >= :since order by id", since=since)
        )
        return [answer for row in rows for answer in unpack(row.packed)]

    async def purge(self) -> None:
        """Delete expired answers every few seconds, until cancelled. Two nodes may delete at the same time."""
        await every(PURGE_S, self._purge, failure="answer_purge_failed")

    async def _purge(self) -> None:
        skew_us = SKEW_US if self._cluster and self._cluster.is_shared else 0
        await self._store.write(partial(_purge, before=self._clock() - self._keep_us - skew_us))


def _purge(tx: Tx, before: int) -> int:
    return tx.execute("delete from answers where at < :at", at=before)


class _Batch:
    """The content of one transaction. at: the start of the transaction in microseconds. The retention of its answers
    begins then, however long their requests have waited. node_id: the node of its events. lost: the logins that another
    node answers. kept: all other entries."""

    def __init__(self, entries: list[Answered], at: int, node_id: int) -> None:
        self.entries = entries
        self.at = at
        self.node_id = node_id
        self.kept = entries
        self.lost: list[Login] = []
        self.accounted: Counter[int] = Counter()
        self._new_devices: list[Device] = []
        self._new_stations: list[Station] = []

    def write(self, tx: Tx) -> list[Registered | Refused]:
        """Write the entries. This method runs again if the engine has undone its transaction."""
        self.undo()
        try:
            return self._write(tx)
        except BaseException:
            self.undo()  # before the next work in this transaction
            raise

    def _write(self, tx: Tx) -> list[Registered | Refused]:
        """Write devices and stations first, because events refer to them. Write totals late, because other nodes wait
        for their rows."""
        sightings = self._sightings(tx)
        alike: defaultdict[Hashable, list[Login]] = defaultdict(list)
        records: list[AccountingRecord] = []
        self.lost = []
        for entry in self.entries:
            if isinstance(entry, Login):
                if entry.keep is None or entry.keep(tx) is not False:
                    alike[_likeness(entry)].append(entry)
                else:
                    self.lost.append(entry)
            elif isinstance(entry, AccountingRecord):
                records.append(entry)
        totals: Counter[tuple[int, str]] = Counter()
        for logins in alike.values():
            same = _common(logins[0])
            if self.node_id:
                same["node_id"] = self.node_id
            tx.insert("events", OWN_COLUMNS, map(_event, logins), same=same)
            totals[_domain_id(logins[0]), COUNTER] += len(logins)
        self.accounted = write_accounting(tx, records) if records else Counter()
        counters.add_share(tx, totals)
        self.kept = [each for each in self.entries if each not in self.lost] if self.lost else self.entries
        tx.insert("answers", ("at", "packed"), [(self.at, b"".join(map(pack, self.kept)))])
        return sightings

    def undo(self) -> None:
        """Mark the devices and stations of a failed transaction as not stored again."""
        for device in self._new_devices:
            device.id = None
        for station in self._new_stations:
            station.stored = False
        self._new_devices, self._new_stations = [], []

    def _sightings(self, tx: Tx) -> list[Registered | Refused]:
        first = [(entry.device, entry.behind) for entry in self.entries if _is_first(entry)]
        if not first:
            return []
        self._new_devices = [device for device, _ in first if device.id is None]
        self._new_stations = [each for _, each in first if each is not None and not each.stored]
        return write_first_sightings(tx, first)


def _is_of_an_entry(error: BaseException) -> bool:
    """Return whether an entry of the batch caused the error, and not the store itself."""
    return not isinstance(error, StoreError) or isinstance(error, Contradiction)


def _is_first(entry: Answered) -> bool:
    """Return whether the device or the station of the entry is not in the store yet."""
    return entry.device.id is None or (entry.behind is not None and not entry.behind.stored)


def _event(login: Login) -> tuple[Value, ...]:
    """Return the values of OWN_COLUMNS."""
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
    """Return a key that is equal for logins with the same `_common` columns. Most logins of a transaction share them,
    and binding fewer values saves much of a login's time."""
    service_type = login.request.first.get(SERVICE_TYPE)
    return _domain_id(login), login.method, login.factor, login.decision, service_type, _machine(login)


def _common(login: Login) -> dict[str, Value]:
    """Return the columns of an event that similar logins share."""
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
    """Return 1 for a computer if its name does not show that it is a computer. Otherwise return None."""
    return 1 if login.method == Method.EAP_TLS and kind(login) is Kind.MACHINE else None


_UNSIGNED: Final = 0x80


@dataclass(frozen=True, slots=True)
class _Packed:
    packed: bytes


def pack(entry: Answered) -> bytes:
    """Return an answer in packed form. Its parts are: listener, port, length of host, host, length of own address, own
    address, request authenticator, reply. The reply contains its own length. The highest bit of the listener is set for
    an unsigned request."""
    listener = entry.exchange.number | (0 if entry.known.signed else _UNSIGNED)
    return _packed_source(listener, entry.source) + entry.request.authenticator + entry.reply


@lru_cache(4096)
def _packed_source(listener: int, source: Source) -> bytes:
    name, port, own = source[0].encode(), source[1], source[2] if len(source) == 3 else b""
    head = bytes((listener, port >> 8, port & 0xFF, len(name))) + name
    return head + bytes((len(own),)) + own


def unpack(packed: bytes) -> list[KeptAnswer]:
    """Return the answers that a row of `answers` contains."""
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
