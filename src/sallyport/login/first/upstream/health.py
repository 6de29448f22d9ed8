"""The health of a home server. This module uses no sockets and no clock; `now` is in seconds of a monotonic clock.

    alive   becomes zombie if no answer arrives in the response window of a request, or if the network reports the
            server unreachable
    zombie  is asked only if no server is alive; becomes dead after ZOMBIE_S without any answer
    dead    is asked only if no other server is left; becomes alive after REVIVE_S, for a new try, unless the server
            is known to answer Status-Server

A zombie or dead server becomes alive after an answer to a request, or after ANSWERS_TO_ALIVE consecutive answers to
Status-Server (RFC 5997). One Status-Server is sent at the start, to learn whether the server supports it.
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
    """The states of a home server. Servers are asked in the order of these states."""

    ALIVE = "alive"
    ZOMBIE = "zombie"
    DEAD = "dead"


ALIVE: Final = State.ALIVE
RANK: Final = {state: rank for rank, state in enumerate(State)}


class Health:
    """The health of one home server. checks: send Status-Server. changed: called with the old and the new state after
    each change."""

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
        self._signed_at = -math.inf  # the time of the last answer, including answers to Status-Server
        self._answers = 0  # consecutive answers to Status-Server
        self._knows_status = False
        self._check_at = now if checks else math.inf

    def answered(self, now: float) -> None:
        """Record that a request was answered."""
        self._answered_at = self._signed_at = now
        if self.state is not ALIVE:
            self._become(State.ALIVE, now)

    def unanswered(self, sent_at: float, now: float) -> None:
        """Record that the response window of a request has ended without an answer to it."""
        if self.state is State.ALIVE and self._answered_at < sent_at:
            self._become(State.ZOMBIE, now)

    def refused(self, now: float) -> None:
        """Record that the network reports the server unreachable."""
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
        """Return whether a Status-Server must be sent now. If so, schedule the next one."""
        if now < self._check_at:
            return False
        self._check_at = math.inf if self.state is State.ALIVE else now + CHECK_INTERVAL_S
        return True

    def pass_by(self, now: float) -> None:
        """Change the state if its time is over. A zombie server becomes dead, and a dead server becomes alive."""
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
