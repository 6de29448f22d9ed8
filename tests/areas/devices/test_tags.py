"""Tags of devices: their own, and those of their RADIUS client."""

import pytest

from sallyport.areas.devices import tag_repo, tagging
from sallyport.areas.devices.device import Device
from sallyport.areas.devices.rows import DeviceQuery
from sallyport.areas.devices.tag_repo import TaggedDevices
from sallyport.base.errors import Conflict, NotFound
from sallyport.base.tags import NO_TAGS, Tags
from sallyport.store.model import Tx
from tests.areas import Areas
from tests.areas.devices.conftest import Seen


async def tag(areas: Areas, device_id: int, tags: Tags, note: str = "") -> None:
    """Set the own tags of a device."""
    row = await areas.devices.one(areas.domain, device_id)
    await areas.app.parts.configuration.change(lambda tx: tag_repo.write(tx, [(row, tags, note)]))


async def test_a_device_takes_over_the_tags_of_its_client(areas: Areas, seen: Seen) -> None:
    """Its own value of a key precedes. A change applies to the next request."""
    device = await seen.device("core")
    assert device.id is not None
    assert device.tags == NO_TAGS
    await areas.clients.update(areas.tenant, seen.client.id, {}, tags=["site=Berlin", "owner=net"])
    seen.client = areas.clients.table.present(seen.client.id)
    assert seen.note(NAS_IDENTIFIER=b"core").tags == ("owner=net", "site=Berlin")
    await tag(areas, device.id, ("site=Hamburg",))
    assert device.tags == ("owner=net", "site=Hamburg")
    await tag(areas, device.id, ())
    assert device.tags == ("owner=net", "site=Berlin")


async def test_the_first_request_after_a_restart_finds_the_tags(areas: Areas, seen: Seen) -> None:
    """The device in memory has no id before its transaction; a login decides before it."""
    device = await seen.device("core")
    assert device.id is not None
    await tag(areas, device.id, ("site=Hamburg",))
    areas.devices.sightings.forget_all()
    again = seen.note(NAS_IDENTIFIER=b"core")
    assert again.id is None
    assert again.tags == ("site=Hamburg",)


async def test_a_deleted_device_has_no_tags_when_it_returns(areas: Areas, seen: Seen) -> None:
    """Neither at its first request, nor later."""
    device = await seen.device("core")
    assert device.id is not None
    await tag(areas, device.id, ("site=Hamburg",), "in the cellar")
    await areas.devices.delete(areas.domain, device_ids=[device.id], addresses=None, actor="ann")
    again = seen.note(NAS_IDENTIFIER=b"core")
    assert again.tags == NO_TAGS
    await seen.write(again)
    assert again.tags == NO_TAGS
    assert again.id is not None
    row = await areas.devices.one(areas.domain, again.id)
    assert (row.own_tags, row.note) == ("", "")


async def test_a_reload_reads_only_changed_rows(areas: Areas, seen: Seen) -> None:
    """A new row, a replaced one, and a deleted one give the same result as a reading of the whole table."""
    ids = [device.id or 0 for device in [await seen.device(name) for name in ("a", "b", "c")]]
    read = list[TaggedDevices]()

    def compare(tx: Tx) -> None:
        before = read[-1] if read else TaggedDevices()
        read.append(tag_repo.load(tx, before))
        assert read[-1] == tag_repo.load(tx, TaggedDevices())

    for number, tags in ((0, ("k=1",)), (1, ("k=2",)), (0, ("k=3",)), (1, NO_TAGS), (2, ("k=4",))):
        await tag(areas, ids[number], tags)
        await areas.store.read(compare)
    assert {each.own_tags for each in read[-1].by_id.values()} == {"k=3", "k=4"}
    await tag(areas, ids[2], NO_TAGS)
    await areas.store.read(compare)
    assert read[-1].by_id[ids[0]] is read[-2].by_id[ids[0]]
    await areas.store.write(lambda tx: tx.execute("update device_tags set id = 1 where tagged_id = :id", id=ids[0]))
    await areas.store.read(compare)  # nodes that write at the same time do not commit in the order of the ids
    await areas.store.read(compare)
    assert read[-1] is read[-2]


async def update(areas: Areas, *devices: Device, tags: list[str] | None = None, note: str | None = None) -> int:
    """Change the own tags and the notes of devices."""
    ids = [device.id or 0 for device in devices]
    return await areas.devices.update(areas.domain, device_ids=ids, addresses=None, tags=tags, note=note)


