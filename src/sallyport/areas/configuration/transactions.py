"""The transactions in which a plan is written, or an unfinished apply is undone."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from sallyport.areas.configuration import repo
from sallyport.areas.configuration.item import Plan, Sign, Step
from sallyport.areas.configured import AnyChange, AnyKind, Change, Fields, Kind
from sallyport.base.clock import Clock
from sallyport.base.errors import Conflict, Refused
from sallyport.base.text import counted, fold
from sallyport.store import audit
from sallyport.store.model import Tx, Work
from sallyport.store.vault import Vault

WHOLE: Final = 500
"""Maximum number of changes that are written in one transaction, if each takes as long as that of a RADIUS client: 0.1
to 0.3 ms."""
SLICE: Final = 50
"""Maximum number of such changes in one of several transactions. A login waits for at most one of them."""

Batches: TypeAlias = Sequence[tuple[AnyKind, Sequence[Step]]]


@dataclass(frozen=True, slots=True)
class Part:
    """A transaction of a plan. released: the changes before which `Kind.release` runs. ends: whether nothing is left to
    do after it."""

    write: Work[None]
    released: Sequence[Step] = ()
    ends: bool = False


class Transactions:
    """The transactions of plans. kinds: returns the kinds of all areas, those that others refer to first."""

    def __init__(self, kinds: Callable[[], Sequence[AnyKind]], vault: Vault, clock: Clock) -> None:
        self._kinds = kinds
        self._vault = vault
        self._clock = clock

    def of(self, plan: Plan, run: str, *, undoes: bool = False) -> list[Part]:
        """Return the transactions of a plan; none if nothing changes. run: a text of its own. undoes: whether it ends
        an unfinished apply.

        Users and other objects whose rows no file can bring back are not removed yet. The last transaction notes them,
        and the caller removes them afterwards: by then, nothing can be refused. Other changes before which
        `Kind.release` runs are noted before that, so that nothing else changes the configuration meanwhile.
        """
        final = [] if undoes else [step for step in plan.changes if _is_final(step)]
        changes = [step for step in plan.changes if undoes or not _is_final(step)]
        most = WHOLE if sum(step.kind.weight for step in changes) <= WHOLE else SLICE
        batches = _batches(changes, most)
        if not batches and not final and not any(plan.managed.values()) and not plan.released and not undoes:
            return []
        groups, found, count = _groups(batches, most), list[Part](), 0
        for group in groups:
            steps = [step for _, own in group for step in own]
            released = [step for step in steps if _releases(step)]
            if released:
                found.append(Part(self._slice(plan, run, [], steps, count, undoes=undoes)))
                count, steps = count + len(steps), []
            if group is groups[-1]:
                end = self._end(plan, run, group, count, final, undoes=undoes)
                found.append(Part(end, released, ends=not final))
            else:
                found.append(Part(self._slice(plan, run, group, steps, count, undoes=undoes), released))
            count += len(steps)
        return found

    def _slice(
        self, plan: Plan, run: str, group: Batches, steps: Sequence[Step], count: int, *, undoes: bool
    ) -> Work[None]:
        """Return a transaction that is not the last. steps: the changes that it notes. count: the number of changes
        that those before note."""
        own = [] if undoes else steps

        def write(tx: Tx) -> None:
            self._check(tx, plan, run, count, undoes=undoes)
            _write_steps(tx, plan.tenant_id, group)
            noted = [self._noted(plan.tenant_id, number, step) for number, step in enumerate(own, count)]
            repo.note(tx, plan.tenant_id, run, noted, self._clock())

        return write

    def _noted(self, tenant_id: int, number: int, step: Step) -> repo.Noted:
        """Return what the object of a step is before it, sealed under the key of now: it may have been rotated."""
        before, sealed = step.change.before if step.change else None, None
        if before is not None:
            sealed = self._vault.seal(json.dumps(before.fields).encode(), repo.identity(tenant_id, number))
        return repo.Noted(number, step.kind.name, step.identity, sealed)

    def _end(
        self, plan: Plan, run: str, group: Batches, count: int, final: Sequence[Step], *, undoes: bool
    ) -> Work[None]:
        """Return the last transaction. count: the number of changes that those before note. final: the removals that
        are left."""
        at, left = self._clock(), {(step.kind.name, step.identity) for step in final}
        released = {kind: [name for name in names if (kind, name) not in left] for kind, names in plan.released.items()}
        noted = [
            repo.Noted(number, step.kind.name, step.identity, None, removes=True) for number, step in enumerate(final)
        ]

        def write(tx: Tx) -> None:
            self._check(tx, plan, run, count, undoes=undoes)
            _write_steps(tx, plan.tenant_id, group)
            for kind in self._kinds() if plan.changes else ():
                kind.verify(tx, plan.tenant_id)
            repo.manage(tx, plan.tenant_id, plan.managed, released)
            repo.forget_noted(tx, plan.tenant_id, run)
            repo.note(tx, plan.tenant_id, run, noted, at)
            if plan.changes and plan.action:
                target = counted(len(plan.changes), "object")
                audit.record(tx, plan.action, at=at, tenant_id=plan.tenant_id, target=target)

        return write

    def former(self, tenant_id: int, noted: repo.Noted) -> Fields | None:
        """Return what an object was before an unfinished apply; None if it was not there."""
        if noted.fields is None:
            return None
        octets = self._vault.open(noted.fields, repo.identity(tenant_id, noted.number))
        return cast(Fields, json.loads(octets))

    def _check(self, tx: Tx, plan: Plan, run: str, count: int, *, undoes: bool) -> None:
        """Check before each transaction that the configuration is that of the plan, or that the undo is still that of
        this run. count: the number of changes that the transactions before note. Raises Outdated."""
        if undoes:
            repo.continue_undo(tx, plan.tenant_id, run, self._clock())
        elif count:
            repo.check_noted(tx, plan.tenant_id, run, count)
        else:
            repo.check_version(tx, plan)


def _releases(step: Step) -> bool:
    """Return whether `Kind.release` runs before a step."""
    is_own = type(step.kind).release is not Kind.release
    return is_own and step.change is not None and step.kind.releases(step.change)


def _is_final(step: Step) -> bool:
    """Return whether a step removes an object that an undo could not restore, and that nothing else waits for."""
    return step.sign is Sign.REMOVED and not step.kind.removed_first and _releases(step)


def _groups(batches: Batches, most: int) -> list[list[tuple[AnyKind, Sequence[Step]]]]:
    """Return the batches of each transaction. The first change before which `Kind.release` runs begins a new
    transaction. most: the maximum weight of a transaction."""
    groups, size, releases = [list[tuple[AnyKind, Sequence[Step]]]()], 0, False
    for kind, steps in batches:
        weight, released = len(steps) * kind.weight, releases
        releases = releases or any(map(_releases, steps))
        if groups[-1] and (size + weight > most or releases > released):
            groups.append([])
            size = 0
        groups[-1].append((kind, steps))
        size += weight
    return groups


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


def _write_steps(tx: Tx, tenant_id: int, group: Batches) -> None:
    for kind, steps in group:
        ids = {fold(name): number for number, name in repo.domains(tx, tenant_id).items()}
        with placed(kind, steps):
            kind.write(tx, tenant_id, [with_domains(step, ids) for step in steps])


def with_domains(step: Step, ids: dict[str, int]) -> AnyChange:
    """Return the change of a step with the ids of its domains. Raises Conflict if a domain does not exist any more."""
    change = step.change or Change(None, None)
    try:
        domains = tuple(ids[fold(name)] for name in step.domains)
    except KeyError as error:
        raise Conflict(f"there is no domain {error.args[0]} any more") from None
    return Change(change.before, change.body, change.fields, domains)


@contextmanager
def placed(kind: AnyKind, steps: Sequence[Step]) -> Iterator[None]:
    """Add the place of steps to an error: that of the object if there is only one."""
    try:
        yield
    except Refused as error:
        one = f"{steps[0].source or '--prune'}: {kind.name} {steps[0].name}"
        error.args = (f"{one if len(steps) == 1 else f'{kind.name}.toml'}: {error}", *error.args[1:])
        raise
