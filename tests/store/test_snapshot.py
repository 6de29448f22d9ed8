"""Configuration: snapshots in memory that are exact after each change."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from sallyport.base.errors import NotFound, StoreError
from sallyport.store.model import Store, T, Tx, Work
from sallyport.store.snapshot import LOOK_S, POLL_S, WAIT_S, Configuration, Snapshot, stamp
from sallyport.store.sqlite import SqliteStore
from tests.areas import running_store
from tests.store.conftest import NO_NAMES, names, put


class HeldStore:
    """A store that can delay a read's answer, or fail. reads: the number of reads that have begun."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.reads = 0
        self.held: list[trio.Event] = []
        self.hold_next = False
        self.fails = False
        self.failed = trio.Event()

    async def read(self, work: Work[T]) -> T:
        if self.fails:
            self.failed.set()
            raise StoreError("disk")
        self.reads += 1
        hold, self.hold_next = self.hold_next, False
        result = await self.store.read(work)
        if hold:
            self.held.append(trio.Event())
            await self.held[-1].wait()
        return result

    async def read_now(self, work: Work[T]) -> T:
        return await self.store.read_now(work)

    async def search(self, work: Work[T]) -> T:
        return await self.store.search(work)

    async def write(self, work: Work[T]) -> T:
        return await self.store.write(work)

    def submit(self, work: Work[T], done: Callable[[T | None, BaseException | None], None]) -> None:
        self.store.submit(work, done)


async def test_a_change_holds_when_it_returns(store: Store) -> None:
    """After a change has returned, every snapshot has it."""
    configuration = Configuration(store)
    listed, counted = configuration.hold(names, NO_NAMES), configuration.hold(lambda tx: len(names(tx)), -1)
    assert (listed.value, counted.value) == ([], -1)
    for number in range(5):
        assert await configuration.change(partial(put, name=f"n{number}", value=number)) == 1
        assert (len(listed.value), counted.value) == (number + 1, number + 1)


async def test_a_refused_change_changes_nothing(store: Store) -> None:
    """A change that raises reaches its caller, and leaves snapshots and version unchanged."""
    configuration = Configuration(store)
    listed = configuration.hold(names, NO_NAMES)
    await configuration.change(partial(put, name="a"))

    def refused(tx: Tx) -> None:
        put(tx, "b")
        raise NotFound("x")

    version = await store.read(lambda tx: tx.value(int, "select version from config_version"))
    with pytest.raises(NotFound):
        await configuration.change(refused)
    assert listed.value == ["a"]
    assert await store.read(lambda tx: tx.value(int, "select version from config_version")) == version


async def test_changes_at_the_same_time_all_hold(store: Store) -> None:
    """Of many changes at once each is visible when it returns, and all are at the end."""
    configuration = Configuration(store)
    listed = configuration.hold(names, NO_NAMES)

    async def change(name: str) -> None:
        await configuration.change(partial(put, name=name))
        assert name in listed.value

    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(change, f"n{number}")
    assert len(listed.value) == 50


async def test_one_reload_runs_at_a_time(store: Store) -> None:
    """Changes that arrive during a slow reload wait, and then share one reload, which has all of them."""
    held = HeldStore(store)
    configuration = Configuration(held)
    listed = configuration.hold(names, NO_NAMES)
    held.hold_next = True

    async def change(name: str) -> None:
        await configuration.change(partial(put, name=name))
        assert name in listed.value

    async with trio.open_nursery() as nursery:
        nursery.start_soon(change, "a")
        while not held.held:
            await trio.testing.wait_all_tasks_blocked(0.01)
        for name in "bcd":
            nursery.start_soon(change, name)
        while await store.read(names) != ["a", "b", "c", "d"]:
            await trio.testing.wait_all_tasks_blocked(0.01)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert (held.reads, listed.value) == (1, [])
        held.held[0].set()
    assert (held.reads, listed.value) == (2, ["a", "b", "c", "d"])


