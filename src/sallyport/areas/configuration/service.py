"""The engine of `apply`: it plans and writes the changes of a tenant.

The plan is made outside the transaction of the changes, which checks that nothing has changed meanwhile. Up to WHOLE
changes are one transaction. More are written in many short ones, so that none delays logins. Until the end, each
transaction notes what it changes, and no node reads the configuration into memory again (`Configuration.is_partial`).
If a transaction fails, or the service stops in between, all of them are undone: at once, at the next start, or by
another node. Users and other objects whose rows no file can bring back are removed after all other changes; if the
service stops then, the rest is removed in the same way. One apply is written at a time; the others wait for its end.
"""

import secrets
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Final

import structlog
import trio
from pydantic_core import to_jsonable_python

from sallyport.areas.configuration import repo
from sallyport.areas.configuration.item import UNDO, Item, Plan, Prune, Sign, Step
from sallyport.areas.configuration.managed import ManagedByFiles, few, shown
from sallyport.areas.configuration.planning import Present, plan, undoing
from sallyport.areas.configuration.transactions import Part, Transactions, placed, with_domains
from sallyport.areas.configured import AnyChange, AnyKind, Fields, Stored
from sallyport.base.actor import Overrides, acting, acting_as
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import Contradiction, NotFound, StoreError
from sallyport.base.text import existing, fold
from sallyport.store.model import Tx
from sallyport.store.snapshot import LOOK_S, POLL_S, Configuration
from sallyport.store.vault import Vault

LATE_S: Final = 20.0
"""Time in seconds after the last transaction of an apply of several after which its node has stopped."""
PAUSE_S: Final = 2 * POLL_S
"""Time in seconds between two applies in several transactions of a node. All nodes read the configuration meanwhile."""
ADMITTED: Final = 100
"""Number of steps of a plan after which other tasks run."""
ATTEMPTS: Final = 5
"""Maximum number of plans, if the configuration changes while it is applied."""

log = structlog.get_logger()


