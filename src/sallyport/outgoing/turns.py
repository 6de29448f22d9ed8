"""A few tasks in each turn of the event loop, and each tenant's in their turn."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import trio

from sallyport.base.fair import FairQueue

LONG_S: Final = 0.005
"""CPU time of a turn of the event loop after which a single task goes on in the next."""


@dataclass(slots=True, eq=False)
class _Waiter:
    task: trio.lowlevel.Task | None


class Turns:
    """Lets so many tasks go on in each turn of the event loop; the others wait, the first of each tenant first.

    A thousand answers that come in the same instant would be read, and what follows from them done, in one turn; and
    a plain login that comes meanwhile would wait for its end. After a turn that took long a single task goes on: an
    answer that a tenant's server has made costly to read takes 20 ms.
    """

    def __init__(self, most: int) -> None:
        self._line = _Line(most)

    def apart(self) -> Turns:
        """Return the same turns for another tenant."""
        other = Turns.__new__(Turns)
        other._line = self._line
        return other

    async def take(self) -> None:
        """Go on, in this turn or in a later one."""
        line = self._line
        if line.left > 0 and not line.waiting:
            line.left -= 1
            line.end_soon()
            return
        waiter = _Waiter(trio.lowlevel.current_task())
        line.waiting.put(self, waiter)

        def give_up(_: object) -> trio.lowlevel.Abort:
            waiter.task = None
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(give_up)


class _Line:
    """What all tenants share. left: tasks that may go on in this turn."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.left = most
        self.waiting: FairQueue[Turns, _Waiter] = FairQueue()
        self._ends = False
        self._began = 0.0
        self._is_long = False

    def end_soon(self) -> None:
        """End the turn with the event loop's."""
        if not self._ends:
            self._ends = True
            trio.lowlevel.current_trio_token().run_sync_soon(self._end)

    def _end(self) -> None:
        self._ends = False
        now = time.thread_time()
        was_long, self._is_long = self._is_long, now >= self._began + LONG_S
        # Two, since it is random whether this comes before the tasks of a turn or after them.
        self.left = 1 if self._is_long or was_long else self._most
        self._began = now
        went = False
        while self.left and self.waiting:
            task = self.waiting.take().task
            if task is not None:
                trio.lowlevel.reschedule(task)
                self.left -= 1
                went = True
        if went:
            self.end_soon()
