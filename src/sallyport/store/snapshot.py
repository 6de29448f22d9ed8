"""Copies of small tables in memory (RADIUS clients, domains), reloaded after each change.

The configuration is changed by `Configuration.change` and `change_in_parts`, or with `stamp`. They increase
`config_version` in the transaction of the change, and reload the snapshots before they return. So the next request
already sees the change. If another process has increased the version, for example by a restore, `watch` reloads the
snapshots within a second.

An apply may write the configuration in several transactions, with one change at the end. While one is unfinished, no
process reloads its snapshots. Changes of others are written, and wait for its end before they take effect. An urgent
change does not wait: it makes the written part effective too.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Generic, TypeVar, cast

import structlog
import trio

from sallyport.base.errors import SallyportError, StoreError
from sallyport.store.model import Store, Tx, Work

T = TypeVar("T")
POLL_S = 0.5
LOOK_S: Final = 0.1
"""Time in seconds between two looks for the end of an unfinished apply, or between two reads of a store that fails."""
WAIT_S: Final = 30.0
"""Time in seconds after which a change that is written returns, although it has not taken effect: the store cannot be
read, or an apply has not ended."""

log = structlog.get_logger()


class Snapshot(Generic[T]):
    """A copy of a small table in memory. `value` is never changed; a reload replaces it by a new object.

    load: reads the table. empty: the value before the first reload. adopt: called with each new value.
    """

    def __init__(self, load: Work[T], empty: T, adopt: Callable[[T], None]) -> None:
        self.load = load
        self.value = empty
        self.adopt = adopt


class Configuration:
    """The snapshots of this process. All snapshots are reloaded together, in one transaction.

    is_partial: returns whether the store has a part of an unfinished apply. has_partial: whether the snapshots have
    one, because this process has started meanwhile, or because of an urgent change.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.is_partial: Work[bool] = lambda _tx: False
        self.has_partial = False
        self._snapshots: list[Snapshot[object]] = []
        self._on_foreign_change: list[Callable[[], None]] = []
        self._on_replaced: list[Callable[[], None]] = []
        self._version = -1
        self._reads_whole = True
        self._waits = False
        self._forgotten = -1
        self._changing = 0
        self._reloading = trio.Lock()
        self._requested = 0
        self._completed = 0
        self._asked = trio.Event()
        self._changed_elsewhere = trio.Event()

    @property
    def version(self) -> int:
        """Return the version of the configuration in memory. Each change increases it."""
        return self._version

    @property
    def is_outdated(self) -> bool:
        """Whether the tables may have been replaced since the last reload, so that a loader must read them whole. It
        is true during the first reload, after a change by another process, and after a restore."""
        return self._reads_whole

    def hold(self, load: Work[T], empty: T, adopt: Callable[[T], None] = lambda _value: None) -> Snapshot[T]:
        """Return a new snapshot that is reloaded after each change. Its value is `empty` until the first `reload`.

        load: reads the value from the store, in a thread. It may read the snapshot's value to reuse unchanged parts,
        but must not change it. adopt: called on the event loop with each new value, before the new value replaces the
        old value. For example, `adopt` can copy unwritten changes from the old value to the new value.
        """
        snapshot = Snapshot(load, empty, adopt)
        self._snapshots.append(cast(Snapshot[object], snapshot))
        return snapshot

    def on_foreign_change(self, forget: Callable[[], None]) -> None:
        """Register a function that drops caches. It is called after another process has changed the configuration."""
        self._on_foreign_change.append(forget)

    def on_replaced(self, forget: Callable[[], None]) -> None:
        """Register a function that drops caches. It is called after a restore, because cached rows may not exist any
        more."""
        self._on_replaced.append(forget)

    def forget(self) -> None:
        """Drop the caches that `on_foreign_change` has registered."""
        for forget in self._on_foreign_change:
            forget()

    async def change(self, work: Work[T], *, urgent: bool = False) -> T:
        """Write a change of the configuration. Return when the snapshots of this process contain the change.

        If the change is written and the store then cannot be read for WAIT_S, the change has succeeded all the same:
        its result may be a secret that is shown once. `watch` reloads the snapshots as soon as the store answers. The
        same holds if an apply does not end within WAIT_S. urgent: whether the change takes effect at once on all nodes,
        even while an apply is unfinished.
        """
        (result,) = await self.change_in_parts([work], urgent=urgent)
        return result

    async def change_in_parts(self, parts: Sequence[Work[T]], *, urgent: bool = False) -> list[T]:
        """Write a change of the configuration in several transactions, and reload the snapshots once; see `change`. If
        a transaction fails, the earlier ones stay written."""
        results = list[T]()
        self._changing += 1
        try:
            try:
                for work in parts:
                    results.append(await self.store.write(partial(_stamped, work=work, urgent=urgent)))
            finally:
                if results:
                    await self.reload_if_possible()
        finally:
            self._changing -= 1
        return results

    async def reload_if_possible(self) -> None:
        """Reload all snapshots. If the store fails for WAIT_S, or if an apply does not end within WAIT_S, `watch`
        reloads them as soon as possible."""
        until, is_told = trio.current_time() + WAIT_S, False
        while True:
            try:
                return await self.reload()
            except SallyportError as error:
                if not is_told:
                    log.warning("configuration_not_read", error=str(error))
                if trio.current_time() >= until:
                    return None
            is_told = True
            await trio.sleep(LOOK_S)

    async def reload(self) -> None:
        """Reload all snapshots, after the end of an unfinished apply. Raises StoreError, also if the apply does not end
        within WAIT_S.

        One reload runs at a time. Calls that arrive during a reload share the next one.
        """
        self._requested += 1
        request, began = self._requested, trio.current_time()
        self._asked.set()
        async with self._reloading:
            while self._completed < request:
                self._asked = trio.Event()
                if await self._read():
                    continue
                if trio.current_time() - began >= WAIT_S:
                    raise StoreError("an apply in several transactions is unfinished")
                with trio.move_on_after(LOOK_S):
                    await self._asked.wait()

    async def _read(self) -> bool:
        """Read all snapshots in one transaction. Return False, and read nothing, if an apply is unfinished and no
        urgent change was written. The caller holds the lock."""

        def load(tx: Tx) -> tuple[int, bool, list[object] | None]:
            version, urgent = next(iter(tx.rows("select version, urgent from config_version")), (0, 0))
            is_partial = self.is_partial(tx)
            waits = is_partial and int(str(urgent)) <= self._version
            values = None if waits else [snapshot.load(tx) for snapshot in self._snapshots]
            return int(str(version)), is_partial, values

        requested = self._requested
        version, is_partial, values = await self.store.read(load)
        self._waits = values is None
        if values is None:
            return False
        self._completed, self._version, self._reads_whole = requested, version, False
        self.has_partial = is_partial
        for snapshot, value in zip(self._snapshots, values, strict=True):
            snapshot.adopt(value)
            snapshot.value = value
        return True

    async def restored(self) -> None:
        """Reload all snapshots after a restore, even if the version is lower than before, and drop all caches."""
        await self._adopt(is_replaced=True)
        for forget in self._on_replaced:
            forget()

    async def _adopt(self, *, is_replaced: bool = False) -> None:
        async with self._reloading:
            self._reads_whole = True
            if is_replaced:
                self._version = -1
            await self._read()
        self.forget()

    async def current(self, snapshot: Snapshot[T]) -> T:
        """Return the value of a snapshot. While a written change waits for the end of an apply, return what the store
        has, so that an answer to the change shows it. Raises StoreError."""
        return await self.store.read(snapshot.load) if self._waits else snapshot.value

    async def refresh(self) -> None:
        """Reload all snapshots, unless an apply is unfinished: its end reloads them. Raises StoreError."""
        if not self._waits:
            async with self._reloading:
                await self._read()

    def look(self) -> None:
        """Make `watch` check at once whether another process has changed the configuration."""
        self._changed_elsewhere.set()
        self._asked.set()

    async def watch(self) -> None:
        """Reload the snapshots after changes by other processes, until cancelled."""
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
        if version == known:
            return
        if self._waits and version != self._forgotten:
            self._forgotten = version
            self.forget()  # caches do not wait: they may have a token that is revoked
        is_awaited = self._waits and self._reloading.locked()
        ours = self._changing or is_awaited or known != self._version  # then `change` reloads the snapshots
        if not ours:
            await self._adopt()


def _stamped(tx: Tx, work: Work[T], *, urgent: bool) -> T:
    """Do some work, and increase the version of the configuration."""
    result = work(tx)
    stamp(tx, urgent=urgent)
    return result


def stamp(tx: Tx, *, urgent: bool = False) -> None:
    """Increase the version of the configuration, so that all nodes read it again. A change that is not written by
    `Configuration.change` calls this function in its transaction, and `reload_if_possible` afterwards."""
    tx.execute("update config_version set version = version + 1")
    if urgent:
        tx.execute("update config_version set urgent = version")
