"""The service for sessions: it applies accounting records, reads pages, and ends sessions that have had no record for
too long."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

import structlog
import trio

from sallyport.areas.sessions import repo
from sallyport.areas.sessions.repo import Key, Restart
from sallyport.areas.sessions.report import OF_DEVICE, Report, Status
from sallyport.areas.sessions.session import Session, SessionQuery, SessionRow
from sallyport.base.clock import Clock, now_us
from sallyport.base.errors import NotFound
from sallyport.metrics import SessionMetrics
from sallyport.nodes.periodic import every
from sallyport.store.model import Store, Tx

COUNT_S = 5.0
SILENT_S = 600.0
SHORT_READ = 100  # maximum rows of a page that is read on the event loop
CHUNK = 500  # maximum sessions that end in one transaction
_LABELS: Final[dict[int, str]] = {
    Status.START: "start",
    Status.STOP: "stop",
    Status.INTERIM: "interim",
    Status.ON: "on",
    Status.OFF: "off",
}

log = structlog.get_logger()


class Record(NamedTuple):
    """An accounting record and its device. device_id: the id of the device, or 0 if the device has no row."""

    domain_id: int
    device_id: int
    report: Report


def write_records(tx: Tx, records: Iterable[Record]) -> list[bool]:
    """Update the sessions with accounting records, in the transaction that stores the records. For each record, return
    whether it must be stored.

    If a record was already applied, and the device has sent it again, it is not stored again.
    """
    fresh: list[bool] = []
    for ends_all, group in groupby(records, key=_ends_all):
        part = list(group)
        if ends_all:
            for record in filter(lambda record: record.device_id, part):
                repo.restart(tx, Restart(record.device_id, record.domain_id, record.report.at))
            fresh += [True] * len(part)
        else:
            fresh += _take_in(tx, part)
    return fresh


def _ends_all(record: Record) -> bool:
    """Return whether the device restarts or shuts down (Accounting-On, Accounting-Off: RFC 2866 section 5.1)."""
    return record.report.status in OF_DEVICE


def _take_in(tx: Tx, records: Sequence[Record]) -> list[bool]:
    """Apply records to their sessions. A record belongs to a session if it has a device and an Acct-Session-Id."""
    keys: list[Key] = [(record.device_id, record.report.session_id) for record in records]
    sessions = repo.newest(tx, {key for key in keys if key[0] > 0 and key[1]})
    changed: dict[Key, Session] = {}  # in the order of the records
    fresh = []
    for record, key in zip(records, keys, strict=True):
        report, session = record.report, sessions.get(key)
        if session is None:
            if not (key[0] > 0 and key[1]):
                fresh.append(True)
                continue
            session = _begun_elsewhere(tx, sessions, key, report) or _new_session(record)
            sessions[key] = session
        elif session.is_over_for(report):
            session.give_up()
            repo.supersede(tx, session)
            changed.pop(own := (session.device_id, session.acct_session_id), None)
            sessions.pop(own, None)
            session = sessions[key] = _new_session(record, follows=True)
        elif session.is_foreign(report):
            fresh.append(True)
            continue
        changed[session.device_id, session.acct_session_id] = session
        fresh.append(session.take_in(report))
    repo.put(tx, changed.values())
    return fresh


def _begun_elsewhere(tx: Tx, sessions: dict[Key, Session], key: Key, report: Report) -> Session | None:
    """Return the session that a record without a session continues, or None. The session began at a device that may be
    the same NAS, see `repo.siblings`. If there are several such sessions, none is continued.

    sessions: the sessions that the transaction has read so far; more are added.
    """
    if report.status == Status.START:
        return None
    keys = [(device_id, key[1]) for device_id in repo.siblings(tx, key[0])]
    sessions |= repo.newest(tx, [each for each in keys if each not in sessions])
    found = {id(each): each for each in map(sessions.get, keys) if each is not None and each.is_continued_by(report)}
    return next(iter(found.values())) if len(found) == 1 else None


def _new_session(record: Record, *, follows: bool = False) -> Session:
    report = record.report
    return Session(record.domain_id, record.device_id, report.session_id, started=report.begun, follows=follows)


class Sessions:
    """The sessions of all domains."""

    def __init__(self, store: Store, metrics: SessionMetrics, clock: Clock = now_us) -> None:
        self._store = store
        self._metrics = metrics
        self._clock = clock
        self._live: dict[int, int] = {}
        metrics.watch(lambda: {(str(domain_id),): float(count) for domain_id, count in tuple(self._live.items())})

    async def page(self, query: SessionQuery) -> tuple[list[SessionRow], int]:
        """Return one page of a domain's sessions, newest first, and the number of all matches."""
        is_short = query.is_whole and query.offset + query.limit <= SHORT_READ
        read = self._store.read_now if is_short else self._store.search
        return await read(lambda tx: repo.page(tx, query))

    async def domain_of(self, session_id: int) -> int:
        """Return the domain of a session. Raises NotFound."""
        domain_id = await self._store.read(lambda tx: repo.domain_of(tx, session_id))
        if domain_id is None:
            raise NotFound("session not found")
        return domain_id

    def count_records(self, statuses: Mapping[int, int]) -> None:
        """Add stored records to the counters of the metrics. statuses: the number of records by Acct-Status-Type."""
        for status, count in statuses.items():
            self._metrics.records.cell(_LABELS.get(status, "other")).count += count

    async def end_silent(self) -> int:
        """End the live sessions that have had no record for too long, and return their number. Raises StoreError."""
        now, ended = self._clock(), 0
        for domain_id, count in (await self._store.read(repo.live)).items():
            while count and (
                ids := await self._store.search(partial(repo.silent, domain_id=domain_id, now=now, limit=CHUNK))
            ):
                ended += await self._store.write(partial(repo.end_silent, domain_id=domain_id, ids=ids, now=now))
        return ended

    async def end_restarted(self) -> None:
        """End the remaining sessions of restarted devices. Raises StoreError."""
        while found := await self._store.read(repo.restarts):
            for each in found:
                await self._store.write(partial(repo.end_more, begun=each, limit=CHUNK))

    async def run(self) -> None:
        """Count live sessions for the metrics, until cancelled."""
        await every(COUNT_S, self._count, failure="session_count_failed")

    async def end(self) -> None:
        """End the sessions that have had no record for too long, and the sessions of restarted devices, until
        cancelled.

        If two nodes do this at the same time, each session still ends only once.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(every, COUNT_S, self.end_restarted, failure="restarted_sessions_not_ended"))
            nursery.start_soon(partial(every, SILENT_S, self._end_silent, failure="silent_sessions_not_ended"))

    async def _count(self) -> None:
        self._live = await self._store.read(repo.live)

    async def _end_silent(self) -> None:
        if ended := await self.end_silent():
            log.info("silent_sessions_ended", sessions=ended)
