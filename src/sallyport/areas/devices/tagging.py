"""The tags that devices have themselves, in memory, because the rules of a login may name them.

A device also takes over the tags of its RADIUS client (`Device.tags`). A device in memory has no row before the
transaction of its first login, so a login finds the tags by the identity of the device. A deletion of the device
deletes its tags and its note.
"""

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from sallyport.areas.devices import tag_repo
from sallyport.areas.devices.device import Device
from sallyport.areas.devices.tag_repo import TaggedDevices
from sallyport.base.errors import Conflict
from sallyport.base.tags import NO_TAGS, Tags
from sallyport.store.model import Tx
from sallyport.store.snapshot import Configuration

MAX_TAGGED: Final = 50_000
"""Maximum number of devices of a tenant with tags or a note of their own. The limit exists because they are in memory.
All other devices take over the tags of their client."""


class TagsOfClients(Protocol):
    """The tags of RADIUS clients."""

    def tags_of(self, client_id: int) -> Tags:
        """Return the tags of a client. A client that does not exist has none."""


class DeviceTags:
    """The tags of all devices themselves. `tags_of` is for the login path. clients: returns the tags of RADIUS
    clients."""

    def __init__(self, configuration: Configuration, clients: Callable[[], TagsOfClients]) -> None:
        self._configuration = configuration
        self._clients = clients
        self._tagged = configuration.hold(self._load, TaggedDevices())

    def _load(self, tx: Tx) -> TaggedDevices:
        return tag_repo.load(tx, TaggedDevices() if self._configuration.is_outdated else self._tagged.value)

    def tags_of(self, device: Device) -> Tags:
        """Return the tags of a device itself. A device that registers again after its deletion has none."""
        found = self._tagged.value.tags.get(
            (device.domain_id, device.ip_address, device.client_ip, device.nas_identifier)
        )
        return NO_TAGS if found is None or device.id not in (None, found[0]) else found[1]

    def of_client(self, client_id: int) -> Tags:
        """Return the tags of a RADIUS client, which its devices take over."""
        return self._clients().tags_of(client_id)

    async def read_again(self) -> None:
        """Read the tags again, after a transaction that has called `stamp`."""
        await self._configuration.reload_if_possible()

    def check_number(self, tenant_id: int, device_ids: Iterable[int]) -> None:
        """Raise Conflict if the tenant would have too many devices with tags or a note of their own."""
        tagged = self._tagged.value
        new = sum(each not in tagged.by_id for each in device_ids)
        if new and tagged.numbers.get(tenant_id, 0) + new > MAX_TAGGED:
            raise Conflict(
                f"a tenant can have at most {MAX_TAGGED} devices with tags or a note of their own; "
                "set tags of the RADIUS client instead, which all of its devices take over"
            )
