"""Answers that take longer than a second. The page says that the action runs, and refreshes itself until the answer is
complete.

The work of a page or a form that is declared as slow runs in a task of its own. If it is not complete after FIRST_S,
the browser is sent to the same address with the parameter `running`. There it gets a page with the header `Refresh`,
and at last the answer. So a person sees the progress without JavaScript, and no request takes minutes.

An answer belongs to one session, and is kept in the memory of one process for a short time. Another process, or the
same one after a restart, does not know it. Then a page is made again. After a form, a notice asks the person to look at
the result.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import trio
from starlette.responses import Response

from sallyport.base.secret import new_error_id
from sallyport.web import problem

PARAMETER: Final = "running"
FIRST_S: Final = 0.7
"""Time in seconds after which the browser gets the page that says that the action runs."""
AGAIN_S: Final = 2
"""Time in seconds after which this page refreshes itself."""
KEPT_S: Final = 120.0
"""Time in seconds for which a complete answer is kept."""
MOST_OF_SESSION: Final = 4
MOST: Final = 200
"""Maximum number of running actions and kept answers. Further ones are answered in their own request."""

Work: TypeAlias = Callable[[], Awaitable[Response]]
"""A function that returns an answer. Errors should be pages already."""


@dataclass
class _Action:
    session_id: int
    done: trio.Event = field(default_factory=trio.Event)
    response: Response | None = None
    ended: float = 0.0


class Running:
    """The slow actions of this process. Call `run` to execute them; without it, each request waits for its answer."""

    def __init__(self) -> None:
        self._actions: dict[str, _Action] = {}
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Execute slow actions until the task is cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    async def start(self, session_id: int, work: Work) -> Response | str:
        """Do the work. Return its answer, or the id under which the answer is kept if the work takes longer."""
        self._forget()
        own = sum(each.session_id == session_id for each in self._actions.values())
        if self._nursery is None or own >= MOST_OF_SESSION or len(self._actions) >= MOST:
            return await work()
        number, action = new_error_id(), _Action(session_id)
        self._actions[number] = action
        self._nursery.start_soon(_do, action, work)
        return await self.result(session_id, number) or number

    async def result(self, session_id: int, number: str) -> Response | None:
        """Return the answer with an id, and forget it. Return None if the work is not complete after FIRST_S. Raises
        LookupError if this session has no such answer."""
        action = self._actions.get(number)
        if action is None or action.session_id != session_id:
            raise LookupError(number)
        with trio.move_on_after(FIRST_S):
            await action.done.wait()
        if action.response is not None:
            self._actions.pop(number, None)
        return action.response

    def _forget(self) -> None:
        oldest = trio.current_time() - KEPT_S
        self._actions = {
            number: each for number, each in self._actions.items() if each.response is None or each.ended > oldest
        }


async def _do(action: _Action, work: Work) -> None:
    try:
        action.response = await work()
    except Exception as error:  # an error here would end the tasks of all other sessions
        action.response = problem.response(error, "")
    action.ended = trio.current_time()
    action.done.set()
