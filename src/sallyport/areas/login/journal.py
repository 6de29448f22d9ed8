"""Write decided logins to the store. Their answers are sent only after the commit.

Entries that arrive while a transaction runs are written together in the next one. So a busy service stores hundreds of
logins with one sync to disk, and an idle service stores a single login at once. A login is stored with its answer, so
that a retransmission after a restart gets the same answer. The first sighting of its device and station is stored in
the same transaction.

Transactions are short (`room`), and tenants take turns in them. So thousands of waiting requests of one tenant delay a
request of another tenant by at most two transactions.

If one entry makes a transaction fail, all its entries are written again one by one. Then only the faulty entry gets no
answer.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Final

import structlog
import trio

from sallyport.areas.devices.device import Device, Station
from sallyport.areas.devices.sightings import Sighting, write_first_sightings
from sallyport.areas.events.repo import COUNTER
from sallyport.areas.login.accounting import write_accounting
from sallyport.areas.login.limit import SessionLimit
from sallyport.areas.login.login import AccountingRecord, Answered, Login
from sallyport.areas.login.room import LONG, Room
from sallyport.areas.login.rows import (
    KeptAnswer,
    delete_answers,
    domain_id,
    is_stored,
    likeness,
    newest_answers,
    pack,
    rows_of_events,
    stored_answers,
)
from sallyport.areas.login.spool import Spool
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import Contradiction, StoreError
from sallyport.base.fair import FairQueue
from sallyport.base.trace import following
from sallyport.nodes.service import Cluster
from sallyport.radius.password import Method
from sallyport.store import counters
from sallyport.store.model import NewRows, Store, Tx

log = structlog.get_logger()

SINGLE: Final = 60
"""Maximum number of entries that are written one by one in the same transaction. Each has a savepoint, and PostgreSQL
becomes slow above 64 savepoints."""
PURGE_S = 5.0


class Journal:
    """The writer of decided logins and accounting records.

    on_sightings: a function that is called after a commit with the new devices: those that were stored, and those that
    were not stored because of a limit. on_accounted: a function that is called after a commit with the number of
    accounting records of each Acct-Status-Type. cluster: the membership of this node in the cluster, or None. spool:
    the local file for accounting records while the store accepts no writes, or None. as_text: a function that returns
    the text of encoded attributes, without secrets. It is called in a thread. on_answered: a function that is called
    with answered entries and the time in microseconds, or None.
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
        on_answered: Callable[[Sequence[Answered], int], None] | None = None,
    ) -> None:
        self._store = store
        self._spool = spool
        self._as_text = as_text
        self._on_answered = on_answered
        self._on_sightings = on_sightings
        self._on_accounted = on_accounted
        self._keep_s = keep_answers_s
        self._seen: deque[tuple[float, int]] = deque()  # trio's time when each id was first seen as the newest
        self._clock = clock
        self._cluster = cluster
        self._entries: FairQueue[int, Answered] = FairQueue()
        self._room = Room()
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
            self._submit([self._batch([each], [*filter(_is_first, (each,))], now) for each in taken])
        elif self._entries:
            entries, first, counted = self._take()
            self._submit([self._batch(entries, first, self._clock(), counted)])

    def _batch(self, entries: list[Answered], first: list[Answered], at: int, counted: int = 0) -> "_Batch":
        return _Batch(entries, first, at, self._cluster.id if self._cluster else 0, self._as_text, counted)

    def _submit(self, batches: Sequence["_Batch"]) -> None:
        self._writing = len(batches)
        for batch in batches:
            self._store.submit(batch.write, partial(self._written, batch))

    def _take(self) -> tuple[list[Answered], list[Answered], int]:
        """Remove the entries for the next transaction from the queue. Return them, those of them whose device or
        station is not stored yet, and the number that all count as."""
        entries: list[Answered] = []
        first: list[Answered] = []
        long: set[Device | Station | Answered] = set()
        room = most = self._room.entries
        for entry in self._entries.drain():
            entries.append(entry)
            if entry.device.id is None or ((behind := entry.behind) is not None and not behind.stored):
                first.append(entry)
                long.add(entry.device if entry.behind is None else entry.behind)
                room = most - LONG * len(long)
            elif entry.is_long:
                long.add(entry)
                room = most - LONG * len(long)
            if len(entries) >= room:
                break
        return entries, first, len(entries) + most - room

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
        if batch.counted:
            self._room.note(batch.counted, batch.took_s)
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
        if self._on_answered is not None:
            try:
                self._on_answered(entries, now)
            except Exception:  # the next transaction must begin
                log.exception("spans_not_exported", error="an error of the program")

    async def drained(self) -> None:
        """Wait until every added entry is written or dropped."""
        while self._entries or self._single or self._writing or (self._spool is not None and self._spool.is_writing):
            await trio.sleep(0.005)

    async def recent(self) -> list[KeptAnswer]:
        """Return the stored answers, oldest first. They are needed after a restart. An answer whose request is not
        retransmitted any more is never used."""
        return await self._store.read(stored_answers)

    async def purge(self) -> None:
        """Delete the answers that this process has seen for a whole retention time. The clock of the day may be set at
        any time, so the age of an answer is measured with trio's clock, which only advances."""
        now, newest = trio.current_time(), await self._store.read(newest_answers)
        if self._seen and newest < self._seen[-1][1]:  # the rows were restored: the ids begin anew
            self._seen.clear()
        if newest > (self._seen[-1][1] if self._seen else 0):
            self._seen.append((now, newest))
        last = 0
        while self._seen and self._seen[0][0] <= now - self._keep_s:
            _, last = self._seen.popleft()
        if last:
            await self._store.write(partial(delete_answers, last=last))

    def forget(self) -> None:
        """Forget which answers were seen, because the rows were replaced."""
        self._seen.clear()


