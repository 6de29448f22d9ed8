"""Work that is postponed: rejects that are delayed, logins that cannot be decided at once, and rounds of EAP. A round
of EAP is postponed when the CPU time of `RoundBudget` is used up."""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import trio

from sallyport.areas.clients.client import is_check
from sallyport.areas.login.eap.rounds import EapRounds
from sallyport.areas.login.login import Answered, Decision, Login
from sallyport.areas.login.pipeline import Pipeline, show_unproven
from sallyport.areas.login.second_step import SecondStep
from sallyport.base.clock import Clock
from sallyport.base.fair import FairShares, Room
from sallyport.base.trace import following, new_trace
from sallyport.radius.duplicates import Duplicates, Source
from sallyport.radius.password import Method


class Delayed:
    """Rejects that are sent a fixed time after their decision was stored.

    seconds: a function that returns this time. release: a function that sends an answer. It is called with the answer,
    and with the time at which the answer was ready, in microseconds.
    """

    def __init__(self, seconds: Callable[[], float], release: Callable[[Answered, int], None]) -> None:
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
        if (seconds := self._seconds()) <= 0:
            return self._release(entry, now)
        self._held.append((trio.current_time() + seconds, entry, now))
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


class PendingLogins:
    """The logins of one exchange that cannot be decided at once.

    A few of them continue in each pass of the event loop, and tenants and sources take turns. Otherwise a thousand
    simultaneous logins would delay the later logins that can be decided at once.

    conclude: a function that answers a login. Its second argument is None if a newer request gets the answer. fail: a
    function that drops a login because of an error. handed_over: the number of logins that are checked by a first
    factor without a task.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        pipeline: Pipeline,
        eap: EapRounds,
        duplicates: Duplicates,
        clock: Clock,
        conclude: Callable[[Login, Decision | None], None],
        fail: Callable[[Login, Exception], None],
    ) -> None:
        self._nursery = nursery
        self._pipeline, self._second_step, self._eap = pipeline, SecondStep(pipeline), eap
        self._duplicates = duplicates
        self._clock = clock
        self._conclude = conclude
        self._fail = fail
        self._waiting: FairShares[int, Source, Login] = FairShares()
        self._continues = False
        self.handed_over = 0

    def decide(self, login: Login) -> None:
        """Decide a login later. Another server checks it without a task, or it continues in one of the next passes of
        the event loop."""
        self._duplicates.park(login.known)
        if self._pipeline.hand_over(login, self._handed_back):
            self.handed_over += 1
        else:
            self._put(login)

    def _put(self, login: Login) -> None:
        self._waiting.put(login.arrival.client.tenant_id, login.arrival.source, login)
        if not self._continues:
            self._continues = True
            self._nursery.start_soon(self._continue)

    async def _continue(self) -> None:
        while self._waiting:
            for _ in range(min(BEGIN_AT_ONCE, len(self._waiting))):
                login = self._waiting.take()
                if not self._decide_postponed(login):
                    self._nursery.start_soon(self._decide_later, login)
            await trio.lowlevel.checkpoint()
        self._continues = False

    def _handed_back(self, login: Login, decide: Callable[[], Decision | None]) -> None:
        """Continue with a login after its first factor. decide: a function that returns the same as
        `Pipeline.check`."""
        self.handed_over -= 1
        try:
            decision = decide()
            if decision is None:
                return self._put(login)
            self._conclude(login, decision)
        except Exception as error:
            self._fail(login, error)
        return self._duplicates.unpark(login.known, now=time.monotonic())

    def _decide_postponed(self, login: Login) -> bool:
        """Continue a round of EAP that `RoundBudget` has postponed. Return False if the login needs a task."""
        if login.method != Method.EAP or login.proven or login.continuation is not None:
            return False
        try:
            decision = self._eap.converse(login)
            if decision is None:
                return False
            self._conclude(login, decision)
        except Exception as error:
            self._fail(login, error)
        self._duplicates.unpark(login.known, now=time.monotonic())
        return True

    async def _decide_later(self, login: Login) -> None:
        login.trace = login.trace or new_trace()  # a round of EAP may already have the trace of its login
        with following(login.trace):
            await self._decide_in_task(login)

    async def _decide_in_task(self, login: Login) -> None:
        try:
            decision = await self._pipeline.check(login)
            if decision is None:
                decision = await self._ask(login)
            self._conclude(login, decision)
        except Exception as error:
            self._fail(login, error)
        finally:
            self._duplicates.unpark(login.known, now=time.monotonic())

    async def _ask(self, login: Login) -> Decision | None:
        """Ask for the second factor of a login, and measure the wait."""
        if login.arrival.request.signed or login.proven:
            # it is not counted after the wait, because this would re-add a device that was deleted meanwhile
            self._pipeline.note(login)
        else:
            show_unproven(login)
        began = self._clock()
        decision = await self._second_step.ask(login)
        login.asked_us = max(0, self._clock() - began)
        login.waits = replace(login.waits, second_us=login.asked_us)
        if login.noted:
            if not is_check(login.arrival.request):
                login.device.posture.measure(login.known, time.monotonic(), self._clock())
            self._pipeline.sightings.touch(login.device)
        return decision


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


class PendingSlots:
    """The slots of the pending requests of all exchanges. A pending request waits for I/O, the store, its second
    factor, or the delay of its reject. A quarter of the slots is reserved for unsigned requests, and signed requests
    use the others. Unsigned requests can be forged, and a flood of them must not delay signed requests."""

    def __init__(self, limit: int) -> None:
        self.unproven, self.proven = map(Room, self._shares(limit))

    def resize(self, limit: int) -> None:
        """Change the number of slots."""
        for room, share in zip((self.unproven, self.proven), self._shares(limit), strict=True):
            room.resize(share)

    @staticmethod
    def _shares(limit: int) -> tuple[int, int]:
        unproven = max(1, limit // 4)
        return unproven, max(1, limit - unproven)

    @property
    def now(self) -> int:
        """The number of pending requests."""
        return sum(room.limit - room.free for room in (self.proven, self.unproven))
