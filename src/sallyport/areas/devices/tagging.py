"""The tags that devices have themselves, in memory, because the rules of a login may name them.

A device also takes over the tags of its RADIUS client (`Device.tags`). A device in memory has no row before the
transaction of its first login, so a login finds the tags by the identity of the device. A deletion of the device
deletes its tags and its note.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Final, Protocol, TypeVar

from sallyport.areas.devices import tag_repo
from sallyport.areas.devices.device import Device
from sallyport.areas.devices.rows import DeviceRow, TagSelection
from sallyport.areas.devices.tag_repo import TaggedDevices
from sallyport.base.errors import Conflict
from sallyport.base.tags import MAX_CHARACTERS, NO_TAGS, Tags, as_stored, folded_tag, is_selected, key_of, of_store
from sallyport.store.model import Tx, Work
from sallyport.store.snapshot import Configuration

T = TypeVar("T")
MAX_TAGGED: Final = 50_000
"""Maximum number of devices of a tenant with tags or a note of their own. The limit exists because they are in memory.
All other devices take over the tags of their client."""
_REMEDY: Final = "set tags of the RADIUS client instead, which all of its devices take over"


class TagsOfClients(Protocol):
    """The tags of RADIUS clients."""

    def tags_of(self, client_id: int) -> Tags:
        """Return the tags of a client. A client that does not exist has none."""

    def with_tag(self, tenant_id: int, folded: str) -> list[int]:
        """Return the ids of the tenant's clients that a wanted tag selects. folded: as `folded_tag` returns it."""


class DeviceTags:
    """The tags of all devices themselves. `tags_of` is for the login path. clients: returns the tags of RADIUS
    clients, when all areas exist. tenant_of: returns the tenant of a domain."""

    def __init__(
        self,
        configuration: Configuration,
        clients: Callable[[], TagsOfClients],
        tenant_of: Callable[[int], int | None],
    ) -> None:
        self._configuration = configuration
        self._find_clients = clients
        self._tenant_of = tenant_of
        self._tagged = configuration.hold(self._load, TaggedDevices())

    def _load(self, tx: Tx) -> TaggedDevices:
        return tag_repo.load(tx, TaggedDevices() if self._configuration.is_outdated else self._tagged.value)

    def tags_of(self, device: Device) -> Tags:
        """Return the tags of a device itself. A device that registers again after its deletion has none."""
        tagged = self._tagged.value.tags
        if not tagged:
            return NO_TAGS
        found = tagged.get((device.domain_id, device.ip_address, device.client_ip, device.nas_identifier))
        return NO_TAGS if found is None or device.id not in (None, found[0]) else found[1]

    def are_claimed(self, domain_id: int, ip_address: str, *, is_named: bool) -> bool:
        """Return whether the tags of a device depend on a name in its requests: another NAS-IP-Address or
        NAS-Identifier, or none, would give it other tags. is_named: whether the device is known by one of them."""
        tagged = self._tagged.value
        if (domain_id, ip_address) in tagged.senders:
            return True
        nameless = tagged.tags.get((domain_id, ip_address, ip_address, "")) if is_named else None
        return nameless is not None and bool(nameless[1])

    def has_claimed_tags(self, device: Device) -> bool:
        """Return `are_claimed` for a device in memory."""
        return self.are_claimed(device.domain_id, device.ip_address, is_named=device.is_named)

    @cached_property
    def clients(self) -> TagsOfClients:
        """The tags of RADIUS clients, which their devices take over."""
        return self._find_clients()

    async def change(self, work: Work[T]) -> T:
        """Write a change of tags or notes. When it returns, all logins of this node have the new tags. Raises the
        errors of `work`, StoreError."""
        return await self._configuration.change(work)

    async def read_again(self) -> None:
        """Read the tags again, after a transaction that has called `stamp`."""
        await self._configuration.reload_if_possible()

    def select(self, domain_id: int, tag: str) -> TagSelection:
        """Return the devices of a domain that a wanted tag selects. Any thread may call this method: it takes about a
        microsecond for each tagged device and each client of the tenant. tag: in canonical form."""
        folded, key, tenant_id = folded_tag(tag), key_of(tag) + "=", self._tenant_of(domain_id) or 0
        of_tenant = self._tagged.value.of_tenant.get(tenant_id, {})
        of_domain = [each for each in of_tenant.values() if each.domain_id == domain_id]
        named = [(each.id, of_store(each.own_tags)) for each in of_domain if key in each.own_tags]
        return TagSelection(
            [number for number, tags in named if is_selected(tags, folded)],
            self.clients.with_tag(tenant_id, folded),
            [number for number, tags in named if any(each.startswith(key) for each in tags)],
        )

    def check_room(self, domain_id: int, changed: Iterable[tuple[DeviceRow, Tags, str]]) -> None:
        """Raise Conflict if the tenant would have too many devices with tags or a note of their own, or too long tags
        in all. changed: each device with its new tags and its new note."""
        of_tenant = self._tagged.value.of_tenant.get(self._tenant_of(domain_id) or 0, {})
        new = growth = 0
        for row, tags, note in changed:
            new += bool(tags or note) and row.id not in of_tenant
            growth += len(as_stored(tags)) - len(row.own_tags)
        if new > 0 and len(of_tenant) + new > MAX_TAGGED:
            raise Conflict(
                f"a tenant can have at most {MAX_TAGGED} devices with tags or a note of their own; {_REMEDY}"
            )
        if growth > 0 and sum(len(each.own_tags) for each in of_tenant.values()) + growth > MAX_CHARACTERS:
            raise Conflict(f"the tags of a tenant's devices can have at most {MAX_CHARACTERS} characters; {_REMEDY}")
