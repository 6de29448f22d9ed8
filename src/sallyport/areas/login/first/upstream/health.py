"""The health of a home server. The state changes by answers, missing answers and time:

    alive   becomes zombie if no answer arrives in the response window of a request, or if the network reports the
            server unreachable
    zombie  gets logins only if no server is alive; becomes dead after ZOMBIE_S without any answer
    dead    gets logins only if all other servers are dead too; becomes alive after REVIVE_S, but not if the server is
            known to answer Status-Server

A zombie or dead server also becomes alive after an answer to a request, or after ANSWERS_TO_ALIVE consecutive answers
to Status-Server (RFC 5997). The service sends one Status-Server at the start to learn whether the server supports it.

This module uses neither sockets nor a clock. The argument `now` is the time in seconds of a monotonic clock.
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
    """The states of a home server, best first. A login goes to a server in the best state."""

    ALIVE = "alive"
    ZOMBIE = "zombie"
    DEAD = "dead"


ALIVE: Final = State.ALIVE
RANK: Final = {state: rank for rank, state in enumerate(State)}


class Health:
    """The health of one home server.

    checks: whether to send Status-Server. changed: a function that is called with the old and the new state after each
    change.
    """

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
        """Record an answer to a request."""
        self._answered_at = self._signed_at = now
        if self.state is not ALIVE:
            self._become(State.ALIVE, now)

    def unanswered(self, sent_at: float, now: float) -> None:
        """Record that a request got no answer within the response window. sent_at: the time when this request was
        sent."""
        if self.state is State.ALIVE and self._answered_at < sent_at:
            self._become(State.ZOMBIE, now)

    def refused(self, now: float) -> None:
        """Record that the network reports the server unreachable."""
        if self.state is State.ALIVE:
            self._become(State.ZOMBIE, now)

    def check_answered(self, now: float) -> None:
        """Record an answer to a Status-Server."""
        self._signed_at = now
        self._knows_status = True
        self._answers += 1
        if self.state is not State.ALIVE and self._answers >= ANSWERS_TO_ALIVE:
            self._become(State.ALIVE, now)

    def check_unanswered(self) -> None:
        """Record that no answer to a Status-Server has arrived within CHECK_TIMEOUT_S."""
        self._answers = 0

    def is_check_due(self, now: float) -> bool:
        """Return whether a Status-Server must be sent now. If so, schedule the next one."""
        if now < self._check_at:
            return False
        self._check_at = math.inf if self.state is State.ALIVE else now + CHECK_INTERVAL_S
        return True

    def pass_by(self, now: float) -> None:
        """Apply the changes of state that depend on time: from zombie to dead, and from dead to alive."""
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
