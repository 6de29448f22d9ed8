"""A task that repeats its work while the service runs."""

from collections.abc import Awaitable, Callable
from typing import NoReturn

import structlog
import trio

from sallyport.base.errors import SallyportError

log = structlog.get_logger()


async def every(seconds: float, work: Callable[[], Awaitable[object]], *, failure: str) -> NoReturn:
    """Run `work` at once, and then again and again, until cancelled. The pause between two runs is `seconds`.

    failure: the name of the log event. A SallyportError, such as a StoreError, is logged under this name, and `work`
    runs again after the pause. Any other exception propagates.
    """
    while True:
        try:
            await work()
        except SallyportError as error:
            log.warning(failure, error=str(error))
        await trio.sleep(seconds)
