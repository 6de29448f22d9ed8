"""Build the service: lock the data directory, load the dictionaries and the master key, open the store, create the
`App`.

`serve` uses it, and so does the command line if no service runs. Tests create `App` with a store of their own
(tests/areas/__init__.py).
"""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager, closing
from typing import Literal, TypeAlias

import structlog
import trio
from prometheus_client import CollectorRegistry

from sallyport.base.errors import Absent
from sallyport.base.extras import check_extra
from sallyport.host import disk
from sallyport.metrics import StoreMetrics
from sallyport.radius.dictionary import load as load_dictionary
from sallyport.service.app import App
from sallyport.settings.settings import Settings
from sallyport.store.data_folder import TOKEN_FILE, Reserve, open_data_directory, take_lock
from sallyport.store.model import Engine
from sallyport.store.postgres import check_driver
from sallyport.store.sqlite import SqliteStore
from sallyport.store.vault import Vault, load_master_keys

FIRST_DOMAIN = "default"

New: TypeAlias = Literal["make", "empty", "refuse"]

log = structlog.get_logger()


@asynccontextmanager
async def build(
    settings: Settings, environ: Mapping[str, str], *, lock: int | None = None, new: New = "make", joins: bool = False
) -> AsyncIterator[App]:
    """Yield the connected service. Its store is open and accepts writes until the block ends.

    lock: a descriptor with the lock of the data directory. It is closed at the end. If None, this function takes the
    lock. new: what to do if there is no store: `make` creates one with a first tenant, access token and domain; `empty`
    creates an empty one for a backup; `refuse` raises Absent. joins: whether this process joins the cluster as a node
    that answers RADIUS requests.

    Raises Locked, Absent, ConfigError, DictionaryError, SchemaError, StoreError.
    """
    path = settings.database_path
    with ExitStack() as held:
        held.callback(os.close, open_data_directory(settings.data_dir) if lock is None else lock)
        if joins and settings.otlp_url:  # before the store is migrated
            check_extra("otlp_url", "otel", "sallyport.outgoing.otlp")
        is_new = _is_new(settings)
        if new == "refuse" and is_new:
            raise Absent("the database has no tables yet" if settings.database_url else f"{path} does not exist")
        if settings.database and not settings.database_url:  # another data directory may use the same database file
            held.callback(os.close, take_lock(settings.database_path.with_name(settings.database_path.name + ".lock")))
        dictionary = load_dictionary(*([settings.dictionaries] if settings.dictionaries else []))
        for note in dictionary.notes:
            log.warning("dictionary_entry_skipped", note=note)
        registry = CollectorRegistry()
        metrics = StoreMetrics(registry)
        reserve = Reserve(path.with_name(path.name + ".reserve"), settings.disk_reserve_mib << 20)
        vault = Vault(load_master_keys(settings.data_dir, environ, may_make=new == "make" and is_new))
        with closing(
            _opened(settings, metrics, reserve, settings.node if joins else f"{settings.node} command")
        ) as store:
            async with trio.open_nursery() as nursery:
                await nursery.start(store.run)
                app = App(settings, store, vault, dictionary, registry)
                if joins:
                    await app.parts.cluster.join()
                else:
                    await app.parts.cluster.check_key()
                await app.areas.prepare()
                if new != "empty":
                    await _first_start(app)
                yield app
                nursery.cancel_scope.cancel()


def _is_new(settings: Settings) -> bool:
    """Return whether there is no store yet. Raises ConfigError, SchemaError, StoreError."""
    if not settings.database_url:
        return not settings.database_path.exists()
    check_driver()
    from sallyport.store.postgres.migration import exists

    return not exists(settings.database_url)


def _opened(settings: Settings, metrics: StoreMetrics, reserve: Reserve, name: str) -> Engine:
    if not settings.database_url:
        return SqliteStore(settings.database_path, metrics, reserve, settings.limits)
    from sallyport.store.postgres.engine import PostgresStore

    return PostgresStore(settings.database_url, metrics, settings.limits, name=name)


async def _first_start(app: App) -> None:
    path = app.parts.settings.data_dir / TOKEN_FILE
    if await app.tenancy.service.first_start(lambda token: disk.write(path, f"{token}\n".encode())):
        log.info("first_token_written", organization=1, tenant=1, file=str(path))
    if not app.domains.service.table.by_id:
        await app.domains.service.add(await app.tenancy.service.ensure_tenant(1, 1), FIRST_DOMAIN)
