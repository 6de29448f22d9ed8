"""Previews and runs of re-authorizations."""

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import structlog
import trio

from sallyport.areas.domains.domain import Domain
from sallyport.areas.domains.service import Domains
from sallyport.areas.dynamic.service import DynamicAuthorization
from sallyport.areas.reauthorization import repo
from sallyport.areas.reauthorization.deciding import Deciding
from sallyport.areas.reauthorization.reauthorization import Reauthorization, RunState, SessionChange, SessionEffect
from sallyport.base.actor import acting
from sallyport.base.clock import Clock
from sallyport.base.errors import LeaseLost, SallyportError, TookTooLong
from sallyport.base.wire import JSON
from sallyport.nodes.periodic import every
from sallyport.store import audit
from sallyport.store.model import Store, Tx

LOOK_S: Final = 1.0
SLICE: Final = 50
"""Maximum number of sessions that are decided in one search of the store. A search that takes too long is repeated with
half of its sessions."""
SHOWN: Final = 1000
"""Maximum number of sessions in a preview."""
RUNS_AT_ONCE: Final = 2
"""Maximum number of runs of a tenant that proceed at the same time. The others wait, so that a tenant with many domains
does not delay the searches and runs of other tenants."""
SENT_AT_ONCE: Final = 32
TENANT_S: Final = 0.05
"""Time between two requests to devices of a tenant, in seconds."""
DEVICE_S: Final = 0.25
"""Time between two requests to one device, in seconds."""
OVER: Final = "over"

log = structlog.get_logger()


@dataclass(slots=True)
class SessionPreview:
    """The sessions that a re-authorization would change now. changes: at most SHOWN of them. examined: the number of
    live sessions of the domain's users that were examined. counts: the number of sessions by effect."""

    changes: list[SessionChange] = field(default_factory=list)
    examined: int = 0
    counts: Counter[str] = field(default_factory=Counter)


class Pace:
    """The times at which requests may be sent, so that neither the devices of a tenant nor one device get too many."""

    def __init__(self) -> None:
        self._next: dict[tuple[int, str], float] = {}

    def reserve(self, tenant_id: int, device: str) -> float:
        """Return the time for a request, by trio's clock."""
        now = trio.current_time()
        at = max(now, self._next.get((tenant_id, ""), now), self._next.get((tenant_id, device), now))
        self._next = {key: then for key, then in self._next.items() if then > now}
        self._next[tenant_id, ""] = max(now, self._next.get((tenant_id, ""), now)) + TENANT_S
        self._next[tenant_id, device] = at + DEVICE_S
        return at


