"""Sessions of revoked users end once, also if the leader changes."""

import trio

from sallyport.areas.domains.repo import Update
from sallyport.areas.dynamic.revocations import Revocations
from tests.areas import Areas
from tests.areas.dynamic.nas import ack, running_nas
from tests.areas.dynamic.test_revocations import LOCAL, PASSWORD, done, ended, left
from tests.areas.dynamic.world import device, session
from tests.nodes.conftest import Pair
from tests.peers.postgres import needs_postgres
from tests.waiting import until

pytestmark = needs_postgres


def revocations(areas: Areas) -> Revocations:
    """Return the revocations of a node without the second look."""
    return Revocations(areas.store, areas.cluster, areas.dynamic, areas.domains, areas.rules, areas.clock, late_s=0.0)


async def test_another_leader_ends_the_rest(pair: Pair) -> None:
    """A paused former leader does not delete the revocation, and asks a NAS once at most; the new leader ends all
    sessions that are still live."""
    one, two = pair.one, pair.two
    await one.domains.update(one.domain, Update(settings={"disconnect_on_revoke": True}))
    async with running_nas(ack) as nas:
        client = await one.client(LOCAL, coa_port=nas.port)
        corp = await device(one, client, LOCAL, NAS_IDENTIFIER=b"ap-1")
        await one.add_user(one.domain, "ann", PASSWORD)
        await session(one, corp, "1", USER_NAME="ann")
        await one.remove_user(one.domain, "ann")
        await pair.move_lease()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(revocations(one).run)
            await until(lambda: len(nas.requests) == 1)
            await trio.sleep(0.5)
            nursery.cancel_scope.cancel()
        assert await left(one) == 1
        await session(one, corp, "2", USER_NAME="ann")
        await two.configuration.reload()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(revocations(two).run)
            await done(two)
            nursery.cancel_scope.cancel()
    assert ended(nas) == [b"1", b"1", b"2"]
