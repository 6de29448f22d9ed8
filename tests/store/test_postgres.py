"""PostgreSQL: the values that it stores, its connections, and the writes of several nodes."""

import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from sallyport.base.actor import Actor, acting_as
from sallyport.base.errors import ConfigError, StoreError
from sallyport.base.text import fold
from sallyport.store.model import Tx, Value
from sallyport.store.postgres import check_driver
from sallyport.store.postgres.connection import Connection
from sallyport.store.postgres.dialer import FIRST_PAUSE_S, MAX_PAUSE_S, Dialer, Pause
from sallyport.store.postgres.engine import HUNG_S, WATCH_S, PostgresStore, _Readers
from sallyport.store.postgres.migration import exists
from sallyport.store.postgres.transaction import COPIED, Inserts
from sallyport.store.search import SearchIndex
from sallyport.store.slices import BATCH_S
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


@pytest.fixture
async def migrated(tmp_path: Path, opened: Open) -> AsyncIterator[PostgresStore]:
    """Yield the running store of a node whose start has made the schema."""
    database_in(tmp_path, is_empty=True)
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


def test_the_driver_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without psycopg, the error says which extra a PostgreSQL database needs."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match="a PostgreSQL database needs the extra `postgres`"):
        check_driver()


def test_an_empty_database_has_no_store(tmp_path: Path) -> None:
    """The first start makes a master key only if there is no store yet."""
    (tmp_path / "empty").mkdir()
    assert exists(database_in(tmp_path))
    assert not exists(database_in(tmp_path / "empty", is_empty=True))


async def test_a_long_read_ends_if_the_server_answers(postgres: PostgresStore) -> None:
    """A read longer than HUNG_S is given up only if the server hangs."""
    gate = Gate()

    def read(tx: Tx) -> list[str]:
        gate.work(tx)
        return names(tx)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(postgres.read, read)
        await gate.entered.wait()
        (connection,) = postgres._readers._busy
        postgres._readers._busy[connection] -= 2 * HUNG_S  # as if it had begun before
        await trio.sleep(3 * WATCH_S)
        gate.open()


async def test_a_new_connection_that_fails(tmp_path: Path) -> None:
    """If the server ends a connection before its first read, the read fails with an error of the store."""
    dialer = Dialer(database_in(tmp_path), Pause())

    class Lost(Dialer):
        def connect(self) -> Connection:
            connection = dialer.connect()
            connection.close()
            return connection

    readers = _Readers(Lost("", Pause()), Inserts(), 1, 1.0)
    with pytest.raises(StoreError):
        await readers.run(names)
    assert readers._busy == {}


async def test_the_service_waits_for_one_write_of_a_request(postgres: PostgresStore) -> None:
    """If the service has something to write, the writes of requests that share a transaction let it pass."""
    gate, order = Gate(), list[str]()

    def long(tx: Tx) -> None:
        deadline = time.monotonic() + 30
        while not tx.others_wait() and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(2 * BATCH_S)
        order.append("long")

    def short(_tx: Tx, name: str) -> None:
        order.append(name)

    async with trio.open_nursery() as nursery:
        with acting_as(Actor("token", "a", 1, 1)):
            nursery.start_soon(postgres.write, gate.work)
            await gate.entered.wait()
            for work in (long, partial(short, name="second"), partial(short, name="third")):
                nursery.start_soon(postgres.write, work)
                await trio.testing.wait_all_tasks_blocked()
        gate.open()
        await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.start_soon(postgres.write, partial(short, name="service"))
    assert order == ["long", "service", "second", "third"]


_PREVIOUS_RELEASE = """
insert into organizations (id, name, created_at) values (1, 'o', 0);
insert into tenants (id, organization_id, number, name, created_at) values (1, 1, 1, 't', 0);
insert into domains (id, tenant_id, name, name_key, directory_name, enforcement_mode, fallback_action, first_factor,
status, realms, created_at) values (1, 1, 'Corp', 'corp', '', 'enforce', 'deny', 'local', 'active', 'corp.example', 0);
insert into radius_clients (id, tenant_id, name, name_key, network, network_bits, secret, all_domains, product,
require_message_authenticator, limit_proxy_state, password_verified, created_at)
values (1, 1, 'vpn', 'vpn', '192.0.2.0/24', '4110', 'x', 1, '', 'auto', 'auto', 0, 0)
"""


async def test_rows_of_a_node_of_the_previous_release(migrated: PostgresStore) -> None:
    """Such a node writes neither the realms of domains nor the bits of networks. Triggers keep both right."""
    realms, bits = "select realm from domain_realms order by realm", "select network_bits from radius_clients"

    def add(tx: Tx) -> list[tuple[Value, ...]]:
        for statement in _PREVIOUS_RELEASE.split(";\n"):
            tx.execute(statement)
        return tx.rows(realms)

    def change(tx: Tx) -> list[list[tuple[Value, ...]]]:
        tx.execute("update domains set name = 'HQ', realms = ''")
        tx.execute("update radius_clients set network = '192.0.2.0/25', network_bits = '4111'")
        found = [tx.rows(realms), tx.rows(bits)]
        tx.execute("update radius_clients set network = '192.0.2.0/26'")
        return [*found, tx.rows(bits)]

    assert await migrated.write(add) == [("Corp",), ("corp.example",)]
    assert await migrated.write(change) == [[("HQ",)], [("4111",)], [(None,)]]


async def test_a_row_is_deleted_with_its_dependent_rows(migrated: PostgresStore) -> None:
    """A trigger that deletes the dependent rows first lets the row go too."""

    def delete(tx: Tx) -> tuple[int, list[tuple[Value, ...]]]:
        for statement in _PREVIOUS_RELEASE.split(";\n"):
            tx.execute(statement)
        tx.execute("insert into radius_client_domains (client_id, position, domain_id) values (1, 0, 1)")
        deleted = tx.execute("delete from radius_clients where id = 1")
        return deleted, tx.rows("select client_id from radius_client_domains union all select id from radius_clients")

    assert await migrated.write(delete) == (1, [])


async def test_fold_is_that_of_python(migrated: PostgresStore) -> None:
    """Both engines find the same names, also if the form for comparison is not the small letter."""
    texts = ["Straße", "ΟΔΟΣ ΣΑΣ ς", "\u017f", "ŉ", "İı", "ﬁ", "ᾳ", "Ꭰꭰ", "ÅÅ", "e\u0301É"]

    def folded(tx: Tx) -> list[Value]:
        return [tx.rows("select fold(:text)", text=text)[0][0] for text in texts]

    assert await migrated.read(folded) == [fold(text) for text in texts]
