"""How stations log in through devices: SSID, method and transport, with the number of logins and the times.

The counts of a device are in memory until the next flush of its other counts. An SSID is a claim of the device. So the
number of SSIDs of a device and of a domain is limited: further ones are counted as logins without an SSID.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

from sallyport.base.answer import Wire
from sallyport.base.clock import iso

MAX_OF_DEVICE: Final = 32
"""Maximum number of combinations of SSID, method and transport of a device with an SSID."""
UDP: Final = "udp"
RADSEC_TRANSPORT: Final = "radsec"
Use = tuple[str, str, str]
"""SSID, method, transport."""
Uses = dict[Use, int]
"""The number of logins of each use that are not in the store yet. The flush takes the time of the device's last request
as the time of the last of them."""


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


def add(uses: Uses, use: Use, logins: int) -> None:
    """Add logins to uses. If the device has too many uses with an SSID, count them without the SSID."""
    if use not in uses and use[0] and sum(1 for each in uses if each[0]) >= MAX_OF_DEVICE:
        use = ("", *use[1:])
    uses[use] = uses.get(use, 0) + logins


def with_uses(device_id: int, rows: Iterable[UsageRow], uses: Uses, at: int) -> list[UsageRow]:
    """Return the stored uses of a device together with those in memory, the last one first. at: the time of the
    device's last request, in microseconds."""
    known: dict[Use, UsageRow] = {(each.ssid, each.method, each.transport): each for each in rows}
    logins = {use: each.logins for use, each in known.items()}
    for use, count in uses.items():
        add(logins, use, count)
    found = []
    for use, count in logins.items():
        row = known.get(use) or UsageRow(device_id, *use, 0, at, at)
        found.append(row if count == row.logins else replace(row, logins=count, last_seen=max(at, row.last_seen)))
    return sorted(found, key=lambda each: -each.last_seen)


Usage = Mapping[int, Sequence[UsageRow]]
"""The uses of devices by the id of the device."""
