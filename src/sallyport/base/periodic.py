"""Work that a task repeats while the service runs."""

from collections.abc import Awaitable, Callable
from typing import NoReturn

import structlog
import trio

from sallyport.base.errors import SallyportError

log = structlog.get_logger()


async def every(seconds: float, work: Callable[[], Awaitable[object]], *, failure: str) -> NoReturn:
    """Run `work` at once, and again `seconds` after the end of each run, until cancelled.

    A SallyportError, such as a StoreError, is logged as the event `failure`, and the work runs again the next time. Any
    other exception propagates.
    """
    while True:
        try:
            await work()
        except SallyportError as error:
            log.warning(failure, error=str(error))
        await trio.sleep(seconds)
