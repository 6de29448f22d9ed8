"""The entrance of configuration as code."""

from collections.abc import Mapping, Sequence
from typing import Final

import trio

from sallyport.areas.configuration import operations as api
from sallyport.areas.configuration.managed import ManagedObjects
from sallyport.areas.configuration.service import Engine
from sallyport.areas.configuration.startup import Startup
from sallyport.areas.configured import AnyKind
from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Areas, Parts
from sallyport.areas.tenancy.service import Tenancy
from sallyport.metrics import ConfigurationMetrics
from sallyport.nodes.periodic import every
from sallyport.settings.settings import Settings
from sallyport.shell.command import Command
from sallyport.store.sealed import Sealed

UNDO_S: Final = 5.0
"""Time in seconds between two looks for an apply whose node has stopped."""


class ConfigurationArea(Area):
    """Configuration as code. areas: declare the kinds of objects that files may describe."""

    sealed = (Sealed("configured_slices", "fields", ("tenant_id", "number"), "configured_slices/{}/{}"),)

    def __init__(self, parts: Parts, areas: Areas, tenancy: Tenancy, domains: Domains) -> None:
        self._areas = areas
        self._tenancy = tenancy
        self._parts = parts
        is_shared = parts.store.is_shared
        self.engine = Engine(parts.configuration, self._kinds, parts.vault, parts.clock, is_shared=is_shared)
        self.managed: ManagedObjects = ManagedObjects(parts.store, self._kinds)
        domains.renamed = self.managed.rename_domain
        for area in areas:
            area.managed = self.managed
        self.metrics = ConfigurationMetrics(parts.registry)
        self.startup = Startup(parts.settings.apply, self.engine, tenancy, self.metrics, parts.clock)
        self.leader_tasks = (self.startup.run, self._finish_unfinished)

    def _kinds(self) -> Sequence[AnyKind]:
        return sorted((kind for area in self._areas for kind in area.configured), key=lambda kind: kind.level)

    def apply(self, settings: Settings) -> None:
        """Apply the folder of the settings."""
        self.startup.use(settings.apply)

    async def prepare(self) -> None:
        """End an apply whose process has stopped, and wait for the end of one of another node, before logins are
        answered. A command that has not joined, such as `break-glass`, answers none and does not wait."""
        await self.engine.finish_unfinished()
        while self._parts.configuration.has_partial and self._parts.cluster.has_joined:
            with trio.move_on_after(UNDO_S):
                await self._parts.configuration.reload()
            await self.engine.finish_unfinished()

    async def completed(self) -> None:
        """End an apply that was unfinished when the backup was made."""
        await self.engine.finish_unfinished(at_once=True)

    async def _finish_unfinished(self) -> None:
        """End the applies of nodes that have stopped meanwhile, until cancelled."""
        await every(UNDO_S, self.engine.finish_unfinished, failure="configuration_not_undone")

    def commands(self) -> Mapping[str, Command]:
        """Return the local operations of `sallyport export` and `sallyport apply`."""
        return api.local_operations(self.engine, self._tenancy, self.startup)
