"""The areas of the service without sockets. They use a store in a temporary directory and a clock that the test sets.

    async def test_it(areas: Areas) -> None:
        domain_id = await areas.domains.add(areas.tenant, "branch")

`areas` is the service as `service.app` wires it, with a clock, providers and a network for tests. It has one tenant
with one domain, `corp`. A folder of tests imports the fixtures in its conftest.py.
"""

import math
import os
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from weakref import WeakKeyDictionary

import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.areas.clients.client import Client
from sallyport.areas.clients.service import NewClient
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.login.first.settings import KINDS
from sallyport.areas.login.first.winbind.helpers import Helpers
from sallyport.areas.login.login import Login
from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.mfa.providers import available
from sallyport.areas.users.accounts.account import Removal, UserChange
from sallyport.base.clock import SECOND
from sallyport.base.secret import Secret
from sallyport.certs.credentials import Credentials
from sallyport.metrics import StoreMetrics
from sallyport.nodes.service import Cluster, SingleNode
from sallyport.outgoing.egress import LookUp, look_up
from sallyport.outgoing.http import HttpFactory
from sallyport.radius.dictionary import Dictionary
from sallyport.radius.dictionary import load as load_dictionary
from sallyport.radius.retransmission import Timers
from sallyport.service.app import App, Overrides
from sallyport.settings.limits import DEFAULTS
from sallyport.settings.settings import Settings
from sallyport.settings.values import ANYWHERE
from sallyport.store.data_folder import Reserve
from sallyport.store.erasure import Rows
from sallyport.store.migrations import ALL, migrations_of
from sallyport.store.model import Engine
from sallyport.store.postgres.engine import PostgresStore
from sallyport.store.postgres.migration import steps_of
from sallyport.store.postgres.schema import PostgresDialect
from sallyport.store.schema import PACKAGE
from sallyport.store.schema.dialect import SqliteDialect
from sallyport.store.sealed import Sealed
from sallyport.store.sqlite import SqliteStore
from sallyport.store.vault import Vault
from tests.peers.postgres import database_in

ENGINE = os.environ.get("SALLYPORT_TEST_ENGINE", "sqlite")
"""The engine of the stores of most tests: `sqlite` or `postgres`."""
only_sqlite = pytest.mark.skipif(ENGINE != "sqlite", reason="about the embedded engine")
_directories: WeakKeyDictionary[Engine, Path] = WeakKeyDictionary()
SECRET = b"a secret of the tests"
TIMERS = Timers(initial=0.2, most=1.0, duration=30.0, count=100)
"""Timers for requests to devices, long enough for answers that are late on a slow machine."""


