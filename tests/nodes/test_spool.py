"""Accounting records while the database is away."""

import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.areas.clients.client import Client
from sallyport.areas.login.journal import Journal
from sallyport.areas.login.login import AccountingRecord
from sallyport.areas.login.spool import Spool
from sallyport.areas.policy.attempt import Arrival
from sallyport.base.errors import StoreError
from sallyport.metrics import SpoolMetrics
from sallyport.radius.duplicates import Entry
from sallyport.store.model import Done, T, Work
from sallyport.store.postgres.engine import PostgresStore
from tests.areas import Areas, SetClock, keep_files_in
from tests.areas.login.conftest import SOURCE, Answers
from tests.packets import accounting, attributes, opened
from tests.peers.postgres import needs_postgres
from tests.waiting import until

pytestmark = needs_postgres


@dataclass
class Away:
    """A store that a test makes fail. after: whether a failing write is kept, and only its answer lost."""

    store: PostgresStore
    is_away: bool = True
    after: bool = False
    is_shared: bool = True

    @property
    def ready(self) -> bool:
        """Return whether writes are kept."""
        return not self.is_away

    def submit(self, work: Work[T], done: Done[T]) -> None:
        """Write, or fail."""
        if self.is_away and not self.after:
            done(None, StoreError("away"))
        elif self.is_away:
            self.store.submit(work, lambda _result, _error: done(None, StoreError("the answer is lost")))
        else:
            self.store.submit(work, done)


@dataclass
class Nas:
    """A NAS that sends accounting, and the spool and the journal of its node."""

    areas: Areas
    client: Client
    away: Away
    spool: Spool
    journal: Journal
    answers: Answers = field(default_factory=Answers)

    def send(self, *numbers: int, session: bool = True) -> None:
        """Send records with these numbers."""
        for number in numbers:
            body = attributes(
                ACCT_STATUS_TYPE=(1).to_bytes(4),
                ACCT_SESSION_ID=b"s%d" % number if session else b"",
                USER_NAME=b"ann",
                CALLING_STATION_ID=b"02-%d" % number,
                NAS_IDENTIFIER=b"switch-1",
            )
            request = opened(accounting(body))
            known = Entry((SOURCE, request.identifier), request.authenticator)
            at = self.areas.clock() + number
            record = AccountingRecord(Arrival(request, self.client, SOURCE, at), self.answers, known)
            record.domain_id = self.areas.domain
            record.device = self.areas.devices.sightings.device(request, SOURCE[0], self.client, record.domain_id, at)
            record.behind = self.areas.devices.sightings.station(record.device, record.report.station, "ann", at)
            record.reply = b"\x05"
            self.journal.add(record)
        self.journal.flush()

    async def stations(self) -> list[str]:
        """Return the stations of the stored records, in the order of their ids."""
        return await self.away.store.read(
            lambda tx: tx.all(lambda station: station, "select station from accounting_records order by id")
        )

    async def everything_stored(self) -> None:
        """Wait until the spool is empty."""
        path = self.areas.settings.data_dir / "accounting.spool"
        await until(lambda: not path.exists())

    async def places(self) -> int:
        """Return the number of the rows that tell what is stored of a spool."""
        return await self.away.store.read(lambda tx: tx.value(int, "select count(*) from spool_places") or 0)


def spool_of(
    areas: Areas, away: Away, limit: int = 1 << 20, path: Path | None = None, left: Sequence[Path] = ()
) -> Spool:
    """Return the spool of a new process."""
    ignored = SpoolMetrics(CollectorRegistry())
    file = path or areas.settings.data_dir / "accounting.spool"
    return Spool(away, file, limit, ignored, lambda _: None, lambda _: None, left)  # type: ignore[arg-type]


def nas_of(areas: Areas, client: Client, away: Away, spool: Spool) -> Nas:
    """Return a NAS of a node."""
    journal = Journal(
        away, lambda _: None, lambda _: None, keep_answers_s=30, clock=areas.clock, spool=spool, as_text=bytes.hex
    )  # type: ignore[arg-type]
    return Nas(areas, client, away, spool, journal)


@pytest.fixture
async def nas(store: PostgresStore, tmp_path: Path) -> AsyncIterator[Nas]:
    """Yield a NAS of a node whose database is away."""
    keep_files_in(store, tmp_path)
    areas = Areas(store, SetClock())
    await areas.prepare()
    away = Away(store)
    spool = spool_of(areas, away)
    async with trio.open_nursery() as nursery:
        await nursery.start(spool.run)
        yield nas_of(areas, await areas.client("192.0.2.1/32"), away, spool)
        nursery.cancel_scope.cancel()


