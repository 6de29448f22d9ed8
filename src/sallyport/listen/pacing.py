"""Work that is put off: rejects until their delay has passed, logins that cannot be decided while their request is
read, and the rounds of EAP beyond the time of a wake-up."""

import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from sallyport.base.fair import FairShares
from sallyport.login.login import Answered, Login
from sallyport.radius.duplicates import Source


class Delayed:
    """Answers that leave a fixed time after their decision was on disk. release: gets each, with the microsecond at
    which it was ready."""

    def __init__(self, seconds: float, release: Callable[[Answered, int], None]) -> None:
        self._seconds = seconds
        self._release = release
        self._held: deque[tuple[float, Answered, int]] = deque()
        self._some = trio.Event()

    def __len__(self) -> int:
        """How many are held back."""
        return len(self._held)

    def hold(self, entry: Answered, now: int) -> None:
        """Release an answer after its delay; at once if there is no delay. now: microseconds."""
        if self._seconds <= 0:
            return self._release(entry, now)
        self._held.append((trio.current_time() + self._seconds, entry, now))
        return self._some.set()

    async def run(self) -> None:
        """Release each answer when it is due, until cancelled; then the remaining ones at once."""
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


BEGIN_AT_ONCE: Final = 8
"""Logins of a turn of the event loop that begin to wait for something: each costs a tenth of a millisecond."""
AT_ONCE_S: Final = 0.004
"""Processor time in which rounds of EAP are answered as they come, in a wake-up. One of ten is a signature that takes a
millisecond; what is left after that becomes tasks, so that the plain logins behind it need not wait. When another
program has the processor they wait either way."""


class Undecided:
    """Logins that become a task each, a few in each pass of the event loop, each tenant and source in turn. Otherwise a
    thousand simultaneous logins would delay the plain ones behind them. decide: the task."""

    def __init__(self, nursery: trio.Nursery, decide: Callable[[Login], Awaitable[None]]) -> None:
        self._nursery = nursery
        self._decide = decide
        self._waiting: FairShares[int, Source, Login] = FairShares()
        self._begins = False

    def put(self, login: Login) -> None:
        """Run the login's task when its turn comes."""
        self._waiting.put(login.client.tenant_id, login.source, login)
        if not self._begins:
            self._begins = True
            self._nursery.start_soon(self._begin)

    async def _begin(self) -> None:
        while self._waiting:
            for _ in range(min(BEGIN_AT_ONCE, len(self._waiting))):
                self._nursery.start_soon(self._decide, self._waiting.take())
            await trio.lowlevel.checkpoint()
        self._begins = False


class RoundBudget:
    """The CPU time of a wake-up in which rounds of EAP are processed as they arrive."""

    def __init__(self) -> None:
        self._came = self._until = -math.inf

    def has_time(self, came: float) -> bool:
        """Return whether time is left. came: in seconds of the monotonic clock, the same for all datagrams of one
        wake-up; a datagram that was read before its turn has an older one."""
        now = time.thread_time()
        if came > self._came:
            self._came, self._until = came, now + AT_ONCE_S
        return now <= self._until
