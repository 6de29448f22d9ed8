"""Whether a home server is alive. Nothing here has a socket or a clock: `now` is seconds of a monotonic clock.

    alive   no answer at all in the response window of a request, or the network reports it unreachable: zombie
    zombie  is asked if no server is alive; no sign of life for ZOMBIE_S: dead
    dead    is asked if no other server is left; alive after REVIVE_S for a try, unless it answers Status-Server

An answer to a request makes it alive, and so do ANSWERS_TO_ALIVE answers to Status-Server (RFC 5997) in a row. One
Status-Server is sent at the start, to learn whether the server answers it at all.
"""

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Final

# The defaults of FreeRADIUS's proxy.conf: zombie_period, revive_interval, check_interval, check_timeout,
# num_answers_to_alive.
ZOMBIE_S: Final = 40.0
REVIVE_S: Final = 120.0
CHECK_INTERVAL_S: Final = 30.0
CHECK_TIMEOUT_S: Final = 4.0
ANSWERS_TO_ALIVE: Final = 3


class State(StrEnum):
    """The health of a home server. Servers are asked in this order."""

    ALIVE = "alive"
    ZOMBIE = "zombie"
    DEAD = "dead"


ALIVE: Final = State.ALIVE
RANK: Final = {state: rank for rank, state in enumerate(State)}


class Health:
    """One home server's state. changed: called with the state before and after each change."""

    __slots__ = (
        "_answered_at",
        "_answers",
        "_changed",
        "_check_at",
        "_checks",
        "_knows_status",
        "_signed_at",
        "_since",
        "state",
    )

    def __init__(self, now: float, *, checks: bool, changed: Callable[[State, State], None]) -> None:
        self.state = State.ALIVE
        self._checks = checks
        self._changed = changed
        self._since = now
        self._answered_at = -math.inf
        self._signed_at = -math.inf  # the last sign of life: answers to Status-Server count
        self._answers = 0  # to Status-Server, in a row
        self._knows_status = False
        self._check_at = now if checks else math.inf

    def answered(self, now: float) -> None:
        """Record that a request was answered."""
        self._answered_at = self._signed_at = now
        if self.state is not ALIVE:
            self._become(State.ALIVE, now)

    def unanswered(self, sent_at: float, now: float) -> None:
        """Record that the response window of a request is over."""
        if self.state is State.ALIVE and self._answered_at < sent_at:
            self._become(State.ZOMBIE, now)

    def refused(self, now: float) -> None:
        """Note that the network reports the server unreachable."""
        if self.state is State.ALIVE:
            self._become(State.ZOMBIE, now)

    def check_answered(self, now: float) -> None:
        """Record that a Status-Server was answered."""
        self._signed_at = now
        self._knows_status = True
        self._answers += 1
        if self.state is not State.ALIVE and self._answers >= ANSWERS_TO_ALIVE:
            self._become(State.ALIVE, now)

    def check_unanswered(self) -> None:
        """Record that a Status-Server was not answered in CHECK_TIMEOUT_S."""
        self._answers = 0

    def is_check_due(self, now: float) -> bool:
        """Return whether to send a Status-Server now; each time is returned once."""
        if now < self._check_at:
            return False
        self._check_at = math.inf if self.state is State.ALIVE else now + CHECK_INTERVAL_S
        return True

    def pass_by(self, now: float) -> None:
        """Change a state whose time is over: zombie to dead, dead to alive."""
        if self.state is State.ZOMBIE and now - max(self._since, self._signed_at) >= ZOMBIE_S:
            self._become(State.DEAD, now)
        elif self.state is State.DEAD and not self._knows_status and now - self._since >= REVIVE_S:
            self._become(State.ALIVE, now)

    def _become(self, state: State, now: float) -> None:
        before, self.state = self.state, state
        self._since = now
        if state is State.ALIVE:
            self._check_at = math.inf
        elif before is State.ALIVE:
            self._answers = 0
            self._check_at = now if self._checks else math.inf
        self._changed(before, state)
