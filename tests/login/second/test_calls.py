"""How often providers are asked."""

import trio
import trio.testing
from trio.testing import MockClock

from sallyport.login.second.calls import Pace


async def test_who_comes_alone_does_not_wait(autojump_clock: MockClock) -> None:
    """A pace is felt only where there would be more."""
    pace = Pace(10)
    for _ in range(20):
        began = trio.current_time()
        await pace.keep()
        assert trio.current_time() == began
        await trio.sleep(0.1)


async def test_a_crowd_goes_one_by_one(autojump_clock: MockClock) -> None:
    """As many a second as there may be, the first come first; a rest before does not let more through."""
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
