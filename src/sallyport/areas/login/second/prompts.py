"""Limit the prompts for a user to 2 pending and 4 a minute. Otherwise an attacker could send prompts until the user
approves one (MFA fatigue). `factors.pauses` ends the prompts for some minutes if the user does not answer them. Users
who refuse prompts again and again are reported: an attacker may have their password."""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from sallyport.base.bounded import BoundedMap

OPEN, A_MINUTE = 2, 4
CODES_OPEN, CODES_A_MINUTE = 5, 10
"""The limits of logins with a code after the password. They prompt no user, so prompts of others do not stop them."""
MINUTE_S = 60.0
MAX_USERS = 65_536
REFUSED = 3
"""Number of refused prompts of a user within an hour that is reported."""
HOUR_S = 3600.0

UserKey = tuple[int, str]
"""The id of the domain and the user's case-folded name."""


@dataclass(slots=True)
class _Pending:
    """The pending prompts of a user. answered_at: the time of the last answer to one of them."""

    count: int = 0
    answered_at: float = -math.inf


class Prompts:
    """The pending and recent prompts of each user.

    clock: a function that returns monotonic seconds. max_users: the maximum number of users with prompts in the last
    minute. Each tenant has a share.
    """

    def __init__(self, clock: Callable[[], float], *, max_users: int = MAX_USERS) -> None:
        self._clock = clock
        self._begun = BoundedMap[UserKey, deque[float]](max_users)
        self._open: dict[UserKey, _Pending] = {}

    def __len__(self) -> int:
        """Return the number of users with a prompt in the last minute."""
        return len(self._begun)

    def begin(self, user: UserKey, tenant_id: int, *, has_code: bool = False) -> bool:
        """Count a new prompt for a user, and return True. The caller must call `end` when the prompt has ended. If the
        user has reached the limit, count nothing, and return False. has_code: whether the login sends no prompt,
        because the user has typed a code after the password."""
        now = self._clock()
        self._begun.pop_oldest_while(lambda begun: begun[-1] <= now - MINUTE_S)
        begun = self._begun.get(user) or deque()
        while begun and begun[0] <= now - MINUTE_S:
            begun.popleft()
        pending = self._open.get(user) or _Pending()
        most_open, a_minute = (CODES_OPEN, CODES_A_MINUTE) if has_code else (OPEN, A_MINUTE)
        if len(begun) >= a_minute or pending.count >= most_open:
            return False
        begun.append(now)
        self._begun.put(user, begun, tenant_id)
        pending.count += 1
        self._open[user] = pending
        return True

    def not_sent(self, user: UserKey) -> None:
        """Do not count the newest prompt of a user, because it was not sent. The caller must still call `end`."""
        if begun := self._begun.get(user):
            begun.pop()
            if not begun:
                self._begun.pop(user)

    def answered(self, user: UserKey) -> None:
        """Record that a user has answered one of the pending prompts."""
        if (pending := self._open.get(user)) is not None:
            pending.answered_at = self._clock()

    def end(self, user: UserKey, began: float) -> bool:
        """Count the end of a pending prompt. Return whether the user has answered another prompt since this one began.
        began: the time of its begin, by the clock."""
        pending = self._open.get(user)
        if pending is None:
            return False
        pending.count -= 1
        if not pending.count:
            del self._open[user]
        return pending.answered_at >= began


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
