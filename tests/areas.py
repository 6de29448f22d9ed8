"""The areas of the service without sockets: over a store in a temporary directory, at a time that the test sets.

    async def test_it(areas: Areas) -> None:
        domain_id = await areas.domains.add(areas.tenant, "branch")

`areas` is wired as `app.py` wires the service, and has one tenant with one domain, `corp`. A folder of tests has the
fixtures by importing them in its conftest.py.
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

from sallyport.audit.service import Audit
from sallyport.base.clock import SECOND
from sallyport.base.config import ANYWHERE
from sallyport.base.limits import DEFAULTS
from sallyport.base.secret import Secret
from sallyport.certs.model import Credentials
from sallyport.did.area import Issuing
from sallyport.did.holding import Holding
from sallyport.directory.area import DirectoryArea
from sallyport.directory.readers import readers
from sallyport.domains.service import Domains
from sallyport.dynamic.revocations import Revocations
from sallyport.dynamic.sender import Sender
from sallyport.dynamic.service import DynamicAuthorization
from sallyport.endpoints.agents.desired import vacate as vacate_accounts
from sallyport.endpoints.agents.service import Agents
from sallyport.endpoints.groups.repo import forget_policy
from sallyport.endpoints.groups.service import Groups
from sallyport.endpoints.instances.service import Instances
from sallyport.endpoints.service import EndpointUsers
from sallyport.endpoints.targets import AccessTargets as Places
from sallyport.endpoints.totp import OneTimeSeeds
from sallyport.endpoints.users.service import Users
from sallyport.inventory.clients.model import Client
from sallyport.inventory.clients.service import Clients, NewClient
from sallyport.inventory.devices.service import Devices
from sallyport.inventory.devices.sightings import Sightings
from sallyport.inventory.sessions.service import Sessions
from sallyport.login.area import Lent, LoginArea
from sallyport.login.first.kinds import KINDS
from sallyport.login.first.winbind.helpers import Helpers
from sallyport.login.journal import Journal
from sallyport.login.rules.service import LoginRules
from sallyport.metrics import (
    AgentMetrics,
    CredentialMetrics,
    DirectoryMetrics,
    DomainMetrics,
    DynamicMetrics,
    InventoryMetrics,
    PresentationMetrics,
    SessionMetrics,
    StoreMetrics,
)
from sallyport.mfa.providers import available
from sallyport.outgoing.egress import LookUp, look_up
from sallyport.outgoing.http import HttpFactory
from sallyport.passwords.repo import forget_instance
from sallyport.passwords.service import PasswordPolicies
from sallyport.radius.dictionary import Dictionary
from sallyport.radius.dictionary import load as load_dictionary
from sallyport.radius.retransmission import Timers
from sallyport.store.directory import Reserve
from sallyport.store.model import Tx
from sallyport.store.snapshot import Configuration
from sallyport.store.sqlite import SqliteStore
from sallyport.store.vault import Vault
from sallyport.tenancy.keys import repo as keys_repo
from sallyport.tenancy.keys.guesses import Guesses
from sallyport.tenancy.keys.service import Keys
from sallyport.tenancy.service import Tenancy

SECRET = b"a secret of the tests"
KEEP_ANSWERS_S = 30.0
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


class Areas:
    """The areas of the service and what they are made of. tenant, domain: ids of the ones that are there.

    lockout_failures: 0: nobody is locked out, since most tests fail on purpose.
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
        self.store = store
        self.clock = clock
        self.registry = CollectorRegistry()
        self.vault = Vault(Secret(key))
        self.configuration = Configuration(store)
        self.audit = Audit(store)
        self.tenancy = Tenancy(store, clock)
        self.domains = Domains(
            self.configuration,
            DomainMetrics(self.registry),
            clock,
            has_provider=self._has_provider,
        )
        self.clients = Clients(self.configuration, self.vault, self.domains.tenant_of, clock)
        self.devices = Devices(store, Sightings(), InventoryMetrics(self.registry), clock)
        self.rules = LoginRules(self.configuration, dictionary(), clock)
        self.http = HttpFactory(egress=ANYWHERE, verify=trust(), look_up=look_up)
        self.dynamic = DynamicAuthorization(
            store,
            Sender(self.http.egress, timers=TIMERS, clock=clock),
            self.rules.words,
            DynamicMetrics(self.registry),
            clock,
            domains=lambda: self.domains.table,
            find_client=self._find_client,
            error_name=dictionary().attribute("Error-Cause").value_name,
        )
        self.revocations = Revocations(store, self.dynamic, self.domains, self.rules, clock)
        self.holding = Holding(
            store, self.vault, self.tenancy, Places(), Guesses(burst=10), PresentationMetrics(self.registry), clock
        )
        self.issuing = Issuing(
            store,
            self.vault,
            CredentialMetrics(self.registry),
            self.holding.keys,
            self.revocations,
            self.holding.presentations,
            lambda: "https://id.example.test",
            clock,
        )
        self.directory = DirectoryArea(
            store,
            self.vault,
            store.path.parent,
            self.revocations,
            readers(self.http.of, clock),
            clock,
            DirectoryMetrics(self.registry),
        )
        self.users = EndpointUsers(
            store,
            self.vault,
            clock,
            changed=self._user_changed,
            deleted=self.holding.users.user_deleted,
            vacated=vacate_accounts,
            revocations=self.revocations,
        )
        self.instances = Instances(store, clock, deleted=self._instance_deleted)
        self.keys = Keys(store, clock, has_instance=self.instances.in_domain)
        self.policies = PasswordPolicies(store, self.instances, clock, deleted=forget_policy)
        self.groups = Groups(store, self.users, self.policies, clock)
        self.accounts = Users(store, self.vault, self.users, self.policies, self.holding.users, clock)
        self.agents = Agents(
            store,
            self.vault,
            self.users,
            self.instances,
            self.policies,
            self.keys,
            AgentMetrics(self.registry),
            clock,
        )
        self.seeds = OneTimeSeeds(
            store, self.vault, self.users, lambda domain_id: self.domains.table.by_id[domain_id].name, clock
        )
        self.kinds = available([])
        self.first_kinds = dict(KINDS)
        self.patience = math.inf
        self.ntlm_auth: Helpers | None = Helpers(Path("/there/is/no/ntlm_auth"))
        self.credentials: Credentials | None = None
        lent = Lent(
            store=store,
            vault=self.vault,
            configuration=self.configuration,
            registry=self.registry,
            dictionary=dictionary(),
            http=self.http,
            clock=clock,
            domains=self.domains,
            users=self.users,
            seeds=self.seeds,
            wallets=self.holding.prompts,
            principals=self.directory.principals,
            sightings=self.devices.sightings,
            rules=self.rules,
            revocations=self.revocations,
            find_client=self._find_client,
            credentials=lambda: self.credentials,
            certificate_tenant=self.clients.certificate_tenant,
            ntlm_auth=lambda _domain_id: self.ntlm_auth,
        )
        logins = LoginArea(
            lent,
            lockout_failures=lockout_failures,
            lockout_minutes=15,
            kinds=self.kinds,
            first_kinds=self.first_kinds,
            patience=lambda _login, _attached: self.patience,
        )
        self.providers, self.second, self.first = logins.providers, logins.second, logins.first
        self.lockouts, self.bypass, self.pipeline = logins.lockouts, logins.bypass, logins.pipeline
        self.preview, self.enforcement, self.trials = logins.preview, logins.enforcement, logins.trials
        self.sessions = Sessions(store, SessionMetrics(self.registry), clock)
        self.journal = Journal(
            store,
            self.devices.count_registered,
            self.sessions.count_records,
            keep_answers_s=KEEP_ANSWERS_S,
            clock=clock,
        )
        self.tenant = 0
        self.domain = 0

    def _instance_deleted(self, tx: Tx, instance_id: int) -> None:
        forget_instance(tx, instance_id)
        keys_repo.forget_instance(tx, instance_id)
        self.agents.reports.forget(tx, instance_id)

    def _user_changed(self, domain_id: int, name: str | None) -> None:
        self.second.enrolments.forget(domain_id, name)

    def _find_client(self, host: str) -> Client | None:
        return self.clients.table.find(host)

    def _has_provider(self, domain_id: int) -> bool:
        return self.providers.has(domain_id)

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
