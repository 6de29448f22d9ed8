"""The method by which a station logged in last.

The station is offered that method first. This saves the round in which it asks for another method (RFC 3748 section
5.3.1), a fourth of a login that resumes a session.

Only methods in TLS are remembered. Otherwise an attacker that knows a station's address could log in as another user by
a weaker method, and the station would then be asked for its own user's password by that method.
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
    """The methods of stations that do not use the first one of `ORDER`. most: the number of stations that are kept, a
    share of them for each tenant; the station whose login is oldest is removed first."""

    def __init__(self, most: int = MOST) -> None:
        self._kinds = BoundedMap[tuple[str, bytes], int](most)

    def __len__(self) -> int:
        return len(self._kinds)

    def order(self, scope: str, station: bytes) -> tuple[int, ...]:
        """Return the order in which methods are offered to a station. scope: the scope of the users. station: its
        Calling-Station-Id; empty if unknown."""
        kind = self._kinds.get((scope, station))
        return ORDER if kind is None else _ORDERS[kind]

    def note(self, scope: str, station: bytes, kind: int, tenant_id: int) -> None:
        """Remember the method by which a station has logged in. kind: the method's Type."""
        key = scope, station
        if station and kind in _ORDERS:
            self._kinds.put(key, kind, tenant_id)
        else:
            self._kinds.pop(key)
