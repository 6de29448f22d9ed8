"""The engine of `apply`: it plans and writes the changes of a tenant.

The plan is made outside the transaction of the changes, which checks that nothing has changed meanwhile. Up to WHOLE
changes are one transaction. More are written in many short ones, so that none delays logins. Until the end, each
transaction notes what it changes, and no node reads the configuration into memory again (`Configuration.is_partial`).
If a transaction fails, or the service stops in between, all of them are undone: at once, at the next start, or by
another node. One apply is written at a time; the others wait for its end.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, TypeAlias, cast

import structlog
import trio
from pydantic_core import to_jsonable_python

from sallyport.areas.configuration import repo
from sallyport.areas.configuration.item import Item, Plan, Prune, Sign, Step
from sallyport.areas.configuration.managed import ManagedByFiles, few, shown
from sallyport.areas.configuration.planning import Present, plan, undoing
from sallyport.areas.configured import AnyChange, AnyKind, Change, Fields, Stored
from sallyport.base.actor import Overrides, acting, acting_as
from sallyport.base.clock import SECOND, Clock, now_us
from sallyport.base.errors import Conflict, Contradiction, NotFound, Refused, StoreError
from sallyport.base.text import counted, existing, fold
from sallyport.store import audit
from sallyport.store.model import Tx, Work
from sallyport.store.snapshot import LOOK_S, POLL_S, Configuration
from sallyport.store.vault import Vault

WHOLE: Final = 500
"""Maximum number of changes that are written in one transaction, if each takes as long as that of a RADIUS client: 0.1
to 0.3 ms."""
SLICE: Final = 50
"""Maximum number of such changes in one of several transactions. A login waits for at most one of them."""
LATE_S: Final = 20.0
"""Time in seconds after the last transaction of an apply of several after which its node has stopped."""
PAUSE_S: Final = 2 * POLL_S
"""Time in seconds between two applies in several transactions of a node. All nodes read the configuration meanwhile."""
ADMITTED: Final = 100
"""Number of steps of a plan after which other tasks run."""
ATTEMPTS: Final = 5
"""Maximum number of plans, if the configuration changes while it is applied."""

Batches: TypeAlias = Sequence[tuple[AnyKind, Sequence[Step]]]

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
        self._vault = vault
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
                with _placed(step.kind, [step]):
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
        names = [shown(step.kind, step.identity) for step in plan.overridden]
        if names and not override:
            raise ManagedByFiles(plan.overridden[0].kind.name, names[0])
        actor = replace(acting(), overrides=Overrides(few(names)) if names else None)
        async with self._applying:
            await self._await_others()
            parts = await trio.to_thread.run_sync(self._parts, plan)
            try:
                with acting_as(actor):
                    await self._write(plan, parts)
            except repo.Outdated:  # nothing is written, or another node has undone it
                raise
            except BaseException:  # the caller may have gone away
                if len(parts) > 1:
                    with trio.CancelScope(deadline=trio.current_time() + LATE_S, shield=True):
                        await self._try_undo(plan.tenant_id)
                raise
        if parts:
            log.info("configuration_applied", tenant=plan.tenant_id, changes=len(plan.changes))

    async def _await_others(self) -> None:
        """Wait until no apply is unfinished, also those of other nodes. The caller holds the lock."""
        while await self._configuration.store.read(repo.is_unfinished):
            await self._undo_late()
            await trio.sleep(LOOK_S)

    async def undo_unfinished(self) -> None:
        """Undo what an apply has changed whose process has stopped before its end."""
        async with self._applying:
            await self._undo_late()

    async def _undo_late(self) -> None:
        before = self._clock() - self._late_us + 1
        for tenant_id in await self._configuration.store.read(lambda tx: repo.unfinished(tx, before)):
            await self._try_undo(tenant_id)

    async def _try_undo(self, tenant_id: int) -> None:
        """Undo an unfinished apply. If it cannot be undone, such as after the removal of a domain, its part stays, so
        that the changes of others take effect."""
        try:
            await self._undo(tenant_id)
        except Exception as error:  # also a defect must not stop the changes of other tenants
            log.warning("configuration_not_undone", tenant=tenant_id, error=str(error))
            if not isinstance(error, StoreError) or isinstance(error, Contradiction):
                await self._configuration.change(lambda tx: repo.forget_noted(tx, tenant_id))

    async def _undo(self, tenant_id: int) -> None:
        """Restore what an unfinished apply has changed. If this is interrupted too, the next call does the rest."""
        noted = await self._configuration.store.read(lambda tx: repo.noted(tx, tenant_id))
        if not noted:
            return
        kinds = [kind for kind in self._kinds() if kind.name in {each.kind for each in noted}]
        present = await self._configuration.store.read(lambda tx: _present(tx, tenant_id, kinds, {}))

        def planned() -> tuple[Plan, list[Work[None]]]:
            before = dict[str, dict[str, Fields | None]]()
            for each in noted:
                before.setdefault(each.kind, {}).setdefault(each.name, self._opened(tenant_id, each))
            made = undoing(tenant_id, kinds, before, present)
            return made, self._parts(made, undoes=True)

        made, parts = await trio.to_thread.run_sync(planned)
        await self._write(made, parts)
        log.warning("configuration_undone", tenant=tenant_id, changes=len(made.changes))

    def _opened(self, tenant_id: int, noted: repo.Noted) -> Fields | None:
        if noted.fields is None:
            return None
        octets = self._vault.open(noted.fields, repo.identity(tenant_id, noted.number))
        return cast(Fields, json.loads(octets))

    async def _write(self, plan: Plan, parts: Sequence[Work[None]]) -> None:
        if not parts:
            return
        await self._release(plan)
        if len(parts) > 1:
            await trio.sleep_until(self._paused_until)
        for part in parts[:-1]:
            await self._configuration.store.write(part)
        await self._configuration.change(parts[-1])
        if len(parts) > 1:
            self._paused_until = trio.current_time() + self._pause_s
        for kind in {step.kind for step in plan.changes}:
            kind.written()

    async def _release(self, plan: Plan) -> None:
        domains = await self._configuration.store.read(lambda tx: repo.domains(tx, plan.tenant_id))
        ids = {fold(name): number for number, name in domains.items()}
        present = dict[AnyKind, list[AnyChange]]()
        for step in plan.changes:
            if step.change is not None and step.change.before is not None:
                present.setdefault(step.kind, []).append(_with_domains(step, ids))
        for kind, changes in present.items():
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
        for attempt in range(1, ATTEMPTS + 1):
            async with self._applying:
                await self._await_others()
            planned = await self.plan(tenant_id, items, prune=prune, only=only, manages=manages)
            try:
                await self.apply(planned, override=override)
            except repo.Outdated:
                if attempt == ATTEMPTS:
                    raise
                continue
            break
        return planned

    def _parts(self, plan: Plan, *, undoes: bool = False) -> list[Work[None]]:
        """Return the transactions of a plan; none if nothing changes. undoes: whether it undoes an unfinished apply."""
        is_whole = sum(step.kind.weight for step in plan.changes) <= WHOLE
        most = WHOLE if is_whole else SLICE
        batches = _batches(plan.changes, most)
        if not batches and not any(plan.managed.values()) and not plan.released and not undoes:
            return []
        groups, size = [list[tuple[AnyKind, Sequence[Step]]]()], 0
        for kind, steps in batches:
            weight = len(steps) * kind.weight
            if size + weight > most and groups[-1]:
                groups.append([])
                size = 0
            groups[-1].append((kind, steps))
            size += weight
        found, count = list[Work[None]](), 0
        for group in groups[:-1]:
            found.append(self._slice(plan, group, count, undoes=undoes))
            count += sum(len(steps) for _, steps in group)
        return [*found, self._end(plan, groups[-1], count, undoes=undoes)]

    def _slice(self, plan: Plan, group: Batches, count: int, *, undoes: bool) -> Work[None]:
        """Return a transaction that is not the last. count: the number of changes in those before."""
        steps = [] if undoes else [step for _, own in group for step in own]
        noted = [self._noted(plan.tenant_id, number, step) for number, step in enumerate(steps, count)]

        def write(tx: Tx) -> None:
            if not undoes:
                _check(tx, plan, count)
            _write_steps(tx, plan.tenant_id, group)
            repo.note(tx, plan.tenant_id, noted, self._clock())

        return write

    def _noted(self, tenant_id: int, number: int, step: Step) -> repo.Noted:
        """Return what the object of a step is before it."""
        before, sealed = step.change.before if step.change else None, None
        if before is not None:
            sealed = self._vault.seal(json.dumps(before.fields).encode(), repo.identity(tenant_id, number))
        return repo.Noted(number, step.kind.name, step.identity, sealed)

    def _end(self, plan: Plan, group: Batches, count: int, *, undoes: bool) -> Work[None]:
        """Return the last transaction. count: the number of changes in those before."""
        at = self._clock()

        def write(tx: Tx) -> None:
            if not undoes:
                _check(tx, plan, count)
            _write_steps(tx, plan.tenant_id, group)
            for kind in self._kinds() if plan.changes else ():
                kind.verify(tx, plan.tenant_id)
            repo.manage(tx, plan.tenant_id, plan.managed, plan.released)
            repo.forget_noted(tx, plan.tenant_id)
            if plan.changes:
                action = "configuration.undo" if undoes else "configuration.apply"
                target = counted(len(plan.changes), "object")
                audit.record(tx, action, at=at, tenant_id=plan.tenant_id, target=target)

        return write


def _check(tx: Tx, plan: Plan, count: int) -> None:
    """Check before each transaction that the configuration is that of the plan. count: the number of changes in the
    transactions before. Raises Outdated."""
    if count:
        repo.check_noted(tx, plan.tenant_id, count)
    else:
        repo.check_version(tx, plan)


def _write_steps(tx: Tx, tenant_id: int, group: Batches) -> None:
    for kind, steps in group:
        ids = {fold(name): number for number, name in repo.domains(tx, tenant_id).items()}
        with _placed(kind, steps):
            kind.write(tx, tenant_id, [_with_domains(step, ids) for step in steps])


def _present(tx: Tx, tenant_id: int, kinds: Sequence[AnyKind], managed: Mapping[str, Collection[str]]) -> Present:
    domains = repo.domains(tx, tenant_id)
    objects = {kind.name: [_plain(each) for each in kind.read(tx, tenant_id, domains)] for kind in kinds}
    return Present(repo.version(tx), domains, objects, managed)


def _plain(stored: Stored) -> Stored:
    """Return an object whose values are those of JSON."""
    return Stored(stored.id, to_jsonable_python(stored.fields), stored.is_implied)


@contextmanager
def _placed(kind: AnyKind, steps: Sequence[Step]) -> Iterator[None]:
    """Add the place of steps to an error: that of the object if there is only one."""
    try:
        yield
    except Refused as error:
        one = f"{steps[0].source or '--prune'}: {kind.name} {steps[0].name}"
        error.args = (f"{one if len(steps) == 1 else f'{kind.name}.toml'}: {error}", *error.args[1:])
        raise


def _with_domains(step: Step, ids: dict[str, int]) -> AnyChange:
    """Return the change of a step with the ids of its domains. Raises Conflict if a domain does not exist any more."""
    change = step.change or Change(None, None)
    try:
        domains = tuple(ids[fold(name)] for name in step.domains)
    except KeyError as error:
        raise Conflict(f"there is no domain {error.args[0]} any more") from None
    return Change(change.before, change.body, change.fields, domains)


def _batches(steps: Iterable[Step], most: int) -> list[tuple[AnyKind, Sequence[Step]]]:
    """Return the steps by kind in the order in which they are written. `_batches` keeps the order of the kinds, and
    reverses it for removals. most: the maximum weight of a batch."""
    gone, kept, last = (dict[AnyKind, list[Step]](), dict[AnyKind, list[Step]](), dict[AnyKind, list[Step]]())
    for step in steps:
        removes = step.sign is Sign.REMOVED
        group = kept if not removes else gone if step.kind.removed_first else last
        group.setdefault(step.kind, []).append(step)
    ordered = [*reversed(gone.items()), *kept.items(), *reversed(last.items())]
    return [
        (kind, several[start : start + size])
        for kind, several in ordered
        for size in (most // kind.weight,)
        for start in range(0, len(several), size)
    ]
