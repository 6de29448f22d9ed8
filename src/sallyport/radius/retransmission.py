"""When the service sends its own request again, and when it gives up (RFC 5080 section 2.2.1). The caller passes in the
time.

    trying = Retransmission(now)
    while not trying.is_over(now):
        if trying.is_due(now):
            send(packet)
            trying.note_sent(now)
        wait for an answer, no longer than until trying.next_at

All retransmissions have the same octets. A retransmission with a new Event-Timestamp would be another request, and the
NAS might execute both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import SystemRandom
from typing import Final

_random: Final = SystemRandom()


@dataclass(frozen=True, slots=True)
class Timers:
    """The retransmission timers of RFC 5080, in seconds.

    initial: the time until the first retransmission (IRT). most: the maximum time between two transmissions (MRT).
    duration: the time until the service gives up (MRD). count: the maximum number of transmissions (MRC).
    """

    initial: float = 2.0
    most: float = 16.0
    duration: float = 30.0
    count: int = 5


RFC_5080: Final = Timers()


def _jitter() -> float:
    """Return the random factor RAND of RFC 5080. It spreads the retransmissions of several clients over time."""
    return _random.uniform(-0.1, 0.1)


class Retransmission:
    """The transmissions of one request.

    next_at: the time at which the caller must send the request (again) or give up. sent: the number of transmissions
    until now.
    """

    __slots__ = ("_ends_at", "_jitter", "_pause", "_timers", "next_at", "sent")

    def __init__(self, now: float, timers: Timers = RFC_5080, *, jitter: Callable[[], float] = _jitter) -> None:
        self._timers = timers
        self._jitter = jitter
        self._ends_at = now + timers.duration
        self._pause = 0.0
        self.next_at = now
        self.sent = 0

    def is_over(self, now: float) -> bool:
        """Return whether to give up."""
        return now >= self._ends_at or (now >= self.next_at and self.sent >= self._timers.count)

    def is_due(self, now: float) -> bool:
        """Return whether the request must be sent now, for the first time or again."""
        return now >= self.next_at and not self.is_over(now)

    def note_sent(self, now: float) -> None:
        """Record a transmission. The time until the next transmission doubles, up to the maximum, with a random factor
        each time."""
        jitter, timers = self._jitter(), self._timers
        self._pause = self._pause * (2 + jitter) if self.sent else timers.initial * (1 + jitter)
        if self._pause > timers.most:
            self._pause = timers.most * (1 + jitter)
        self.sent += 1
        self.next_at = min(now + self._pause, self._ends_at)
