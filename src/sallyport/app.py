"""The composition root: Settings in, wired objects out. Nothing else knows how the areas are put together."""

import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager, closing
from importlib.metadata import version
from pathlib import Path

import structlog
import trio
from prometheus_client import CollectorRegistry

from sallyport.base.clock import now_us
from sallyport.base.command import Command, Commands
from sallyport.base.config import Settings
from sallyport.base.errors import ConfigError, SecretError, StartError
from sallyport.domains import commands as domain_commands
from sallyport.domains.service import Domains
from sallyport.endpoints import commands as user_commands
from sallyport.endpoints.service import EndpointUsers
from sallyport.inventory.clients import commands as client_commands
from sallyport.inventory.clients.service import Clients
from sallyport.inventory.devices import commands as device_commands
from sallyport.inventory.devices.service import Devices
from sallyport.inventory.devices.sightings import Sightings
from sallyport.listen import commands as listen_commands
from sallyport.listen.senders import Senders
from sallyport.login import commands as login_commands
from sallyport.login.journal import Journal
from sallyport.login.pipeline import Pipeline
from sallyport.login.service import Events
from sallyport.metrics import (
    DomainMetrics,
    HttpMetrics,
    InventoryMetrics,
    LoginMetrics,
    ProcessMetrics,
    RadiusMetrics,
    StoreMetrics,
)
from sallyport.radius.dictionary import Dictionary
from sallyport.radius.dictionary import load as load_dictionary
from sallyport.store import commands as store_commands
from sallyport.store.copies import SqliteCopies
from sallyport.store.directory import Reserve, open_data_directory, take_lock
from sallyport.store.model import Tx
from sallyport.store.snapshot import Configuration
from sallyport.store.sqlite import SqliteStore
from sallyport.store.vault import Vault, load_master_key
from sallyport.tenancy import commands as token_commands
from sallyport.tenancy.service import Tenancy

FIRST_DOMAIN = "default"
TOKEN_FILE = "admin.token"  # noqa: S105  a file's name

log = structlog.get_logger()


class App:
    """The service's areas, wired, over an open store. `prepare` reads what is held in memory."""

    def __init__(
        self,
        settings: Settings,
        store: SqliteStore,
        vault: Vault,
        dictionary: Dictionary,
        registry: CollectorRegistry,
    ) -> None:
        self.settings = settings
        self.store = store
        self.registry = registry
        self.version = version("sallyport")
        self.process_metrics = ProcessMetrics(registry, self.version)
        self.http_metrics = HttpMetrics(registry)
        self.radius_metrics = RadiusMetrics(registry)
        self.login_metrics = LoginMetrics(registry)

        self.configuration = Configuration(store)
        self.tenancy = Tenancy(store, now_us)
        self.domains = Domains(self.configuration, DomainMetrics(registry))
        self.clients = Clients(self.configuration, vault, self.domains.tenant_of)
        self.devices = Devices(store, Sightings(), InventoryMetrics(registry))
        self.users = EndpointUsers(store, vault)
        self.events = Events(store)
        self.senders = Senders()
        self.pipeline = Pipeline(self.domains, self.users)
        self.journal = Journal(store, self.devices.count_registered, keep_answers_s=2.0 * settings.duplicate_window_s)
        self.dictionary = dictionary
        self.commands = Commands(self._commands())
        self.configuration.on_foreign_change(self.tenancy.forget)
        self.configuration.on_foreign_change(self.users.forget)
        self.configuration.on_replaced(self.devices.sightings.forget_all)

    def _commands(self) -> list[dict[str, Command]]:
        copies = SqliteCopies(
            self.store,
            check=self._check_key,
            replaced=self.configuration.restored,
            backed_up=lambda: self.process_metrics.backed_up.set(time.time()),
        )
        return [
            token_commands.commands(self.tenancy, now_us),
            domain_commands.commands(self.domains, self.tenancy),
            client_commands.commands(
                self.clients, self.tenancy, lambda tenant_id, name: self.domains.named(tenant_id, name).id
            ),
            device_commands.commands(self.devices, self.dictionary.name),
            user_commands.commands(self.users, lambda name: self.domains.anywhere(name).id),
            login_commands.commands(self.events, now_us),
            listen_commands.commands(self.senders),
            store_commands.commands(copies),
        ]

    def _check_key(self, tx: Tx) -> None:
        """Open what is sealed in another store, as this one would once it is in its place. SecretError."""
        self.clients.check_key(tx)
        self.users.check_key(tx)

    async def prepare(self) -> None:
        """Make what a first start makes, and read what is held in memory. ConfigError, StoreError."""
        try:
            await self.configuration.reload()
        except SecretError as error:
            raise ConfigError(f"{error}: is this the master key that the store was made with?") from error
        self.process_metrics.reloaded.set(time.time())
        path = self.settings.data_dir / TOKEN_FILE
        if await self.tenancy.first_start(lambda token: _write_private(path, token + "\n")):
            log.info("first start: the access token of organization 1, tenant 1 is in this file", file=str(path))
        if not self.domains.table.by_id:
            await self.domains.add(await self.tenancy.ensure_tenant(1, 1), FIRST_DOMAIN)


def _write_private(path: Path, text: str) -> None:
    """A file of mode 0600, on disk when this returns. StartError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error


@asynccontextmanager
async def opened(settings: Settings, environ: Mapping[str, str]) -> AsyncIterator[App]:
    """The wired service over its store, which is open, and takes writes, until the block is left.

    Raises Locked, ConfigError, DictionaryError, SchemaError, StoreError.
    """
    with ExitStack() as held:
        held.callback(os.close, open_data_directory(settings.data_dir))
        if settings.database:  # it may lie elsewhere, and be named by another data directory too
            held.callback(os.close, take_lock(settings.database_path.with_name(settings.database_path.name + ".lock")))
        dictionary = load_dictionary(*([settings.dictionaries] if settings.dictionaries else []))
        for note in dictionary.notes:
            log.warning("dictionary", note=note)
        registry = CollectorRegistry()
        metrics = StoreMetrics(registry)
        path = settings.database_path
        reserve = Reserve(path.with_name(path.name + ".reserve"), settings.disk_reserve_mib << 20)
        vault = Vault(load_master_key(settings.data_dir, environ, may_make=not path.exists()))
        with closing(SqliteStore(path, metrics, reserve)) as store:
            async with trio.open_nursery() as nursery:
                await nursery.start(store.run)
                app = App(settings, store, vault, dictionary, registry)
                await app.prepare()
                yield app
                nursery.cancel_scope.cancel()