async def test_a_written_change_succeeds_though_it_cannot_be_read(
    sqlite: SqliteStore, autojump_clock: trio.testing.MockClock
) -> None:
    """If the store fails after the commit and for WAIT_S, the change returns its result, and the snapshots follow
    later."""
    held = HeldStore(sqlite)
    configuration = Configuration(held)
    listed = configuration.hold(names, NO_NAMES)
    await configuration.change(partial(put, name="a"))
    followed = trio.Event()
    configuration.on_foreign_change(followed.set)
    held.fails = True
    assert await configuration.change(partial(put, name="b")) == 1
    assert listed.value == ["a"]
    held.fails = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(configuration.watch)
        await followed.wait()
        nursery.cancel_scope.cancel()
    assert listed.value == ["a", "b"]


async def test_a_change_returns_when_it_can_be_read(
    sqlite: SqliteStore, autojump_clock: trio.testing.MockClock
) -> None:
    """If the store cannot be read after the commit, the change returns only when it has taken effect."""
    held = HeldStore(sqlite)
    configuration = Configuration(held)
    listed = configuration.hold(names, NO_NAMES)
    await configuration.reload()
    held.fails = True

    async def mend() -> None:
        await trio.sleep(WAIT_S / 2)
        assert listed.value == []
        held.fails = False

    async with trio.open_nursery() as nursery:
        nursery.start_soon(configuration.watch)
        nursery.start_soon(mend)
        await configuration.change(partial(put, name="a"))
        assert (listed.value, held.fails) == (["a"], False)
        nursery.cancel_scope.cancel()


async def test_a_loader_learns_that_the_tables_may_have_been_replaced(store: Store) -> None:
    """A loader may keep what it has read before, except at the first reload and after a restore."""
    configuration = Configuration(store)
    outdated: list[bool] = []
    configuration.hold(lambda tx: outdated.append(configuration.is_outdated), None)
    await configuration.reload()
    await configuration.change(partial(put, name="a"))
    await configuration.restored()
    await configuration.reload()
    assert outdated == [True, False, True, False]


async def test_a_value_is_replaced_as_a_whole(store: Store) -> None:
    """A change replaces the value, so that an old value stays as it was."""
    configuration = Configuration(store)
    listed = configuration.hold(names, NO_NAMES)
    await configuration.change(partial(put, name="a"))
    old = listed.value
    await configuration.change(partial(put, name="b"))
    assert (old, listed.value) == (["a"], ["a", "b"])


async def test_a_change_of_another_process_is_seen_within_a_second(tmp_path: Path) -> None:
    """A raised version in the file updates the snapshots within a second, and clears the caches."""
    async with running_store(tmp_path / "s.db") as store, trio.open_nursery() as nursery:
        configuration = Configuration(store)
        listed, forgotten = configuration.hold(names, NO_NAMES), trio.Event()
        configuration.on_foreign_change(forgotten.set)
        await configuration.reload()
        nursery.start_soon(configuration.watch)
        with closing(sqlite3.connect(store.path)) as other:
            other.execute("insert into counters (domain_id, name, value) values (0, 'foreign', 1)")
            other.execute("update config_version set version = version + 1")
            other.commit()
        with trio.fail_after(30):
            await forgotten.wait()
        assert listed.value == ["foreign"]
        nursery.cancel_scope.cancel()


async def test_own_changes_are_not_foreign(store: Store, autojump_clock: trio.testing.MockClock) -> None:
    """A change of this process clears no caches, which have it already."""
    configuration = Configuration(store)
    told: list[str] = []
    configuration.on_foreign_change(lambda: told.append("forget"))
    await configuration.reload()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(configuration.watch)
        for number in range(5):
            await configuration.change(partial(put, name=f"n{number}"))
            await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert told == []


