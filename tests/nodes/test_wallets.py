"""Logins with the provider `wallet` over two nodes."""

import math

import trio
import trio.testing

from sallyport.areas.mfa.wallet import PATIENCE_S
from tests.areas.did.holders import populated
from tests.areas.did.presentations.test_prompts import approve, opened
from tests.nodes.conftest import Pair
from tests.peers.postgres import needs_postgres

pytestmark = needs_postgres


async def test_a_presentation_at_another_node_wakes_the_login(pair: Pair) -> None:
    """A presentation at the second node wakes the login that waits at the first, long before the next poll."""
    assert PATIENCE_S > 5
    world = await populated(pair.one)
    request_id = await opened(world)
    assert request_id is not None
    answers = list[str | None]()

    async def wait() -> None:
        answers.append(await pair.one.did.prompts.answer(request_id, within_s=math.inf))

    async with trio.open_nursery() as nursery:
        for each in (pair.one, pair.two):
            await nursery.start(each.notices.run)
        with trio.fail_after(30):
            async with trio.open_nursery() as waiting:
                waiting.start_soon(wait)
                await trio.testing.wait_all_tasks_blocked(0.05)
                world.did = pair.two.did
                await approve(world)
        nursery.cancel_scope.cancel()
    assert answers == ["accepted"]
