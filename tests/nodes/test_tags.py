"""Tags of devices at two nodes: a change at one node applies to the logins of both, and so does a deletion."""

import pytest

from sallyport.areas.devices import tagging
from sallyport.base.errors import Conflict
from sallyport.base.tags import NO_TAGS
from tests.areas.devices.conftest import Seen
from tests.nodes.conftest import Pair
from tests.peers.postgres import needs_postgres

pytestmark = needs_postgres
NAME = b"core"


async def seen_by_both(pair: Pair) -> tuple[Seen, Seen]:
    """Return the recorded requests of a RADIUS client at both nodes."""
    client = await pair.one.client("192.0.2.0/24")
    await pair.two.configuration.reload()
    return Seen(pair.one, client), Seen(pair.two, pair.two.clients.table.present(client.id))


async def test_a_change_at_one_node_applies_at_the_other(pair: Pair) -> None:
    """The other node reads only the changed rows. Its device in memory has the new tags with the next login."""
    first, second = await seen_by_both(pair)
    device = await first.device("core")
    other = second.note(NAS_IDENTIFIER=NAME)
    for tags in (["site=Berlin"], ["site=Hamburg", "role=core"]):
        await pair.one.devices.update(
            pair.one.domain, device_ids=[device.id or 0], addresses=None, tags=tags, note=None
        )
        await pair.two.configuration.reload()
        assert other.tags == device.tags
    assert other.tags == ("role=core", "site=Hamburg")


async def test_a_deletion_at_one_node_removes_the_tags_at_the_other(pair: Pair) -> None:
    """The device that returns at the other node has none, also before its row is written."""
    first, second = await seen_by_both(pair)
    device = await first.device("core")
    ids = [device.id or 0]
    await pair.one.devices.update(pair.one.domain, device_ids=ids, addresses=None, tags=["site=Berlin"], note=None)
    await pair.two.configuration.reload()
    await pair.one.devices.delete(pair.one.domain, device_ids=ids, addresses=None, actor="ann")
    await pair.two.configuration.reload()
    again = second.note(NAS_IDENTIFIER=NAME)
    assert again.id is None
    assert again.tags == NO_TAGS


async def test_the_limit_counts_the_devices_of_the_other_node(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node knows the tagged devices of the other one."""
    monkeypatch.setattr(tagging, "MAX_TAGGED", 1)
    first, second = await seen_by_both(pair)
    device, other = await first.device("a"), await second.device("b")
    await pair.one.devices.update(
        pair.one.domain, device_ids=[device.id or 0], addresses=None, tags=["site=Berlin"], note=None
    )
    await pair.two.configuration.reload()
    with pytest.raises(Conflict):
        await pair.two.devices.update(
            pair.two.domain, device_ids=[other.id or 0], addresses=None, tags=["site=Berlin"], note=None
        )
