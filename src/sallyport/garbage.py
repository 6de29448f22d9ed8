"""When Python's garbage collector looks for cycles.

Logins make none, not even those that wait for a phone: a look finds nothing, and walks all that is young meanwhile.
What is young grows with every login that waits, two hundred objects each, while Python counts only how many objects
there are more than at the last look: where as many waits end as begin it does not look for long, and then for a tenth
of a second. So the clock says when to look at what is young, so often that a look takes a millisecond. What has
outlived that is walked once more within a minute: garbage of other work, an import or a request over HTTP, which was
still held at its first look. What has outlived both is left alone until nobody waits.
"""

import gc
import time
from collections.abc import Callable
from typing import Final

import trio

YOUNG: Final = 5_000
"""So many new objects are looked at whatever the clock says."""
NEVER: Final = 1_000_000_000
SHORTEST_S, LONGEST_S = 0.01, 1.0
LOOK_S: Final = 0.001
GROWN_S: Final = 60.0
OLD_S: Final = 3600.0


async def collect_garbage(waiting: Callable[[], int], *, grown_s: float = GROWN_S, old_s: float = OLD_S) -> None:
    """Look for garbage until cancelled. waiting: how many requests wait now. grown_s: between two looks at what has
    outlived its first; old_s: between two at everything, which is put off while requests wait, for as long again at
    most."""
    gc.freeze()  # what the start has made stays
    gc.enable()
    gc.set_threshold(YOUNG, NEVER, NEVER)
    pause_s, grown_due, old_due = LONGEST_S, trio.current_time() + grown_s, trio.current_time() + old_s
    while True:
        await trio.sleep(pause_s)
        pause_s = next_pause(pause_s, _look(0))
        now = trio.current_time()
        if now >= old_due + (old_s if waiting() else 0):
            _look(2)
            old_due = now + old_s
        elif now >= grown_due:
            _look(1)
            grown_due = now + grown_s


def next_pause(pause_s: float, took_s: float) -> float:
    """How long to wait for the next look, where the last came after a pause and took so long."""
    if took_s > LOOK_S:
        return max(pause_s / 2, SHORTEST_S)
    return min(pause_s * 2, LONGEST_S) if took_s < LOOK_S / 2 else pause_s


def _look(generation: int) -> float:
    """The seconds of processor time that it took."""
    began = time.thread_time()
    gc.collect(generation)
    return time.thread_time() - began
