"""The task that follows the changes of other nodes, and removes outdated values from memory."""

from collections.abc import Awaitable, Callable
from typing import Final

import structlog
import trio

from sallyport.base.errors import SallyportError
from sallyport.store.foreign import ForeignChange
from sallyport.store.model import Engine

POLL_S: Final = 0.5

log = structlog.get_logger()


class Follower:
    """Tells the other packages about changes by other nodes.

    forget: functions by kind of change. Such a function drops outdated values. It is called with a domain's id, or with
    0 for all domains. restored: a function that reloads all values in memory. It is called after another node has
    restored a backup. completed: a function that is called when the store accepts writes again after that.
    """

    def __init__(
        self,
        store: Engine,
        forget: dict[str, Callable[[int], None]],
        restored: Callable[[], Awaitable[None]],
        completed: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._forget = forget
        self._restored = restored
        self._completed = completed
        store.on_foreign_change(self.changed)

    def changed(self, change: ForeignChange) -> None:
        """Call the function that `forget` has for the kind of a change. If the kind is empty, call all functions of
        `forget`."""
        if not change.kind:
            for forget in self._forget.values():
                forget(0)
        elif change.kind in self._forget:
            self._forget[change.kind](change.domain_id)

    async def run(self) -> None:
        """Wait until another node has restored a backup, then reload all values, and repeat until cancelled. Until the
        values are reloaded, the store accepts no writes."""
        while True:
            await trio.sleep(POLL_S)
            if self._store.is_replaced:
                try:
                    await self._restored()
                    self._store.acknowledge()
                    await self._completed()
                    log.info("store_replaced_elsewhere")
                except SallyportError as error:
                    log.warning("replaced_store_not_read", error=str(error))