@dataclass
class SetClock:
    """A clock in microseconds that changes only when a test sets it."""

    now: int = 1_767_225_600 * SECOND  # 2026-01-01

    def __call__(self) -> int:
        return self.now

    def pass_by(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += int(seconds * SECOND)


@cache
def dictionary() -> Dictionary:
    """Return the dictionaries of the package, which are read once in a process."""
    return load_dictionary()


@cache
def trust() -> ssl.SSLContext:
    """Return the system's trust store. It is read once in a process, because that takes 50 ms."""
    return ssl.create_default_context()


@cache
def new_database() -> bytes:
    """Return the file of a new store. It is made once in a process, because its migrations take 0.1 s."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "s.db")
        SqliteStore(path, StoreMetrics(CollectorRegistry()), Reserve(path.with_name("reserve"), 0)).close()
        return path.read_bytes()


@cache
def declared() -> tuple[list[Rows], list[Sealed]]:
    """Return the tables with rows of domains, and the sealed columns, as all areas declare them."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "s.db")
        path.write_bytes(new_database())
        registry = CollectorRegistry()
        with closing(SqliteStore(path, StoreMetrics(registry), Reserve(path.with_name("reserve"), 0))) as store:
            settings = Settings(data_dir=path.parent)
            areas = App(settings, store, Vault(Secret(bytes(32))), dictionary(), registry).areas
            return areas.erased_rows, areas.sealed


@asynccontextmanager
async def running_store(
    path: Path,
    registry: CollectorRegistry | None = None,
    *,
    reserve: int = 0,
    limits: Mapping[str, int] = DEFAULTS,
    folders: Sequence[Path] = (),
) -> AsyncIterator[SqliteStore]:
    """Yield the embedded store in a file.

    It accepts writes until the block ends. reserve: the octets that are reserved for a full disk. limits: the number of
    rows that a tenant may have. folders: the folders of further areas, which may have steps of the schema.
    """
    if not path.exists():
        path.write_bytes(new_database())
    metrics = StoreMetrics(registry or CollectorRegistry())
    store = SqliteStore(
        path,
        metrics,
        Reserve(path.with_name("reserve"), reserve),
        limits,
        migrations=migrations_of((PACKAGE, *folders)) if folders else ALL,
    )
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(store.run)
            yield store
            nursery.cancel_scope.cancel()
    finally:
        store.close()


@asynccontextmanager
async def running_postgres(
    directory: Path,
    registry: CollectorRegistry | None = None,
    *,
    limits: Mapping[str, int] = DEFAULTS,
    folders: Sequence[Path] = (),
) -> AsyncIterator[PostgresStore]:
    """Yield the store in the PostgreSQL database of a directory. It accepts writes until the block ends. folders: the
    folders of further areas, which may have steps of the schema."""
    metrics = StoreMetrics(registry or CollectorRegistry())
    store = PostgresStore(database_in(directory), metrics, limits, steps=steps_of((PACKAGE, *folders)))
    _directories[store] = directory
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(store.run)
            yield store
            nursery.cancel_scope.cancel()
    finally:
        store.close()


def keep_files_in(store: Engine, directory: Path) -> None:
    """Use a directory for the files of a store's tests."""
    _directories[store] = directory


def directory_of(store: Engine) -> Path:
    """Return a directory for the files of the tests of a store."""
    return store.path.parent if isinstance(store, SqliteStore) else _directories[store]


def stored(store: Engine) -> bytes:
    """Return all octets that a store keeps: those of its files, or those of a copy of its database."""
    if isinstance(store, SqliteStore):
        return b"".join(file.read_bytes() for file in store.path.parent.iterdir())
    copy = directory_of(store) / "all.db"
    copy.unlink(missing_ok=True)
    store.write_copy(copy)
    return copy.read_bytes()


async def refuse(store: Engine, event: str, condition: str = "") -> None:
    """Let a statement raise StoreError until `allow` is called. event: the trigger's event, such as `before insert on
    devices`. condition: a condition on the row.
    """
    dialect = SqliteDialect() if isinstance(store, SqliteStore) else PostgresDialect()
    statements = dialect.trigger("refused", event, [dialect.abort("refused")])
    when = f" when ({condition})" if condition else ""
    row = "" if isinstance(store, SqliteStore) else " for each row"
    for each in statements:
        sql = each.replace(f"{event}{row}", f"{event}{row}{when}") if "create trigger" in each else each
        await store.write(lambda tx, sql=sql: tx.execute(sql))  # type: ignore[misc]


async def allow(store: Engine, table: str) -> None:
    """End `refuse`."""
    of = "" if isinstance(store, SqliteStore) else f" on {table}"
    await store.write(lambda tx: tx.execute(f"drop trigger refused{of}"))


@asynccontextmanager
async def running_engine(directory: Path, folders: Sequence[Path] = ()) -> AsyncIterator[Engine]:
    """Yield a new store of the engine that SALLYPORT_TEST_ENGINE names. It accepts writes until the block ends.
    folders: the folders of further areas, which may have steps of the schema."""
    if ENGINE == "sqlite":
        async with running_store(directory / "s.db", folders=folders) as store:
            yield store
    else:
        async with running_postgres(directory, folders=folders) as store:
            yield store


class Areas:
    """The services of the connected areas, with parts that a test can replace. tenant, domain: the IDs of its tenant
    and its domain.

    lockout_failures: the failures that lock out a user. 0 disables lockouts, because in many tests logins fail.
    cluster: the node among others. more: further settings.
    """

    def __init__(
        self,
        store: Engine,
        clock: SetClock,
        key: bytes = bytes(32),
        *,
        lockout_failures: int = 0,
        look_up: LookUp = look_up,
        cluster: Cluster | None = None,
        further: Sequence[Callable[[Parts], Area]] = (),
        more: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        self.kinds = available([])
        self.first_kinds = dict(KINDS)
        self.patience: float | Callable[[Login, Attached], float] = math.inf
        self.ntlm_auth: Helpers | None = Helpers(Path("/there/is/no/ntlm_auth"))
        self.credentials: Credentials | None = None
        overrides = Overrides(
            clock=clock,
            cluster=cluster or SingleNode("node", "1.0", lambda: "http://node", clock),
            http=HttpFactory(egress=ANYWHERE, verify=trust(), look_up=look_up),
            timers=TIMERS,
            providers=self.kinds,
            first_factors=self.first_kinds,
            patience=self._patience_of,
            ntlm_auth=lambda _domain_id: self.ntlm_auth,
            credentials=lambda: self.credentials,
            areas=further,
        )
        settings = Settings(
            data_dir=directory_of(store),
            did_url="https://id.example.test",
            lockout_failures=lockout_failures,
            **more,  # type: ignore[arg-type]  # pydantic checks them
        )
        self.app = app = App(settings, store, Vault(Secret(key)), dictionary(), CollectorRegistry(), overrides)
        self.clock, self.store, self.parts = clock, store, app.parts
        self.settings, self.vault, self.registry = settings, app.parts.vault, app.parts.registry
        self.dictionary, self.configuration, self.cluster = dictionary(), app.parts.configuration, app.parts.cluster
        self.notices, self.http = app.parts.notices, app.parts.http
        self.tenancy, self.keys = app.tenancy.service, app.tenancy.keys
        self.domains, self.removal, self.reverts = app.domains.service, app.domains.removal, app.domains.reverts
        self.enforcement, self.preview = app.domains.enforcement, app.preview.service
        self.clients, self.issued = app.clients.service, app.clients.issued
        self.devices, self.sessions = app.devices.service, app.sessions.service
        self.rules, self.bypass, self.roles = app.rules.service, app.bypass.service, app.roles.service
        self.lockouts = app.lockouts.service
        self.dynamic, self.revocations = app.dynamic.service, app.dynamic.revocations
        self.instances, self.policies = app.instances.service, app.passwords.service
        self.did, self.directory = app.did, app.directory
        self.users, self.accounts = app.users.service, app.users.accounts
        self.groups, self.seeds = app.users.groups, app.users.seeds
        self.agents, self.providers = app.agents.service, app.mfa.service
        self.authorities, self.revocation_lists = app.authorities.service, app.authorities.revocation.lists
        login = app.login
        self.login, self.second, self.first = login, login.second, login.first
        self.pipeline, self.journal, self.senders = login.pipeline, login.journal, login.senders
        self.trials, self.first_settings, self.people = login.trials, login.first_settings, login.people
        self.events, self.audit = app.events.service, app.audit.service
        self.administrators, self.identities = app.signin.administrators, app.signin.identities
        self.console_sessions, self.open_id = app.signin.sessions, app.signin.open_id
        self.sign_ins = app.signin.sign_ins
        self.copies, self.rotation = app.installation.copies, app.installation.rotation
        self.certificates, self.certificate_files = app.parts.certificates, app.certificate_files.files
        self.radius_metrics, self.login_metrics = login.radius_metrics, login.metrics
        self.tenant = 0
        self.domain = 0

    def _patience_of(self, login: Login, attached: Attached) -> float:
        return self.patience(login, attached) if callable(self.patience) else self.patience

    async def add_user(self, domain_id: int, name: str, password: bytes) -> int:
        """Add an endpoint user and return its ID."""
        return await self.accounts.add(domain_id, UserChange(name, password=password))

    async def remove_user(self, domain_id: int, name: str) -> None:
        """Delete an endpoint user."""
        await self.accounts.remove(domain_id, [Removal(0, name, 0)])

    async def prepare(self) -> None:
        """Create the tenant and its domain."""
        self.tenant = await self.tenancy.ensure_tenant(1, 1)
        self.domain = await self.domains.add(self.tenant, "corp")

    async def wait(self, seconds: float) -> None:
        """Advance the clock; on PostgreSQL, whose own clock ends challenges and prompts, move their times back."""
        self.clock.pass_by(seconds)
        if self.store.is_shared:
            us = int(seconds * SECOND)
            await self.store.write(lambda tx: tx.execute("update challenges set expires_at = expires_at - :us", us=us))
            sql = "update prompts set begun_at = begun_at - :us, expires_at = expires_at - :us"
            await self.store.write(lambda tx: tx.execute(sql, us=us))

    def client_named(self, name: str) -> Client:
        """Return the RADIUS client of the tenant with this name."""
        return next(client for client in self.clients.of_tenant(self.tenant) if client.name == name)

    async def client(self, network: str = "192.0.2.1/32", **fields: object) -> Client:
        """Add a RADIUS client to the tenant (or to `tenant`), with the secret of the tests, and return it."""
        tenant = int(str(fields.pop("tenant", self.tenant)))
        new = NewClient(**{"name": network, "network": network, "secret": SECRET, **fields})  # type: ignore[arg-type]
        client_id, _ = await self.clients.add(tenant, new)
        return self.clients.table.by_id[client_id]

    def sample(self, name: str, **labels: str) -> float:
        """Return the value of a metric, or 0 if nothing has been counted yet."""
        return self.registry.get_sample_value(name, labels) or 0.0


@pytest.fixture
def clock() -> SetClock:
    """Return a clock that changes only when a test sets it."""
    return SetClock()


@pytest.fixture
async def areas(tmp_path: Path, clock: SetClock) -> AsyncIterator[Areas]:
    """Yield the areas, which use a new store."""
    async with running_areas(tmp_path, clock) as areas:
        yield areas


@asynccontextmanager
async def running_areas(
    directory: Path,
    clock: SetClock,
    *,
    lockout_failures: int = 0,
    look_up: LookUp = look_up,
    more: Mapping[str, object] = MappingProxyType({}),
) -> AsyncIterator[Areas]:
    """Yield the areas, which use a new store and run until the block ends. look_up: the function that resolves names by
    DNS. more: further settings.
    """
    async with running_engine(directory) as store:
        areas = Areas(store, clock, lockout_failures=lockout_failures, look_up=look_up, more=more)
        await areas.prepare()
        async with trio.open_nursery() as nursery:
            await nursery.start(areas.first.run)
            await nursery.start(areas.second.run)
            yield areas
            nursery.cancel_scope.cancel()
