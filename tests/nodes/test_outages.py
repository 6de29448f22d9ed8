"""A node whose connection to the database is lost, or whose server hangs."""

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.base.errors import StoreError
from sallyport.metrics import StoreMetrics
from sallyport.store.model import Tx
from sallyport.store.postgres.dialer import Dialer, Pause
from sallyport.store.postgres.engine import HUNG_S, PostgresStore
from sallyport.store.postgres.link import IDLE_S
from tests.nodes.conftest import Open
from tests.nodes.proxy import Proxy
from tests.peers.postgres import database_in, needs_postgres, server
from tests.store.conftest import names, put
from tests.waiting import eventually, until

pytestmark = [pytest.mark.system, needs_postgres]
ADD = "update counters set value = value + 1 where name = 'row'"


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """Return a proxy before the server."""
    with Proxy(server().port) as proxy:
        yield proxy


@pytest.fixture
def url(proxy: Proxy, tmp_path: Path) -> str:
    """Return the address of the database through the proxy."""
    return proxy.url(database_in(tmp_path))


async def test_a_lost_connection_fails_the_write_and_comes_back(opened: Open, proxy: Proxy, url: str) -> None:
    """A write fails while the server is away, and the same node writes again when it is back."""
    async with opened("one", url) as store:
        proxy.cut()
        with pytest.raises(StoreError):
            await store.write(partial(put, name="never"))
        proxy.release()
        await until(lambda: store.ready)
        await store.write(partial(put, name="later"))
        await until(partial(_has, store, "later"))


async def _has(store: PostgresStore, name: str) -> bool:
    try:
        return await store.read(names) == [name]
    except StoreError:
        return False


async def test_a_hung_server_is_reported_and_given_up(opened: Open, proxy: Proxy, url: str) -> None:
    """The store is not ready within a second. Each write and read ends within 15 s, and works when the server answers
    again."""
    async with opened("one", url) as store:
        await until(lambda: store.ready)
        await store.read(names)
        proxy.hold()
        began = time.monotonic()
        await until(lambda: not store.ready)
        assert time.monotonic() - began < 1.2  # a loaded machine adds to the second
        with trio.fail_after(15):
            async with trio.open_nursery() as nursery:
                for attempt in (store.write(partial(put, name="never")), store.read(names)):
                    nursery.start_soon(_fails, attempt)
        proxy.release()
        await until(lambda: store.ready)
        await until(partial(_has_written, store))


async def test_a_read_at_a_hung_server_moves_on(opened: Open, proxy: Proxy, tmp_path: Path) -> None:
    """If the first server of the address hangs and the second one works, writes and reads continue at the second one. A
    read that was waiting for the first server does so too."""
    with Proxy(server().port) as second:
        url = database_in(tmp_path).replace(f":{server().port}/", f":{proxy.port},127.0.0.1:{second.port}/")
        async with opened("one", url) as store:
            await until(lambda: store.ready)
            await _read_twice(store)
            proxy.hold()
            await until(lambda: store._journal.in_flight_s > HUNG_S - 1)
            with trio.fail_after(20):
                assert await store.read(names) == []  # it begins too late to be given up with the journal
                await until(partial(_has_written, store))
                await _read_twice(store)  # the second connection was idle while the server hung


async def _read_twice(store: PostgresStore) -> None:
    """Read on two connections at the same time."""
    both = Barrier(2)

    def read(tx: Tx) -> None:
        both.wait(10)
        names(tx)

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(store.read, read)


def test_a_start_without_the_synchronous_standby(tmp_path: Path) -> None:
    """If the server waits for a standby that is not connected, the store is not opened, and the error names the
    cause."""
    url = database_in(tmp_path)
    PostgresStore(url, StoreMetrics(CollectorRegistry())).close()
    server().execute("alter system set synchronous_standby_names = 'absent'")
    server().execute("select pg_reload_conf()")
    try:
        with pytest.raises(StoreError, match="check that its synchronous standby servers are connected"):
            PostgresStore(f"{url}?options=-c%20synchronous_commit%3Don", StoreMetrics(CollectorRegistry()))
    finally:
        server().execute("alter system reset synchronous_standby_names")
        server().execute("select pg_reload_conf()")


