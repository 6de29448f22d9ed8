"""Stores of several nodes in one process, over one database."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.base.secret import Secret
from sallyport.metrics import StoreMetrics
from sallyport.nodes.service import Nodes
from sallyport.store.postgres.engine import PostgresStore
from tests.areas import Areas, SetClock, clock, keep_files_in
from tests.peers.postgres import database_in

__all__ = ["clock"]

KEY = bytes(32)
Open = Callable[[str], AbstractAsyncContextManager[PostgresStore]]


class Monotonic:
    """A monotonic clock that a test sets, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Return a function that opens the database for a node, by its name."""

    @asynccontextmanager
    async def run(name: str) -> AsyncIterator[PostgresStore]:
        store = PostgresStore(database_in(tmp_path), StoreMetrics(CollectorRegistry()), name=name)
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


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, at most a second."""
    with trio.fail_after(1):
        while not condition():
            await trio.sleep(0.005)


@pytest.fixture
async def pair(tmp_path: Path, clock: SetClock, store: PostgresStore, other: PostgresStore) -> tuple[Areas, Areas]:
    """Return the areas of two nodes, with the tenant and the domain of the first."""
    areas = []
    for each, name in ((store, "one"), (other, "two")):
        directory = tmp_path / name
        directory.mkdir()
        keep_files_in(each, directory)
        areas.append(Areas(each, clock, lockout_failures=5, node_name=name))
    one, two = areas
    await one.prepare()
    for each in areas:
        await each.cluster.join()
    await two.configuration.reload()
    two.tenant, two.domain = one.tenant, one.domain
    return one, two


def node(
    store: PostgresStore,
    name: str,
    *,
    installation: str = "",
    key: bytes = KEY,
    monotonic: Callable[[], float] | None = None,
    names: Sequence[str] = (),
) -> Nodes:
    """Return a node that has not joined."""
    return Nodes(
        store,
        name,
        installation or f"installation of {name}",
        "1.0",
        lambda: {1: Secret(key)},
        lambda: f"http://{name}",
        names=names,
        monotonic=monotonic or Monotonic(),
    )
