"""Commands of devices: device.domain, device.forwarders."""

from sallyport.areas.devices.service import Devices
from sallyport.base.wire import JSON
from sallyport.shell.command import Arguments, Command, command

MOST = 10_000  # maximum number of addresses that `sallyport doctor` examines


class DomainOf(Arguments):
    """Arguments of device.domain. device: the id of a device."""

    device: int


def commands(service: Devices) -> dict[str, Command]:
    """Return the commands of devices by name."""

    async def domain(wanted: DomainOf) -> JSON:
        """Return the domain of a device. The command line accepts a device id without a domain, but the HTTP operations
        need the domain."""
        return await service.domain_of(wanted.device)

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

    return {"device.domain": command(DomainOf, domain), "device.forwarders": command(Arguments, forwarders)}
