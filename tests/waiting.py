"""Waiting for the effect of other tasks."""

from collections.abc import Awaitable, Callable

import trio


async def until(condition: Callable[[], bool | Awaitable[bool]], *, seconds: float = 30.0) -> None:
    """Return as soon as a condition holds. TooSlowError: it does not within these seconds."""
    with trio.fail_after(seconds):
        while True:
            holds = condition()
            if holds if isinstance(holds, bool) else await holds:
                return
            await trio.sleep(0.001)
