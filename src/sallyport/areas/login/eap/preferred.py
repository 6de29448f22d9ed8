"""The EAP method of each station's last login.

The service offers a station the method of its last login first. A station that is offered another method must ask for
its own method (RFC 3748 section 5.3.1), and this takes one more round. A login with a resumed TLS session takes four
rounds without the right offer, and three with it.

Only methods that use TLS are remembered. If weaker methods were remembered too, an attacker with an account could log
in by a weaker method, and pretend to have the victim's station address. The service would then offer the weaker method
to the victim's station first, and the station would send the victim's password by the weaker method.
"""

from collections.abc import Mapping
from typing import Final

from sallyport.base.bounded import BoundedMap
from sallyport.radius.eap.methods import ORDER
from sallyport.radius.eap.packet import TLS, TTLS

MOST: Final = 20_000
_ORDERS: Final[Mapping[int, tuple[int, ...]]] = {
    kind: (kind, *[each for each in ORDER if each != kind]) for kind in (TTLS, TLS)
}


class PreferredMethods:
    """The EAP methods of stations that do not use the first method in `ORDER`.

    most: the maximum number of stations. At the maximum, a new station replaces another station: of the tenant with the
    most stations, the station whose last login is the oldest.
    """

    def __init__(self, most: int = MOST) -> None:
        self._kinds = BoundedMap[tuple[str, bytes], int](most)

    def __len__(self) -> int:
        return len(self._kinds)

    def order(self, scope: str, station: bytes) -> tuple[int, ...]:
        """Return the EAP Types to offer to a station, best first. scope: the scope of the user names. station: the
        Calling-Station-Id, or empty if the request has none."""
        kind = self._kinds.get((scope, station))
        return ORDER if kind is None else _ORDERS[kind]

    def note(self, scope: str, station: bytes, kind: int, tenant_id: int) -> None:
        """Store the method of a station's successful login. kind: the EAP Type of the method."""
        key = scope, station
        if station and kind in _ORDERS:
            self._kinds.put(key, kind, tenant_id)
        else:
            self._kinds.pop(key)
