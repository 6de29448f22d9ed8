"""What a node checks of its server, and what `doctor` says of it."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sallyport.areas.events.retention import DAY
from sallyport.base.clock import SECOND, now_us
from sallyport.base.errors import StoreError
from sallyport.store.foreign import CLOCKS_US
from sallyport.store.postgres.dialer import Dialer, Pause
from sallyport.store.postgres.engine import CONNECTIONS, PostgresStore, _Readers
from sallyport.store.postgres.server import Server, check, doubts, inspect
from sallyport.store.postgres.transaction import Inserts
from tests.nodes.conftest import node
from tests.nodes.pooler import needs_pgbouncer, pooled
from tests.peers.postgres import database_in, needs_postgres

pytestmark = needs_postgres


@pytest.fixture
def place() -> Iterator[Path]:
    """Return a directory that another user can enter."""
    with tempfile.TemporaryDirectory(prefix="sallyport-pooler-") as directory:
        yield Path(directory)


@pytest.mark.peer
@needs_pgbouncer
def test_a_pooler_in_transaction_mode_is_refused(tmp_path: Path, place: Path) -> None:
    """PgBouncer in transaction mode is refused with the remedy; in session mode it is accepted."""
    url = database_in(tmp_path)
    refusal = r"in transaction mode, such as PgBouncer, .* set pool_mode = session"
    with pooled(place, url, mode="transaction") as address, pytest.raises(StoreError, match=refusal):
        check(address, CONNECTIONS)
    with pooled(place, url, mode="session") as address:
        check(address, CONNECTIONS)


@pytest.mark.peer
@needs_pgbouncer
def test_a_pooler_that_refuses_parameters_is_named(tmp_path: Path, place: Path) -> None:
    """PgBouncer refuses the time limits of a connection unless it is told to ignore them; the error says so."""
    url, remedy = database_in(tmp_path), "ignore_startup_parameters = options"
    with pooled(place, url, mode="session", ignored="") as address, pytest.raises(StoreError, match=remedy):
        check(address, CONNECTIONS)


def test_more_connections_than_the_server_gives_are_refused(tmp_path: Path) -> None:
    """The error has both numbers."""
    check(database_in(tmp_path), 297)
    with pytest.raises(StoreError, match="needs 298 connections, and the database server gives 297 "):
        check(database_in(tmp_path), 298)


async def test_live_nodes_are_counted(tmp_path: Path, store: PostgresStore) -> None:
    """The facts about a server have the number of live nodes."""
    await node(store, "one").join()
    found = inspect(database_in(tmp_path))
    assert (found.most, found.nodes, found.commit, found.standbys, found.replicas) == (297, 1, "off", "", 0)


@pytest.mark.parametrize("days", [-1, 0, 1])
async def test_the_clock_is_compared(tmp_path: Path, store: PostgresStore, days: int) -> None:
    """The facts about a server have the time by which the clock of the host differs."""
    found = inspect(database_in(tmp_path), lambda: now_us() + days * DAY)
    assert abs(found.ahead_us - days * DAY) < CLOCKS_US


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        pytest.param(Server(100, 2, "on", "", 0), [], id="one server"),
        pytest.param(Server(100, 2, "on", "", 0, CLOCKS_US), [], id="clocks that differ a little"),
        pytest.param(Server(100, 2, "on", "", 0, 600 * SECOND), ["600 s ahead of the clock"], id="ahead"),
        pytest.param(Server(100, 2, "on", "", 0, -600 * SECOND), ["600 s behind the clock"], id="behind"),
        pytest.param(Server(100, 2, "on", "standby", 1), [], id="synchronous standby"),
        pytest.param(Server(15, 2, "on", "", 0), ["2 nodes use up to 26 connections"], id="too many nodes"),
        pytest.param(Server(100, 2, "off", "standby", 1), ["synchronous_commit is off: a crash"], id="off"),
        pytest.param(Server(100, 2, "local", "standby", 1), ["synchronous_commit is local: a failover"], id="local"),
        pytest.param(
            Server(100, 2, "on", "", 1),
            ["the standbys of the server replicate asynchronously"],
            id="asynchronous standby",
        ),
    ],
)
def test_what_may_be_lost(server: Server, expected: list[str]) -> None:
    """Settings with which answers may be lost, too few connections, and a wrong clock are named."""
    found = list(doubts(server, CONNECTIONS))
    assert len(found) == len(expected)
    assert all(text in each for text, each in zip(expected, found, strict=True))


async def test_a_search_has_a_time_limit(tmp_path: Path) -> None:
    """A search that takes too long, as one without an index may, ends with an error that says what to do."""
    readers = _Readers(Dialer(database_in(tmp_path), Pause()), Inserts(), 1, 0.05)
    with pytest.raises(StoreError, match=r"the search took longer than 0\.05 s: search for a longer text"):
        await readers.run(lambda tx: tx.rows("select pg_sleep(9)"))
    assert await readers.run(lambda tx: tx.rows("select 1")) == [(1,)]
    readers.close()
