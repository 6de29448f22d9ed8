"""The rate limit of calls to providers."""

from types import SimpleNamespace
from typing import cast

import trio
import trio.testing
from trio.testing import MockClock

from sallyport.areas.factors.pauses.service import Pauses
from sallyport.areas.login.second.calls import Calls, Pace
from sallyport.areas.login.second.conversation import Conversation
from sallyport.areas.mfa.provider import Answer, Outcome


async def test_a_single_call_does_not_wait(autojump_clock: MockClock) -> None:
    """A call that comes alone does not wait."""
    pace = Pace(10)
    for _ in range(20):
        began = trio.current_time()
        await pace.keep()
        assert trio.current_time() == began
        await trio.sleep(0.1)


async def test_many_calls_go_one_by_one(autojump_clock: MockClock) -> None:
    """Queued calls go at the limit's rate in their order; idle time before does not allow a burst."""
    pace, went = Pace(10), list[tuple[int, float]]()

    async def go(number: int) -> None:
        await pace.keep()
        went.append((number, trio.current_time() - began))

    await pace.keep()
    await trio.sleep(100)
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(go, number)
            await trio.testing.wait_all_tasks_blocked()
    assert [number for number, _ in went] == list(range(20))
    assert [round(at, 6) for _, at in went] == [round(number / 10, 6) for number in range(20)]


async def test_calls_of_another_tenant_do_not_wait() -> None:
    """One call begins in each turn of the event loop, and tenants take turns."""
    calls, began, room = Calls(cast(Pauses, None)), list[int](), trio.Semaphore(1000)

    async def ask(tenant_id: int) -> None:
        async def begin() -> Answer:
            began.append(tenant_id)
            return Answer(Outcome.APPROVED)

        attached = SimpleNamespace(timeout_s=60.0, provider=SimpleNamespace(room=room))
        talk = SimpleNamespace(tenant_id=tenant_id, deadline=60.0, attached=attached)
        await calls.outcome(cast(Conversation, talk), begin)

    async with trio.open_nursery() as nursery:
        for _ in range(100):
            nursery.start_soon(ask, 1)
        await trio.lowlevel.checkpoint()
        nursery.start_soon(ask, 2)
    assert began.index(2) <= 5
