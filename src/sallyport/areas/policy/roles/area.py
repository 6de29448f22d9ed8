"""The entrance of roles."""

from collections.abc import Sequence

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.policy.roles import operations as api
from sallyport.areas.policy.roles.configured import RoleKind
from sallyport.areas.policy.roles.service import Roles
from sallyport.store.erasure import Rows
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class RolesArea(Area):
    """Roles: named sets of reply attributes."""

    erased_rows = (Rows("login_roles", "roles"),)

    def __init__(self, parts: Parts) -> None:
        self.service = Roles(parts.configuration, parts.dictionary, parts.clock)
        self.configured = (RoleKind(self.service),)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of roles."""
        return [api.operations(self.service, gate)]
