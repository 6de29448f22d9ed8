"""The methods by which stations logged in last.

A station is offered its last method first. This saves the round in which it asks for another method (RFC 3748 section
5.3.1), which is one of four rounds if a session is resumed.

Only methods in TLS are stored. Otherwise an attacker that knows a station's address could log in as another user by a
weaker method. The station would then be offered that method first, and would use it for its own user's password.
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
    """The methods of stations that use another method than the first in `ORDER`. most: the maximum number of stations;
    each tenant has a share. The station with the oldest login is removed first."""

    def __init__(self, most: int = MOST) -> None:
        self._kinds = BoundedMap[tuple[str, bytes], int](most)

    def __len__(self) -> int:
        return len(self._kinds)

    def order(self, scope: str, station: bytes) -> tuple[int, ...]:
        """Return the order in which methods are offered to a station. scope: the scope of the user names. station: the
        Calling-Station-Id; empty if unknown."""
        kind = self._kinds.get((scope, station))
        return ORDER if kind is None else _ORDERS[kind]

    def note(self, scope: str, station: bytes, kind: int, tenant_id: int) -> None:
        """Store the method by which a station has logged in. kind: the EAP Type of the method."""
        key = scope, station
        if station and kind in _ORDERS:
            self._kinds.put(key, kind, tenant_id)
        else:
            self._kinds.pop(key)