class Reauthorizations:
    """The re-authorizations of all domains. `run` must be running on the node with the lease."""

    def __init__(
        self,
        store: Store,
        leader_store: Store,
        domains: Domains,
        dynamic: DynamicAuthorization,
        deciding: Deciding,
        clock: Clock,
    ) -> None:
        self._store = store
        self._leader_store = leader_store
        self._domains = domains
        self._dynamic = dynamic
        self._deciding = deciding
        self._clock = clock
        self._active: set[int] = set()
        self._pace = Pace()
        self._previews: dict[int, trio.CapacityLimiter] = {}
        self._turns: dict[int, trio.CapacityLimiter] = {}

    # --- for admins ---------------------------------------------------------------------------------------------

    async def preview(self, domain_id: int, *, by_disconnect: bool = False) -> SessionPreview:
        """Return the sessions that a re-authorization would change now. Nothing is stored or sent. A tenant has one
        preview at a time. Raises NotFound, StoreError."""
        domain, found = self._domains.table.present(domain_id), SessionPreview()
        turn = self._previews.setdefault(domain.tenant_id, trio.CapacityLimiter(1))
        async with turn, aclosing(self._slices(domain, 0, 0, by_disconnect=by_disconnect)) as slices:
            async for _, examined, changes in slices:
                found.examined += examined
                found.counts.update(each.effect for each in changes)
                found.changes += changes[: SHOWN - len(found.changes)]
        return found

    async def start(self, domain_id: int, *, by_disconnect: bool = False) -> int:
        """Start a re-authorization, and return its id. Raises NotFound; raises Conflict if one is running."""
        self._domains.table.present(domain_id)
        at, actor = self._clock(), acting()

        while await self._store.write(partial(repo.delete_old, domain_id=domain_id)):
            pass

        def transaction(tx: Tx) -> int:
            run_id = repo.add(tx, domain_id, actor.name or actor.kind, at, by_disconnect=by_disconnect)
            changes: dict[str, JSON] = {"disconnect": [None, by_disconnect]}
            audit.record_in(tx, "reauthorization.start", domain_id, f"re-authorization {run_id}", changes, at=at)
            return run_id

        return await self._store.write(transaction)

    async def stop(self, domain_id: int, run_id: int) -> None:
        """Stop a re-authorization. Requests that were not sent are not sent any more. Raises NotFound."""
        at = self._clock()

        def transaction(tx: Tx) -> None:
            audit.tenant_of(tx, domain_id)  # nothing changes in a removed domain
            if repo.find(tx, domain_id, run_id).state == RunState.RUNNING:
                repo.end(tx, run_id, RunState.STOPPED, at)
                audit.record_in(tx, "reauthorization.stop", domain_id, f"re-authorization {run_id}", at=at)

        await self._store.write(transaction)

    async def page(self, domain_id: int) -> list[Reauthorization]:
        """Return the kept re-authorizations of a domain, newest first."""
        return await self._store.search(partial(repo.page, domain_id=domain_id))

    async def changes(self, domain_id: int, run_id: int, *, offset: int, limit: int) -> tuple[list[SessionChange], int]:
        """Return one page of the sessions of a re-authorization, and their number. Raises NotFound."""

        def search(tx: Tx) -> tuple[list[SessionChange], int]:
            repo.find(tx, domain_id, run_id)
            return repo.changes(tx, domain_id, run_id, offset=offset, limit=limit)

        return await self._store.search(search)

    # --- on the node with the lease -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Carry out the re-authorizations, until cancelled."""
        self._active.clear()
        async with trio.open_nursery() as nursery:
            await every(LOOK_S, partial(self._look, nursery), failure="reauthorizations_not_read")

    async def _look(self, nursery: trio.Nursery) -> None:
        for each in await self._store.read(repo.running):
            if each.id not in self._active:
                self._active.add(each.id)
                nursery.start_soon(self._carry_out, each)

    async def _carry_out(self, run: Reauthorization) -> None:
        """Examine the sessions of a run, and send its requests. If the store fails, the next look continues."""
        domain = self._domains.table.by_id.get(run.domain_id)
        tenant_id = 0 if domain is None else domain.tenant_id
        try:
            async with self._turns.setdefault(tenant_id, trio.CapacityLimiter(RUNS_AT_ONCE)):
                await self._proceed(run)
        except* LeaseLost:  # the errors of tasks that send requests come in groups
            log.info("reauthorization_left", run=run.id)  # the other node continues
        except* SallyportError as group:
            log.warning("reauthorization_interrupted", run=run.id, error=_first_text(group))
        finally:
            self._active.discard(run.id)

    async def _proceed(self, run: Reauthorization) -> None:
        domain = self._domains.table.by_id.get(run.domain_id)
        if domain is None:
            return await self._end(run, RunState.STOPPED)
        if not await self._send(run, domain):
            return None
        slices = self._slices(domain, run.place, run.after, by_disconnect=bool(run.by_disconnect))
        async with aclosing(slices):
            async for (device_domain, after), number, changes in slices:
                undecided = run.undecided + sum(each.effect == SessionEffect.UNDECIDED for each in changes)
                examined = run.examined + number
                run = replace(run, place=device_domain, after=after, examined=examined, undecided=undecided)
                await self._leader_store.write(partial(repo.keep, run=run, changes=changes))
                if not await self._send(run, domain):
                    return None
        return await self._end(run, RunState.DONE)

    async def _end(self, run: Reauthorization, state: RunState) -> None:
        at = self._clock()
        await self._leader_store.write(lambda tx: repo.end(tx, run.id, state, at))
        log.info("reauthorization_ended", run=run.id, domain=run.domain_id, state=state.value, sessions=run.examined)

    async def _send(self, run: Reauthorization, domain: Domain) -> bool:
        """Send the requests of the stored changes that have no result. Return False if the run was stopped."""
        while found := await self._store.read(partial(repo.waiting, run=run, limit=SENT_AT_ONCE)):
            if not await self._is_running(run):
                return False
            async with trio.open_nursery() as nursery:
                for each in found:
                    nursery.start_soon(self._ask, run, domain, each)
        return await self._is_running(run)

    async def _is_running(self, run: Reauthorization) -> bool:
        """Return False if a run was stopped, or its domain was removed."""
        if run.domain_id not in self._domains.table.by_id:
            return False
        return await self._store.read(lambda tx: repo.is_running(tx, run.domain_id, run.id))

    async def _ask(self, run: Reauthorization, domain: Domain, change: SessionChange) -> None:
        await trio.sleep_until(self._pace.reserve(domain.tenant_id, change.device_name))
        if not await self._is_running(run):  # a busy device may have delayed the request for seconds
            return
        attributes = change.attributes if change.effect == SessionEffect.CHANGE else b""
        reason = f"re-authorization {run.id}: {change.reason}"
        result = await self._dynamic.ask_again(change.session_id, attributes, reason)
        outcome, error = (OVER, "") if result is None else (result.answer.outcome.value, result.error)
        await self._leader_store.write(
            partial(repo.answered, run=run, session_id=change.session_id, outcome=outcome, error=error)
        )

    # --- both ---------------------------------------------------------------------------------------------------

    async def _slices(
        self, domain: Domain, device_domain: int, after: int, *, by_disconnect: bool
    ) -> AsyncGenerator[tuple[tuple[int, int], int, Sequence[SessionChange]], None]:
        """Yield the live sessions at all devices of the tenant in slices: the progress, the number of sessions, and the
        changes. Each slice is decided by the domain as it is then. device_domain, after: the ids of the domain and
        of the session up to which the last slice came, or 0. Raises NotFound if the domain was removed meanwhile."""
        device_domains, most = sorted(each.id for each in self._domains.of_tenant(domain.tenant_id)), SLICE
        for each in device_domains:
            if each < device_domain:
                continue
            last = after if each == device_domain else 0
            while True:
                domain = self._domains.table.present(domain.id)
                work = partial(self._slice, domain=domain, device_domain=each, after=last, by_disconnect=by_disconnect)
                try:
                    progress, number, changes = await self._store.search(partial(work, most=most))
                except TookTooLong:  # a device with many logins around the start of the sessions
                    if most == 1:
                        raise
                    most //= 2
                    continue
                if not number:
                    break
                most = min(2 * most, SLICE)
                last = progress
                yield (each, last), number, changes
                await trio.lowlevel.checkpoint()

    def _slice(
        self, tx: Tx, domain: Domain, device_domain: int, after: int, most: int, *, by_disconnect: bool
    ) -> tuple[int, int, list[SessionChange]]:
        """Return the id of the last session of a slice, the number of its sessions, and the changes. most: the maximum
        number of sessions."""
        sessions = repo.live(tx, device_domain, after, most)
        if not sessions:
            return after, 0, []
        changes = self._deciding.slice(tx, domain, sessions, self._clock(), by_disconnect=by_disconnect)
        return sessions[-1].id, len(sessions), changes


def _first_text(group: BaseExceptionGroup[SallyportError]) -> str:
    """Return the text of the first error in a group."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return str(found)
