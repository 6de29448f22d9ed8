"""The areas of the service without sockets: over a store in a temporary directory, at a time that the test sets.

    async def test_it(areas: Areas) -> None:
        domain_id = await areas.domains.add(areas.tenant, "branch")

`areas` is wired as `app.py` wires the service, and has one tenant with one domain, `corp`. A folder of tests has the
fixtures by importing them in its conftest.py.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.base.clock import SECOND
from sallyport.base.secret import Secret
from sallyport.domains.service import Domains
from sallyport.endpoints.service import EndpointUsers
from sallyport.inventory.clients.model import Client
from sallyport.inventory.clients.service import Clients, NewClient
from sallyport.inventory.devices.service import Devices
from sallyport.inventory.devices.sightings import Sightings
from sallyport.login.journal import Journal
from sallyport.login.pipeline import Pipeline
from sallyport.metrics import DomainMetrics, InventoryMetrics, StoreMetrics
from sallyport.store.directory import Reserve
from sallyport.store.snapshot import Configuration
from sallyport.store.sqlite import SqliteStore
from sallyport.store.vault import Vault
from sallyport.tenancy.service import Tenancy

SECRET = b"a secret of the tests"
KEEP_ANSWERS_S = 30.0


@dataclass
class SetClock:
    """Microseconds that stand still until a test moves them."""

    now: int = 1_767_225_600 * SECOND  # 2026-01-01

    def __call__(self) -> int:
        return self.now

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.now += int(seconds * SECOND)


@asynccontextmanager
async def running_store(
    path: Path, registry: CollectorRegistry | None = None, *, reserve: int = 0
) -> AsyncIterator[SqliteStore]:
    """The embedded store in a file, open and taking writes until the block is left. reserve: octets kept for a full
    disk."""
    metrics = StoreMetrics(registry or CollectorRegistry())
    store = SqliteStore(path, metrics, Reserve(path.with_name("reserve"), reserve))
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(store.run)
            yield store
            nursery.cancel_scope.cancel()
    finally:
        store.close()


class Areas:
    """The areas of the service and what they are made of. tenant, domain: ids of the ones that are there."""

    def __init__(self, store: SqliteStore, clock: SetClock, key: bytes = bytes(32)) -> None:
        self.store = store
        self.clock = clock
        self.registry = CollectorRegistry()
        self.vault = Vault(Secret(key))
        self.configuration = Configuration(store)
        self.tenancy = Tenancy(store, clock)
        self.domains = Domains(self.configuration, DomainMetrics(self.registry), clock)
        self.clients = Clients(self.configuration, self.vault, self.domains.tenant_of, clock)
        self.devices = Devices(store, Sightings(), InventoryMetrics(self.registry), clock)
        self.users = EndpointUsers(store, self.vault, clock)
        self.pipeline = Pipeline(self.domains, self.users)
        self.journal = Journal(store, self.devices.count_registered, keep_answers_s=KEEP_ANSWERS_S, clock=clock)
        self.tenant = 0
        self.domain = 0

    async def prepare(self) -> None:
        """Make the tenant and its domain."""
        self.tenant = await self.tenancy.ensure_tenant(1, 1)
        self.domain = await self.domains.add(self.tenant, "corp")

    async def client(self, network: str = "192.0.2.1/32", **fields: object) -> Client:
        """A RADIUS client of the tenant (or of `tenant`), with the tests' secret."""
        tenant = int(str(fields.pop("tenant", self.tenant)))
        new = NewClient(**{"name": network, "network": network, "secret": SECRET, **fields})  # type: ignore[arg-type]
        client_id, _ = await self.clients.add(tenant, new)
        return self.clients.table.by_id[client_id]

    def sample(self, name: str, **labels: str) -> float:
        """A metric's value; 0 where nothing was counted yet."""
        return self.registry.get_sample_value(name, labels) or 0.0


@pytest.fixture
def clock() -> SetClock:
    """A clock that stands still."""
    return SetClock()


@pytest.fixture
async def areas(tmp_path: Path, clock: SetClock) -> AsyncIterator[Areas]:
    """The areas over a new store."""
    async with running_store(tmp_path / "s.db") as store:
        areas = Areas(store, clock)
        await areas.prepare()
        yield areas
