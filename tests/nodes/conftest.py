"""Stores of several nodes in one process, over one database."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.base.secret import Secret
from sallyport.metrics import StoreMetrics
from sallyport.nodes.service import Nodes
from sallyport.store.postgres.engine import PostgresStore
from tests.areas import clock
from tests.peers.postgres import database_in

__all__ = ["clock"]

KEY = bytes(32)
Open = Callable[..., AbstractAsyncContextManager[PostgresStore]]


class Monotonic:
    """A monotonic clock that a test sets, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Return a function that opens the database for a node, by its name and the address that it uses."""

    @asynccontextmanager
    async def run(name: str, url: str = "") -> AsyncIterator[PostgresStore]:
        store = PostgresStore(url or database_in(tmp_path), StoreMetrics(CollectorRegistry()), name=name)
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(store.run)
                yield store
                nursery.cancel_scope.cancel()
        finally:
            store.close()

    return run


@pytest.fixture
async def store(opened: Open) -> AsyncIterator[PostgresStore]:
    """Yield the store of a node."""
    async with opened("one") as store:
        yield store


@pytest.fixture
async def other(opened: Open) -> AsyncIterator[PostgresStore]:
    """Yield the store of another node."""
    async with opened("two") as store:
        yield store


def node(
    store: PostgresStore,
    name: str,
    *,
    installation: str = "",
    key: bytes = KEY,
    monotonic: Callable[[], float] | None = None,
) -> Nodes:
    """Return a node that has not joined."""
    return Nodes(
        store,
        name,
        installation or f"installation of {name}",
        "1.0",
        lambda: {1: Secret(key)},
        lambda: f"http://{name}",
        monotonic=monotonic or Monotonic(),
    )
