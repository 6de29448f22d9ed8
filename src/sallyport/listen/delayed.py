"""Rejects that are held back for a while, so that guessing takes its time."""

import math
from collections import deque
from collections.abc import Callable

import trio

from sallyport.login.login import Answered


class Delayed:
    """Answers that leave a fixed time after their decision was on disk. release: gets each, with the microsecond it
    could have left."""

    def __init__(self, seconds: float, release: Callable[[Answered, int], None]) -> None:
        self._seconds = seconds
        self._release = release
        self._held: deque[tuple[float, Answered, int]] = deque()
        self._some = trio.Event()

    def __len__(self) -> int:
        """How many are held back."""
        return len(self._held)

    def hold(self, entry: Answered, now: int) -> None:
        """Let it go when its time has passed; at once where that is none. now: microseconds."""
        if self._seconds <= 0:
            return self._release(entry, now)
        self._held.append((trio.current_time() + self._seconds, entry, now))
        return self._some.set()

    async def run(self) -> None:
        """Let each go when it is due, until cancelled; then those that are left, at once."""
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
