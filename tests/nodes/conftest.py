"""Stores of several nodes in one process, over one database."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.base.clock import Clock, now_us
from sallyport.base.secret import Secret
from sallyport.metrics import StoreMetrics
from sallyport.nodes.node import LEASE_US
from sallyport.nodes.service import Nodes
from sallyport.store.model import Tx
from sallyport.store.postgres.engine import PostgresStore
from tests.areas import Areas, SetClock, areas, clock, keep_files_in
from tests.peers.postgres import database_in

__all__ = ["areas", "clock"]

KEY = bytes(32)
LOCKOUT = 5
"""Failures that lock a user or a station of `pair`."""
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


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    with trio.fail_after(60):
        while not condition():
            await trio.sleep(0.005)


def node(
    store: PostgresStore,
    name: str,
    *,
    installation: str = "",
    key: bytes = KEY,
    clock: Clock = now_us,
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
        clock=clock,
        monotonic=monotonic or Monotonic(),
    )


async def move_lease(store: PostgresStore, to: Nodes) -> None:
    """Let a node take the lease, as if the holder was paused and has not noticed it."""
    await store.write(lambda tx: tx.execute("update leases set until = until - :us", us=LEASE_US + 1))
    await to._beat()
    assert to.leads


@dataclass(frozen=True)
class Pair:
    """The areas of two nodes, with the tenant and the domain of the first. The first node has the lease."""

    one: Areas
    two: Areas
    nodes: tuple[Nodes, Nodes]

    async def move_lease(self) -> None:
        """Let the second node take the lease; the first one has not noticed it."""
        await move_lease(cast(PostgresStore, self.two.store), self.nodes[1])


@pytest.fixture
async def pair(tmp_path: Path, clock: SetClock, store: PostgresStore, other: PostgresStore) -> Pair:
    """Return the areas of two nodes, each with a data directory of its own."""
    nodes, areas = [], []
    for each, name in ((store, "one"), (other, "two")):
        (tmp_path / name).mkdir()
        keep_files_in(each, tmp_path / name)
        nodes.append(node(each, name, clock=clock))
        await nodes[-1].join()
        await nodes[-1]._beat()
        areas.append(Areas(each, clock, lockout_failures=LOCKOUT, cluster=nodes[-1]))
    one, two = areas
    await one.prepare()
    await two.configuration.reload()
    two.tenant, two.domain = one.tenant, one.domain
    return Pair(one, two, (nodes[0], nodes[1]))


def insert_events(tx: Tx, *users: str, at: int = 0, domain_id: int = 1, node_id: int = 0) -> None:
    """Write an event of each user."""
    columns = (
        "at", "domain_id", "user_name", "ip_address", "client_ip", "device_id", "device_name", "station", "method",
        "factor", "decision", "applied_decision", "would_have_been", "reason", "latency_us", "node_id",
    )  # fmt: skip
    rest = ("a", "b", 1, "d", "s", "pap", "local", "accept", "accept", "", "", 1, node_id)
    tx.insert("events", columns, [(at, domain_id, user, *rest) for user in users])