class Engine:
    """The configuration of all tenants as files describe it.

    kinds: returns the kinds of all areas, those that others refer to first. is_shared: whether other nodes may apply
    files too.
    """

    def __init__(
        self,
        configuration: Configuration,
        kinds: Callable[[], Sequence[AnyKind]],
        vault: Vault,
        clock: Clock = now_us,
        *,
        is_shared: bool = False,
    ) -> None:
        self._configuration = configuration
        self._kinds = kinds
        self.transactions = Transactions(kinds, vault, clock)
        self._clock = clock
        self._late_us = int(LATE_S * SECOND) if is_shared else 0
        self._pause_s = PAUSE_S if is_shared else 0.0
        self._paused_until = 0.0
        self._applying = trio.Lock()
        configuration.is_partial = repo.is_unfinished

    def kinds(self, only: Collection[str] = ()) -> Sequence[AnyKind]:
        """Return all kinds, or the kinds with some names. Raises NotFound if there is no such kind."""
        kinds = self._kinds()
        names = [kind.name for kind in kinds]
        for name in only:
            if name not in names:
                raise NotFound(f"there is no kind {name}{existing(name, names)}")
        return [kind for kind in kinds if not only or kind.name in only]

    async def present(self, tenant_id: int, only: Collection[str] = ()) -> Present:
        """Return what the store has of a tenant. Raises NotFound, StoreError."""
        kinds = self.kinds(only)
        return await self._configuration.store.read(
            lambda tx: _present(tx, tenant_id, kinds, repo.managed(tx, tenant_id))
        )

    async def _concerned(self, tenant_id: int, names: Collection[str], prune: Prune) -> Present:
        """Return what the store has of the kinds with some names, of those that they mention, and of those that may
        lose objects."""
        by_name = {kind.name: kind for kind in self._kinds()}

        def read(tx: Tx) -> Present:
            managed = repo.managed(tx, tenant_id)
            own = {name for name in (*names, *(managed if prune is not Prune.NOTHING else ())) if name in by_name}
            mentioned = {name for each in own for name in by_name[each].mentioned}
            kinds = [kind for name, kind in by_name.items() if name in own | mentioned]
            present = _present(tx, tenant_id, kinds, managed)
            return replace(present, mentioned=[by_name[name] for name in mentioned])

        return await self._configuration.store.read(read)

    async def plan(
        self,
        tenant_id: int,
        items: Iterable[Item],
        *,
        prune: Prune = Prune.NOTHING,
        only: Collection[str] = (),
        manages: bool = True,
    ) -> Plan:
        """Return what the objects of files change for a tenant. Nothing is written.

        prune: the objects to remove. only: the kinds to plan; all if empty. manages: whether the files manage the
        objects from now on; an import only adds them. Raises StoreError. Raises Invalid, whose message has a line for
        each problem.
        """
        given, kinds = list(items), self.kinds(only)
        present = await self._concerned(tenant_id, {each.kind for each in given}, prune)
        ids = {fold(name): number for number, name in present.domains.items()}
        made = await trio.to_thread.run_sync(lambda: plan(tenant_id, kinds, given, present, prune, part=bool(only)))
        for number, step in enumerate(made.changes):
            if not number % ADMITTED:
                await trio.lowlevel.checkpoint()
            if step.domains and step.change is not None and step.change.body is not None:
                with placed(step.kind, [step]):
                    await step.kind.admit(step.change.body, tenant_id, ids.get(fold(step.domains[0]), 0))
        if manages:
            return made
        managed = {kind: set(names) for kind, names in present.managed.items()}
        changed = [step for step in made.changes if step.sign is Sign.CHANGED]
        theirs = [step for step in changed if step.identity in managed.get(step.kind.name, ())]
        return replace(made, managed={}, overridden=theirs)

    async def apply(self, plan: Plan, *, override: bool = False) -> None:
        """Write the changes of a plan, or nothing. Raises Conflict if the configuration has changed since the plan was
        made; other Refused, StoreError. Raises ManagedByFiles if an import changes objects of files, unless `override`
        is set."""
        async with self._applying:
            await self._await_others()
            await self._apply(plan, override=override)

    async def _apply(self, plan: Plan, *, override: bool) -> None:
        """See `apply`. The caller holds the lock."""
        names = [shown(step.kind, step.identity) for step in plan.overridden]
        if names and not override:
            raise ManagedByFiles(plan.overridden[0].kind.name, names[0])
        actor = replace(acting(), overrides=Overrides(few(names)) if names else None)
        run = _new_run()
        parts = await trio.to_thread.run_sync(self.transactions.of, plan, run)
        if not parts:
            return
        is_whole = len(parts) == 1 and parts[0].ends
        if not is_whole:
            await trio.sleep_until(self._paused_until)
        try:
            with acting_as(actor):
                await self._write(plan, parts)
                if not parts[-1].ends:
                    await self._finish(plan.tenant_id, run, run)
        except repo.Outdated:  # nothing is written, or another node ends it
            raise
        except BaseException:  # the caller may have gone away
            if not is_whole:
                with trio.CancelScope(deadline=trio.current_time() + LATE_S, shield=True):
                    await self._try_finish(plan.tenant_id, run)
            raise
        finally:
            if not is_whole:
                self._paused_until = trio.current_time() + self._pause_s
        log.info("configuration_applied", tenant=plan.tenant_id, changes=len(plan.changes))

    async def _await_others(self) -> None:
        """Wait until no apply is unfinished, also those of other nodes. The caller holds the lock."""
        while await self._configuration.store.read(repo.is_unfinished):
            await self._finish_late(self._late_us)
            await trio.sleep(LOOK_S)

    async def finish_unfinished(self, *, at_once: bool = False) -> None:
        """End the applies whose process has stopped before their end: undo what they have changed, or do the removals
        that are left. at_once: also if another node may still be writing it."""
        async with self._applying:
            await self._finish_late(0 if at_once else self._late_us)

    async def _finish_late(self, late_us: int) -> None:
        now = self._clock()
        read = self._configuration.store.read
        for tenant_id, run in await read(lambda tx: repo.unfinished(tx, now - late_us + 1, now + late_us)):
            await self._try_finish(tenant_id, run)

    async def _try_finish(self, tenant_id: int, before: str) -> None:
        """End an unfinished apply. If that is not possible, such as after the removal of a domain, its part stays, so
        that the changes of others take effect. before: its run."""
        run = _new_run()
        try:
            done = await self._finish(tenant_id, before, run)
        except repo.Outdated:
            return  # another node does it
        except Exception as error:  # also a defect must not stop the changes of other tenants
            log.warning("configuration_not_undone", tenant=tenant_id, error=str(error))
            if not isinstance(error, StoreError) or isinstance(error, Contradiction):
                await self._configuration.change(lambda tx: repo.forget_noted(tx, tenant_id, run))
            return
        if done and done.action:
            log.warning("configuration_undone", tenant=tenant_id, changes=len(done.changes))
        elif done:
            log.warning("configuration_completed", tenant=tenant_id, changes=len(done.changes))

    async def _finish(self, tenant_id: int, before: str, run: str) -> Plan | None:
        """Restore what an unfinished apply has changed, or remove what is left to remove, and return the plan of this;
        None if it has ended. If this is interrupted too, another run takes it over and does the rest. run: the new
        run."""
        noted = await self._configuration.store.write(
            lambda tx: repo.take_over(tx, tenant_id, before, run, self._clock())
        )
        if not noted:
            return None
        kinds = [kind for kind in self._kinds() if kind.name in {each.kind for each in noted}]
        present = await self._configuration.store.read(lambda tx: _present(tx, tenant_id, kinds, {}))

        def planned() -> tuple[Plan, list[Part]]:
            former = dict[str, dict[str, Fields | None]]()
            for each in noted:
                former.setdefault(each.kind, {}).setdefault(each.name, self.transactions.former(tenant_id, each))
            made = undoing(tenant_id, kinds, former, present, "" if noted[0].removes else UNDO)
            return made, self.transactions.of(made, run, undoes=True)

        made, parts = await trio.to_thread.run_sync(planned)
        await self._write(made, parts)
        return made

    async def _write(self, plan: Plan, parts: Sequence[Part]) -> None:
        for part in parts:
            await self._release(plan.tenant_id, part.released)
            await (self._configuration.change if part.ends else self._configuration.store.write)(part.write)
        with ExitStack() as reactions:  # a defect in one of them does not stop the others
            for kind in {step.kind for step in plan.changes}:
                reactions.callback(kind.written)

    async def _release(self, tenant_id: int, released: Sequence[Step]) -> None:
        if not released:
            return
        domains = await self._configuration.store.read(lambda tx: repo.domains(tx, tenant_id))
        ids = {fold(name): number for number, name in domains.items()}
        by_kind = dict[AnyKind, list[AnyChange]]()
        for step in released:
            by_kind.setdefault(step.kind, []).append(with_domains(step, ids))
        for kind, changes in by_kind.items():
            await kind.release(changes)

    async def run(
        self,
        tenant_id: int,
        items: Sequence[Item],
        *,
        prune: Prune = Prune.NOTHING,
        only: Collection[str] = (),
        manages: bool = True,
        override: bool = False,
    ) -> Plan:
        """Plan and apply, again if the configuration changes meanwhile, and return the plan. Raises as `plan` and
        `apply` do."""
        made = partial(self.plan, tenant_id, items, prune=prune, only=only, manages=manages)
        async with self._applying:
            await self._await_others()
        planned = await made()
        try:
            await self.apply(planned, override=override)
        except repo.Outdated:
            return await self._run_alone(made, override=override)
        return planned

    async def _run_alone(self, made: Callable[[], Awaitable[Plan]], *, override: bool) -> Plan:
        """Plan and apply, while no other apply of this node changes the configuration. made: makes the plan."""
        async with self._applying:
            for attempt in range(2, ATTEMPTS + 1):
                await self._await_others()
                planned = await made()
                try:
                    await self._apply(planned, override=override)
                except repo.Outdated:
                    if attempt == ATTEMPTS:
                        raise
                    continue
                break
        return planned


def _present(tx: Tx, tenant_id: int, kinds: Sequence[AnyKind], managed: Mapping[str, Collection[str]]) -> Present:
    domains = repo.domains(tx, tenant_id)
    objects = {kind.name: [_plain(each) for each in kind.read(tx, tenant_id, domains)] for kind in kinds}
    return Present(repo.version(tx), domains, objects, managed)


def _plain(stored: Stored) -> Stored:
    """Return an object whose values are those of JSON."""
    return Stored(stored.id, to_jsonable_python(stored.fields), stored.is_implied)


def _new_run() -> str:
    """Return a text that no other apply or undo has."""
    return secrets.token_hex(16)
