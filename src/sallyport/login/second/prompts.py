"""The limit of prompts for a user, 5 open and 10 a minute, so that repeated prompts cannot wear a user down into
approving."""

from collections import deque
from collections.abc import Callable

from sallyport.base.bounded import BoundedMap

OPEN = 5
A_MINUTE = 10
MINUTE_S = 60.0
MAX_USERS = 65_536

UserKey = tuple[int, str]
"""Domain and name without case."""


class Prompts:
    """The prompts of the last minute and the open ones, by user. clock: monotonic seconds. max_users: the users with
    prompts of the last minute that are kept; each tenant has a share."""

    def __init__(self, clock: Callable[[], float], *, max_users: int = MAX_USERS) -> None:
        self._clock = clock
        self._begun = BoundedMap[UserKey, deque[float]](max_users)
        self._open: dict[UserKey, int] = {}

    def __len__(self) -> int:
        """Return the number of users with a recent prompt."""
        return len(self._begun)

    def begin(self, user: UserKey, tenant_id: int) -> bool:
        """Count a new prompt of a user; `end` must follow. False: the user has reached the limit."""
        now = self._clock()
        self._begun.pop_oldest_while(lambda begun: begun[-1] <= now - MINUTE_S)
        begun = self._begun.get(user) or deque()
        while begun and begun[0] <= now - MINUTE_S:
            begun.popleft()
        if len(begun) >= A_MINUTE or self._open.get(user, 0) >= OPEN:
            return False
        begun.append(now)
        self._begun.put(user, begun, tenant_id)
        self._open[user] = self._open.get(user, 0) + 1
        return True

    def end(self, user: UserKey) -> None:
        """Count the end of a prompt."""
        left = self._open.get(user, 0) - 1
        if left > 0:
            self._open[user] = left
        else:
            self._open.pop(user, None)
