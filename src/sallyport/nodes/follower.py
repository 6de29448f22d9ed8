"""This module handles the changes of other nodes: it removes outdated values from memory."""

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
    """Informs the areas of changes by other nodes. forget: for each kind of change, a function that is called with the
    domain's id; 0 means all domains. restored: reloads all values in memory after another node has restored a backup.
    """

    def __init__(
        self, store: Engine, forget: dict[str, Callable[[int], None]], restored: Callable[[], Awaitable[None]]
    ) -> None:
        self._store = store
        self._forget = forget
        self._restored = restored
        store.on_foreign_change(self.changed)

    def changed(self, change: ForeignChange) -> None:
        """Inform the areas of one change; an empty kind means all kinds."""
        if not change.kind:
            for forget in self._forget.values():
                forget(0)
        elif change.kind in self._forget:
            self._forget[change.kind](change.domain_id)

    async def run(self) -> None:
        """Reload all values when another node has restored the store from a backup; until then the store refuses
        writes. Runs until cancelled."""
        while True:
            await trio.sleep(POLL_S)
            if self._store.is_replaced:
                try:
                    await self._restored()
                    self._store.acknowledge()
                    log.info("store_replaced_elsewhere")
                except SallyportError as error:
                    log.warning("replaced_store_not_read", error=str(error))