async def test_records_wait_on_disk_and_are_stored_once(nas: Nas) -> None:
    """Records are answered while the database is away. When it is back, each is stored once, in order, with its device
    and its session, and nothing is left."""
    nas.send(*range(1, 4))
    await until(lambda: len(nas.answers.sent) == 3)
    nas.send(*range(4, 301))
    await until(lambda: len(nas.answers.sent) == 300)
    assert await nas.stations() == []
    nas.away.is_away = False
    await nas.everything_stored()
    assert await nas.stations() == [f"02-{number}" for number in range(1, 301)]
    await until(lambda: _equals(nas.places, 0))
    counts = "select (select count(*) from devices), (select count(*) from sessions), (select count(*) from stations)"
    assert await nas.away.store.read(lambda tx: tx.rows(counts)) == [(1, 300, 300)]
    assert nas.answers.dropped == []


async def _equals(count: Callable[[], Awaitable[int]], expected: int) -> bool:
    return await count() == expected


@pytest.mark.parametrize("session", [True, False])
async def test_a_record_whose_answer_was_lost_is_stored_once(nas: Nas, *, session: bool) -> None:
    """If the database has kept the journal's transaction, and only its answer was lost, the spooled record is not
    stored again."""
    nas.away.after = True
    nas.send(1, session=session)
    await until(lambda: len(nas.answers.sent) == 1)
    nas.away.is_away = False
    await nas.everything_stored()
    assert await nas.stations() == ["02-1"]


async def test_a_crash_after_the_transaction_stores_nothing_twice(nas: Nas, tmp_path: Path) -> None:
    """A process that finds a spool whose first records are stored already continues behind them."""
    nas.send(1, 2, session=False)
    await until(lambda: len(nas.answers.sent) == 2)
    path = tmp_path / "accounting.spool"
    shutil.copy(path, tmp_path / "copy")
    nas.away.is_away = False
    await nas.everything_stored()
    await until(lambda: _equals(nas.places, 0))
    with closing(sqlite3.connect(tmp_path / "copy")) as copy:
        (name,) = copy.execute("select name from spool").fetchone()
    await nas.away.store.write(lambda tx: tx.execute("insert into spool_places values (:name, 1)", name=name))
    await nas.away.store.write(lambda tx: tx.execute("delete from accounting_records"))
    shutil.copy(tmp_path / "copy", path)
    later = spool_of(nas.areas, nas.away)
    async with trio.open_nursery() as nursery:
        await nursery.start(later.run)
        await nas.everything_stored()
        nursery.cancel_scope.cancel()
    assert await nas.stations() == ["02-2"]


async def test_the_spool_of_a_worker_that_was_taken_away(nas: Nas, tmp_path: Path) -> None:
    """The first worker stores the records of a worker that does not run any more, before its own, and removes both
    files."""
    gone, own = tmp_path / "accounting-3.spool", tmp_path / "accounting-1.spool"
    for path, left, number in ((gone, [], 1), (own, [gone], 2)):
        spool = spool_of(nas.areas, nas.away, path=path, left=left)
        worker = nas_of(nas.areas, nas.client, nas.away, spool)
        async with trio.open_nursery() as nursery:
            await nursery.start(spool.run)
            worker.send(number)
            await until(lambda worker=worker: len(worker.answers.sent) == 1)  # type: ignore[misc]
            if left:
                nas.away.is_away = False
                await until(lambda: not gone.exists() and not own.exists())
            nursery.cancel_scope.cancel()
    assert await nas.stations() == ["02-1", "02-2"]


async def test_a_full_spool_takes_no_record(nas: Nas) -> None:
    """A record that does not fit gets no answer, and the records before it are stored."""
    small = spool_of(nas.areas, nas.away, limit=300)
    full = nas_of(nas.areas, nas.client, nas.away, small)
    async with trio.open_nursery() as nursery:
        await nursery.start(small.run)
        full.send(*range(1, 9))
        await until(lambda: len(full.answers.sent) + len(full.answers.dropped) == 8)
        assert full.answers.sent
        assert full.answers.dropped
        nas.away.is_away = False
        await nas.everything_stored()
        nursery.cancel_scope.cancel()
    assert len(await nas.stations()) == len(full.answers.sent)


async def test_a_record_that_the_database_refuses_costs_only_itself(nas: Nas) -> None:
    """A spooled record of a removed domain is dropped, and those behind it are stored."""
    nas.send(1)
    nas.areas.domain, real = 4711, nas.areas.domain
    nas.send(2)
    nas.areas.domain = real
    nas.send(3)
    await until(lambda: len(nas.answers.sent) == 3)
    nas.away.is_away = False
    await nas.everything_stored()
    assert await nas.stations() == ["02-1", "02-3"]
