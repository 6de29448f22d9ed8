"""The tasks that carry events to their outlets."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import structlog
import trio

from sallyport.base import log as logs
from sallyport.base.errors import StoreError
from sallyport.base.log import Pseudonyms
from sallyport.login.outlets import repo
from sallyport.login.outlets.format import as_json, as_syslog, counted, fields_of, host_name
from sallyport.login.outlets.model import Target
from sallyport.login.outlets.repo import Decided
from sallyport.login.outlets.transport import Transport, transport_to
from sallyport.metrics import OutletMetrics
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.errors import ProviderError
from sallyport.store.model import Store

BATCH: Final = 200
POLL_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0
MOST_IN_LOG: Final = 2000
"""Events in a row that the log takes; when it is further behind it skips: a log must not slow logins down."""

log = structlog.get_logger()


class Outlets:
    """All outlets of the service. domain: a domain's name by its id. pseudonyms: for people, where they are hidden."""

    def __init__(
        self,
        store: Store,
        targets: Sequence[Target],
        egress: Egress,
        metrics: OutletMetrics,
        *,
        in_log: bool,
        domain: Callable[[int], str],
        pseudonyms: Callable[[], Pseudonyms | None],
    ) -> None:
        self._store = store
        self._targets = tuple(targets)
        self._egress = egress
        self._metrics = metrics
        self._in_log = in_log
        self._domain = domain
        self._pseudonyms = pseudonyms
        self._host = host_name()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Carry events, until cancelled. Started: what is decided from now on goes into the log. StoreError."""
        newest = await self._store.read(repo.last)
        async with trio.open_nursery() as nursery:
            if self._in_log:
                nursery.start_soon(self._log_logins, newest)
            for target in self._targets:
                nursery.start_soon(self._serve, target)
            task_status.started()

    # --- the log ----------------------------------------------------------------------------------------------

    async def _log_logins(self, place: int) -> None:
        """A line for each decision after a place; its eventId is that of GetAuthLog."""
        while True:
            await trio.sleep(POLL_S)
            try:
                place = await self._log_next(place)
            except StoreError:
                continue  # told by the store

    async def _log_next(self, place: int) -> int:
        newest = await self._store.read(repo.last)
        if newest < place or logs.is_silent("info"):  # newest < place: after a restore
            return newest
        if newest - place > MOST_IN_LOG:
            log.warning("logins are left out of the log: there are too many", count=newest - place)
            return newest
        for event in await self._store.read(partial(repo.after, event_id=place, limit=MOST_IN_LOG)):
            fields = fields_of(event, self._domain(event.domain_id), None)  # the log hides names by itself
            log.info("login", request_id=fields.pop("eventId"), at=fields.pop("time"), **fields)
            place = event.id
            await trio.lowlevel.checkpoint()
        return place

    # --- elsewhere --------------------------------------------------------------------------------------------

    async def _serve(self, target: Target) -> None:
        transport, pause, told = transport_to(target, self._egress), POLL_S, False
        try:
            while True:
                try:
                    sent = await self._deliver(target, transport)
                    if told:
                        log.info("an outlet takes events again", outlet=target.url)
                    pause, told = POLL_S, False
                    if sent < BATCH:
                        await trio.sleep(POLL_S)
                except (OSError, ProviderError, StoreError) as error:
                    if not told:
                        log.warning("an outlet takes no events; they wait", outlet=target.url, error=str(error))
                    told, pause = True, min(2 * pause, LONGEST_PAUSE_S)
                    await trio.sleep(pause)
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
                await transport.close()

    async def _deliver(self, target: Target, transport: Transport) -> int:
        """Send what comes next, and remember it; how many. OSError, ProviderError, StoreError: it is sent again."""
        place = await self._store.read(lambda tx: repo.place(tx, target.url))
        if place is None:
            place = await self._store.read(repo.last)
            await self._move(target, place)
        events = await self._store.read(lambda tx: repo.after(tx, place, BATCH))
        if not events:
            return 0
        lost = events[0].id - place - 1
        if lost > 0:  # the retention was faster
            log.warning("events were deleted before an outlet took them", outlet=target.url, count=lost)
        await transport.send([self._message(target, event) for event in events])
        await self._move(target, events[-1].id)
        self._metrics.sent.cell(target.url).count += len(events)
        return len(events)

    async def _move(self, target: Target, place: int) -> None:
        await self._store.write(lambda tx: repo.remember(tx, target.url, place))
        newest = await self._store.read(repo.last)
        self._metrics.waiting[(target.url,)] = float(max(0, newest - place))

    def _message(self, target: Target, event: Decided) -> bytes:
        fields = fields_of(event, self._domain(event.domain_id), self._pseudonyms())
        if not target.is_syslog:
            return as_json(fields)
        message = as_syslog(fields, self._host)
        return counted(message) if target.is_counted else message
