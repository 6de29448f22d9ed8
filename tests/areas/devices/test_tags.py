"""Tags of devices: their own, and those of their RADIUS client."""

from sallyport.areas.devices import tag_repo
from sallyport.areas.devices.tag_repo import TaggedDevices
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
    await areas.store.read(compare)
    assert read[-1] is read[-2]
