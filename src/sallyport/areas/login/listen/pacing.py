"""Work that is postponed: rejects that are delayed, logins that cannot be decided at once, and rounds of EAP. A round
of EAP is postponed when the CPU time of `RoundBudget` is used up."""

import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from sallyport.areas.login.login import Answered, Login
from sallyport.base.fair import FairShares
from sallyport.radius.duplicates import Source


class Delayed:
    """Rejects that are sent a fixed time after their decision was stored.

    release: a function that sends an answer. It is called with the answer, and with the time at which the answer was
    ready, in microseconds.
    """

    def __init__(self, seconds: float, release: Callable[[Answered, int], None]) -> None:
        self._seconds = seconds
        self._release = release
        self._held: deque[tuple[float, Answered, int]] = deque()
        self._some = trio.Event()

    def __len__(self) -> int:
        """Return the number of delayed answers."""
        return len(self._held)

    def hold(self, entry: Answered, now: int) -> None:
        """Release an answer after its delay, or at once if there is no delay. now: the time at which it was ready, in
        microseconds."""
        if self._seconds <= 0:
            return self._release(entry, now)
        self._held.append((trio.current_time() + self._seconds, entry, now))
        return self._some.set()

    async def run(self) -> None:
        """Release each answer when its delay is over, until cancelled. Then release all remaining answers at once."""
        try:
            while True:
                self._some = trio.Event()
                if not self._held:
                    await self._some.wait()
                await trio.sleep_until(self._held[0][0])
                self._release_due(trio.current_time())
        finally:
            self._release_due(math.inf)

    def _release_due(self, now: float) -> None:
        while self._held and self._held[0][0] <= now:
            _, entry, decided_at = self._held.popleft()
            self._release(entry, decided_at)


BEGIN_AT_ONCE: Final = 2
"""Maximum number of postponed logins that continue in one pass of the event loop. Until it waits for its provider, each
of them takes a millisecond or more, in several passes. A provider gets only one new call in each pass anyway."""
AT_ONCE_S: Final = 0.004
"""CPU time in seconds for the rounds of EAP among datagrams that were read together. One of ten rounds needs a
signature, which takes a millisecond. Further rounds are postponed. So the logins behind them that need no EAP are not
delayed. CPU time is measured because the time of other programs must not count."""


class Undecided:
    """Logins that wait for a later pass of the event loop. A few of them continue in each pass, and tenants and sources
    take turns. Otherwise a thousand simultaneous logins would delay the later logins that can be decided at once.

    decide_now: a function that decides a login without waiting. It returns False if the login needs a task. decide: the
    function that runs in the task.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        decide_now: Callable[[Login], bool],
        decide: Callable[[Login], Awaitable[None]],
    ) -> None:
        self._nursery = nursery
        self._decide_now = decide_now
        self._decide = decide
        self._waiting: FairShares[int, Source, Login] = FairShares()
        self._begins = False

    def put(self, login: Login) -> None:
        """Add a login. It continues in one of the next passes of the event loop."""
        self._waiting.put(login.client.tenant_id, login.source, login)
        if not self._begins:
            self._begins = True
            self._nursery.start_soon(self._begin)

    async def _begin(self) -> None:
        while self._waiting:
            for _ in range(min(BEGIN_AT_ONCE, len(self._waiting))):
                login = self._waiting.take()
                if not self._decide_now(login):
                    self._nursery.start_soon(self._decide, login)
            await trio.lowlevel.checkpoint()
        self._begins = False


class RoundBudget:
    """A budget of CPU time for rounds of EAP. Each time the socket becomes readable, up to 64 datagrams are read. The
    rounds of EAP in these datagrams share the budget. When the budget is used up, each further round is postponed."""

    def __init__(self) -> None:
        self._came = self._until = -math.inf

    def has_time(self, came: float) -> bool:
        """Return whether the budget has CPU time left.

        came: the time at which the datagram was read, in seconds of the monotonic clock. All datagrams that were read
        together have the same time. Datagrams that have waited in the queue have an earlier time.
        """
        now = time.thread_time()
        if came > self._came:
            self._came, self._until = came, now + AT_ONCE_S
        return now <= self._until
