"""Remembered stations at the second factor: which logins have a station, and which need no prompt because of it.

A login has a station if its domain remembers stations, its request is signed, and the station is a client certificate,
or a MAC address that no device makes up and that a switch or an access point has sent. The password is already checked;
with the first factor `web`, where nobody checks one, no login has a station.
Logins that need no second factor never come here.

In monitor mode no user proves a second factor. So this node assumes that each user who would be asked proves it, and
keeps in memory which stations it would then remember. The event of a login says what it would have done.
"""

import json
from hashlib import sha256
from typing import Final

from cryptography.hazmat.primitives.serialization import Encoding

from sallyport.areas.clients.client import is_check
from sallyport.areas.domains.domain import WEB, Domain
from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.factors.remembered.service import HOUR_US, RememberedStations
from sallyport.areas.factors.remembered.station import SeenStation, StationKind
from sallyport.areas.login.login import PASSED, Login, Reason
from sallyport.areas.login.second.conversation import Proof, SecondFactorResult
from sallyport.areas.login.second.session import Asked
from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.mfa.provider import Strength
from sallyport.areas.policy.lockouts.stations import is_nas
from sallyport.base.bounded import BoundedMap
from sallyport.base.clock import iso_seconds
from sallyport.base.mac import is_universal, mac_key
from sallyport.base.secret import token_hash
from sallyport.radius.vendors import medium

MEDIA: Final = ("Ethernet", "Wireless")
"""The media at which the Calling-Station-Id is the MAC address of the station. At others, such as a VPN, it is not."""
FACTOR: Final = "remembered"
"""The name of a remembered station among the factors of an event."""
MAX_REHEARSED: Final = 65_536


class Remembering:
    """The remembered stations of logins. stations: the stored ones."""

    def __init__(self, stations: RememberedStations) -> None:
        self._stations = stations
        self._rehearsed = BoundedMap[SeenStation, int](MAX_REHEARSED)  # when the second factor would be proved

    async def find(self, login: Login, domain: Domain, asked: Asked, demanded: Strength) -> SecondFactorResult | None:
        """Return the result of the second factor for a login at a remembered station. Return None if the user must be
        asked. demanded: the strength that the login rule demands. Raises StoreError."""
        seen = None if login.code is not None else _seen(login, domain, asked, demanded)
        known = None if seen is None else await self._stations.use(seen, domain.remember_h)
        if seen is None or known is None:
            return None
        detail = f"remembered station: the user proved the second factor at {iso_seconds(known.since)}"
        proof = Proof(seen.provider, Strength.TWO_CHANNELS, detail)
        return SecondFactorResult(PASSED, asked=asked, detail=detail, proof=proof)

    async def keep(self, login: Login, domain: Domain, result: SecondFactorResult) -> None:
        """Remember the station of a login whose user has proved a strong second factor. Raises StoreError."""
        if result.reason is not PASSED or result.proof.remembered or result.proof.strength < Strength.TWO_CHANNELS:
            return
        seen = _seen(login, domain, result.asked, Strength.TWO_CHANNELS)
        if seen is not None and seen.provider == result.proof.provider:
            await self._stations.keep(seen, domain.remember_h)

    def rehearse(self, login: Login, domain: Domain, asked: Asked, demanded: Strength) -> Reason:
        """Return the predicted result for a user who would be asked in monitor mode: PASSED if the station would be
        remembered, otherwise ASKED. The detail of the login explains it."""
        seen = _seen(login, domain, asked, demanded)
        provider = login.provider
        if seen is None or not isinstance(provider, Attached) or provider.provider.strongest < Strength.TWO_CHANNELS:
            return Reason.ASKED
        now, since = login.arrival.at, self._rehearsed.get(seen)
        if since is not None and since > now - domain.remember_h * HOUR_US:
            login.detail = f"the station would have been remembered since {iso_seconds(since)}"
            return PASSED
        self._rehearsed.put(seen, now, domain.tenant_id)
        until = iso_seconds(now + domain.remember_h * HOUR_US)
        login.detail = f"after a strong second factor, the station would be remembered until {until}"
        return Reason.ASKED


def _seen(login: Login, domain: Domain, asked: Asked, demanded: Strength) -> SeenStation | None:
    """Return the station of a login, or None if it has none that can be remembered."""
    arrival, provider = login.arrival, login.provider
    if (
        not domain.remember_h
        or domain.first_factor is WEB
        or demanded > Strength.TWO_CHANNELS
        or not isinstance(provider, Attached)
    ):
        return None
    if not arrival.request.signed or is_check(arrival.request):
        return None
    if login.certificate is not None:
        digest = sha256(login.certificate.public_bytes(Encoding.DER)).hexdigest()
        kind, station, client_id, client = StationKind.CERTIFICATE, digest, 0, ""
    else:
        kind, station = StationKind.MAC, mac_key(login.station)
        client_id, client = arrival.client.id, arrival.client.name
        if not is_universal(station) or medium(arrival.request) not in MEDIA or is_nas(arrival):
            return None
    stamp = token_hash(json.dumps([asked.factor, asked.stamp, login.found.password_at, login.cloud]))
    return SeenStation(Person(domain.id, login.principal), kind, station, client_id, client, provider.name, stamp)
