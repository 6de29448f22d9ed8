"""Which station a request comes from, and which of them many users share."""

import ipaddress
from typing import Final

from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import SECOND
from sallyport.policy.attempt import Attempt
from sallyport.policy.lockouts.failures import Key
from sallyport.policy.rules.match import station_key
from sallyport.radius.attributes import (
    CALLED_STATION_ID,
    CALLING_STATION_ID,
    NAS_IDENTIFIER,
    NAS_IP_ADDRESS,
    NAS_IPV6_ADDRESS,
)
from sallyport.radius.packet import Request, as_text

SHARED_BY: Final = 3
"""A station by which so many users have got in is not one person's."""
MAC_LENGTH: Final = 17
RECENT_US: Final = 3600 * SECOND
MAX_STATIONS: Final = 65_536


def station_of(login: Attempt, domain_id: int) -> tuple[int, bytes] | None:
    """The station that a login names; None for none. As a NAS writes it: it does so always in the same way."""
    octets = login.request.first.get(CALLING_STATION_ID)
    return (domain_id, octets.lower()) if octets else None


def is_nas(login: Attempt) -> bool:
    """Whether the station that a login names is nobody, or the NAS itself: what a gateway without telephone sends is
    left open (RFC 2865 section 5.31)."""
    request = login.request
    station = station_key(_text(request, CALLING_STATION_ID))
    addresses = (request.first.get(kind, b"") for kind in (NAS_IP_ADDRESS, NAS_IPV6_ADDRESS))
    names = [str(ipaddress.ip_address(octets)) for octets in addresses if len(octets) in {4, 16}]
    called = _text(request, CALLED_STATION_ID)  # with the network's name behind it on Wi-Fi (RFC 3580 section 3.20)
    names += [login.source[0], login.client.name, _text(request, NAS_IDENTIFIER), called, called[:MAC_LENGTH]]
    return not station or station in map(station_key, names)


def _text(request: Request, kind: int) -> str:
    return as_text(request.first.get(kind, b""))


class SharedStations:
    """Who got in by which station within the last hour, as far as `Lockouts` watches. Bounded, with a share
    for each tenant."""

    def __init__(self, *, max_stations: int = MAX_STATIONS) -> None:
        self._users = BoundedMap[Key, dict[str, int]](max_stations)  # who, and when

    def note(self, station: Key, tenant_id: int, user: str, at: int) -> None:
        """A user has got in by a station."""
        users = self._users.get(station) or {}
        users.pop(user, None)
        if len(users) >= SHARED_BY:
            del users[next(iter(users))]
        users[user] = at
        self._users.put(station, users, tenant_id)

    def is_shared(self, station: Key, now: int) -> bool:
        """Whether several users have got in by it lately."""
        users = self._users.get(station) or {}
        return sum(at > now - RECENT_US for at in users.values()) >= SHARED_BY

    def clear(self) -> None:
        """Forget everything."""
        self._users.clear()