async def test_what_is_in_memory_stands_while_the_store_fails(
    sqlite: SqliteStore, autojump_clock: trio.testing.MockClock
) -> None:
    """A store that cannot be read neither ends the watch nor empties a snapshot."""
    held = HeldStore(sqlite)
    configuration = Configuration(held)
    listed = configuration.hold(names, NO_NAMES)
    await configuration.change(partial(put, name="a"))
    forgotten = trio.Event()
    configuration.on_foreign_change(forgotten.set)
    async with trio.open_nursery() as nursery:
        held.fails = True
        nursery.start_soon(configuration.watch)
        await held.failed.wait()
        assert listed.value == ["a"]
        await sqlite.write(raise_version)
        held.fails = False
        await forgotten.wait()
        nursery.cancel_scope.cancel()
    assert listed.value == ["a", "b"]


class CountedReads:
    """A store that only counts reads. Each of them finds the version that is in memory."""

    def __init__(self) -> None:
        self.reads = 0

    async def read(self, work: Work[int]) -> int:
        self.reads += 1
        assert self.reads < 100
        await trio.lowlevel.checkpoint()
        return -1


async def test_an_announced_change_is_looked_up_at_once(autojump_clock: trio.testing.MockClock) -> None:
    """After `look`, the store is read without a pause, and then again every POLL_S."""
    store = CountedReads()
    configuration = Configuration(cast(Store, store))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(configuration.watch)
        await trio.sleep(POLL_S / 4)
        configuration.look()
        await trio.sleep(POLL_S / 4)
        assert store.reads == 2
        await trio.sleep(10 * POLL_S)
        assert store.reads == 12
        nursery.cancel_scope.cancel()


def is_partial(tx: Tx) -> bool:
    """Return whether `part` is stored. The tests use it as an unfinished apply."""
    return "part" in names(tx)


def end(tx: Tx) -> None:
    """End the unfinished apply."""
    tx.execute("delete from counters where name = 'part'")


def held_back(store: Store) -> tuple[Configuration, Snapshot[list[str]]]:
    """Return a configuration that an unfinished apply holds back, and a snapshot."""
    configuration = Configuration(store)
    configuration.is_partial = is_partial
    return configuration, configuration.hold(names, NO_NAMES)


