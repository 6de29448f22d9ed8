"""The count of attempts to sign in that the store keeps."""

from functools import partial

from sallyport.areas.signin import repo
from sallyport.base.clock import SECOND
from tests.areas import Areas, SetClock

MOST, REFILL_S = 3, 10


async def attempts(areas: Areas, at: int) -> int:
    """Return the number of attempts that are allowed at a time."""
    take = partial(repo.take_attempt, name="ann", most=MOST, refill_us=REFILL_S * SECOND, at=at)
    count = 0
    while await areas.store.write(take):
        count += 1
    return count


async def test_a_clock_that_is_set_back_does_not_stop_sign_ins(areas: Areas, clock: SetClock) -> None:
    """If the clock was a day ahead, one attempt is allowed after it is set back, and one more at each refill."""
    clock.pass_by(86_400)
    assert await attempts(areas, clock()) == MOST
    clock.pass_by(-86_400)
    assert await attempts(areas, clock()) == 1
    clock.pass_by(REFILL_S)
    assert await attempts(areas, clock()) == 1


async def test_a_node_that_is_a_little_behind_counts_on(areas: Areas, clock: SetClock) -> None:
    """Attempts at a node whose clock is 30 seconds ahead count at a node with the right clock."""
    assert await attempts(areas, clock() + REFILL_S * MOST * SECOND) == MOST
    assert await attempts(areas, clock()) == 0
