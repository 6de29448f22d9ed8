"""A node whose connection ends, whose server hangs or is read-only, or whose transaction another node has disturbed."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.base.errors import StoreError
from sallyport.metrics import StoreMetrics
from sallyport.store.model import Tx
from sallyport.store.postgres.engine import HUNG_S, PostgresStore
from tests.nodes.conftest import Open
from tests.nodes.proxy import Proxy
from tests.peers.postgres import database_in, needs_postgres, server
from tests.store.conftest import names, put
from tests.waiting import until

pytestmark = needs_postgres


async def test_a_commit_without_an_answer_is_looked_up(opened: Open, tmp_path: Path) -> None:
    """A write whose commit the server kept succeeds, though the connection ended before the answer."""
    with Proxy(server().port) as proxy:
        async with opened("one", proxy.url(database_in(tmp_path))) as store:
            proxy.cut_at(b"; commit")
            await store.write(partial(put, name="kept"))
            assert proxy.lost.is_set()
            assert await store.read(names) == ["kept"]
            await store.write(partial(put, name="more"))


async def test_a_read_and_a_write_at_a_hung_server_end(store: PostgresStore) -> None:
    """If a write of a login has no answer for HUNG_S, its connection and those of old reads are given up. Their callers
    get an error, and the node is ready again as soon as the server answers."""
    began = [threading.Event(), threading.Event()]
    errors: list[BaseException | None] = []

    def wait(tx: Tx, number: int) -> None:
        began[number].set()
        tx.rows("select pg_sleep(20)")

    async def read() -> None:
        with pytest.raises(StoreError):
            await store.read(partial(wait, number=1))

    async with trio.open_nursery() as nursery:
        store.submit(partial(wait, number=0), lambda _result, error: errors.append(error))
        nursery.start_soon(read)
        for each in began:
            assert await trio.to_thread.run_sync(each.wait, 20)
        (connection,) = store._readers._busy
        store._readers._busy[connection] -= 2 * HUNG_S  # as if both had begun before
        assert store._journal._since is not None
        store._journal._since -= 2 * HUNG_S
    await until(lambda: bool(errors))
    assert [type(each) for each in errors] == [StoreError]
    await until(lambda: store.ready)
    await store.write(partial(put, name="later"))
    assert await store.read(names) == ["later"]


DISTURB = "do $$ begin raise exception using errcode = '{}'; end $$"


def disturbed(code: str, times: int) -> tuple[list[int], Callable[[Tx], int]]:
    """Return the list of tries and a work whose first tries fail at the server with an error code."""
    tries: list[int] = []

    def work(tx: Tx) -> int:
        tries.append(put(tx, "row"))
        if len(tries) <= times:
            tx.execute(DISTURB.format(code))
        return len(tries)

    return tries, work


@pytest.mark.parametrize("code", ["40P01", "40001"], ids=["deadlock", "not serialized"])
async def test_a_disturbed_transaction_is_repeated(store: PostgresStore, code: str) -> None:
    """The caller does not notice it, and the changes are written once."""
    tries, work = disturbed(code, 2)
    assert await store.write(work) == len(tries) == 3
    assert await store.read(names) == ["row"]


@pytest.mark.parametrize(("code", "most"), [("40001", 5), ("42704", 1)], ids=["not serialized", "wrong"])
async def test_a_transaction_that_fails_again_is_an_error(store: PostgresStore, code: str, most: int) -> None:
    """The caller gets an error after the last try. Other errors are not tried again. Nothing is written."""
    tries, work = disturbed(code, 100)
    with pytest.raises(StoreError):
        await store.write(work)
    assert len(tries) == most
    assert await store.read(names) == []


def test_a_start_at_a_read_only_server(tmp_path: Path) -> None:
    """The store is not opened, and the error has the message of the server."""
    url = database_in(tmp_path)
    PostgresStore(url, StoreMetrics(CollectorRegistry())).close()
    with pytest.raises(StoreError, match="in a read-only transaction"):
        PostgresStore(f"{url}?options=-c%20default_transaction_read_only%3Don", StoreMetrics(CollectorRegistry()))


def test_a_database_that_fails_at_the_start(tmp_path: Path) -> None:
    """If a table cannot be read, the error is that of the store, which the program shows in one line."""
    url = database_in(tmp_path)
    PostgresStore(url, StoreMetrics(CollectorRegistry())).close()
    server().execute("alter table limits rename to away", urlsplit(url).path[1:])
    with pytest.raises(StoreError, match='relation "limits" does not exist'):
        PostgresStore(url, StoreMetrics(CollectorRegistry()))
