"""The entrance of endpoint instances."""

from collections.abc import Sequence

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.users.instances import operations as api
from sallyport.areas.users.instances.service import Instances
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class InstancesArea(Area):
    """The machines that users are assigned to."""

    def __init__(self, parts: Parts) -> None:
        self.service = Instances(parts.store, parts.clock)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of instances."""
        return [api.operations(self.service, gate)]
