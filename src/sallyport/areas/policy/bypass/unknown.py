"""Stations that ask for admission by their MAC address and are not on the list of their domain.

A station can invent an address for each request. So these stations do not get into the inventory, and everything about
them is bounded. The sightings since the last flush are a bounded map, in which each tenant has a share. The table has
at most MAX_UNKNOWN rows of a tenant; beyond this number, the stations that were not seen for the longest time are
deleted.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final

from sallyport.areas.devices.device import Device
from sallyport.areas.policy.bypass.vendors import Vendors
from sallyport.base.answer import Wire
from sallyport.base.clock import iso
from sallyport.base.mac import is_random, mac_text
from sallyport.radius.attributes import NAS_PORT, NAS_PORT_ID
from sallyport.radius.packet import Request

MAX_UNKNOWN: Final = 10_000
"""Maximum number of unknown stations of a tenant."""
MAX_REQUESTS: Final = 1_000_000
MAX_PORT_LENGTH: Final = 64


@dataclass(slots=True)
class Sighting:
    """The requests of an unknown station since the last flush. The other values are those of the last request."""

    domain_id: int
    station: str
    first_seen: int
    device: Device
    ssid: str
    port: str
    outcome: str
    last_seen: int = field(init=False)
    requests: int = 0

    def __post_init__(self) -> None:
        self.last_seen = self.first_seen


@dataclass(frozen=True, slots=True)
class UnknownRow:
    """A station that has asked for admission by its MAC address and is not on the list."""

    station: Annotated[str, Wire("MAC address as aa:bb:cc:dd:ee:ff.", convert=mac_text, title="MAC address")]
    ssid: Annotated[str, Wire("SSID of the last request; empty if it names none.", title="SSID")]
    port: Annotated[str, Wire("Port of the last request: NAS-Port-Id or NAS-Port; empty if absent.")]
    device_id: Annotated[int, Wire("Id of the network device of the last request; 0 if unknown.", "deviceId")]
    device_name: Annotated[str, Wire("Name of this device; empty if unknown.", "deviceName", title="Device")]
    outcome: Annotated[str, Wire("Answer to the last request: accept or reject.", title="Answer", look="outcome")]
    request_count: Annotated[int, Wire("Requests, at most 1,000,000.", "requests")]
    first_seen: Annotated[int, Wire("First request, ISO 8601 UTC.", "firstSeen", iso, title="First seen")]
    last_seen: Annotated[int, Wire("Last request, ISO 8601 UTC.", "lastSeen", iso, title="Last seen", look="age")]

    @Wire("Whether the station has made up its address at random, as telephones do.", after="station")
    def randomised(self) -> bool:
        """Return whether the address is locally administered."""
        return is_random(self.station)

    @Wire("Vendor of the address by the registry of the IEEE; empty if unknown or randomised.", after="randomised")
    def vendor(self, vendors: Vendors) -> str:
        """Return the vendor of the address."""
        return vendors.of(self.station)


def port_of(request: Request) -> str:
    """Return the port of a request as text, or an empty text if it names none."""
    number = request.integer(NAS_PORT)
    return (request.text(NAS_PORT_ID) or ("" if number is None else str(number)))[:MAX_PORT_LENGTH]


def domain_of(sighting: Sighting) -> int:
    """Return the domain of a sighting."""
    return sighting.domain_id
