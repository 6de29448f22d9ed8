"""Functions that wait for the effects of other tasks and processes."""

import time
from collections.abc import Awaitable, Callable

import trio


async def until(condition: Callable[[], bool | Awaitable[bool]], *, seconds: float = 120.0) -> None:
    """Return as soon as a condition is true. Raise TooSlowError if it is not true in time."""
    with trio.fail_after(seconds):
        while True:
            holds = condition()
            if holds if isinstance(holds, bool) else await holds:
                return
            await trio.sleep(0.001)


def eventually(condition: Callable[[], bool], *, seconds: float = 120.0) -> None:
    """Return as soon as a condition is true, in a test without an event loop.

    Raise AssertionError if it is not true in time.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "still not true"
        time.sleep(0.02)
