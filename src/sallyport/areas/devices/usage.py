"""How stations log in through devices: SSID, method and transport, with the number of logins and the times.

The counts of a device are in memory until the next flush of its other counts. An SSID is a claim of the device. So the
number of SSIDs of a device and of a domain is limited: further ones are counted as logins without an SSID.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

from sallyport.base.answer import Wire
from sallyport.base.clock import iso

MOST_OF_DEVICE: Final = 32
"""Maximum number of combinations of SSID, method and transport of a device with an SSID."""
UDP: Final = "udp"
RADSEC_TRANSPORT: Final = "radsec"
Use = tuple[str, str, str]
"""SSID, method, transport."""


@dataclass(slots=True)
class Count:
    """The logins of one use that are not in the store yet. Times are in microseconds."""

    logins: int
    first_seen: int
    last_seen: int

    def add(self, other: "Count") -> None:
        """Add the logins of another count."""
        self.logins += other.logins
        self.first_seen = min(self.first_seen, other.first_seen)
        self.last_seen = max(self.last_seen, other.last_seen)


Uses = dict[Use, Count]


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The logins through a device with one SSID, method and transport."""

    device_id: int
    ssid: Annotated[str, Wire("SSID; empty if the logins name none.", title="SSID")]
    method: Annotated[str, Wire("Method of the logins, such as pap or eap-tls.")]
    transport: Annotated[str, Wire("udp or radsec.")]
    logins: Annotated[int, Wire("Number of the logins.")]
    first_seen: Annotated[int, Wire("First login, ISO 8601 UTC.", convert=iso, title="First login")]
    last_seen: Annotated[int, Wire("Last login, ISO 8601 UTC.", convert=iso, title="Last login", look="age")]


@dataclass(frozen=True, slots=True)
class PortRow:
    """A port of a device (NAS-Port-Id) with stations."""

    port: Annotated[str, Wire("NAS-Port-Id of the last login of these stations.")]
    stations: Annotated[int, Wire("Number of stations.")]
    last_seen: Annotated[int, Wire("Last login, ISO 8601 UTC.", convert=iso, title="Last login", look="age")]


@dataclass(frozen=True, slots=True)
class SsidRow:
    """An SSID of a domain."""

    ssid: Annotated[str, Wire("SSID.", title="SSID")]
    logins: Annotated[int, Wire("Number of logins.")]
    devices: Annotated[int, Wire("Number of devices that have named it.")]
    methods: Annotated[list[str], Wire("Methods of the logins, such as eap-tls.")]
    first_seen: Annotated[int, Wire("First login, ISO 8601 UTC.", convert=iso, title="First login")]
    last_seen: Annotated[int, Wire("Last login, ISO 8601 UTC.", convert=iso, title="Last login", look="age")]


def merge(uses: Uses, use: Use, count: Count) -> None:
    """Add a count to uses. If the device has too many uses with an SSID, count it without the SSID."""
    if use not in uses and use[0] and sum(1 for each in uses if each[0]) >= MOST_OF_DEVICE:
        use = ("", *use[1:])
    known = uses.get(use)
    if known is None:
        uses[use] = count
    else:
        known.add(count)


def with_uses(device_id: int, rows: Iterable[UsageRow], uses: Uses) -> list[UsageRow]:
    """Return the stored uses of a device together with those in memory, the last one first."""
    known: Uses = {
        (each.ssid, each.method, each.transport): Count(each.logins, each.first_seen, each.last_seen) for each in rows
    }
    for use, count in uses.items():
        merge(known, use, replace(count))
    found = [UsageRow(device_id, *use, count.logins, count.first_seen, count.last_seen) for use, count in known.items()]
    return sorted(found, key=lambda each: -each.last_seen)


Usage = Mapping[int, Sequence[UsageRow]]
"""The uses of devices by the id of the device."""
