"""A re-authorization is carried out by one node, also if the leader changes."""

import trio

from sallyport.areas.reauthorization.reauthorization import SessionEffect
from tests.areas.reauthorization.conftest import running_office
from tests.nodes.conftest import Pair
from tests.peers.postgres import needs_postgres
from tests.waiting import until

pytestmark = needs_postgres


async def test_another_leader_continues(pair: Pair) -> None:
    """A paused former leader stores no progress and no answer. The new leader examines and changes each session."""
    one, two = pair.one, pair.two
    async with running_office(one) as office:
        rule = await office.rule("staff", "allow", users=["ann", "bob"], vlan="20")
        for user in ("ann", "bob"):
            await office.log_in(user)
        await office.change(rule, vlan="30")
        run_id = await office.service.start(one.domain)
        await pair.move_lease()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(office.service.run)
            await trio.sleep(0.5)
            nursery.cancel_scope.cancel()
        assert (await office.found(run_id)).examined == 0
        assert office.nas.requests == []
        await two.configuration.reload()
        other = two.app.reauthorization.service
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other.run)

            async def has_ended() -> bool:
                return (await other.page(two.domain))[0].ended_at is not None

            await until(has_ended, seconds=60)
            nursery.cancel_scope.cancel()
        rows, total = await other.changes(two.domain, run_id, offset=0, limit=10)
        assert total == 2
        assert {(each.effect, each.outcome) for each in rows} == {(SessionEffect.CHANGE, "ack")}
