"""Adopts the changes of other nodes: drops what is outdated from memory."""

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
    """Passes the changes of other nodes on to the areas. forget: functions by kind of change, called with the domain, 0
    for all domains. restored: loads everything anew after a restore by another node."""

    def __init__(
        self, store: Engine, forget: dict[str, Callable[[int], None]], restored: Callable[[], Awaitable[None]]
    ) -> None:
        self._store = store
        self._forget = forget
        self._restored = restored
        store.on_foreign_change(self.changed)

    def changed(self, change: ForeignChange) -> None:
        """Pass on one change; an empty kind stands for every one."""
        if not change.kind:
            for forget in self._forget.values():
                forget(0)
        elif change.kind in self._forget:
            self._forget[change.kind](change.domain_id)

    async def run(self) -> None:
        """Adopt a store that another node has restored from a backup; before, it refuses writes. Runs for ever."""
        while True:
            await trio.sleep(POLL_S)
            if self._store.is_replaced:
                try:
                    await self._restored()
                    self._store.acknowledge()
                    log.info("store_replaced_elsewhere")
                except SallyportError as error:
                    log.warning("replaced_store_not_read", error=str(error))
