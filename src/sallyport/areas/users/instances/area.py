"""The entrance of endpoint instances."""

from collections.abc import Sequence

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.users.instances import operations as api
from sallyport.areas.users.instances.service import Instances
from sallyport.store.slices import Slice
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class InstancesArea(Area):
    """The machines that users are assigned to. deleted: functions that delete what refers to a deleted instance."""

    def __init__(self, parts: Parts, *, deleted: Sequence[Slice[int]]) -> None:
        self.service = Instances(parts.store, parts.clock, deleted=deleted)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of instances."""
        return [api.operations(self.service, gate)]
