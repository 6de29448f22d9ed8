"""The station of a request, and the stations that several users share."""

import ipaddress
from typing import Final

from sallyport.areas.policy.attempt import Arrival
from sallyport.areas.policy.lockouts.failures import Key
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND
from sallyport.base.mac import station_key
from sallyport.radius.attributes import (
    CALLED_STATION_ID,
    CALLING_STATION_ID,
    NAS_IDENTIFIER,
    NAS_IP_ADDRESS,
    NAS_IPV6_ADDRESS,
)
from sallyport.radius.packet import Request, as_text

SHARED_BY: Final = 3
"""A station counts as shared if at least this number of users have logged in from it."""
MAC_LENGTH: Final = 17
RECENT_US: Final = 3600 * SECOND
MAX_STATIONS: Final = 65_536


def station_of(request: Request, domain_id: int) -> tuple[int, bytes] | None:
    """Return the domain id and the station's Calling-Station-Id in lower case. Return None if the request has no
    Calling-Station-Id."""
    octets = request.first.get(CALLING_STATION_ID)
    return (domain_id, octets.lower()) if octets else None


def is_nas(arrival: Arrival) -> bool:
    """Return whether the Calling-Station-Id is absent, or names the NAS itself. Some gateways send their own name,
    because RFC 2865 section 5.31 defines the attribute only for telephone numbers."""
    request = arrival.request
    station = station_key(_text(request, CALLING_STATION_ID))
    addresses = (request.first.get(kind, b"") for kind in (NAS_IP_ADDRESS, NAS_IPV6_ADDRESS))
    names = [str(ipaddress.ip_address(octets)) for octets in addresses if len(octets) in {4, 16}]
    called = _text(request, CALLED_STATION_ID)  # on Wi-Fi, the SSID follows the address (RFC 3580 section 3.20)
    names += [arrival.source[0], arrival.client.name, _text(request, NAS_IDENTIFIER), called, called[:MAC_LENGTH]]
    return not station or station in map(station_key, names)


def _text(request: Request, kind: int) -> str:
    return as_text(request.first.get(kind, b""))


class SharedStations:
    """The users that have logged in from each station within the last hour. The class is used only while
    `Lockouts.has_failures` is true.

    max_stations: the maximum number of stations in memory. Each tenant has a share of this number.
    """

    def __init__(self, *, max_stations: int = MAX_STATIONS) -> None:
        self._users = BoundedMap[Key, dict[str, int]](max_stations)  # the time of each user's last login

    def note(self, station: Key, tenant_id: int, user: str, at: int) -> None:
        """Record that a user has logged in from a station. at: the time in microseconds."""
        users = self._users.get(station) or {}
        users.pop(user, None)
        if len(users) >= SHARED_BY:
            del users[next(iter(users))]
        users[user] = at
        self._users.put(station, users, tenant_id)

    def is_shared(self, station: Key, now: int) -> bool:
        """Return whether a station counts as shared: several users, at least SHARED_BY, have logged in from it within
        an hour."""
        users = self._users.get(station) or {}
        return sum(at > now - RECENT_US for at in users.values()) >= SHARED_BY

    def clear(self) -> None:
        """Remove all records."""
        self._users.clear()