async def test_a_change_waits_for_the_end_of_an_apply(store: Store) -> None:
    """It is written, and takes effect at the end of an apply that is written in several transactions. The reload of
    that end serves it too."""
    configuration, listed = held_back(store)
    await configuration.reload()
    await store.write(partial(put, name="part"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(configuration.change, partial(put, name="a"))
        while await store.read(names) != ["a", "part"]:
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert listed.value == []
        await configuration.change(end)
        assert listed.value == ["a"]


class UnfinishedApply:
    """A store with an unfinished apply, until it is ended."""

    def __init__(self) -> None:
        self.is_ended = False

    async def read(self, work: Work[object]) -> tuple[int, bool, list[object] | None]:
        await trio.lowlevel.checkpoint()
        return (2, False, []) if self.is_ended else (1, True, None)


async def test_the_end_of_an_apply_is_noticed_at_once(autojump_clock: trio.testing.MockClock) -> None:
    """A change that waits takes effect with the reload after the last part of the apply, and not with its own next
    look."""
    store = UnfinishedApply()
    configuration = Configuration(cast(Store, store))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(configuration.reload)
        await trio.sleep(LOOK_S / 4)
        store.is_ended, began = True, trio.current_time()
        await configuration.reload()
    assert (configuration.version, trio.current_time()) == (2, began)


async def test_an_urgent_change_waits_for_no_apply(store: Store) -> None:
    """It takes effect at once, also at another process, which sees no later change before the end."""
    configuration, listed = held_back(store)
    other, listed_there = held_back(store)
    await configuration.reload()
    await other.reload()
    await store.write(partial(put, name="part"))
    await configuration.change(partial(put, name="a"), urgent=True)
    assert (listed.value, configuration.has_partial) == (["a", "part"], True)
    await other._follow()
    assert listed_there.value == ["a", "part"]
    await store.write(raise_version)
    await other._follow()
    assert listed_there.value == ["a", "part"]
    await store.write(end)
    await other._follow()
    assert (listed_there.value, other.has_partial) == (["a", "b"], False)


async def test_caches_are_dropped_while_an_apply_is_unfinished(store: Store) -> None:
    """A token that another node has revoked is refused at once. Each change drops the caches once."""
    configuration, listed = held_back(store)
    told: list[str] = []
    configuration.on_foreign_change(lambda: told.append("forget"))
    await configuration.reload()
    await store.write(partial(put, name="part"))
    await store.write(raise_version)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(configuration.reload)
        await trio.testing.wait_all_tasks_blocked(0.01)
        for number in range(1, 3):
            await configuration._follow()
            await configuration._follow()
            assert (len(told), listed.value) == (number, [])
            await store.write(stamp)
        await store.write(end)
    assert listed.value == ["b"]


async def test_a_change_returns_though_an_apply_does_not_end(
    sqlite: SqliteStore, autojump_clock: trio.testing.MockClock
) -> None:
    """After WAIT_S the change is written and not in effect. It takes effect when the apply is undone."""
    configuration, listed = held_back(sqlite)
    followed = trio.Event()
    configuration.on_foreign_change(lambda: followed.set() if "a" in listed.value else None)
    await configuration.reload()
    await sqlite.write(partial(put, name="part"))
    began = trio.current_time()
    await configuration.change(partial(put, name="a"))
    assert trio.current_time() - began >= WAIT_S
    assert listed.value == []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(configuration.watch)
        await sqlite.write(end)
        await followed.wait()
        nursery.cancel_scope.cancel()


async def test_an_answer_shows_a_change_that_waits(sqlite: SqliteStore, autojump_clock: trio.testing.MockClock) -> None:
    """After WAIT_S, the value of a snapshot for an answer is that of the store. At the end of the apply, it is that in
    memory again."""
    configuration, listed = held_back(sqlite)
    await configuration.reload()
    await sqlite.write(partial(put, name="part"))
    await configuration.change(partial(put, name="a"))
    assert (listed.value, await configuration.current(listed)) == ([], ["a", "part"])
    await configuration.change(end)
    assert await configuration.current(listed) is listed.value


async def test_a_refresh_does_not_wait_for_an_apply(store: Store) -> None:
    """It reads the store, or leaves that to the end of an unfinished apply, also beside a change that waits for it."""
    configuration, listed = held_back(store)
    await store.write(partial(put, name="a"))
    await configuration.refresh()
    assert listed.value == ["a"]
    await store.write(partial(put, name="part"))
    await configuration.refresh()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(configuration.change, partial(put, name="b"))
        await trio.testing.wait_all_tasks_blocked(0.01)
        await configuration.refresh()
        assert listed.value == ["a"]
        await store.write(end)
    assert listed.value == ["a", "b"]


async def test_a_start_and_a_restore_read_a_part(store: Store) -> None:
    """A process that starts while an apply is unfinished has its part, and knows it. So it can undo or wait."""
    configuration, listed = held_back(store)
    await store.write(partial(put, name="part"))
    await configuration.reload()
    assert (listed.value, configuration.has_partial) == (["part"], True)
    await store.write(partial(put, name="a"))
    await configuration.restored()
    assert (listed.value, configuration.has_partial) == (["a", "part"], True)
    await store.write(end)
    await configuration.reload()
    assert (listed.value, configuration.has_partial) == (["a"], False)


async def test_a_restored_store_may_be_older(sqlite: SqliteStore) -> None:
    """After a restore the version may be lower, and counts from there."""
    configuration = Configuration(sqlite)
    listed = configuration.hold(names, NO_NAMES)
    told: list[str] = []
    configuration.on_foreign_change(lambda: told.append("forget"))
    for name in "abc":
        await configuration.change(partial(put, name=name))
    await sqlite.write(
        lambda tx: (tx.execute("delete from counters"), tx.execute("update config_version set version = 1"))
    )
    await configuration.restored()
    assert (listed.value, told) == ([], ["forget"])
    await configuration.change(partial(put, name="d"))
    assert listed.value == ["d"]


def raise_version(tx: Tx) -> None:
    """Raise the version, as another process does after a change."""
    put(tx, "b")
    tx.execute("update config_version set version = version + 1")
