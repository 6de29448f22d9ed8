"""When a request of our own is sent again, and when it is given up: RFC 5080 section 2.2.1. Time is passed in.

    trying = Retransmission(now)
    while not trying.is_over(now):
        if trying.is_due(now):
            send(packet)
            trying.note_sent(now)
        wait for an answer, no longer than until trying.next_at

The same octets are sent each time. A new Event-Timestamp would make it another request, which the NAS might obey twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import SystemRandom
from typing import Final

_random: Final = SystemRandom()


@dataclass(frozen=True, slots=True)
class Timers:
    """Seconds, with the RFC's defaults. initial: IRT, until the first repetition. most: MRT, between two of them.
    duration: MRD, for all of it. count: MRC, how often it is sent."""

    initial: float = 2.0
    most: float = 16.0
    duration: float = 30.0
    count: int = 5


RFC_5080: Final = Timers()


def _jitter() -> float:
    """RAND: keeps clients from retransmitting at the same time."""
    return _random.uniform(-0.1, 0.1)


class Retransmission:
    """One request. next_at: when it is sent again, or given up. sent: how often it was sent."""

    __slots__ = ("_ends_at", "_jitter", "_pause", "_timers", "next_at", "sent")

    def __init__(self, now: float, timers: Timers = RFC_5080, *, jitter: Callable[[], float] = _jitter) -> None:
        self._timers = timers
        self._jitter = jitter
        self._ends_at = now + timers.duration
        self._pause = 0.0
        self.next_at = now
        self.sent = 0

    def is_over(self, now: float) -> bool:
        """Whether no answer will come any more."""
        return now >= self._ends_at or (now >= self.next_at and self.sent >= self._timers.count)

    def is_due(self, now: float) -> bool:
        """Return whether the request must be sent, for the first time or again."""
        return now >= self.next_at and not self.is_over(now)

    def note_sent(self, now: float) -> None:
        """It was sent: the next pause is twice the last one, up to the longest, each with its jitter."""
        jitter, timers = self._jitter(), self._timers
        self._pause = self._pause * (2 + jitter) if self.sent else timers.initial * (1 + jitter)
        if self._pause > timers.most:
            self._pause = timers.most * (1 + jitter)
        self.sent += 1
        self.next_at = min(now + self._pause, self._ends_at)
