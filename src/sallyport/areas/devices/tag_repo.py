"""SQL for the tags and notes that devices have themselves. A change writes a new row, whose id is higher than all
others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from sallyport.areas.devices.device import Identity
from sallyport.areas.devices.rows import DeviceRow
from sallyport.base.tags import Tags, as_stored, of_store
from sallyport.store.model import LISTED, Tx, listed


@dataclass(frozen=True, slots=True)
class TaggedDevice:
    """A device with tags or a note of its own. change_id: the id of its row, which each change increases."""

    change_id: int
    id: int
    tenant_id: int
    domain_id: int
    ip_address: str
    client_ip: str
    nas_identifier: str
    own_tags: str

    @property
    def identity(self) -> Identity:
        """The key of the device's row."""
        return self.domain_id, self.ip_address, self.client_ip, self.nas_identifier


@dataclass(frozen=True, slots=True)
class _Extent:
    """The number of rows in the table, the highest id, and the sum of all ids. If they have not changed, the rows have
    not changed, because ids are not reused."""

    count: int = 0
    last: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class TaggedDevices:
    """All devices with tags or a note of their own, by id, and by tenant and id; and their tags by identity.

    senders: the domains and source addresses with such a device that is known by its NAS-IP-Address or NAS-Identifier.
    """

    by_id: Mapping[int, TaggedDevice] = field(default_factory=dict)
    tags: Mapping[Identity, tuple[int, Tags]] = field(default_factory=dict)
    of_tenant: Mapping[int, dict[int, TaggedDevice]] = field(default_factory=dict)
    extent: _Extent = _Extent()
    senders: frozenset[tuple[int, str]] = frozenset()


_SELECT: Final = (
    "select device_tags.id as change_id, devices.id, tenant_id, domain_id, ip_address, client_ip, nas_identifier, "
    "own_tags from device_tags join devices on devices.id = tagged_id join domains on domains.id = domain_id"
)
_EXTENT: Final = (
    "select count(*) as count, coalesce(max(id), 0) as last, cast(coalesce(sum(id), 0) as bigint) as total "
    "from device_tags"
)


def load(tx: Tx, before: TaggedDevices) -> TaggedDevices:
    """Return all devices with tags or a note of their own. Only rows that are new since an earlier result are read; if
    rows were deleted, the ids of all rows too. before: an earlier result from the same table, or an empty one."""
    extent = tx.one(_Extent, _EXTENT) or _Extent()
    if extent == before.extent:
        return before
    new = tx.all(TaggedDevice, f"{_SELECT} where device_tags.id > :last", last=before.extent.last)
    gone = [before.by_id[each.id] for each in new if each.id in before.by_id]
    count = before.extent.count + len(new) - len(gone)
    total = before.extent.total + sum(each.change_id for each in new) - sum(each.change_id for each in gone)
    if (count, total) != (extent.count, extent.total):
        present = {int(str(id)) for (id,) in tx.rows("select id from device_tags")}
        late = present.difference(each.change_id for each in chain(before.by_id.values(), new))
        gone = [each for each in before.by_id.values() if each.change_id not in present]
        new += tx.all(TaggedDevice, f"{_SELECT} where device_tags.id in {LISTED}", ids=listed(sorted(late)))
    by_id, tags, of_tenant = dict(before.by_id), dict(before.tags), dict(before.of_tenant)
    for tenant_id in {each.tenant_id for each in chain(gone, new)}:
        of_tenant[tenant_id] = dict(of_tenant.get(tenant_id, {}))
    for each in gone:
        del by_id[each.id], tags[each.identity], of_tenant[each.tenant_id][each.id]
    for each in new:
        by_id[each.id] = of_tenant[each.tenant_id][each.id] = each
        tags[each.identity] = each.id, of_store(each.own_tags)
    named = (
        each
        for each in by_id.values()
        if each.own_tags and (each.client_ip, each.nas_identifier) != (each.ip_address, "")
    )
    return TaggedDevices(by_id, tags, of_tenant, extent, frozenset((each.domain_id, each.ip_address) for each in named))


def write(tx: Tx, values: Sequence[tuple[DeviceRow, Tags, str]]) -> None:
    """Set the own tags and the notes of devices: (device, tags, note)."""
    tx.execute(f"delete from device_tags where tagged_id in {LISTED}", ids=listed(row.id for row, _, _ in values))
    rows = [(row.id, as_stored(tags), note) for row, tags, note in values if tags or note]
    tx.insert("device_tags", ("tagged_id", "own_tags", "note"), rows)
