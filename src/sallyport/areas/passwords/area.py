"""The entrance of password policies."""

from collections.abc import Sequence
from typing import Protocol

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.passwords import operations as api
from sallyport.areas.passwords.configured import PasswordPolicyKind
from sallyport.areas.passwords.repo import forget_instance
from sallyport.areas.passwords.service import Instances, PasswordPolicies
from sallyport.store.slices import Slice
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class Machines(Instances, Protocol):
    """The endpoint machines, to which policies are assigned."""

    def before_deletion(self, delete: Slice[int]) -> None:
        """Register a function that deletes what another area has stored for a machine."""


class PasswordsArea(Area):
    """Password policies."""

    def __init__(self, parts: Parts, instances: Machines) -> None:
        self.service = PasswordPolicies(parts.store, instances, parts.clock)
        self.configured = (PasswordPolicyKind(self.service),)
        instances.before_deletion(forget_instance)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of password policies."""
        return [api.operations(self.service, gate)]