class _Batch:
    """The entries of one transaction.

    first: those whose device or station is not stored yet. at: the time when the transaction was created, in
    microseconds. The lifetime of a stored answer begins at this time, not at the arrival of its request. node_id: the
    node that the events name. as_text: see `Journal`. counted: the number that the entries count as (`room`); 0 for an
    entry that is written alone. took_s: the time that the statements took, in seconds. lost: the logins that another
    node answers. kept: all other entries.
    """

    def __init__(
        self,
        entries: list[Answered],
        first: list[Answered],
        at: int,
        node_id: int,
        as_text: Callable[[bytes], str],
        counted: int,
    ) -> None:
        self.entries = entries
        self.counted = counted
        self.took_s = 0.0
        self._first = first
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
        began = perf_counter()
        try:
            return self._write(tx)
        except BaseException:
            self.undo()  # before the next work in this transaction
            raise
        finally:
            self.took_s = perf_counter() - began

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
            rows.append(rows_of_events(logins, self.node_id, self._as_text))
            totals[domain_id(logins[0]), COUNTER] += len(logins)
        self.accounted = write_accounting(tx, records) if records else {}
        self.kept = [each for each in self.entries if each not in self.lost] if self.lost else self.entries
        stored = filter(is_stored, self.kept) if has_stations else self.kept
        rows.append(NewRows("answers", ("at", "packed"), [(self.at, b"".join(map(pack, stored)))]))
        tx.insert_all([*rows, counters.shared(tx, totals)])
        return sightings

    def _decided(self, tx: Tx) -> tuple[Mapping[Hashable, list[Login]], list[AccountingRecord]]:
        """Return the logins that this node answers, by their `likeness`, and the accounting records. Write what the
        decisions depend on: results of second factors, locks, and the logins of users with a limit of sessions."""
        alike: defaultdict[Hashable, list[Login]] = defaultdict(list)
        records: list[AccountingRecord] = []
        limited: list[tuple[SessionLimit, Login]] = []
        self.lost = []
        for entry in self.entries:
            if isinstance(entry, Login):
                if _is_ours(tx, entry):
                    if entry.limit is None:
                        alike[likeness(entry)].append(entry)
                    else:
                        limited.append((entry.limit, entry))
                else:
                    self.lost.append(entry)
            elif isinstance(entry, AccountingRecord):
                records.append(entry)
        # All nodes lock users in the same order.
        for limit, login in sorted(limited, key=lambda each: each[0].user_key):
            limit.apply(tx, self.at)
            alike[likeness(login)].append(login)
        return alike, records

    def undo(self) -> None:
        """After the transaction has failed, mark its new devices and stations as not stored."""
        for device in self._new_devices:
            device.id = None
        for station in self._new_stations:
            station.stored = False
        self._new_devices, self._new_stations = [], []

    def _sightings(self, tx: Tx) -> list[Sighting]:
        first = [(entry.device, entry.behind) for entry in self._first if _is_first(entry)]
        if not first:
            return []
        self._new_devices = [device for device, _ in first if device.id is None]
        self._new_stations = [each for _, each in first if each is not None and not each.stored]
        return write_first_sightings(tx, first)


def _is_ours(tx: Tx, login: Login) -> bool:
    """Write what belongs to a login beside its event, in the trace of the login. Return False if another node answers
    the login."""
    if login.keep is None and not login.locks:
        return True
    with following(login.trace):
        if login.keep is not None and login.keep(tx) is False:
            return False
        for write in login.locks:
            write(tx, login.device)
    return True


def _is_of_an_entry(error: BaseException) -> bool:
    """Return whether a single entry of the batch may have caused the error. Return False for an error of the store
    itself."""
    return not isinstance(error, StoreError) or isinstance(error, Contradiction)


def _is_first(entry: Answered) -> bool:
    """Return whether the device or the station of an entry is not stored yet."""
    return entry.device.id is None or (entry.behind is not None and not entry.behind.stored)
