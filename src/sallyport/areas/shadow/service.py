"""Record shadow logins, and compare all of a domain with the current rules."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import trio

from sallyport.areas.clients.client import Client
from sallyport.areas.domains.service import Domains
from sallyport.areas.preview.tally import TimeSlice
from sallyport.areas.shadow import repo
from sallyport.areas.shadow.comparing import Comparing, Known, fill
from sallyport.areas.shadow.repo import Filter, NewShadow
from sallyport.areas.shadow.report import LastReports, ShadowReport, Wanted
from sallyport.areas.shadow.shadow_login import KEPT_DAYS, ShadowRow
from sallyport.base.clock import SECOND, Clock
from sallyport.base.text import fold
from sallyport.nodes.periodic import every
from sallyport.store.model import Store, Tx
from sallyport.store.slices import SLICE

WRITTEN: Final = 100
"""Number of shadow logins in one transaction, which takes some milliseconds."""
READ: Final = 500
NEWEST: Final = 2**62
AT_ONCE: Final = 2
"""Maximum number of reports at the same time."""
PURGE_S: Final = 3600.0
WORK_S: Final = 0.001
PAUSE_S: Final = 0.001
"""A report computes for WORK_S, and then leaves the event loop to logins for PAUSE_S: its user waits, no device."""


class ShadowLogins:
    """The shadow logins of all domains. settled: the time by which they are deleted for their age."""

    def __init__(self, store: Store, domains: Domains, comparing: Comparing, clock: Clock, settled: Clock) -> None:
        self._store = store
        self._domains = domains
        self._comparing = comparing
        self._clock = clock
        self._settled = settled
        self.last = LastReports()
        self._limit = trio.CapacityLimiter(AT_ONCE)

    def now(self) -> int:
        """Return the time in microseconds."""
        return self._clock()

    async def record(self, domain_id: int, logins: Sequence[NewShadow]) -> int:
        """Record shadow logins of a domain in several short transactions, and return how many are new. Raises
        NotFound, StoreError."""
        added = 0
        for part in _parts(sorted(logins, key=lambda each: each.at)):
            added += await self._store.write(partial(repo.record, domain_id=domain_id, logins=part, now=self._clock()))
        return added

    async def generation(self, domain_id: int) -> int:
        """Return a number that increases when shadow logins are deleted or recorded, by any process. Raises
        NotFound, StoreError."""
        self._domains.table.present(domain_id)
        return await self._store.read(partial(repo.generation, domain_id=domain_id))

    async def report(self, domain_id: int, asked: Filter, wanted: Wanted) -> ShadowReport:
        """Decide all shadow logins of a domain that a filter covers, and compare. Raises NotFound, StoreError."""
        domain = self._domains.table.present(domain_id)
        report, time_slice, before = ShadowReport(wanted), TimeSlice(WORK_S, PAUSE_S), NEWEST
        async with self._limit:
            known = self._comparing.begin(domain)
            named = known.names.get(fold(asked.device))
            in_sql = asked if named is None else replace(asked, device="")
            while True:
                rows = await self._store.search(partial(self._page, domain_id=domain_id, before=before, asked=in_sql))
                several = []
                for row in rows:
                    if named is None or self._is_of(named, row, known):
                        several.append(self._comparing.asked(row, known))
                    await time_slice()
                users = await self._store.search(partial(self._comparing.read, several=several, known=known))
                for key, user in users:
                    known.users.put(key, user, key[0])
                await self._look_up_devices(known)
                for each in several:
                    report.note(self._comparing.compare(each, known), each.row.method)
                    await time_slice()
                if len(rows) < READ:
                    return report
                before = rows[-1].id

    def _is_of(self, client: Client, row: ShadowRow, known: Known) -> bool:
        """Return whether a shadow login is of a RADIUS client, or a copy that this client has sent."""
        return fold(row.client) == client.name_key or self._comparing.client_of(row, known)[0] is client

    async def _look_up_devices(self, known: Known) -> None:
        devices, known.unread = known.unread, []
        if devices:
            rows = await self._store.search(partial(self._comparing.look_up, devices=devices))
            for device, row in zip(devices, rows, strict=True):
                fill(device, row)

    @staticmethod
    def _page(tx: Tx, domain_id: int, before: int, asked: Filter) -> list[ShadowRow]:
        return repo.page(tx, domain_id, before, asked, READ)

    async def clear(self, domain_id: int) -> int:
        """Delete all shadow logins of a domain in several short transactions, and return their number. Raises
        NotFound, StoreError."""
        self._domains.table.present(domain_id)
        gone = 0
        while some := await self._store.write(partial(repo.delete_some, domain_id=domain_id, most=SLICE)):
            gone += some
        self.last.forget(domain_id)
        return gone

    async def purge(self, store: Store) -> None:
        """Delete shadow logins that were recorded KEPT_DAYS ago. Raises StoreError."""
        before = self._settled() - KEPT_DAYS * 86_400 * SECOND
        while await store.write(partial(repo.delete_old, before=before, most=SLICE)):
            pass

    async def run_purge(self, store: Store) -> None:
        """Delete old shadow logins every hour, until cancelled."""
        await every(PURGE_S, partial(self.purge, store), failure="shadow_purge_failed")


def _parts(logins: Sequence[NewShadow]) -> Iterator[Sequence[NewShadow]]:
    for at in range(0, len(logins), WRITTEN):
        yield logins[at : at + WRITTEN]
