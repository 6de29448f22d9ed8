"""Answers that take longer than a second. The page says that the action runs, and refreshes itself until the answer is
complete.

The work of a page or a form that is declared as slow runs in a task of its own. If it is not complete after FIRST_S,
the browser is sent to the same address with the parameter `running`. There it gets a page with the header `Refresh`,
and at last the answer. So a person sees the progress without JavaScript, and no request takes minutes.

An answer belongs to one session, and is kept for a short time in the memory of the process that has made it. It counts
as a large answer of its tenant until it is fetched or forgotten. Another worker or node reads it from the database (see
`nodes.answers`). An answer that is not known, such as one of a process that was restarted, is handled by its kind: a
page is made again. After a form, a notice asks the person to look at the result.
"""

import json
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import structlog
import trio
from starlette.responses import Response

from sallyport.base.clock import SECOND
from sallyport.base.errors import StoreError
from sallyport.base.secret import new_error_id
from sallyport.nodes.answers import KEPT_US, SlowAnswers
from sallyport.web import problem
from sallyport.web.content import LargeAnswers

PARAMETER: Final = "running"
FIRST_S: Final = 0.7
"""Time in seconds after which the browser gets the page that says that the action runs."""
AGAIN_S: Final = 2
"""Time in seconds after which this page refreshes itself."""
KEPT_S: Final = KEPT_US / SECOND
"""Time in seconds for which a complete answer is kept."""
MAX_OF_SESSION: Final = 4
MAX_ACTIONS: Final = 200
"""Maximum number of running actions and kept answers. Further ones are answered in their own request."""

Work: TypeAlias = Callable[[], Awaitable[Response]]
"""A function that returns an answer. Errors should be pages already."""

log = structlog.get_logger()


@dataclass
class _Action:
    session_id: int
    number: str
    room: ExitStack
    is_slow: bool = False
    done: trio.Event = field(default_factory=trio.Event)
    response: Response | None = None
    ended: float = 0.0


class Running:
    """The slow actions of this process. Call `run` to execute them; without it, each request waits for its answer.
    answers: the answers of all processes. large: the large answers of all tenants."""

    def __init__(self, answers: SlowAnswers, large: LargeAnswers) -> None:
        self._answers = answers
        self._large = large
        self._actions: dict[str, _Action] = {}
        self._nursery: trio.Nursery | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Execute slow actions until the task is cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            try:
                while True:
                    await trio.sleep(KEPT_S / 2)
                    self._forget()
            finally:
                self._nursery = None

    async def start(self, session_id: int, tenant_id: int, work: Work) -> Response | str:
        """Do the work. Return its answer, or the id under which the answer is kept if the work takes longer."""
        self._forget()
        own = sum(each.session_id == session_id for each in self._actions.values())
        if self._nursery is None or own >= MAX_OF_SESSION or len(self._actions) >= MAX_ACTIONS:
            return await work()
        action = _Action(session_id, new_error_id(), ExitStack())
        self._actions[action.number] = action
        self._nursery.start_soon(self._do, action, tenant_id, work)
        answer = await self._own(action)
        if answer is not None:
            return answer
        action.is_slow = True
        await self._tell(action)
        return action.number

    async def result(self, session_id: int, number: str) -> Response | None:
        """Return the answer with an id, and forget it. Return None if the work is not complete, in this process after
        FIRST_S. Raises LookupError if this session has no such answer. Raises StoreError."""
        action = self._actions.get(number)
        if action is None:
            found = await self._answers.take(session_id, number)
            return None if found is None else unpacked(found)
        if action.session_id != session_id:
            raise LookupError(number)
        answer = await self._own(action)
        if answer is not None:
            with suppress(StoreError):  # the row expires
                await self._answers.drop(number)
        return answer

    async def _own(self, action: _Action) -> Response | None:
        with trio.move_on_after(FIRST_S):
            await action.done.wait()
        if action.response is not None:
            self._drop(action)
        return action.response

    async def _do(self, action: _Action, tenant_id: int, work: Work) -> None:
        try:
            response = await work()
            action.room.enter_context(self._large.reserved(tenant_id, len(response.body)))
            action.response = response
        except Exception as error:  # an error here would end the tasks of all other sessions
            action.response = problem.response(error, "")
        action.ended = trio.current_time()
        action.done.set()
        if action.is_slow:
            await self._tell(action)

    async def _tell(self, action: _Action) -> None:
        """Write the state of a slow action for the other processes."""
        try:
            answer = None if action.response is None else packed(action.response)
            await self._answers.put(action.session_id, action.number, answer)
        except StoreError as error:  # this process still knows the answer
            log.warning("slow_answer_not_shared", error=str(error))

    def _forget(self) -> None:
        oldest = trio.current_time() - KEPT_S
        for each in [*self._actions.values()]:
            if each.response is not None and each.ended <= oldest:
                self._drop(each)

    def _drop(self, action: _Action) -> None:
        self._actions.pop(action.number, None)
        action.room.close()


def packed(answer: Response) -> bytes:
    """Return the octets of a response: a line of JSON with its status and headers, then its body."""
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.raw_headers]
    return json.dumps([answer.status_code, headers]).encode() + b"\n" + bytes(answer.body)


def unpacked(octets: bytes) -> Response:
    """Return the response that `packed` has packed."""
    head, _, body = octets.partition(b"\n")
    status, headers = json.loads(head)
    answer = Response(body, status)
    answer.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    return answer
