"""PostgreSQL: the values that it stores, its connections, and the writes of several nodes."""

import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio

from sallyport.base.errors import StoreError
from sallyport.store.model import Tx, Value
from sallyport.store.postgres.dialer import FIRST_PAUSE_S, MAX_PAUSE_S, Dialer, Pause
from sallyport.store.postgres.engine import PostgresStore
from sallyport.store.postgres.transaction import COPIED
from sallyport.store.search import SearchIndex
from tests.nodes.conftest import Open, opened
from tests.peers.postgres import database_in, needs_postgres
from tests.store.conftest import names, put
from tests.store.test_contract import Gate

__all__ = ["opened"]
pytestmark = needs_postgres
NOWHERE = "postgresql://sallyport@127.0.0.1:1/sallyport"


@pytest.fixture(name="postgres")
async def running(opened: Open) -> AsyncIterator[PostgresStore]:
    """Yield the running store of a node."""
    async with opened("one") as store:
        yield store


@pytest.mark.parametrize("count", [1, 2, COPIED], ids=["one row", "some rows", "copied rows"])
async def test_nul_is_replaced(postgres: PostgresStore, count: int) -> None:
    """PostgreSQL accepts no NUL in a text. A name with one, such as a client may send, is stored without it."""

    def work(tx: Tx) -> list[tuple[Value, ...]]:
        tx.insert("counters", ("domain_id", "name", "value"), [(number, "a\0b\\", 1) for number in range(count)])
        tx.execute("insert into counters (domain_id, name, value) values (-1, :name, 1)", name="a\0b\\")
        return tx.rows("select distinct name from counters")

    assert await postgres.write(work) == [("a\ufffdb\\",)]


async def test_values_are_those_of_sqlite(postgres: PostgresStore) -> None:
    """Sums of whole numbers are whole, averages are not, and truth values are 1 and 0."""
    sql = "select sum(n), avg(n), sum(n) = 5, sum(n) > 5 from (values (cast(1 as bigint)), (4)) as given (n)"
    ((total, average, is_equal, is_more),) = await postgres.read(lambda tx: tx.rows(sql))
    assert (total, average, is_equal, is_more) == (5, 2.5, 1, 0)
    assert [type(each) for each in (total, average, is_equal, is_more)] == [int, float, int, int]


async def test_numbers_of_every_size_share_a_statement(postgres: PostgresStore) -> None:
    """A statement is prepared once, whatever the size of its numbers."""

    def prepared(tx: Tx) -> list[tuple[Value, ...]]:
        for number in (1, 2**15, 2**31, -(2**63)) * 2:
            tx.rows("select :number + 0", number=number)
        return tx.rows("select parameter_types from pg_prepared_statements where statement like 'select $1 + 0'")

    assert await postgres.read(prepared) == [(["bigint"],)]


async def test_changes_of_the_configuration_take_turns(postgres: PostgresStore, opened: Open) -> None:
    """While a node writes for a request, no other node does, so that both see the same configuration. The journal of
    logins and the heartbeats of the other node do not wait."""
    async with opened("two") as other:
        gate, order = Gate(), list[str]()

        async def write(store: PostgresStore, name: str) -> None:
            await store.write(lambda tx: [gate.work(tx) if name == "first" else None, put(tx, name)])
            order.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write, postgres, "first")
            await gate.entered.wait()
            nursery.start_soon(write, other, "second")
            logged = trio.Event()
            other.submit(partial(put, name="login", value=1), lambda _result, _error: logged.set())
            await logged.wait()
            await other.write_aside(partial(put, name="heartbeat", value=2))
            assert (order, await other.read(names)) == ([], ["login", "heartbeat"])
            gate.open()
        assert order == ["first", "second"]


def test_the_pause_of_all_connections(tmp_path: Path) -> None:
    """During a pause, each attempt fails at once, and its error has the cause. The first connection that succeeds ends
    the pause of all, and the next pause is short again."""
    pause = Pause()
    lost, found = Dialer(NOWHERE, pause), Dialer(database_in(tmp_path), pause)
    for _ in range(8):
        with pytest.raises(StoreError, match="refused"):
            lost.connect()
        pause.due = 0.0  # as if it were over
    assert pause.back_off.failed() > MAX_PAUSE_S / 2
    pause.due = sys.float_info.max
    for dialer in (lost, found):
        with pytest.raises(StoreError, match="refused"):
            dialer.connect()
    pause.due = 0.0
    found.connect().close()
    assert pause.due == 0
    assert pause.back_off.failed() <= FIRST_PAUSE_S


@pytest.mark.parametrize(
    ("text", "found"), [("100%", [1]), ("a_b", [2]), ("\\", [3, 4]), ("%_\\", [4])], ids=["%", "_", "\\", "all"]
)
async def test_a_search_has_no_wildcards(postgres: PostgresStore, text: str, found: list[int]) -> None:
    """The characters of a pattern are found as they are."""
    index = SearchIndex("devices_search")

    def work(tx: Tx) -> list[int]:
        for number, each in enumerate(("100%", "a_b", "\\", "%_\\", "100x", "axb", "x"), start=1):
            index.add(tx, 1, number, (each,))
        sql, parameters = index.find(tx, 1, text)
        return tx.all(_id, f"{sql} order by id", **parameters)

    assert await postgres.write(work) == found


def _id(*, id: int) -> int:
    return id
