"""Periodic runs of Python's garbage collector, so that no run takes longer than a few milliseconds.

Logins create no reference cycles, even while they wait for a second factor. So a collection finds nothing, but visits
every young object, and a waiting login has two hundred of them. Python itself starts a collection when the number of
new objects minus deleted objects reaches a threshold. If about as many waits end as begin, Python collects rarely, and
a collection then takes a tenth of a second.

This module collects the young generation so often that a collection takes a millisecond. Objects that survive are
visited once more within a minute: an import or an HTTP request that used them may have ended by then. This collection
is delayed while very many requests wait. The oldest generation is collected when no request waits.
"""

import gc
import time
from collections.abc import Callable
from typing import Final

import trio

YOUNG: Final = 5_000
"""Number of new objects after which Python itself starts a collection of the young generation."""
NEVER: Final = 1_000_000_000
MIN_PAUSE_S, MAX_PAUSE_S = 0.01, 1.0
LOOK_S: Final = 0.001
GROWN_S: Final = 60.0
OLD_S: Final = 3600.0
MANY: Final = 1_000
"""Number of waiting requests above which a collection of the middle generation is delayed. With 20,000 waiting logins,
it stopped the service for 260 ms."""


async def collect_garbage(waiting: Callable[[], int], *, grown_s: float = GROWN_S, old_s: float = OLD_S) -> None:
    """Collect garbage until cancelled.

    waiting: a function that returns the number of requests that wait now. grown_s: seconds between two collections of
    the middle generation. old_s: seconds between two collections of the oldest generation. While requests wait, a
    collection of the oldest generation is delayed by up to `old_s`. So is one of the middle generation while more than
    MANY requests wait.
    """
    gc.freeze()  # objects that exist at the start live as long as the process
    gc.enable()
    gc.set_threshold(YOUNG, NEVER, NEVER)
    pause_s, grown_due, old_due = MAX_PAUSE_S, trio.current_time() + grown_s, trio.current_time() + old_s
    while True:
        await trio.sleep(pause_s)
        pause_s = next_pause(pause_s, _look(0))
        now = trio.current_time()
        if now >= old_due + (old_s if waiting() else 0):
            _look(2)
            old_due = now + old_s
        elif now >= grown_due + (old_s if waiting() > MANY else 0):
            _look(1)
            grown_due = now + grown_s


def next_pause(pause_s: float, took_s: float) -> float:
    """Return the seconds until the next collection.

    pause_s: the seconds before the last collection. took_s: the CPU seconds of the last collection.
    """
    if took_s > LOOK_S:
        return max(pause_s / 2, MIN_PAUSE_S)
    return min(pause_s * 2, MAX_PAUSE_S) if took_s < LOOK_S / 2 else pause_s


def _look(generation: int) -> float:
    """Collect a generation, and return the CPU seconds that the collection took."""
    began = time.thread_time()
    gc.collect(generation)
    return time.thread_time() - began
