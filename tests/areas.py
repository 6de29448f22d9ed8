"""The areas of the service without sockets: over a store in a temporary directory, at a time that the test sets.

    async def test_it(areas: Areas) -> None:
        domain_id = await areas.domains.add(areas.tenant, "branch")

`areas` is the service as `sallyport.app` wires it, with a clock, providers and a network of the tests, and has one
tenant with one domain, `corp`. A folder of tests has the fixtures by importing them in its conftest.py.
"""

import math
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.app import App, Overrides
from sallyport.base.clock import SECOND
from sallyport.base.config import Settings
from sallyport.base.limits import DEFAULTS
from sallyport.base.secret import Secret
from sallyport.base.setting_values import ANYWHERE
from sallyport.certs.credentials import Credentials
from sallyport.endpoints.users.account import Removal, UserChange
from sallyport.inventory.clients.client import Client
from sallyport.inventory.clients.service import NewClient
from sallyport.login.first.settings import KINDS
from sallyport.login.first.winbind.helpers import Helpers
from sallyport.metrics import StoreMetrics
from sallyport.mfa.providers import available
from sallyport.outgoing.egress import LookUp, look_up
from sallyport.outgoing.http import HttpFactory
from sallyport.radius.dictionary import Dictionary
from sallyport.radius.dictionary import load as load_dictionary
from sallyport.radius.retransmission import Timers
from sallyport.store.directory import Reserve
from sallyport.store.sqlite import SqliteStore
from sallyport.store.vault import Vault

SECRET = b"a secret of the tests"
TIMERS = Timers(initial=0.2, most=1.0, duration=30.0, count=100)
"""For requests to devices that answer sooner or later, on any machine."""


@dataclass
class SetClock:
    """Microseconds that stand still until a test moves them."""

    now: int = 1_767_225_600 * SECOND  # 2026-01-01

    def __call__(self) -> int:
        return self.now

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.now += int(seconds * SECOND)


@cache
def dictionary() -> Dictionary:
    """The dictionaries of the package, read once for all tests of a process."""
    return load_dictionary()


@cache
def trust() -> ssl.SSLContext:
    """The system's trust store, which takes 50 ms to read: once for all tests of a process."""
    return ssl.create_default_context()


@cache
def new_database() -> bytes:
    """The file of a new store, whose migrations take 60 ms: once for all tests of a process."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "s.db")
        SqliteStore(path, StoreMetrics(CollectorRegistry()), Reserve(path.with_name("reserve"), 0)).close()
        return path.read_bytes()


@asynccontextmanager
async def running_store(
    path: Path,
    registry: CollectorRegistry | None = None,
    *,
    reserve: int = 0,
    limits: Mapping[str, int] = DEFAULTS,
) -> AsyncIterator[SqliteStore]:
    """The embedded store in a file, open and taking writes until the block is left. reserve: octets kept for a full
    disk. limits: the rows that a tenant may have."""
    if not path.exists():
        path.write_bytes(new_database())
    metrics = StoreMetrics(registry or CollectorRegistry())
    store = SqliteStore(path, metrics, Reserve(path.with_name("reserve"), reserve), limits)
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(store.run)
            yield store
            nursery.cancel_scope.cancel()
    finally:
        store.close()


class Areas(App):
    """The service with parts that a test sets. tenant, domain: the ids of its tenant and domain.

    lockout_failures: 0 switches lock-outs off, since most tests let logins fail.
    """

    def __init__(
        self,
        store: SqliteStore,
        clock: SetClock,
        key: bytes = bytes(32),
        *,
        lockout_failures: int = 0,
        look_up: LookUp = look_up,
    ) -> None:
        self.kinds = available([])
        self.first_kinds = dict(KINDS)
        self.patience = math.inf
        self.ntlm_auth: Helpers | None = Helpers(Path("/there/is/no/ntlm_auth"))
        self.credentials: Credentials | None = None
        overrides = Overrides(
            clock=clock,
            http=HttpFactory(egress=ANYWHERE, verify=trust(), look_up=look_up),
            timers=TIMERS,
            providers=self.kinds,
            first_factors=self.first_kinds,
            patience=lambda _login, _attached: self.patience,
            ntlm_auth=lambda _domain_id: self.ntlm_auth,
            credentials=lambda: self.credentials,
        )
        settings = Settings(
            data_dir=store.path.parent, did_url="https://id.example.test", lockout_failures=lockout_failures
        )
        super().__init__(settings, store, Vault(Secret(key)), dictionary(), CollectorRegistry(), overrides)
        logins = self.logins
        self.providers, self.second, self.first = logins.providers, logins.second, logins.first
        self.lockouts, self.bypass, self.pipeline = logins.lockouts, logins.bypass, logins.pipeline
        self.trials, self.first_settings = logins.trials, logins.first_settings
        self.tenant = 0
        self.domain = 0

    async def add_user(self, domain_id: int, name: str, password: bytes) -> int:
        """Add an endpoint user; its id."""
        return await self.accounts.add(domain_id, UserChange(name, password=password))

    async def remove_user(self, domain_id: int, name: str) -> None:
        """Delete an endpoint user."""
        await self.accounts.remove(domain_id, [Removal(0, name, 0)])

    async def prepare(self) -> None:
        """Make the tenant and its domain."""
        self.tenant = await self.tenancy.ensure_tenant(1, 1)
        self.domain = await self.domains.add(self.tenant, "corp")

    def client_named(self, name: str) -> Client:
        """The RADIUS client of the tenant with this name."""
        return next(client for client in self.clients.of_tenant(self.tenant) if client.name == name)

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
    async with running_areas(tmp_path, clock) as areas:
        yield areas


@asynccontextmanager
async def running_areas(
    directory: Path, clock: SetClock, *, lockout_failures: int = 0, look_up: LookUp = look_up
) -> AsyncIterator[Areas]:
    """The areas over a new store, at work until the block is left. look_up: the DNS."""
    async with running_store(directory / "s.db") as store:
        areas = Areas(store, clock, lockout_failures=lockout_failures, look_up=look_up)
        await areas.prepare()
        async with trio.open_nursery() as nursery:
            await nursery.start(areas.first.run)
            await nursery.start(areas.second.run)
            yield areas
            nursery.cancel_scope.cancel()
