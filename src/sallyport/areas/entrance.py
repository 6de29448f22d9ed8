"""The entrance of an area: what an area adds to the service, and the parts of the service that every area may use.

`service.app` has the ordered list of areas. Everything else follows from what each area declares here.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from prometheus_client import CollectorRegistry
from starlette.routing import BaseRoute

from sallyport.base.clock import Clock
from sallyport.nodes.notices import Notices
from sallyport.nodes.periodic import store_of_leader
from sallyport.nodes.service import Cluster
from sallyport.outgoing.http import HttpFactory
from sallyport.radius.dictionary import Dictionary
from sallyport.settings.settings import Settings
from sallyport.shell.command import Command
from sallyport.store.model import Engine, Store, Tx
from sallyport.store.snapshot import Configuration
from sallyport.store.vault import Vault
from sallyport.web.operation import Operations
from sallyport.web.pages import Pages
from sallyport.web.scope import Gate

Task: TypeAlias = Callable[[], Awaitable[object]]
"""A function that runs until cancelled."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the service that belong to no area.

    link_base: a function that returns the URL at which people reach the service.
    """

    settings: Settings
    store: Engine
    vault: Vault
    dictionary: Dictionary
    registry: CollectorRegistry
    configuration: Configuration
    cluster: Cluster
    notices: Notices
    http: HttpFactory
    clock: Clock
    link_base: Callable[[], str]

    @property
    def leader_store(self) -> Store:
        """The store for periodic work of the node with the lease. A write fails if the node has lost the lease."""
        return store_of_leader(self.store, self.cluster)


class Area:
    """What an area adds to the service. An area overrides only what it has."""

    node_tasks: Sequence[Task] = ()
    """The tasks that every node runs."""
    leader_tasks: Sequence[Task] = ()
    """The tasks that the node with the lease runs for all nodes."""
    pages: Sequence[Pages[Any]] = ()
    """The pages of the console."""
    foreign: Mapping[str, Callable[[int], None]] = {}
    """What to do after another node has changed rows, by the kind of the change (`store.foreign`). The function gets
    the id of a domain, or 0 for all."""

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of the API."""
        return ()

    def commands(self) -> Mapping[str, Command]:
        """Return the local operations, by name: those that HTTP does not route."""
        return {}

    def routes(self, gate: Gate) -> Sequence[BaseRoute]:
        """Return the pages that need no sign-in."""
        return ()

    async def prepare(self) -> None:
        """Load what the area holds in memory. Raises ConfigError, StoreError."""

    def forget(self) -> None:
        """Empty the caches that are filled on use. Another process has changed the store."""

    def forget_all(self) -> None:
        """Drop everything that was learned from the store before a backup replaced it."""

    async def restored(self) -> None:
        """Load what the area holds in memory again, after a backup has replaced the store. Raises StoreError."""

    def void(self, tx: Tx, at: int) -> None:
        """Make prompts and codes of a restored backup invalid, because they may have been used after the backup. at:
        the time in microseconds by the clock of the node that is furthest ahead."""

    def revoke(self, tx: Tx, at: int) -> None:
        """Revoke all tokens of a restored backup. at: the time in microseconds."""
