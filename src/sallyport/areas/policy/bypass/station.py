"""The entries on a domain's list of stations: as the login path reads them, as an admin changes them, and as rows.

In this module, a station is 12 hex digits in lower case. Times are in microseconds; an end of 0 means that there is
none.
"""

from dataclasses import dataclass, field
from typing import Annotated, Final, NamedTuple

from sallyport.areas.policy.bypass.vendors import Vendors
from sallyport.base.answer import Wire
from sallyport.base.clock import iso
from sallyport.base.mac import is_random, mac_text
from sallyport.base.tags import as_object, of_store

MAX_STATIONS: Final = 100_000
"""Maximum number of stations in a domain. The limit exists because all stations are in memory."""


class Entry(NamedTuple):
    """What the login path reads of a listed station. Most entries are equal, and share one object.

    vlan: the VLAN of the station, or empty. role: the case-folded name of its role, or empty. psk: its sealed
    pre-shared key, or None. until: the end of the entry.
    """

    vlan: str = ""
    until: int = 0
    role: str = ""
    psk: bytes | None = None


@dataclass(frozen=True, slots=True)
class StationChange:
    """A change of the entry of a station, or a new entry. None keeps the value of a listed station.

    An empty value clears the field, but an empty name keeps the name. psk: the pre-shared key. tags: replace the tags
    with the same keys; `KEY=` removes the tag of a key.
    """

    station: str
    name: str = ""
    vlan: str | None = None
    until: int | None = None
    role: str | None = None
    psk: bytes | None = field(default=None, repr=False)
    tags: tuple[str, ...] | None = None


def _tags(text: str) -> dict[str, str]:
    return as_object(of_store(text))


@dataclass(frozen=True, slots=True)
class StationRow:
    """A station on a domain's list."""

    station: Annotated[str, Wire("MAC address as aa:bb:cc:dd:ee:ff.", convert=mac_text, title="MAC address")]
    name: Annotated[str, Wire("Name of the station; empty if it has none.")]
    added_at: Annotated[int, Wire("Time when the station was added, ISO 8601 in UTC.", "addedAt", iso, title="Added")]
    vlan: Annotated[str, Wire("VLAN of the station; empty if it has none.", title="VLAN")]
    role: Annotated[str, Wire("Role of the station; empty if it has none.")]
    tags: Annotated[str, Wire("Tags of the station.", convert=_tags)]
    has_psk: Annotated[int, Wire("Whether the station has a pre-shared key.", "hasPsk", bool, bool, title="Has a key")]
    until_at: Annotated[
        int,
        Wire("End of the entry, ISO 8601 in UTC; empty if there is none.", "until", iso, empty=True, title="Until"),
    ]
    last_seen: Annotated[
        int,
        Wire(
            "Last request of the station, within a minute, ISO 8601 in UTC; empty if there was none.",
            "lastSeen",
            iso,
            empty=True,
            title="Last seen",
            look="age",
        ),
    ]

    @Wire("Whether the entry has ended, so that the station is unknown.", after="until")
    def expired(self, now: int) -> bool:
        """Return whether the entry has ended. now: the time in microseconds."""
        return 0 < self.until_at <= now

    @Wire("Whether the station has made up its address at random, as telephones do.", after="lastSeen")
    def randomised(self) -> bool:
        """Return whether the address is locally administered."""
        return is_random(self.station)

    @Wire("Vendor of the address by the registry of the IEEE; empty if unknown or randomised.", after="randomised")
    def vendor(self, vendors: Vendors) -> str:
        """Return the vendor of the address."""
        return vendors.of(self.station)
