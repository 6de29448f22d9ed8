"""Sends the entries of a directory in batches, and repeats each batch until the service has stored it. One reading of
the directory is a run.

If the service does not answer, the agent repeats the request for five minutes. Then the agent abandons the run, and the
service applies no entry of the run.

If the service does not accept one entry, the other entries must still reach the service. Therefore the sender halves
the batch until the entry is alone in a batch. Then it sends a problem in place of the entry. A problem tells the
service that the entry exists but cannot be used, so that the service does not treat the entry as removed.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import structlog
import trio

from sallyport.areas.directory.entry import wire
from sallyport.areas.directory.entry.entry import Entry
from sallyport.base.clock import BackOff
from sallyport.base.errors import ServiceAway, ServiceRefused

PREFIX: Final = "/api/v1/agent/directory/"
GIVE_UP_S: Final = 300.0
_BAD, _CONFLICT, _TOO_LARGE = 400, 409, 413
_MAX_TEXT: Final = 300

log = structlog.get_logger()

Wire = Mapping[str, object]


Ask = Callable[[str, Wire], Awaitable[Wire]]
"""A function that sends a request body to a URL path with the agent's key, and returns the answer. It raises
ServiceAway or ServiceRefused."""


class BatchSender:
    """The sender of the entries from one reading of a directory (a run)."""

    def __init__(self, ask: Ask, domain_id: int, name: str) -> None:
        self._ask = ask
        self._domain_id = domain_id
        self._name = name
        self._run_id = 0
        self._sequence = 0
        self._dropped_dn: object = None
        self._is_whole = True
        self.refused = 0

    async def begin(self) -> str:
        """Announce a run to the service. Return the cursor of the last run that the service has applied. Raises
        ServiceAway, ServiceRefused."""
        answer = await self._until_taken("begin", {"directoryName": self._name})
        cursor = answer.get("cursor")
        self._run_id, self._sequence = _number(answer, "runId"), _number(answer, "sequence")
        if not isinstance(cursor, str):
            raise _not_the_service()
        return cursor

    async def send(self, entries: Sequence[Entry]) -> None:
        """Send entries in batches. Raises ServiceAway, ServiceRefused."""
        for batch in wire.batches(entries):
            await self._send(batch)

    async def finish(self, cursor: str, *, complete: bool) -> int:
        """Tell the service that all entries of the run were sent. Return the id of the import with which the service
        applies them.

        complete: whether the service shall remove the entries that are not in the run. Raises ServiceAway,
        ServiceRefused.
        """
        complete &= self._is_whole
        body = {"runId": self._run_id, "sequence": self._sequence, "complete": complete, "cursor": cursor}
        return _number(await self._until_taken("finish", body), "jobId")

    async def _send(self, batch: Sequence[Wire]) -> None:
        """Send a batch. If the service does not accept the batch, send those entries of the batch that the service
        accepts."""
        batch = self._without_dropped(batch)
        if not batch:
            return
        try:
            await self._take(batch)
        except ServiceRefused as error:
            if error.status not in (_BAD, _TOO_LARGE):
                raise
            if len(batch) > 1:
                middle = len(batch) // 2
                await self._send(batch[:middle])
                await self._send(batch[middle:])
                return
            await self._send_problem(batch[0], error)

    async def _send_problem(self, entry: Wire, error: ServiceRefused) -> None:
        """Send a problem in place of an entry that the service did not accept. A problem tells the service that the
        entry exists but cannot be used."""
        self.refused += 1
        log.warning("directory_entry_refused", dn=str(entry.get("dn", ""))[:_MAX_TEXT], reason=str(error))
        self._dropped_dn = entry.get("dn")
        problem = {"kind": "problem", "message": str(error)[:_MAX_TEXT]}
        try:
            await self._take([{**problem, "externalId": entry.get("externalId", ""), "dn": entry.get("dn", "")}])
        except ServiceRefused as again:
            if again.status not in (_BAD, _TOO_LARGE):
                raise
            self._is_whole = False  # the service does not know the entry, so it must not remove missing entries

    def _without_dropped(self, batch: Sequence[Wire]) -> Sequence[Wire]:
        """Return the batch without the continuations of the last entry that was not accepted. A continuation contains
        further members of a group. Without the first part of the group, the service would add these members to the
        preceding group."""
        kept = []
        for entry in batch:
            if entry.get("continued") and entry.get("dn") == self._dropped_dn:
                continue
            kept.append(entry)
        return kept

    async def _take(self, batch: Sequence[Wire]) -> None:
        body = {"runId": self._run_id, "sequence": self._sequence, "entries": list(batch)}
        self._sequence = _number(await self._until_taken("batch", body), "sequence")

    async def _until_taken(self, operation: str, body: Wire) -> Wire:
        """Send a request, and return the answer. If the service does not answer, or if it is still processing an
        earlier copy of the request, repeat the request for at most GIVE_UP_S seconds. Raises ServiceAway,
        ServiceRefused."""
        waits, until = BackOff(most_s=30.0), trio.current_time() + GIVE_UP_S
        while True:
            try:
                return await self._ask(PREFIX + operation, {"domainId": self._domain_id, **body})
            except ServiceAway as error:
                wait_s, reason = waits.failed(error.after_s), error
            except ServiceRefused as error:
                # The service is still processing an earlier copy of this request, whose answer was lost.
                if error.status != _CONFLICT or operation == "begin":
                    raise
                wait_s, reason = waits.failed(), ServiceAway(str(error))
            if trio.current_time() + wait_s > until:
                raise reason
            await trio.sleep(wait_s)


def _number(answer: Wire, name: str) -> int:
    value = answer.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _not_the_service()
    return value


def _not_the_service() -> ServiceAway:
    return ServiceAway("the answer is not from the service")
