"""The search: run every order of the steps, recognize known states, and check the promises.

A path is repeated from its beginning, because tasks cannot be copied. The order in which trio runs tasks is always the
same. A path continues until it reaches a known state, and leaves the other steps of its new states for later paths.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

import trio
from trio._core import _run
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.explore.world import END, FAIR, SEND, Closed, Instance, Step, World

Path = tuple[Step, ...]
Edge = tuple[int, str, int]


@dataclass
class Explored:
    """What an exploration has found.

    paths: the first path to each state, by its number. edges: the steps between states: from, kind, to. broken: the
    promises that are broken, with the path. is_complete: whether all states within the bounds were seen. used: the
    names of the transactions and calls that ran. resting: the states without a waiting request. owed: the states in
    which an approval must still lead to an Accept. accepted: the states in which an Accept is stored.
    """

    paths: list[Path] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    broken: list[tuple[str, Path]] = field(default_factory=list)
    is_complete: bool = True
    seconds: float = 0.0
    used: set[str] = field(default_factory=set)
    resting: set[int] = field(default_factory=set)
    owed: set[int] = field(default_factory=set)
    accepted: set[int] = field(default_factory=set)


class Search:
    """One exploration.

    most: the maximum number of states, or 0 for no limit. seed: with a seed, the paths are continued in a random order,
    so that a limited number of states comes from all parts of the instance. With 0, the newest path is continued first.
    begin: the names of the first steps of each path.
    """

    def __init__(self, instance: Instance, *, most: int = 0, seed: int = 0, begin: Sequence[str] = ()) -> None:
        self._instance = instance
        self._most = most
        self._random = Random(seed) if seed else None
        self._numbers: dict[bytes, int] = {}
        self._open: list[tuple[int, Path]] = [(-1, tuple(Step(each, FAIR) for each in begin))]
        self.found = Explored()

    def run(self, report: Callable[[int, int], None] = lambda *_: None) -> Explored:
        """Explore until a promise is broken or no step is left. report: called after every thousand paths, with the
        number of states and of steps that are left."""
        began, found, count = time.monotonic(), self.found, 0
        while self._open and not found.broken:
            if self._most and len(self._numbers) >= self._most:
                found.is_complete = False
                break
            if self._random:
                number = self._random.randrange(len(self._open))
                self._open[number], self._open[-1] = self._open[-1], self._open[number]
            self._repeat(*self._open.pop())
            count += 1
            if not count % 1000:
                report(len(self._numbers), len(self._open))
        if found.is_complete and not found.broken:
            self._check_ends()
        found.seconds = time.monotonic() - began
        return found

    def _repeat(self, before: int, path: Path) -> None:
        was = _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r
        _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r = True, Random(1)
        try:
            trio.run(self._walk, before, path, clock=MockClock())
        finally:
            _run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r = was

    async def _walk(self, before: int, path: Path) -> None:
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, MockClock)
        try:
            async with trio.open_nursery() as nursery:
                world = World(self._instance, clock, nursery)
                try:
                    await self._extend(world, before, path)
                finally:
                    self.found.used |= world.used
                    world.close()
                    nursery.cancel_scope.cancel()
        except* Closed:
            pass

    async def _extend(self, world: World, before: int, path: Path) -> None:
        await world.begin()
        await wait_all_tasks_blocked()
        for step in path:
            await world.do(step)
        while not self._is_broken(world, path):
            number, is_new = self._enter(world, path)
            if before >= 0:
                self.found.edges.append((before, path[-1].kind, number))
            steps = world.steps() if is_new else []
            if not steps:
                return
            self._open += [(number, (*path, each)) for each in steps[1:]]
            before, path = number, (*path, steps[0])
            await world.do(steps[0])

    def _is_broken(self, world: World, path: Path) -> bool:
        self.found.broken += [(each, path) for each in world.broken]
        return bool(world.broken)

    def _enter(self, world: World, path: Path) -> tuple[int, bool]:
        """Return the number of the current state, and whether it is new."""
        mark = hashlib.blake2b(world.fingerprint().encode(), digest_size=16).digest()
        number = self._numbers.setdefault(mark, len(self._numbers))
        is_new = number == len(self.found.paths)
        if is_new:
            self.found.paths.append(path)
            for holds, states in (
                (not world.waits, self.found.resting),
                (world.is_owed, self.found.owed),
                (bool(world.accepts), self.found.accepted),
            ):
                if holds:
                    states.add(number)
        return number, is_new

    # --- promises about what follows ------------------------------------------------------------------------------

    def _check_ends(self) -> None:
        """Check that from each state, an end can be reached by steps that happen at some time, without the user, the
        device and further faults. Check the same for the Accept of an approval, before the time limit, with the
        device."""
        found = self.found
        ends = self._reaching(found.resting, {FAIR, END})
        answered = self._reaching(found.accepted, {FAIR, SEND})
        for text, states in (
            ("a request waits for ever", set(range(len(found.paths))) - ends),
            ("the approval of the user is lost", found.owed - answered),
        ):
            if states:
                found.broken.append((text, min((found.paths[each] for each in states), key=len)))

    def _reaching(self, goals: Iterable[int], kinds: set[str]) -> set[int]:
        """Return the states from which steps of these kinds lead to a goal."""
        into: defaultdict[int, list[int]] = defaultdict(list)
        for start, kind, end in self.found.edges:
            if kind in kinds:
                into[end].append(start)
        reached, left = set(goals), list(goals)
        while left:
            new = [each for each in into[left.pop()] if each not in reached]
            reached.update(new)
            left += new
        return reached
