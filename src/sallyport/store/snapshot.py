"""Small tables held in memory (RADIUS clients, domains), exact after each change.

A change of configuration goes through `Configuration.change`. It increases `config_version` in the same transaction and
reloads the snapshots before it returns, so that the next request sees the change. If another process has increased the
version (a restore), `watch` reloads within a second.
"""

from collections.abc import Callable
from typing import Generic, TypeVar, cast

import structlog
import trio

from sallyport.base.errors import SallyportError
from sallyport.store.model import Store, Tx, Work

T = TypeVar("T")
POLL_S = 0.5

log = structlog.get_logger()


class Snapshot(Generic[T]):
    """The last result of `load`. `value` is never changed; it is replaced by a new object. `adopt` is called with each
    new value."""

    def __init__(self, load: Work[T], empty: T, adopt: Callable[[T], None]) -> None:
        self.load = load
        self.value = empty
        self.adopt = adopt


class Configuration:
    """The snapshots of the process. They are reloaded together, from one view of the store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._snapshots: list[Snapshot[object]] = []
        self._on_foreign_change: list[Callable[[], None]] = []
        self._on_replaced: list[Callable[[], None]] = []
        self._version = -1
        self._changing = 0
        self._changed_elsewhere = trio.Event()

    @property
    def version(self) -> int:
        """Return the version of the snapshots in memory. It grows with every change."""
        return self._version

    def hold(self, load: Work[T], empty: T, adopt: Callable[[T], None] = lambda _value: None) -> Snapshot[T]:
        """Return a snapshot that is reloaded after each change. Its value is `empty` until the first `reload`.

        adopt: called on the event loop with each new value before it replaces the old one, to carry over unwritten
        changes.
        """
        snapshot = Snapshot(load, empty, adopt)
        self._snapshots.append(cast(Snapshot[object], snapshot))
        return snapshot

    def on_foreign_change(self, forget: Callable[[], None]) -> None:
        """Register a function that drops caches. It is called when another process has changed the store."""
        self._on_foreign_change.append(forget)

    def on_replaced(self, forget: Callable[[], None]) -> None:
        """Register a function that drops caches. It is called when the store was replaced, because cached rows may no
        longer exist."""
        self._on_replaced.append(forget)

    async def change(self, work: Work[T]) -> T:
        """Write a change of the configuration, and return once the snapshots of this process have it."""

        def stamped(tx: Tx) -> T:
            result = work(tx)
            tx.execute("update config_version set version = version + 1")
            return result

        self._changing += 1
        try:
            result = await self.store.write(stamped)
            await self.reload()
        finally:
            self._changing -= 1
        return result

    async def reload(self) -> None:
        """Reload all snapshots. A newer snapshot is never replaced by an older view of the store. Raises StoreError."""

        def load(tx: Tx) -> tuple[int, list[object]]:
            version = tx.value(int, "select version from config_version") or 0
            return version, [snapshot.load(tx) for snapshot in self._snapshots]

        version, values = await self.store.read(load)
        if version < self._version:
            return
        self._version = version
        for snapshot, value in zip(self._snapshots, values, strict=True):
            snapshot.adopt(value)
            snapshot.value = value

    async def restored(self) -> None:
        """Reload all snapshots from a replaced store, and drop all caches. The version of the store does not matter."""
        await self._adopt()
        for forget in self._on_replaced:
            forget()

    async def _adopt(self) -> None:
        self._version = -1
        await self.reload()
        for forget in self._on_foreign_change:
            forget()

    def look(self) -> None:
        """Let `watch` look now for a change by another process."""
        self._changed_elsewhere.set()

    async def watch(self) -> None:
        """Follow changes by other processes, until cancelled."""
        while True:
            self._changed_elsewhere = trio.Event()
            try:
                await self._follow()
            except SallyportError as error:
                log.warning("configuration_not_read", error=str(error))
            with trio.move_on_after(POLL_S):
                await self._changed_elsewhere.wait()

    async def _follow(self) -> None:
        known = self._version
        version = await self.store.read(lambda tx: tx.value(int, "select version from config_version") or 0)
        ours = self._changing or known != self._version  # this process has made the change, and reloads by itself
        if version != known and not ours:
            await self._adopt()
