"""The entrance of network devices and stations."""

from collections.abc import Callable, Mapping, Sequence

from starlette.routing import BaseRoute

from sallyport.areas.devices import operations as api
from sallyport.areas.devices import targets
from sallyport.areas.devices.service import Devices
from sallyport.areas.devices.sightings import Sightings
from sallyport.areas.devices.tagging import DeviceTags, TagsOfClients
from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Parts
from sallyport.base.clock import now_us
from sallyport.metrics import InventoryMetrics
from sallyport.shell.command import Command
from sallyport.store.erasure import DependentTable, Rows
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class DevicesArea(Area):
    """Network devices, and the stations behind them. clients: returns the tags of RADIUS clients."""

    erased_rows = (
        Rows("stations", "stations"),
        Rows("device_usage", key="device_id, ssid, method, transport"),
        Rows("device_history", "entries of the device history"),
        Rows(
            "devices",
            "network devices",
            parts=(
                DependentTable("device_posture", "device_id", "device_id"),
                DependentTable("device_tags", "id", "tagged_id"),
            ),
            searched="domain_id",
        ),
    )

    def __init__(self, parts: Parts, domains: Domains, clients: Callable[[], TagsOfClients]) -> None:
        metrics = InventoryMetrics(parts.registry)
        metrics.watch_domains(domains.shown)
        self._attribute_name = parts.dictionary.name
        tags = DeviceTags(parts.configuration, clients, domains.tenant_of)
        self.service = Devices(parts.store, Sightings(tags.tags_of, tags.has_claimed_tags), metrics, tags, parts.clock)
        self.node_tasks = (self.service.run,)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of devices and stations."""
        return [api.operations(self.service, self._attribute_name, gate, now_us)]

    def routes(self, gate: Gate) -> Sequence[BaseRoute]:
        """Return the route of the targets of Prometheus."""
        return targets.routes(self.service, gate)

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of devices."""
        return api.local_operations(self.service)

    def forget_all(self) -> None:
        """Drop the devices and stations in memory."""
        self.service.sightings.forget_all()
