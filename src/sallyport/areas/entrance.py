"""The entrance of an area: what an area adds to the service, and the parts of the service that every area may use.

`service.app` has the ordered list of areas. Everything else follows from what each area declares here.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from prometheus_client import CollectorRegistry
from starlette.routing import BaseRoute

from sallyport.areas.configured import AnyKind
from sallyport.base.clock import Clock
from sallyport.base.errors import ConfigError, SecretError
from sallyport.certs.credentials import Certificates
from sallyport.nodes.notices import Notices
from sallyport.nodes.periodic import store_of_leader
from sallyport.nodes.service import Cluster
from sallyport.nodes.settled import SettledClock
from sallyport.outgoing.http import HttpFactory
from sallyport.outgoing.mail import Mail
from sallyport.radius.dictionary import Dictionary
from sallyport.settings.settings import Settings
from sallyport.shell.command import Command
from sallyport.store.erasure import Rows, in_order
from sallyport.store.foreign import CLOCKS_US, CONFIGURATION
from sallyport.store.model import Engine, Store, Tx
from sallyport.store.sealed import Sealed
from sallyport.store.snapshot import Configuration
from sallyport.store.vault import Vault
from sallyport.web.console_pages import Pages
from sallyport.web.operation import Operations
from sallyport.web.people.site import PeopleSite
from sallyport.web.scope import NOTHING_MANAGED, Gate, ManagedCheck

Task: TypeAlias = Callable[[], Awaitable[object]]
"""A function that runs until cancelled."""


@dataclass(slots=True)
class Parts:
    """The parts of the service that belong to no area.

    settings: the settings in force; a reload replaces them. mail: sends mail to people, if the settings name an SMTP
    server. certificates: reads the certificates that the settings or `sallyport cert` have set up. settled: the time by
    which rows are deleted for their age. link_base: a function that returns the URL at which people reach the service.
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
    mail: Mail
    certificates: Certificates
    clock: Clock
    settled: SettledClock
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
    erased_rows: Sequence[Rows] = ()
    """The tables whose rows are deleted with a domain, each before the tables that it refers to."""
    sealed: Sequence[Sealed] = ()
    """The columns with values that are sealed under the master key."""
    pages: Sequence[Pages[Any]] = ()
    """The pages of the console."""
    configured: Sequence[AnyKind] = ()
    """The kinds of objects that files may describe (`sallyport apply`)."""
    managed: ManagedCheck = NOTHING_MANAGED
    """Checks whether files manage the objects that a local operation changes. The area of configuration as code
    replaces it in all areas."""
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

    def people_routes(self, site: PeopleSite) -> Sequence[BaseRoute]:
        """Return the pages of the site of people (`people_bind`). site: makes the routes."""
        return ()

    async def prepare(self) -> None:
        """Load what the area holds in memory. Raises ConfigError, StoreError."""

    def forget(self) -> None:
        """Empty the caches that are filled on use. Another process has changed the store."""

    def forget_all(self) -> None:
        """Drop everything that was learned from the store before a backup replaced it."""

    def apply(self, settings: Settings) -> None:
        """Apply the settings of the type `Live`, at the start and after each reload."""

    async def restored(self) -> None:
        """Load what the area holds in memory again, after a backup has replaced the store. It cannot write. Raises
        StoreError."""

    async def completed(self) -> None:
        """Write what follows from a restore. The store accepts no write during `restored`. Raises StoreError."""

    def void(self, tx: Tx, at: int) -> None:
        """Make prompts and codes of a restored backup invalid, because they may have been used after the backup. at:
        the time in microseconds by the clock of the node that is furthest ahead."""

    def revoke(self, tx: Tx, at: int) -> None:
        """Revoke all tokens of a restored backup. at: the time in microseconds."""


AreaT = TypeVar("AreaT", bound=Area)


class Areas(list[Area]):
    """All areas, in the order in which they are built, and what concerns all of them."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self._parts = parts

    def add(self, area: AreaT) -> AreaT:
        """Add an area, and return it."""
        self.append(area)
        self._parts.configuration.on_foreign_change(area.forget)
        self._parts.configuration.on_replaced(area.forget_all)
        return area

    @property
    def node_tasks(self) -> list[Task]:
        """The periodic tasks that each node runs, to keep its data in memory up to date."""
        return [task for area in self for task in area.node_tasks]

    @property
    def leader_tasks(self) -> list[Task]:
        """The periodic tasks that the node with the lease runs for all nodes.

        A node that was paused may believe that it still has the lease. Then such a task runs on two nodes at once. If
        this could do harm, the transactions of the task check the lease (`Parts.leader_store`). Another task changes a
        row only if no other node has changed the row, or changes only rows that are overdue.
        """
        return [task for area in self for task in area.leader_tasks]

    @property
    def erased_rows(self) -> list[Rows]:
        """The tables whose rows are deleted with a domain, in the order of their deletion. Tables of a later area may
        refer to those of an earlier one."""
        return in_order(rows for area in reversed(self) for rows in area.erased_rows)

    @property
    def sealed(self) -> list[Sealed]:
        """The columns with values that are sealed under the master key."""
        return [column for area in self for column in area.sealed]

    @property
    def foreign(self) -> dict[str, Callable[[int], None]]:
        """What to do after another node has made a change, by the kind of the change. Raises ValueError if two areas
        react to the same kind."""
        found: dict[str, Callable[[int], None]] = {CONFIGURATION: lambda _id: self._parts.configuration.look()}
        for area in self:
            if twice := found.keys() & area.foreign.keys():
                raise ValueError(f"two areas react to the change {min(twice)}")
            found |= area.foreign
        return found

    async def prepare(self) -> None:
        """Load the data that the service holds in memory from the store. Raises ConfigError, StoreError."""
        try:
            await self._parts.configuration.reload()
        except SecretError as error:
            raise ConfigError(str(error)) from error
        for area in self:
            await area.prepare()

    async def restored(self) -> None:
        """Reload all data in memory after the store was replaced. Raises StoreError, SecretError."""
        await self._parts.configuration.restored()
        for area in self:
            await area.restored()

    async def completed(self) -> None:
        """Let the areas write what follows from a restore. Raises StoreError, SecretError."""
        for area in self:
            await area.completed()

    def void(self, tx: Tx, revoke_tokens: bool) -> None:
        """Invalidate the prompts and codes in a restored backup. If `revoke_tokens` is true, also revoke the tokens.

        The clock of another node may be ahead, so codes that only that node accepts now are invalidated too.
        """
        now = self._parts.clock()
        latest = now + (CLOCKS_US if self._parts.store.is_shared else 0)
        for area in self:
            area.void(tx, latest)
            if revoke_tokens:
                area.revoke(tx, now)
