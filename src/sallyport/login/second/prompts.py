"""How often a user may be asked: 5 open prompts and 10 a minute, so that nobody is worn down into approving."""

from collections import deque
from collections.abc import Callable

OPEN = 5
A_MINUTE = 10
MINUTE_S = 60.0
MAX_USERS = 65_536

UserKey = tuple[int, str]
"""Domain and name without case."""


class Prompts:
    """The prompts of the last minute and those that are open, by user. clock: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begun: dict[UserKey, deque[float]] = {}
        self._open: dict[UserKey, int] = {}

    def begin(self, user: UserKey) -> bool:
        """Count a new prompt of a user; `end` must follow. False: the user has had enough."""
        now = self._clock()
        begun = self._begun.get(user)
        if begun is None:
            if len(self._begun) >= MAX_USERS:
                self._forget(now)
            begun = self._begun[user] = deque()
        while begun and begun[0] <= now - MINUTE_S:
            begun.popleft()
        if len(begun) >= A_MINUTE or self._open.get(user, 0) >= OPEN:
            return False
        begun.append(now)
        self._open[user] = self._open.get(user, 0) + 1
        return True

    def end(self, user: UserKey) -> None:
        """A prompt is over, however it ended."""
        left = self._open.get(user, 0) - 1
        if left > 0:
            self._open[user] = left
        else:
            self._open.pop(user, None)

    def _forget(self, now: float) -> None:
        """Drop users whose minute is over; of the others the oldest, so that names alone cannot fill the memory."""
        self._begun = {user: begun for user, begun in self._begun.items() if begun and begun[-1] > now - MINUTE_S}
        while len(self._begun) >= MAX_USERS:
            del self._begun[next(iter(self._begun))]
