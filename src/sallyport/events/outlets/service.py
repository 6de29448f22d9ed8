"""The tasks that send events and the audit trail to their outlets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Final, TypeAlias, TypeVar

import structlog
import trio

from sallyport.audit import repo as audit_repo
from sallyport.audit.repo import NumberedRow
from sallyport.base import log as logs
from sallyport.base.errors import StoreError
from sallyport.base.log import Pseudonyms
from sallyport.base.periodic import every
from sallyport.events.outlets import repo
from sallyport.events.outlets.format import (
    AUDIT,
    LOGIN,
    Fields,
    as_json,
    as_syslog,
    audit_fields,
    counted,
    host_name,
    login_fields,
)
from sallyport.events.outlets.repo import DomainEvent
from sallyport.events.outlets.transport import Target, Transport, transport_to
from sallyport.events.repo import last_id
from sallyport.metrics import OutletMetrics
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.errors import ProviderError
from sallyport.store.model import Store, Tx

BATCH: Final = 200
POLL_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0
LINES_AT_ONCE: Final = 16  # their lines take a millisecond, for which logins wait
MOST_IN_LOG: Final = 2000
"""Maximum events that are logged at once. Further ones are skipped, so that the log does not slow logins down."""

log = structlog.get_logger()

Entry: TypeAlias = DomainEvent | NumberedRow
AnyEntry = TypeVar("AnyEntry", Entry, DomainEvent)


@dataclass(frozen=True, slots=True)
class Queue:
    """Entries of one kind in the order in which they were written. last: returns the newest id.

    after: returns the entries after an id, up to a maximum number.
    """

    kind: str
    last: Callable[[Tx], int]
    after: Callable[[Tx, int, int], Sequence[Entry]]


LOGINS: Final = Queue(LOGIN, last_id, repo.after)
CHANGES: Final = Queue(AUDIT, audit_repo.last, audit_repo.after)


class Outlets:
    """All outlets of the service. in_log: log decisions too. changes: send the audit trail to the outlets too.

    domain: returns a domain's name by its id. pseudonyms: returns the pseudonyms if names are hidden.
    """

    def __init__(
        self,
        store: Store,
        targets: Sequence[Target],
        egress: Egress,
        metrics: OutletMetrics,
        *,
        in_log: bool,
        changes: bool,
        domain: Callable[[int], str],
        pseudonyms: Callable[[], Pseudonyms | None],
    ) -> None:
        self._store = store
        self._targets = tuple(targets)
        self._egress = egress
        self._metrics = metrics
        self._in_log = in_log
        self._queues = (LOGINS, CHANGES) if changes else (LOGINS,)
        self._domain = domain
        self._pseudonyms = pseudonyms
        self._host = host_name()

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send events until cancelled. After `started`, new decisions are logged. Raises StoreError."""
        newest = await self._store.read(last_id)
        async with trio.open_nursery() as nursery:
            if self._in_log:
                nursery.start_soon(self._log_logins, newest)
            for target in self._targets:
                nursery.start_soon(self._serve, target)
            task_status.started()

    # --- the log ----------------------------------------------------------------------------------------------

    async def _log_logins(self, place: int) -> None:
        """Log a line for each decision after an event id. The line has the eventId of GetAuthLog."""
        seen = -1

        async def log_new() -> None:
            nonlocal place, seen
            changes = self._store.changes
            if changes != seen:
                place = await self._log_next(place)
                seen = changes

        await every(POLL_S, log_new, failure="logins_not_logged")

    async def _log_next(self, place: int) -> int:
        newest = await self._store.read(last_id)
        if newest < place or logs.is_silent("info"):  # newest < place after a restore of a backup
            return newest
        if newest - place > MOST_IN_LOG:
            log.warning("logins_not_logged_overload", count=newest - place)
            return newest
        events = await self._store.read(partial(repo.after, event_id=place, limit=MOST_IN_LOG))
        for number, event in enumerate(_by_time(events), 1):
            # The log itself replaces names by pseudonyms.
            fields = login_fields(event, self._domain(event.domain_id), None)
            del fields["type"]
            log.info("login", request_id=fields.pop("eventId"), at=fields.pop("time"), **fields)
            if number % LINES_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        return events[-1].id if events else place

    # --- elsewhere --------------------------------------------------------------------------------------------

    async def _serve(self, target: Target) -> None:
        transport, pause, failing, seen = transport_to(target, self._egress), POLL_S, False, -1
        try:
            while True:
                changes = self._store.changes
                queues = () if changes == seen else self._queues
                try:
                    sent = [await self._deliver(target, transport, queue) for queue in queues]
                    if failing:
                        log.info("outlet_recovered", outlet=target.url)
                    pause, failing = POLL_S, False
                    if max(sent, default=0) < BATCH:
                        seen = changes
                        await trio.sleep(POLL_S)
                except (OSError, ProviderError, StoreError) as error:
                    if not failing:
                        log.warning("outlet_unreachable", outlet=target.url, error=str(error))
                    failing, pause = True, min(2 * pause, LONGEST_PAUSE_S)
                    await trio.sleep(pause)
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
                await transport.close()

    async def _deliver(self, target: Target, transport: Transport, queue: Queue) -> int:
        """Send the next entries, store the position, and return their number.

        After an OSError, ProviderError or StoreError the next call sends them again.
        """
        place = await self._store.read(lambda tx: repo.position(tx, target.url, queue.kind))
        if place is None:
            place = await self._store.read(queue.last)
            await self._remember(target, queue, place)
        newest, entries = await self._store.read(lambda tx: (queue.last(tx), queue.after(tx, place, BATCH)))
        self._metrics.waiting[target.url, queue.kind] = float(max(0, newest - place))
        if not entries:
            return 0
        lost = entries[-1].id - place - len(entries)
        if lost > 0:  # retention has deleted them
            log.warning("outlet_events_lost", outlet=target.url, type=queue.kind, count=lost)
        await transport.send([self._message(target, entry) for entry in _by_time(entries)])
        await self._remember(target, queue, entries[-1].id)
        self._metrics.sent.cell(target.url, queue.kind).count += len(entries)
        self._metrics.waiting[target.url, queue.kind] = float(newest - entries[-1].id)
        return len(entries)

    async def _remember(self, target: Target, queue: Queue, place: int) -> None:
        await self._store.write(lambda tx: repo.remember(tx, target.url, queue.kind, place))

    def _message(self, target: Target, entry: Entry) -> bytes:
        fields = self._fields(entry)
        if not target.is_syslog:
            return as_json(fields)
        message = as_syslog(fields, self._host)
        return counted(message) if target.is_counted else message

    def _fields(self, entry: Entry) -> Fields:
        if isinstance(entry, DomainEvent):
            return login_fields(entry, self._domain(entry.domain_id), self._pseudonyms())
        domain = "" if entry.domain_id is None else self._domain(entry.domain_id)
        return audit_fields(entry, domain, self._pseudonyms())


def _by_time(entries: Sequence[AnyEntry]) -> list[AnyEntry]:
    """Return entries in the order of GetAuthLog. The ids in one transaction are not in the order of time."""
    return sorted(entries, key=attrgetter("at", "id"))
