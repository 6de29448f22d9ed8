"""The commands of devices: device.forwarders, device.show."""

import json
import re
from collections.abc import Callable

from sallyport.base.clock import Clock, iso
from sallyport.base.command import Arguments, Command, command
from sallyport.base.wire import JSON
from sallyport.inventory.devices.operations import entry
from sallyport.inventory.devices.service import Devices

PAGE = 1000
MOST = 10_000  # addresses that the doctor looks at


AttributeName = Callable[[int, int], str]
"""(vendor, type) to the attribute's name."""
_VENDOR_ATTRIBUTE = re.compile(r"Vendor-Specific (\d+)/(\d+)")


class ShowDevice(Arguments):
    """One device of a domain (name or domainId)."""

    domain: str
    device_id: int


def commands(
    service: Devices, find_domain: Callable[[str], int], attribute_name: AttributeName, clock: Clock
) -> dict[str, Command]:
    """The commands of this area by name. find_domain: the id of a domain by its name or id (NotFound)."""

    async def show(wanted: ShowDevice) -> JSON:
        domain_id = find_domain(wanted.domain)
        row = await service.one(domain_id, wanted.device_id)
        stations, behind = await service.stations(domain_id, row.id, "", offset=0, limit=PAGE)
        history, _ = await service.history(domain_id, row.id, offset=0, limit=PAGE)
        return {
            **entry(row, clock()),
            "evidence": json.loads(_named(row.evidence, attribute_name)),
            "station_count": behind,
            "stations": [
                {"station": each.station, "user": each.user_name, "last_seen": iso(each.last_seen)} for each in stations
            ],
            "history": [{"time": iso(each.at), "event": each.event, "actor": each.actor} for each in history],
        }

    async def forwarders(_: Arguments) -> JSON:
        return [
            {
                "domain_id": each.domain_id,
                "ip_address": each.ip_address,
                "product": each.device_type,
                "devices": each.devices,
            }
            for each in await service.forwarders(MOST)
        ]

    return {
        "device.forwarders": command(Arguments, forwarders),
        "device.show": command(ShowDevice, show),
    }


def _named(evidence: str, attribute_name: AttributeName) -> str:
    """Add the names of vendors' attributes to the evidence."""
    return _VENDOR_ATTRIBUTE.sub(lambda found: f"{found[0]} ({attribute_name(int(found[1]), int(found[2]))})", evidence)
