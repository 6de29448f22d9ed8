"""The tasks that send events and the audit trail to their outlets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
import trio

from sallyport.areas.audit import repo as audit_repo
from sallyport.areas.events.event import DomainEvent
from sallyport.areas.events.outlets import repo
from sallyport.areas.events.outlets.format import (
    AUDIT,
    LOGIN,
    Entry,
    Fields,
    as_json,
    as_syslog,
    audit_fields,
    by_time,
    counted,
    host_name,
    login_fields,
)
from sallyport.areas.events.outlets.transport import Target, Transport, transport_to
from sallyport.areas.events.repo import EVENTS
from sallyport.base.clock import BackOff
from sallyport.base.errors import LeaseLost, StoreError
from sallyport.base.fair import in_parts
from sallyport.base.log import Pseudonyms
from sallyport.metrics import OutletMetrics
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.errors import ProviderError
from sallyport.store.model import Store, Tx

BATCH: Final = 200
POLL_S: Final = 0.5
MAX_PAUSE_S: Final = 30.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of entries of one kind. It is a table of the store, and is read in the order of the ids.

    table: the name of the table. between: a function that returns the next entries of the table. Its arguments are the
    transaction, the id after which the entries begin, the id of the last possible entry, and the maximum number of
    entries.
    """

    kind: str
    table: str
    between: Callable[[Tx, int, int, int], Sequence[Entry]]


LOGINS: Final = Queue(LOGIN, EVENTS.name, repo.between)
CHANGES: Final = Queue(AUDIT, "audit_trail", audit_repo.between)


class Outlets:
    """All outlets of the service. One node runs them for all nodes.

    store: a store that accepts positions only from the node that holds the lease. changes: whether to send the audit
    trail to the outlets. has_gaps: whether an id may be missing although no row was deleted. domain: a function that
    returns a domain's name by its id. pseudonyms: a function that returns the pseudonyms. It returns None if names are
    not hidden.
    """

    def __init__(
        self,
        store: Store,
        targets: Sequence[Target],
        egress: Egress,
        metrics: OutletMetrics,
        *,
        changes: bool,
        has_gaps: bool,
        domain: Callable[[int], str],
        pseudonyms: Callable[[], Pseudonyms | None],
    ) -> None:
        self._store = store
        self._targets = tuple(targets)
        self._changed = trio.Event()
        self._egress = egress
        self._metrics = metrics
        self._queues = _queues(changes)
        self._has_gaps = has_gaps
        self._domain = domain
        self._pseudonyms = pseudonyms
        self._host = host_name()

    async def run(self) -> None:
        """Send events until cancelled."""
        while True:
            changed = self._changed
            async with trio.open_nursery() as nursery:
                for target in self._targets:
                    nursery.start_soon(self._serve, target)
                await changed.wait()
                nursery.cancel_scope.cancel()

    def use(self, targets: Sequence[Target], *, changes: bool) -> None:
        """Send to these targets from now on. A target that was there before goes on at its stored position."""
        self._queues = _queues(changes)
        if self._targets != (targets := tuple(targets)):
            self._targets = targets
            self._changed.set()
            self._changed = trio.Event()

    async def _serve(self, target: Target) -> None:
        transport, failing, seen = transport_to(target, self._egress), False, -1
        back_off = BackOff(first_s=2 * POLL_S, most_s=MAX_PAUSE_S)
        try:
            while True:
                changes = self._store.changes
                queues = () if changes == seen else self._queues
                try:
                    sent = [await self._deliver(target, transport, queue) for queue in queues]
                    if failing:
                        log.info("outlet_recovered", outlet=target.url)
                    failing = False
                    back_off.worked()
                    if max(sent, default=0) < BATCH:
                        seen = changes
                        await trio.sleep(POLL_S)
                except LeaseLost:  # the task will be cancelled soon
                    await trio.sleep(POLL_S)
                except (OSError, ProviderError, StoreError) as error:
                    if not failing:
                        log.warning("outlet_unreachable", outlet=target.url, error=str(error))
                    failing = True
                    await trio.sleep(back_off.failed())
        finally:
            self._metrics.forget(target.url)
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
                await transport.close()

    async def _deliver(self, target: Target, transport: Transport, queue: Queue) -> int:
        """Send the next entries, store the position, and return the number of entries.

        If the call raises OSError, ProviderError or StoreError, the next call sends the same entries again.
        """
        newest = await self._store.settled(queue.table)
        position, entries = await self._store.read(partial(_next, outlet=target.url, queue=queue, last=newest))
        if position is None:
            position = newest
            await self._remember(target, queue, position)
        self._metrics.waiting[target.url, queue.kind] = float(max(0, newest - position))
        if not entries:
            return 0
        lost = entries[-1].id - position - len(entries)
        if lost > 0 and not (self._has_gaps and await self._store.read(partial(_is_left, queue=queue, last=position))):
            log.warning("outlet_events_lost", outlet=target.url, type=queue.kind, count=lost)
        await transport.send(await in_parts(partial(self._message, target), by_time(entries)))
        await self._remember(target, queue, entries[-1].id)
        self._metrics.sent.cell(target.url, queue.kind).count += len(entries)
        self._metrics.waiting[target.url, queue.kind] = float(newest - entries[-1].id)
        return len(entries)

    async def _remember(self, target: Target, queue: Queue, position: int) -> None:
        await self._store.write(lambda tx: repo.remember(tx, target.url, queue.kind, position))

    def _message(self, target: Target, entry: Entry) -> bytes:
        fields = self._fields(entry)
        if not target.is_syslog:
            return as_json(fields)
        message = as_syslog(fields, self._host, is_json=target.is_json)
        return counted(message) if target.is_counted else message

    def _fields(self, entry: Entry) -> Fields:
        if isinstance(entry, DomainEvent):
            return login_fields(entry, self._domain(entry.domain_id), self._pseudonyms())
        domain = "" if entry.domain_id is None else self._domain(entry.domain_id)
        return audit_fields(entry, domain, self._pseudonyms())


def _queues(changes: bool) -> tuple[Queue, ...]:
    return (LOGINS, CHANGES) if changes else (LOGINS,)


def _next(tx: Tx, outlet: str, queue: Queue, last: int) -> tuple[int | None, Sequence[Entry]]:
    """Return the position of an outlet, and the entries after this position. last: the id of the last entry to return.
    For a new outlet, the position is None and there are no entries."""
    position = repo.position(tx, outlet, queue.kind)
    return position, [] if position is None else queue.between(tx, position, last, BATCH)


def _is_left(tx: Tx, queue: Queue, last: int) -> bool:
    """Return whether the table still has an entry whose id is at most `last`. If it has one, the outlet assumes that
    retention has deleted no entry after `last`."""
    return repo.has_up_to(tx, queue.table, last)