async def tagged(areas: Areas, tag: str, search: str = "", column: str = "", value: str = "") -> list[str]:
    """Return the names of the devices that a tag selects."""
    query = DeviceQuery(areas.domain, search=search, column=column, value=value, tag=tag, limit=1000)
    rows, total, _ = await areas.devices.page(query)
    assert total == len(rows)
    return [row.device_name for row in rows]


async def test_a_change_sets_and_removes_keys_of_several_devices(areas: Areas, seen: Seen) -> None:
    """Other keys, and the note, stay. The audit trail has each device that has changed."""
    first, second = await seen.device("a"), await seen.device("b")
    await update(areas, first, tags=["site=Berlin", "rack=7"], note="in the cellar")
    assert await update(areas, first, second, tags=["SITE=Hamburg", "rack="]) == 2
    assert first.tags == second.tags == ("site=Hamburg",)
    assert (await areas.devices.one(areas.domain, first.id or 0)).note == "in the cellar"
    assert await update(areas, first, second, tags=["site=Hamburg"]) == 2
    sql = "select target from audit_trail where action = 'device.update' order by id"
    targets = await areas.store.read(lambda tx: tx.rows(sql))
    assert [target for (target,) in targets] == ["device 1 a", "device 1 a", "device 2 b"]
    await update(areas, first, second, tags=[])
    assert first.tags == NO_TAGS


async def test_a_tag_selects_devices(areas: Areas, seen: Seen) -> None:
    """An own tag and a tag of the client select alike, with a hierarchy; an own value of the key precedes."""
    own, _, other = await seen.device("own"), await seen.device("inherits"), await seen.device("other")
    await areas.clients.update(areas.tenant, seen.client.id, {}, tags=["site=Berlin/Floor 2"])
    await update(areas, own, tags=["site=Berlin"])
    await update(areas, other, tags=["site=Hamburg", "owner=net"])
    assert await tagged(areas, "site=berlin") == ["own", "inherits"]
    assert await tagged(areas, "site=Berlin/floor 2") == ["inherits"]
    assert await tagged(areas, "owner=net") == ["other"]
    assert await tagged(areas, "site=Ber") == []
    assert await tagged(areas, "site=Berlin", search="herits") == ["inherits"]
    assert await tagged(areas, "site=Berlin", column="device_name", value="OWN") == ["own"]
    assert await tagged(areas, "site=Berlin", column="device_name", value="other") == []


async def test_another_tenant_has_no_part_in_the_selection(areas: Areas, seen: Seen) -> None:
    """Devices of another domain with the same tag are not found, and cannot be changed."""
    device = await seen.device("core")
    await update(areas, device, tags=["site=Berlin"])
    other = await areas.domains.add(await areas.tenancy.ensure_tenant(2, 1), "other")
    rows, total, _ = await areas.devices.page(DeviceQuery(other, tag="site=Berlin"))
    assert (rows, total) == ([], 0)
    with pytest.raises(NotFound):
        await areas.devices.update(other, device_ids=[device.id or 0], addresses=None, tags=["site=x"], note=None)


async def test_the_number_of_tagged_devices_is_limited(
    areas: Areas, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in memory. A device that has tags already can be changed; a removal makes room."""
    monkeypatch.setattr(tagging, "MAX_TAGGED", 1)
    first, second = await seen.device("a"), await seen.device("b")
    await update(areas, first, tags=["site=Berlin"])
    await update(areas, first, tags=["site=Hamburg"])
    with pytest.raises(Conflict, match="at most 1 devices"):
        await update(areas, second, note="x")
    await update(areas, first, tags=[])
    await update(areas, second, note="x")


async def test_the_characters_of_the_tags_are_limited(
    areas: Areas, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a tenant could fill the memory with long tags. Shorter tags can always be set."""
    monkeypatch.setattr(tagging, "MAX_CHARACTERS", 20)
    first, second = await seen.device("a"), await seen.device("b")
    await update(areas, first, tags=["site=Berlin"])
    with pytest.raises(Conflict, match="at most 20 characters"):
        await update(areas, second, tags=["site=Berlin"])
    await update(areas, first, tags=["site=Bonn"])
    await update(areas, second, tags=["site=Berlin"])
