"""Accounting records that the database did not accept. They stay on the local disk until the database accepts records
again.

A NAS that gets no Accounting-Response gives up after a while, and its record is lost. So the record is written to a
small SQLite database (`SpoolFile`), and the response is sent when it is on disk. After a crash in the middle of a
write, SQLite restores the state before that write; no answer was sent for those records.

Later, a task stores the records in order. Each transaction also stores the number of its last record. So no record is
stored twice, even if the service crashes after the transaction, before the file is removed. A new file has a new name,
so that a number is never used twice with the same name.
"""

import errno
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_hex
from struct import Struct
from typing import Final

import structlog
import trio

from sallyport.areas.devices.device import Device, Station
from sallyport.areas.devices.sightings import Sighting, new_device, write_first_sightings
from sallyport.areas.login.accounting import attributes_of, write_accounting
from sallyport.areas.login.login import AccountingRecord
from sallyport.areas.sessions.report import Report
from sallyport.base.errors import Contradiction, SallyportError, StoreError
from sallyport.host import disk
from sallyport.metrics import SpoolMetrics
from sallyport.radius.packet import Request, peek
from sallyport.store.model import Engine, T, Tx, Work, listed

MAX_RECORDS: Final = 256
"""Maximum number of records in one transaction."""
LOOK_S: Final = 0.5
_HEAD: Final = Struct("!QqqB")  # time of arrival, domain, tenant, length of the host
_STATE: Final = (
    "select name, (select count(*) from records), (select quick_check from pragma_quick_check(1)), "
    "page_count * page_size from spool, pragma_page_count, pragma_page_size"
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Record:
    at: int
    domain_id: int
    device: Device
    request: Request
    report: Report


class DamagedSpoolError(OSError):
    """The error for a file that is no database, or a damaged one."""


@dataclass(frozen=True, slots=True)
class SpooledRecord:
    """A record in the file."""

    sequence: int
    payload: bytes


def paths_of(directory: Path, worker: str, workers: int) -> tuple[Path, list[Path]]:
    """Return the path of a worker's file, and the paths of left files, whose workers do not run any more. Only the
    first worker gets left files.

    worker: the number of the worker, or empty if there is only one process. workers: the number of workers that run.
    """
    own = directory / f"accounting{worker and '-'}{worker}.spool"
    running = {own, *(directory / f"accounting-{each}.spool" for each in range(1, workers + 1) if worker)}
    return own, sorted({*directory.glob("accounting*.spool")} - running) if worker in {"", "1"} else []


class SpoolFile:
    """The file of spooled records. It does not exist while there are no records. Only one thread may use it at a time.

    name: the random name in the file. records: the number of records that were not removed. size: the size of the file,
    in octets.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.name = ""
        self.records = 0
        self.size = 0
        self._removed = 0  # sequence number of the last removed record
        self._appended = 0

    def open(self) -> None:
        """Find the records that an earlier process has left. Rename a damaged file. Raises OSError."""
        if not self._path.exists():
            return
        name, records, size = "", 0, 0
        try:
            with self._transaction() as database:
                if database.execute("select 1 from sqlite_schema").fetchone():
                    name, records, check, size = database.execute(_STATE).fetchone() or ("", 0, "no name", 0)
                    if check != "ok" or size != self._path.stat().st_size:
                        raise DamagedSpoolError
        except DamagedSpoolError:
            log.error("accounting_spool_damaged", path=str(self._path))  # noqa: TRY400  the cause is outside
            self._path.rename(self._path.with_suffix(".damaged"))
            return
        self.name, self.size, self.records, self._appended = name, size, records, records
        if not records:
            self._delete()  # the process crashed before the first records were written

    def append(self, payloads: Sequence[bytes]) -> None:
        """Write records to the disk, and wait until they are there. If it raises OSError, none of them was added."""
        name = self.name or token_hex(16)
        if not self.name:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, disk.PRIVATE))
        with self._transaction() as database:
            if not self.name:
                database.execute("create table if not exists spool (name text not null)")
                database.execute("create table if not exists records (sequence integer primary key, payload blob)")
                database.execute("delete from spool")
                database.execute("insert into spool values (?)", [name])
            # A write that failed at its end may be on disk all the same. It got no answer.
            database.execute("delete from records where sequence > ?", [self._appended])
            database.executemany("insert into records values (?, ?)", enumerate(payloads, self._appended + 1))
        self.name = name
        self._appended += len(payloads)
        self.records += len(payloads)
        self.size = self._path.stat().st_size

    def read(self, most: int) -> list[SpooledRecord]:
        """Return the next records, at most `most`. Raises OSError."""
        # Without the upper limit, records of a write that failed at its end would be read too.
        sql = "select sequence, payload from records where sequence > ? and sequence <= ? order by sequence limit ?"
        with self._transaction() as database:
            return [SpooledRecord(*row) for row in database.execute(sql, [self._removed, self._appended, most])]

    def remove(self, records: Sequence[SpooledRecord]) -> bool:
        """Remove records that `read` has returned. Return whether the spool is empty now. Raises OSError.

        The file is deleted with the last record, and not changed before, because a full disk must not stop it.
        """
        self._removed = records[-1].sequence
        self.records -= len(records)
        if self.records:
            return False
        self._delete()
        return True

    def _delete(self) -> None:
        self._path.unlink()
        self.name, self.size, self._removed, self._appended = "", 0, 0, 0
        disk.sync(self._path.parent)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction. Commit at the end, and wait until the commit is on disk. Raises
        OSError."""
        try:
            with closing(sqlite3.connect(self._path, isolation_level=None)) as database:
                database.execute("pragma synchronous = extra")  # the journal's deletion is on disk too
                database.execute("begin")
                yield database
                database.execute("commit")
        except sqlite3.Error as error:
            is_damaged = error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
            kind = DamagedSpoolError if is_damaged else OSError
            raise kind(errno.EIO, str(error), str(self._path)) from error


class Spool:
    """The spooled accounting records of this node. `run` must be running while records are added.

    limit: the maximum size of the file in octets; if 0, no record is added. on_sightings, on_accounted: see `Journal`.
    left: the files of workers that do not run any more. Their records are stored first.
    """

    def __init__(
        self,
        store: Engine,
        path: Path,
        limit: int,
        metrics: SpoolMetrics,
        on_sightings: Callable[[list[Sighting]], None],
        on_accounted: Callable[[Mapping[int, int]], None],
        left: Sequence[Path] = (),
    ) -> None:
        self._store = store
        self._file = SpoolFile(path)
        self._files = [*map(SpoolFile, left), self._file]
        self.limit = limit
        self._metrics = metrics
        self._on_sightings = on_sightings
        self._on_accounted = on_accounted
        self._added: list[tuple[bytes, Callable[[bool], None]]] = []
        self._added_octets = 0
        self._using = trio.Lock()  # hold this lock to use a file
        self._wake = trio.Event()
        self.is_writing = False
        metrics.watch(self._waiting, lambda: sum(each.size for each in self._files))

    def add(self, record: AccountingRecord, done: Callable[[bool], None]) -> bool:
        """Add a record. Return False if the spool is full.

        done: a function that is called on the event loop with True if the record is on disk, or False if writing
        failed.
        """
        payload = _pack(record)
        if self._file.size + self._added_octets + len(payload) > self.limit:
            self._metrics.records.cell("dropped").count += 1
            return False
        self._added.append((payload, done))
        self._added_octets += len(payload)
        self.is_writing = True
        self._wake.set()
        return True

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write the added records to the file, and store them when the database accepts writes, until cancelled. Raises
        OSError."""
        for each in self._files:
            await trio.to_thread.run_sync(each.open)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write_added)
            nursery.start_soon(self._deliver_all)
            task_status.started()

    def _waiting(self) -> int:
        return sum(each.records for each in self._files)

    async def _write_added(self) -> None:
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            added, self._added = self._added, []
            try:
                async with self._using:
                    await trio.to_thread.run_sync(self._file.append, [payload for payload, _ in added])
                is_kept = True
            except OSError as error:
                log.error("accounting_not_spooled", error=str(error))  # noqa: TRY400  the cause is outside
                is_kept = False
            self._added_octets = sum(len(payload) for payload, _ in self._added)
            self._metrics.records.cell("spooled" if is_kept else "dropped").count += len(added)
            for _, done in added:
                done(is_kept)
            self.is_writing = bool(self._added)

    async def _deliver_all(self) -> None:
        while True:
            file = next((each for each in self._files if each.records), None)
            if file is not None and self._store.ready:
                try:
                    await self._deliver(file)
                    continue
                except (SallyportError, OSError) as error:
                    log.warning("accounting_spool_waits", records=self._waiting(), error=str(error))
            await trio.sleep(LOOK_S)

    async def _deliver(self, file: SpoolFile) -> None:
        """Store the next records of a file. After the last record, remove the file."""
        async with self._using:
            spooled = await trio.to_thread.run_sync(file.read, MAX_RECORDS)
        name = file.name
        await self._store_spooled(name, spooled)
        self._metrics.records.cell("delivered").count += len(spooled)
        async with self._using:
            is_removed = await trio.to_thread.run_sync(file.remove, spooled)
        if is_removed:
            log.info("accounting_spool_delivered")
            await self._submitted(lambda tx: tx.execute("delete from spool_places where name = :name", name=name))

    async def _store_spooled(self, name: str, spooled: Sequence[SpooledRecord]) -> None:
        """Store records in one transaction. If one record makes the transaction fail, store the records one by one.
        name: the name of the file from which the records come. Raises StoreError."""
        try:
            sightings, accounted = await self._submitted(partial(_store, name=name, spooled=spooled))
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, Contradiction):
                raise
            if len(spooled) == 1:
                log.error("spooled_record_refused", error=str(error))  # noqa: TRY400  the record is at fault
                self._metrics.records.cell("dropped").count += 1
                return
            for each in spooled:
                await self._store_spooled(name, [each])
        else:
            self._on_sightings(sightings)
            self._on_accounted(accounted)

    async def _submitted(self, work: Work[T]) -> T:
        """Run `work` in the store, in the same queue as the journal's transactions, so that the records of a session
        keep their order."""
        finished = trio.Event()
        results: list[tuple[T | None, BaseException | None]] = []

        def done(result: T | None, error: BaseException | None) -> None:
            results.append((result, error))
            finished.set()

        self._store.submit(work, done)
        await finished.wait()
        result, error = results[0]
        if error is not None:
            raise error
        return result  # type: ignore[return-value]  # without an error there is a result


def _pack(record: AccountingRecord) -> bytes:
    request, client, source, at, _ = record.arrival
    host = source[0].encode()
    return _HEAD.pack(at, record.domain_id, client.tenant_id, len(host)) + host + request.data


def _store(tx: Tx, name: str, spooled: Sequence[SpooledRecord]) -> tuple[list[Sighting], Counter[int]]:
    """Store those records that are not in the store, and the sequence number of the last record."""
    last_stored = tx.value(int, "select sequence from spool_places where name = :name", name=name) or 0
    records, seen = _unpacked([each.payload for each in spooled if each.sequence > last_stored])
    sightings = write_first_sightings(tx, seen)
    accounted = write_accounting(tx, _unknown(tx, records)) if records else Counter[int]()
    tx.execute(
        "insert into spool_places (name, sequence) values (:name, :sequence) on conflict (name) do update set "
        "sequence = case when excluded.sequence > spool_places.sequence then excluded.sequence "
        "else spool_places.sequence end",
        name=name,
        sequence=spooled[-1].sequence,
    )
    return sightings, accounted


def _unpacked(payloads: Sequence[bytes]) -> tuple[list[_Record], list[tuple[Device, Station | None]]]:
    """Decode records. Also return the device of each record, and the station behind the device."""
    devices: dict[Hashable, Device] = {}
    records, seen = [], list[tuple[Device, Station | None]]()
    for payload in payloads:
        at, domain_id, tenant_id, size = _HEAD.unpack_from(payload)
        host = payload[_HEAD.size : _HEAD.size + size].decode()
        request = peek(payload[_HEAD.size + size :])
        report, found = Report(request, at), new_device(request, host, domain_id, at)
        found.tenant_id = tenant_id
        key = domain_id, found.ip_address, found.client_ip, found.nas_identifier
        device = devices.setdefault(key, found)
        records.append(_Record(at, domain_id, device, request, report))
        seen.append((device, Station(device, report.station, report.user, at) if report.station else None))
    return records, seen


def _unknown(tx: Tx, records: Sequence[_Record]) -> list[_Record]:
    """Return those records that are not in the store. The others were stored by the journal, although the journal got
    no answer to its COMMIT."""
    rows = tx.rows(
        "select domain_id, at, attributes from accounting_records where "
        "domain_id in (select cast(value as bigint) from json_each(:domains)) and "
        "at in (select cast(value as bigint) from json_each(:times))",
        domains=listed({each.domain_id for each in records}),
        times=listed({each.at for each in records}),
    )
    known = {(domain_id, at, bytes(attributes)) for domain_id, at, attributes in rows if isinstance(attributes, bytes)}
    return [each for each in records if (each.domain_id, each.at, attributes_of(each)) not in known]
