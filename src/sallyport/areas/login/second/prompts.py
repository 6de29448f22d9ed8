"""Limit the prompts for a user to 5 pending and 10 a minute. Otherwise an attacker could send prompts until the user
approves one (MFA fatigue). Users who refuse prompts again and again are reported: an attacker may have their
password."""

from collections import deque
from collections.abc import Callable

from sallyport.base.bounded import BoundedMap

OPEN = 5
A_MINUTE = 10
MINUTE_S = 60.0
MAX_USERS = 65_536
REFUSED = 3
"""Number of refused prompts of a user within an hour that is reported."""
HOUR_S = 3600.0

UserKey = tuple[int, str]
"""The id of the domain and the user's case-folded name."""


class Prompts:
    """The pending and recent prompts of each user.

    clock: a function that returns monotonic seconds. max_users: the maximum number of users with prompts in the last
    minute. Each tenant has a share.
    """

    def __init__(self, clock: Callable[[], float], *, max_users: int = MAX_USERS) -> None:
        self._clock = clock
        self._begun = BoundedMap[UserKey, deque[float]](max_users)
        self._open: dict[UserKey, int] = {}

    def __len__(self) -> int:
        """Return the number of users with a prompt in the last minute."""
        return len(self._begun)

    def begin(self, user: UserKey, tenant_id: int) -> bool:
        """Count a new prompt for a user, and return True. The caller must call `end` when the prompt has ended. If the
        user has reached the limit, count nothing, and return False."""
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
        """Count the end of a pending prompt."""
        left = self._open.get(user, 0) - 1
        if left > 0:
            self._open[user] = left
        else:
            self._open.pop(user, None)


class Refusals:
    """The prompts that each user has refused within the last hour.

    clock: a function that returns monotonic seconds. max_users: the maximum number of users. Each tenant has a share.
    """

    def __init__(self, clock: Callable[[], float], *, max_users: int = MAX_USERS) -> None:
        self._clock = clock
        self._at = BoundedMap[UserKey, list[float]](max_users)

    def note(self, user: UserKey, tenant_id: int) -> bool:
        """Count a refused prompt. Return True if the user has refused REFUSED prompts now, which are then forgotten."""
        now = self._clock()
        at = [each for each in self._at.get(user) or () if each > now - HOUR_S] + [now]
        if len(at) < REFUSED:
            self._at.put(user, at, tenant_id)
            return False
        self._at.pop(user)
        return True
