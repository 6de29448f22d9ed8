"""A line in the log for each decision of this node. The lines of all nodes together are the log of all decisions."""

from collections.abc import Callable
from functools import partial
from typing import Final

import structlog
import trio

from sallyport.areas.events.outlets import repo
from sallyport.areas.events.outlets.format import by_time, login_fields
from sallyport.areas.events.repo import EVENTS
from sallyport.base import log as logs
from sallyport.nodes.periodic import every
from sallyport.store.model import Store

POLL_S: Final = 0.5
LINES_AT_ONCE: Final = 16  # the lines of this number of events take a millisecond, for which logins wait
MAX_EVENTS: Final = 2000
"""Maximum number of events that are logged at once. Further events are skipped, so that the log does not delay
logins."""

log = structlog.get_logger()


class LoginLog:
    """The log of decisions.

    domain: a function that returns a domain's name by its id. node_id: a function that returns the id of this node.
    is_on: whether decisions are logged (the setting `log_logins`).
    """

    def __init__(self, store: Store, domain: Callable[[int], str], node_id: Callable[[], int]) -> None:
        self._store = store
        self._domain = domain
        self._node_id = node_id
        self.is_on = True

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Log new decisions until cancelled. Once `started` has been called, every new decision is logged. Raises
        StoreError."""
        position, seen = await self._store.settled(EVENTS.name), -1
        task_status.started()

        async def log_new() -> None:
            nonlocal position, seen
            changes = self._store.changes
            if changes != seen:
                position = await self._log_next(position)
                seen = changes

        await every(POLL_S, log_new, failure="logins_not_logged")

    async def _log_next(self, position: int) -> int:
        """Log the decisions after an event id. Return the id of the last event that is logged or skipped."""
        newest = await self._store.settled(EVENTS.name)
        if not self.is_on or logs.is_silent("info"):
            return newest
        if newest < position:  # after a restore of a backup
            return newest
        found = partial(repo.of_node, after=position, last=newest, node_id=self._node_id(), limit=MAX_EVENTS)
        if newest - position > MAX_EVENTS:
            count = partial(repo.count_of_node, after=position, last=newest, node_id=self._node_id())
            if (skipped := await self._store.read(count)) > MAX_EVENTS:
                log.warning("logins_not_logged_overload", count=skipped)
                return newest
        for number, event in enumerate(by_time(await self._store.read(found)), 1):
            # The log itself replaces names by pseudonyms.
            fields = login_fields(event, self._domain(event.domain_id), None)
            del fields["type"]
            event_id, trace_id = fields.pop("eventId"), fields.pop("traceId")
            ids = {"event_id": event_id, "trace_id": trace_id} if trace_id else {"event_id": event_id}
            log.info("login", **ids, at=fields.pop("time"), **fields)
            if number % LINES_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        return newest
