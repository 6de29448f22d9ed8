"""The engines that the contract of the store is tested on, and what both need.

An engine is one line in ENGINES: how its store is opened. Opened twice, it is the same database.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from sallyport.store.items import MAX_BATCH
from sallyport.store.model import Engine, Tx
from sallyport.store.postgres.writer import MAX_ITEMS
from sallyport.store.sqlite import SqliteStore
from tests.areas import SetClock, running_postgres, running_store
from tests.peers.postgres import needs_postgres

NO_NAMES: list[str] = []
Open = Callable[[Path, CollectorRegistry], AbstractAsyncContextManager[Engine]]


def _sqlite(folder: Path, registry: CollectorRegistry) -> AbstractAsyncContextManager[Engine]:
    return running_store(folder / "s.db", registry)


@asynccontextmanager
async def _postgres(folder: Path, registry: CollectorRegistry) -> AsyncIterator[Engine]:
    async with running_postgres(folder, registry) as store:
        yield store


ENGINES: dict[str, Open] = {"sqlite": _sqlite, "postgres": _postgres}


@dataclass
class Database:
    """An empty database of one engine, which can be opened, closed and opened again. most: the writes that share a
    transaction."""

    engine: Open
    folder: Path
    most: int
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def opened(self) -> AbstractAsyncContextManager[Engine]:
        """Yield the running store. Its metrics begin at 0."""
        self.registry = CollectorRegistry()
        return self.engine(self.folder, self.registry)

    def transactions(self) -> float:
        """Return the number of shared transactions."""
        return self.registry.get_sample_value("sallyport_store_batch_rows_count") or 0


@pytest.fixture(params=[pytest.param(each, marks=needs_postgres if each == "postgres" else ()) for each in ENGINES])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    """Return an empty database of each engine."""
    return Database(ENGINES[request.param], tmp_path, {"sqlite": MAX_BATCH, "postgres": MAX_ITEMS}[request.param])


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Engine]:
    """Yield a running store of each engine."""
    async with database.opened() as store:
        yield store


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """Yield the embedded store, for features of that engine alone."""
    async with running_store(tmp_path / "s.db") as store:
        yield store


@pytest.fixture
def clock() -> SetClock:
    """Return a clock that stands still."""
    return SetClock()


def put(tx: Tx, name: str, value: int = 0) -> int:
    """Store a number under a name. A name that exists raises an error."""
    return tx.execute("insert into counters (domain_id, name, value) values (0, :n, :v)", n=name, v=value)


def names(tx: Tx) -> list[str]:
    """Return the names in the order of their numbers."""
    return tx.all(_name, "select name from counters where domain_id = 0 order by value, name")


def _name(*, name: str) -> str:
    return name
