"""The entrance of MAC authentication bypass."""

from collections.abc import Sequence

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.policy.bypass import operations as api
from sallyport.areas.policy.bypass.service import Bypass
from sallyport.areas.users.service import Revocations
from sallyport.store.erasure import Rows
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class BypassArea(Area):
    """The stations that are admitted by their MAC address."""

    erased_rows = (Rows("bypass_stations", "MAC bypass stations"),)

    def __init__(self, parts: Parts, revocations: Revocations) -> None:
        self.service = Bypass(parts.configuration, parts.clock, revocations=revocations)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of the lists of stations."""
        return [api.operations(self.service, gate)]