async def test_locks_of_a_node_without_a_network(opened: Open, proxy: Proxy, url: str, tmp_path: Path) -> None:
    """If a node loses its network in the middle of a transaction, another node that waits for its locks can write
    within seconds. Nothing of that transaction is kept."""
    async with opened("one", url) as store, opened("two") as other:
        await store.write(partial(put, name="row"))
        is_locked = trio.Event()
        token = trio.lowlevel.current_trio_token()

        def work(tx: Tx) -> None:
            tx.execute(ADD)
            proxy.hold()
            token.run_sync_soon(is_locked.set)
            tx.execute(ADD)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(_fails, store.write(work))
            await is_locked.wait()
            with trio.fail_after(IDLE_S + 2):
                await other.write(lambda tx: tx.execute(ADD))
        assert await other.read(lambda tx: tx.value(int, "select value from counters where name = 'row'")) == 1


async def test_a_node_that_is_ready_can_read(opened: Open, proxy: Proxy, url: str) -> None:
    """When a node is ready again after an outage, its reads succeed at once: no reader waits for the end of a pause."""
    async with opened("one", url) as store:
        proxy.cut()
        with trio.move_on_after(4):  # reads fail again and again, so that the pauses grow
            while True:
                with suppress(StoreError):
                    await store.read(lambda tx: tx.rows("select 1"))
                await trio.sleep(0.02)
        proxy.release()
        await until(lambda: store.ready)
        assert await store.read(lambda tx: tx.rows("select 1")) == [(1,)]


async def _fails(attempt: object) -> None:
    with pytest.raises(StoreError):
        await attempt  # type: ignore[misc]


async def _has_written(store: PostgresStore) -> bool:
    try:
        await store.write(partial(put, name="later"))
    except StoreError:
        return False
    return True


async def test_a_node_stops_while_the_server_hangs(opened: Open, proxy: Proxy, url: str) -> None:
    """A node ends within seconds, though its threads wait for a server that does not answer."""
    async with opened("one", url) as store:
        proxy.hold()
        await until(lambda: not store.ready)
        began = time.monotonic()
    assert time.monotonic() - began < 12


def test_attempts_to_connect_have_pauses(proxy: Proxy, url: str) -> None:
    """After an attempt that failed, further ones fail without a connection until the pause is over."""
    dialer = Dialer(url, Pause())
    dialer.connect().close()
    proxy.cut()
    for _ in range(100):
        with pytest.raises(StoreError):
            dialer.connect()
    assert proxy.refused < 10
    proxy.release()
    eventually(lambda: _connects(dialer))


def _connects(dialer: Dialer) -> bool:
    with suppress(StoreError):
        dialer.connect().close()
        return True
    return False


async def test_a_deadlock_of_two_nodes_is_solved(opened: Open) -> None:
    """Two nodes that lock the same rows in opposite orders both succeed: the loser's transaction runs again."""
    async with opened("one") as store, opened("two") as other:
        await store.write(lambda tx: [put(tx, "a"), put(tx, "b")])
        runs: list[str] = []
        done = [trio.Event(), trio.Event()]
        for each, order, finished in ((store, "ab", done[0]), (other, "ba", done[1])):

            def work(tx: object, order: str = order) -> None:
                runs.append(order)
                for name in order:
                    sql = "update counters set value = value + 1 where name = :name"
                    tx.execute(sql, name=name)  # type: ignore[attr-defined]
                    deadline = time.monotonic() + 10
                    while len(set(runs)) < 2 and time.monotonic() < deadline:  # both have the first row
                        time.sleep(0.005)
                    time.sleep(0.05)

            def end(_result: object, error: BaseException | None, finished: trio.Event = finished) -> None:
                assert error is None
                finished.set()

            each.submit(work, end)
        with trio.fail_after(20):
            for event in done:
                await event.wait()
        assert len(runs) == 3
        assert await store.read(lambda tx: tx.rows("select value from counters where domain_id = 0")) == [(2,), (2,)]
