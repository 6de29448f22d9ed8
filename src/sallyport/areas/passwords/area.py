"""The entrance of password policies."""

from collections.abc import Sequence

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.passwords import operations as api
from sallyport.areas.passwords.service import Instances, PasswordPolicies
from sallyport.store.slices import Slice
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class PasswordsArea(Area):
    """Password policies. deleted: deletes what refers to removed policies."""

    def __init__(self, parts: Parts, instances: Instances, *, deleted: Slice[Sequence[int]]) -> None:
        self.service = PasswordPolicies(parts.store, instances, parts.clock, deleted=deleted)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of password policies."""
        return [api.operations(self.service, gate)]
