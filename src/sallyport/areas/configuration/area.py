"""The entrance of configuration as code."""

from collections.abc import Mapping, Sequence

from sallyport.areas.configuration import operations as api
from sallyport.areas.configuration.managed import ManagedObjects
from sallyport.areas.configuration.service import Engine
from sallyport.areas.configuration.startup import Startup
from sallyport.areas.configured import AnyKind
from sallyport.areas.entrance import Area, Areas, Parts
from sallyport.areas.tenancy.service import Tenancy
from sallyport.metrics import ConfigurationMetrics
from sallyport.shell.command import Command


class ConfigurationArea(Area):
    """Configuration as code. areas: declare the kinds of objects that files may describe."""

    def __init__(self, parts: Parts, areas: Areas, tenancy: Tenancy) -> None:
        self._areas = areas
        self._tenancy = tenancy
        self.engine = Engine(parts.configuration, self._kinds, parts.clock)
        self.managed = ManagedObjects(parts.store, self._kinds)
        self.metrics = ConfigurationMetrics(parts.registry)
        self.startup = Startup(parts.settings.apply, self.engine, tenancy, self.metrics, parts.clock)
        self.leader_tasks = (self.startup.run,)

    def _kinds(self) -> Sequence[AnyKind]:
        return sorted((kind for area in self._areas for kind in area.configured), key=lambda kind: kind.level)

    def commands(self) -> Mapping[str, Command]:
        """Return the local operations of `sallyport export` and `sallyport apply`."""
        return api.local_operations(self.engine, self._tenancy, self.startup)
