"""The limits of pages for logins whose password nobody has checked (`first.web`).

Every sender of a name can start such a login. So the pages of a user are counted for each station, and not for the user
alone: an attacker who knows a name uses up the pages of the own station, and the user still gets one.
"""

from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.areas.login.facts import address_of_endpoint
from sallyport.areas.login.login import Login
from sallyport.areas.login.second.session import device_key
from sallyport.areas.policy.lockouts.stations import is_nas
from sallyport.areas.tenancy.guesses import guesses_of_all_nodes, network_of
from sallyport.base.clock import Clock
from sallyport.base.mac import mac_key
from sallyport.base.text import fold_name
from sallyport.nodes.notices import Notices
from sallyport.radius.attributes import CALLING_STATION_ID
from sallyport.radius.packet import as_text

OF_USER: Final = 4
"""Number of pages of a user that a station may open at once. Each ten seconds it may open one more."""
OF_STATION: Final = 60
"""The same for a station and all its users, who may be an office behind one address."""
OF_SENDER: Final = 600
"""The same for a device and all its stations. It may open ten more in each second."""
_SENDER_REFILL_US: Final = 100_000


class WebLimits:
    """The limits of pages over all nodes: of a user at a station, of a station, and of a device.

    A station is the address of the client, with its /64 network. If the device does not send it, all its users share
    one station, and only the limits of the user and of the device apply.
    """

    def __init__(self, notices: Notices, clock: Clock) -> None:
        self._clock = clock
        self._of_user = guesses_of_all_nodes(notices, "web_user", clock, burst=OF_USER)
        self._of_station = guesses_of_all_nodes(notices, "web_station", clock, burst=OF_STATION)
        self._of_sender = guesses_of_all_nodes(
            notices, "web_sender", clock, burst=OF_SENDER, refill_us=_SENDER_REFILL_US
        )

    def admit(self, login: Login, domain: Domain) -> bool:
        """Count the page of a login. Return False if one of its limits is reached; then nothing is counted."""
        now, station = self._clock(), _station(login)
        sender = f"{domain.id} {device_key(login)}"
        place = f"{sender} {station}"
        counted = [(self._of_user, f"{place} {fold_name(login.principal)}"), (self._of_sender, sender)]
        if station:
            counted.append((self._of_station, place))
        if any(limit.too_many(key, now) for limit, key in counted):
            return False
        for limit, key in counted:
            limit.fail(key, now)
        return True


def _station(login: Login) -> str:
    """Return the station of a login, or an empty text if the device does not tell its stations apart."""
    request = login.arrival.request
    text = as_text(request.first.get(CALLING_STATION_ID, b""))
    address = address_of_endpoint(request, text)
    if not address and is_nas(login.arrival):
        return ""
    return network_of(address) if address else mac_key(text) or text
