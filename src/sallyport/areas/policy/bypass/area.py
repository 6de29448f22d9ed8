"""The entrance of MAC authentication bypass."""

from collections.abc import Sequence
from functools import partial

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.policy.bypass import operations as api
from sallyport.areas.policy.bypass import repo
from sallyport.areas.policy.bypass.configured import BypassKind
from sallyport.areas.policy.bypass.service import IDENTITY, Bypass
from sallyport.areas.policy.bypass.vendors import Vendors
from sallyport.areas.policy.roles.service import Roles
from sallyport.areas.users.service import Revocations
from sallyport.store.erasure import Rows
from sallyport.store.sealed import Sealed
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class BypassArea(Area):
    """The stations that are admitted by their MAC address."""

    erased_rows = (Rows("bypass_stations", "MAC bypass stations"), Rows("unknown_stations", "unknown stations"))
    sealed = (Sealed("bypass_stations", "psk", ("domain_id", "station"), IDENTITY),)

    def __init__(self, parts: Parts, revocations: Revocations, roles: Roles) -> None:
        self.service = Bypass(
            parts.configuration,
            parts.clock,
            revocations=revocations,
            vlan_attributes=roles.translation.vlan_attributes,
            check_role=roles.check,
            vault=parts.vault,
        )
        roles.used_by.append(repo.roles_in_use)
        self.configured = (BypassKind(self.service),)
        self.node_tasks = (self.service.run, self.service.unknown.run)
        self.leader_tasks = (partial(self.service.watch, parts.leader_store),)
        self._clock = parts.clock
        self._vendors = Vendors(parts.settings.data_dir)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of the lists of stations."""
        return [api.operations(self.service, self._vendors, gate, self._clock)]

    def forget_all(self) -> None:
        """Drop the sightings of unknown stations."""
        self.service.unknown.forget()
