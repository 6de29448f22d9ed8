"""Accounting records while the database is away."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio

from sallyport.base.errors import StoreError
from sallyport.inventory.clients.client import Client
from sallyport.login.login import AccountingRecord
from sallyport.login.spool import Spool
from sallyport.radius.duplicates import Entry
from sallyport.store.model import Done, T, Work
from sallyport.store.postgres.engine import PostgresStore
from tests.areas import Areas, SetClock, keep_files_in
from tests.login.conftest import SOURCE, Answers
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
            record = AccountingRecord(request, self.client, SOURCE, at, self.answers, known)
            record.domain_id = self.areas.domain
            record.device = self.areas.devices.sightings.device(request, SOURCE[0], self.client, record.domain_id, at)
            record.behind = self.areas.devices.sightings.station(record.device, record.report.station, "ann", at)
            record.reply = b"\x05"
            self.areas.journal.add(record)
        self.areas.journal.flush()

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


@pytest.fixture
async def nas(store: PostgresStore, tmp_path: Path) -> AsyncIterator[Nas]:
    """Yield a NAS of a node whose database is away."""
    keep_files_in(store, tmp_path)
    areas = await Areas.made(store, SetClock())
    away = Away(store)
    nas = Nas(areas, await areas.client("192.0.2.1/32"), away, _spool(areas, away))
    async with trio.open_nursery() as nursery:
        await nursery.start(nas.spool.run)
        yield nas
        nursery.cancel_scope.cancel()
